"""Questions with folded answers, the control that shows one, and the cards that are made from them."""

import csv
import gzip
import io
import re
import sqlite3
import sys
import zipfile
from contextlib import closing
from pathlib import Path

import pytest
from bs4 import BeautifulSoup
from sphinx.application import Sphinx
from sphinx.util.docutils import docutils_namespace, patch_docutils

from tests.book.pages import text_of

DOCS = Path(__file__).parents[2] / "docs"
sys.path.insert(0, str(DOCS / "_ext"))

CONF = {
    "project": "Book",
    "extensions": [
        "myst_parser",
        "sphinxcontrib.bibtex",
        "katex",
        "computed",
        "claims",
        "boxes",
        "questions",
    ],
    "html_math_renderer": "katex",
    "bibtex_bibfiles": ["references.bib"],
    "bibtex_reference_style": "in_badge",
    "myst_enable_extensions": ["colon_fence", "dollarmath"],
    "myst_update_mathjax": False,
}
INDEX = "# Book\n\n```{toctree}\nsub/page\n```\n\n```{bibliography}\n```\n"
REFERENCES = "@misc{someone2020what, author={Someone, Ann}, title={What}, year={2020}}"
QUESTIONS = r"""# Page

## First steps

::::{question} Is $A < B\T$?
:label: q-less
:class: proof
It is, {num}`0.5` by half. {cited}`someone2020what, Table 1`

$$\softmax(x) < \R$$

```python
>>> 1 / 2
0.5
```
::::

## Later

::::{question} Two & two?
:label: q-four
- Four,
- *always*.
::::

"""


@pytest.fixture
def build(tmp_path):
    tmp_path.joinpath("references.bib").write_text(REFERENCES)
    tmp_path.joinpath("index.md").write_text(INDEX)
    tmp_path.joinpath("sub").mkdir()

    def of(text, builder="html"):
        tmp_path.joinpath("sub", "page.md").write_text(text)
        warnings = io.StringIO()
        folders = [tmp_path, None, tmp_path / "out", tmp_path / "trees"]
        with patch_docutils(), docutils_namespace():
            app = Sphinx(*folders, builder, confoverrides=CONF, status=None, warning=warnings, freshenv=True)
            app.build()
        (page,) = tmp_path.joinpath("out", "sub").glob("page.*html")
        return BeautifulSoup(page.read_text(), "html.parser"), warnings.getvalue()

    return of


def notes(file, folder):
    """(guid, tags, fields) of each note of an Anki deck, and the number of its cards."""
    with zipfile.ZipFile(file) as package:
        package.extract("collection.anki2", folder)
    with closing(sqlite3.connect(folder / "collection.anki2")) as collection:
        found = collection.execute("SELECT guid, tags, flds FROM notes ORDER BY id").fetchall()
        (cards,) = collection.execute("SELECT count(*) FROM cards").fetchone()
    return [(guid, tags.strip(), fields.split("\x1f")) for guid, tags, fields in found], cards


def test_a_question_is_an_exercise_with_its_label_and_its_answer_in_a_closed_fold(build):
    page, warnings = build(QUESTIONS)
    assert warnings == ""
    boxes = page.select(".exercise.question")
    assert [box["id"] for box in boxes] == ["q-less", "q-four"]
    assert [text_of(box.select_one(".admonition-title")) for box in boxes] == ["Question 1", "Question 2"]
    assert ["proof" in box["class"] for box in boxes] == [True, False]
    folds = [box.find_next_sibling() for box in boxes]
    assert [fold.name for fold in folds] == ["details", "details"]
    assert [text_of(fold.summary) for fold in folds] == ["Answer to Question 1", "Answer to Question 2"]
    assert not any(fold.has_attr("open") for fold in folds)


@pytest.mark.parametrize(
    "text, complaint",
    [
        ("::::{question} What?\nThis.\n::::", "begins with q-"),
        ("::::{question} What?\n:label: q-what\n::::", "q-what has no answer"),
        ("::::{question} What?\n:label: q-what\n:class: riddle\nThis.\n::::", "riddle"),
    ],
)
def test_what_is_no_question_fails_with_its_place(build, text, complaint):
    _, warnings = build(f"# Page\n\n{text}\n")
    assert complaint in warnings
    assert re.search(r"page\.md:[35]: WARNING", warnings)


def test_the_control_is_loaded_where_it_stands_and_nowhere_else(build, tmp_path):
    with_control = QUESTIONS.replace("## First steps", "## First steps\n\n:::{another}\n:::")
    page, warnings = build(with_control)
    assert warnings == ""
    assert len(page.find_all("show-another")) == 1
    (script,) = page.select("script[src*='another.js']")
    assert script.has_attr("defer")
    assert not script.has_attr("type")  # a module is refused from a folder
    assert "another" not in tmp_path.joinpath("out/index.html").read_text()
    page, _ = build(QUESTIONS)
    assert not page.select("script[src*='another.js'], link[href*='another.css']")


def test_an_epub_has_questions_and_answers_and_neither_control_nor_cards(build, tmp_path):
    text = QUESTIONS + ":::{another}\n:::\n\n:::{cards} x\n:::\n"
    page, _ = build(text, builder="epub")
    assert len(page.select(".question")) == 2
    assert not page.find("show-another")
    assert not page.select("a[href*='_downloads']")
    assert not list(tmp_path.joinpath("out").glob("_downloads/cards/*"))


def test_script_and_style_together_weigh_at_most_four_kilobytes_compressed():
    files = [DOCS / "_static" / f"another.{suffix}" for suffix in ("js", "css")]
    assert sum(len(gzip.compress(file.read_bytes())) for file in files) <= 4_000


class TestCards:
    @pytest.fixture
    def made(self, build, tmp_path):
        page, warnings = build(QUESTIONS + ":::{cards} some-cards\n:::\n")
        assert warnings == ""
        links = [link["href"] for link in page.select("a[href*='_downloads']")]
        assert links == [f"../_downloads/cards/some-cards.{suffix}" for suffix in ("apkg", "csv")]
        return [tmp_path / "out" / "sub" / link for link in links]

    def test_the_deck_has_a_note_and_a_card_for_each_question_under_its_heading(self, made, tmp_path):
        found, cards = notes(made[0], tmp_path)
        assert [(tags, fields[:2]) for _, tags, fields in found] == [
            ("first-steps", ["q-less", "First steps"]),
            ("later", ["q-four", "Later"]),
        ]
        assert cards == 2

    def test_what_a_note_says_is_html_with_formulas_as_tex_that_needs_no_macro(self, made, tmp_path):
        ((_, _, (_, _, question, answer)), (_, _, (_, _, amp, listed))), _ = notes(made[0], tmp_path)
        assert question == r"Is \(A &lt; B^{\mathsf{T}}\)?"
        assert r"<p>\[\operatorname{softmax}(x) &lt; \mathbb{R}\]</p>" in answer
        assert "It is, 0.5 by half." in answer
        assert '<span class="claim">[Someone 2020, Table 1]</span>' in answer
        assert "<pre>&gt;&gt;&gt; 1 / 2\n0.5</pre>" in answer
        assert amp == "Two &amp; two?"
        assert listed == "<ul><li><p>Four,</p></li><li><p><em>always</em>.</p></li></ul>"

    def test_the_csv_says_the_same_as_plain_text(self, made):
        with made[1].open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        assert [(row["label"], row["level"]) for row in rows] == [
            ("q-less", "First steps"),
            ("q-four", "Later"),
        ]
        assert rows[0]["question"] == r"Is \(A < B^{\mathsf{T}}\)?"
        assert rows[0]["answer"].split("\n\n") == [
            "It is, 0.5 by half. [Someone 2020, Table 1]",
            r"\[\operatorname{softmax}(x) < \mathbb{R}\]",
            ">>> 1 / 2\n0.5",
        ]
        assert rows[1]["answer"] == "- Four,\n- always."

    def test_a_note_keeps_its_identity_when_its_words_its_number_or_the_time_change(
        self, made, build, tmp_path, monkeypatch
    ):
        before = {fields[0]: guid for guid, _, fields in notes(made[0], tmp_path)[0]}
        monkeypatch.setenv("SOURCE_DATE_EPOCH", "2000000000")
        head, first, second = QUESTIONS.partition("::::{question} Is")[0], *QUESTIONS.split("## Later")
        changed = f"{head}{second.replace('Two', 'Three')}\n## More\n{first.partition('## First steps')[2]}"
        build(changed + "\n:::{cards} some-cards\n:::\n")
        found, _ = notes(made[0], tmp_path)
        assert [fields[0] for _, _, fields in found] == ["q-four", "q-less"]
        assert {fields[0]: guid for guid, _, fields in found} == before
        assert found[0][2][2] == "Three &amp; two?"


@pytest.mark.book
@pytest.mark.xdist_group("built")
class TestTheBook:
    @pytest.fixture
    def offered(self, book):
        page = book.page(book.root / "practice" / "more-questions.html")
        return page, [
            page.resolve(link["href"])[0] for link in page.body.select("a[href*='_downloads/cards']")
        ]

    def test_offers_forty_cards_four_times_ten(self, offered, tmp_path):
        page, (deck, table) = offered
        labels = [box["id"] for box in page.body.select(".question")]
        found, cards = notes(deck, tmp_path)
        assert [fields[0] for _, _, fields in found] == labels
        assert len(set(labels)) == len({guid for guid, _, _ in found}) == cards == 40
        levels = [fields[1] for _, _, fields in found]
        assert [levels.count(level) for level in dict.fromkeys(levels)] == [10, 10, 10, 10]
        with table.open(encoding="utf-8", newline="") as file:
            assert [row["label"] for row in csv.DictReader(file)] == labels

    def test_rests_every_answer_on_something(self, offered):
        page, _ = offered
        for box in page.body.select(".question"):
            fold = box.find_next_sibling("details")
            assert fold.select(".claim, .number, .cited-text, pre, a.reference"), box["id"]

    def test_says_outside_the_book_where_a_theorem_stands(self, offered, tmp_path):
        _, (deck, table) = offered
        first = notes(deck, tmp_path)[0][0][2][3]
        assert '<span class="claim">[proved: Theorem 1, why/set-operation]</span>' in first
        assert "[proved: Theorem 1, why/set-operation]" in table.read_text(encoding="utf-8")

    def test_leaves_no_macro_of_its_own_in_a_card(self, offered):
        _, (_, table) = offered
        text = table.read_text(encoding="utf-8")
        for macro in (r"\softmax", r"\Attn", r"\T ", r"\T(", r"\R^", "{num}", "{proved}"):
            assert macro not in text

    def test_loads_the_control_on_its_page_only(self, book):
        loading = [each.path for each in book.pages if each.soup.select("script[src*='another.js']")]
        assert loading == ["practice/rapid-fire.html"]

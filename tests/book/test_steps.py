"""A figure in steps: its directive, and the walkthrough of the page on clocks."""

import gzip
import io
import json
import re
import sys
from pathlib import Path

import pytest
from bs4 import BeautifulSoup
from sphinx.application import Sphinx
from sphinx.util.docutils import docutils_namespace, patch_docutils

from tests.book.pages import is_chapter, text_of

DOCS = Path(__file__).parents[2] / "docs"
sys.path.insert(0, str(DOCS / "_ext"))

CONF = {
    "project": "Book",
    "extensions": ["myst_parser", "gallery", "computed", "walkthrough"],
    "numfig": True,
    "myst_enable_extensions": ["colon_fence"],
}
RECORD = {
    "script": "why/plot_x",
    "alt": "One dot.",
    "alts": ["One dot.", "Two dots.", "Three dots."],
    "numbers": {"count": 120, "sentence": "the “cat”"},
    "measured": None,
    "images": [f"gallery/why/images/plot_x_{number}.svg" for number in (1, 2, 3)],
}
STEPS = [f":::{{step}} Title {n}\nText {n} with {{num}}`120 <plot_x:count>`.\n:::" for n in (1, 2, 3)]


def walk(*steps, script="plot_x"):
    return "\n".join([f"::::{{walkthrough}} {script}", *steps, "The caption.", "::::"])


@pytest.fixture
def build(tmp_path):
    """A book of two pages and one script page; returns the first page and the warnings."""
    images = tmp_path / "gallery" / "why" / "images"
    images.mkdir(parents=True)
    images.joinpath("plot_x.json").write_text(json.dumps(RECORD))
    for number in (1, 2, 3):
        images.joinpath(f"plot_x_{number}.svg").write_text('<svg xmlns="http://www.w3.org/2000/svg"/>')
    images.parent.joinpath("plot_x.rst").write_text("A script\n========\n\nText.\n")
    tmp_path.joinpath("index.md").write_text("# Book\n\n```{toctree}\npage\ngallery/why/plot_x\n```\n")

    def of(text, builder="html"):
        tmp_path.joinpath("page.md").write_text(f"# Page\n\n## Section\n\n{text}\n")
        warnings = io.StringIO()
        folders = [tmp_path, None, tmp_path / "out", tmp_path / "trees"]
        with patch_docutils(), docutils_namespace():
            app = Sphinx(*folders, builder, confoverrides=CONF, status=None, warning=warnings, freshenv=True)
            app.build()
        (page,) = tmp_path.joinpath("out").glob("page.*html")
        return BeautifulSoup(page.read_text(), "html.parser"), warnings.getvalue()

    return of


def test_each_step_has_the_next_picture_with_its_alt_a_heading_and_its_text(build):
    page, warnings = build(walk(*STEPS) + "\n\nSee {numref}`plot_x`.")
    assert warnings == ""
    steps = page.select("figure.walkthrough > walk-through > .step")
    assert [step["id"] for step in steps] == ["step-1", "step-2", "step-3"]
    assert [step.img["alt"] for step in steps] == RECORD["alts"]
    assert [Path(step.img["src"]).name for step in steps] == [Path(name).name for name in RECORD["images"]]
    assert [text_of(step.h3) for step in steps] == [f"Step {n} Title {n}" for n in (1, 2, 3)]
    assert [text_of(step.select_one(".text")) for step in steps] == [
        f"Text {n} with 120 ." for n in (1, 2, 3)
    ]
    for step in steps:
        assert page.find(id=step["aria-labelledby"]) is step.h3


def test_it_is_one_figure_numbered_and_linked_to_its_script_and_back(build, tmp_path):
    page, warnings = build(walk(*STEPS) + "\n\nSee {numref}`plot_x`.")
    assert warnings == ""
    (figure,) = page.find_all("figure")
    assert text_of(figure.figcaption).startswith("Fig. 1 The caption. plot_x.py")
    assert figure.figcaption.select_one("a[href='gallery/why/plot_x.html']")
    assert page.find("a", href=f"#{figure['id']}", string=re.compile("Fig. 1")) or page.select_one(
        f"a[href='#{figure['id']}'] .std-numref"
    )
    script = BeautifulSoup(tmp_path.joinpath("out/gallery/why/plot_x.html").read_text(), "html.parser")
    assert script.find("p", class_="shown-in").a["href"] == "../../page.html"


def test_the_numbers_of_the_script_go_to_the_element(build):
    page, _ = build(walk(*STEPS))
    assert json.loads(page.find("walk-through")["data-settings"]) == RECORD["numbers"]


def test_the_headings_of_steps_stand_in_no_table_of_contents(build, tmp_path):
    build(walk(*STEPS))
    index = tmp_path.joinpath("out/index.html").read_text()
    assert "Section" in index
    assert "Title 1" not in index


def test_script_and_style_are_loaded_where_steps_are_and_nowhere_else(build, tmp_path):
    page, _ = build(walk(*STEPS))
    (script,) = page.select("script[src*='walkthrough.js']")
    assert script.has_attr("defer")
    assert not script.has_attr("type")  # a module is refused from a folder
    assert page.select("link[href*='walkthrough.css']")
    assert "walkthrough" not in tmp_path.joinpath("out/index.html").read_text()


def test_an_epub_has_the_steps_and_no_element_or_script_of_ours(build):
    page, warnings = build(walk(*STEPS), builder="epub")
    assert [step.img["alt"] for step in page.select("figure .step")] == RECORD["alts"]
    assert [text_of(step.h3) for step in page.select(".step")] == [f"Step {n} Title {n}" for n in (1, 2, 3)]
    assert not page.find("walk-through")
    assert not page.select("script[src*='walkthrough']")
    assert "walkthrough" not in warnings


@pytest.mark.parametrize(
    "text, complaint",
    [
        (walk(*STEPS[:2]), "plot_x.py drew 3 pictures, and there are 2 steps"),
        (walk(*STEPS, script="plot_z"), "no gallery script plot_z.py"),
        (walk(*STEPS[:2], f":::{{step}} Long\n{'word ' * 61}\n:::"), "step 'Long' has 61 words; at most 60"),
    ],
)
def test_what_does_not_fit_the_script_or_the_reader_fails_with_its_place(build, text, complaint):
    _, warnings = build(text)
    assert complaint in warnings
    assert re.search(r"page\.md:\d+: WARNING", warnings)


def test_sixty_words_are_not_too_many(build):
    _, warnings = build(walk(*STEPS[:2], f":::{{step}} Long\n{'word ' * 60}\n:::"))
    assert warnings == ""


def test_script_and_style_together_weigh_at_most_twelve_kilobytes_compressed():
    files = [DOCS / "_static" / f"walkthrough.{suffix}" for suffix in ("js", "css")]
    assert sum(len(gzip.compress(file.read_bytes())) for file in files) <= 12_000


@pytest.mark.book
@pytest.mark.xdist_group("built")
class TestTheClocks:
    @pytest.fixture
    def page(self, book):
        return book.page(book.root / "absolute" / "clocks.html")

    def test_are_seven_steps_of_at_most_sixty_words_with_a_computed_number_each(self, page):
        steps = page.body.select("figure.walkthrough .step")
        assert len(steps) == 7
        for step in steps:
            text = step.select_one(".text")
            assert 20 <= len(text.get_text().split()) <= 60, text_of(step.h3)
            assert text.select("span.number[data-script=plot_sinusoid_walkthrough]"), text_of(step.h3)
            assert len(step.select("img")) == 1

    def test_load_their_script_on_their_page_only(self, book, page):
        loading = [each.path for each in book.pages if each.soup.select("script[src*='walkthrough.js']")]
        assert loading == [page.path]

    def test_are_a_light_page(self, page):
        assert is_chapter(page.path)
        assert page.file.stat().st_size <= 250_000

"""What machines read of the book: descriptions, llms.txt, and, with an address, cards and a map."""

import io
import re
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
from bs4 import BeautifulSoup
from sphinx.application import Sphinx
from sphinx.util.docutils import docutils_namespace, patch_docutils

from tests.book.pages import text_of
from tests.book.test_built import BUILT, none

# Libraries of the book use parts of Sphinx that are on their way out.
pytestmark = [
    pytest.mark.filterwarnings(f"ignore::sphinx.deprecation.RemovedInSphinx{version}Warning")
    for version in (10, 11)
]
DOCS = Path(__file__).parents[2] / "docs"
sys.path.insert(0, str(DOCS / "_ext"))

from described import LONGEST, opening  # noqa: E402

INDEX = """---
myst:
  html_meta:
    description: "A book."
---
# The book

Not read, since the front matter says it.

```{toctree}
:caption: "1 · Part"
one
```

```{toctree}
:caption: Back matter
two
```
"""
ONE = """# The *first* page

A row is $\\theta_i$ wide. {.x}
*What* is a [row](two.md)?
This comes later.

After this page you can
"""
TWO = """# The second

**Explained in** [one](one.md)

What it says. And more.

## A section

Is this asked?
"""


@pytest.fixture
def build(tmp_path):
    """A book of three pages; returns its folder."""
    for name, text in (("index", INDEX), ("one", ONE.replace(" {.x}", "")), ("two", TWO)):
        tmp_path.joinpath(f"{name}.md").write_text(text)

    def of(**more):
        conf = {
            "project": "Book",
            "html_title": "Book",
            "extensions": ["myst_parser", "katex", "described"],
            "myst_enable_extensions": ["dollarmath"],
            "html_math_renderer": "katex",
            **more,
        }
        folders, warnings = (tmp_path, None, tmp_path / "out", tmp_path / "trees"), io.StringIO()
        with patch_docutils(), docutils_namespace():
            app = Sphinx(*folders, "html", confoverrides=conf, status=None, warning=warnings, freshenv=True)
            app.build()
        assert warnings.getvalue() == ""
        return tmp_path / "out"

    return of


def metas(file):
    soup = BeautifulSoup(file.read_text(), "html.parser")
    return {tag.get("name") or tag.get("property"): tag["content"] for tag in soup.select("meta[content]")}


def test_a_page_is_described_by_its_opening_as_far_as_the_first_question(build):
    assert metas(build() / "one.html")["description"] == "A row is θᵢ wide. What is a row?"


def test_a_page_that_asks_nothing_before_its_first_section_is_described_by_its_first_sentences(build):
    assert metas(build() / "two.html")["description"] == "What it says. And more."


def test_the_front_matter_has_the_last_word(build):
    page = build() / "index.html"
    assert metas(page)["description"] == "A book."
    assert page.read_text().count('name="description"') == 1


def test_generated_pages_are_described_too(build):
    out = build()
    assert {len(metas(out / name)["description"]) > 30 for name in ("genindex.html", "search.html")} == {True}


def test_of_a_long_opening_the_last_sentences_are_kept():
    long = " ".join(f"Sentence number {number} says little." for number in range(20))
    found = opening([long, "So what?"])
    assert found.endswith("Sentence number 19 says little. So what?")
    assert len(found) <= LONGEST
    assert len(opening([long])) <= LONGEST
    assert opening([long]).startswith("Sentence number 0 says little. Sentence")
    assert opening([]) == ""


def test_llms_txt_names_every_page_in_the_order_of_the_book(build):
    assert (build() / "llms.txt").read_text().splitlines() == [
        "# The book",
        "",
        "> A book.",
        "",
        "## 1 · Part",
        "",
        "- [The first page](one.html): A row is θᵢ wide. What is a row?",
        "",
        "## Back matter",
        "",
        "- [The second](two.html): What it says. And more.",
    ]


def test_without_an_address_no_page_names_one(build):
    out = build()
    assert not (out / "sitemap.xml").exists()
    for page in out.glob("*.html"):
        assert not any(name.startswith("og:") for name in metas(page) if name)
        assert "canonical" not in page.read_text()


@pytest.mark.parametrize("base", ["https://book.example/posbook", "https://book.example/posbook/"])
def test_with_an_address_pages_have_cards_and_the_book_a_map(build, base):
    out = build(html_baseurl=base)
    said = metas(out / "one.html")
    assert said["og:title"] == "The first page"
    assert said["og:type"] == "article"
    assert said["og:site_name"] == "Book"
    assert said["og:url"] == "https://book.example/posbook/one.html"
    assert said["og:description"] == said["description"]
    assert metas(out / "index.html")["og:type"] == "website"
    assert (
        '<link rel="canonical" href="https://book.example/posbook/one.html"' in (out / "one.html").read_text()
    )
    places = [tag.text for tag in ElementTree.parse(out / "sitemap.xml").iter() if tag.tag.endswith("loc")]
    assert places == [f"https://book.example/posbook/{name}.html" for name in ("index", "one", "two")]
    assert "(https://book.example/posbook/two.html): What it says." in (out / "llms.txt").read_text()


def test_an_address_that_is_taken_back_takes_the_map_with_it(build):
    build(html_baseurl="https://book.example/")
    assert not (build() / "sitemap.xml").exists()


class TestTheBuiltBook:
    pytestmark = BUILT

    def test_describes_every_page_in_plain_words(self, book):
        faults = []
        for page in book.pages:
            tags = page.soup.select("meta[name=description]")
            said = tags[0]["content"] if tags else ""
            if len(tags) != 1 or len(said) < 20 or len(said) > LONGEST:
                faults.append(f"{page}: {len(tags)} descriptions, {len(said)} characters: {said}")
            elif re.search(r"[$\\{}]|\[(proved|measured|cited)", said):
                faults.append(f"{page}: not plain: {said}")
        none(faults)

    def test_describes_no_two_pages_alike(self, book):
        seen, faults = {}, []
        for page in book.pages:
            said = page.soup.select_one("meta[name=description]")["content"]
            if said in seen:
                faults.append(f"{page} and {seen[said]}: {said}")
            seen[said] = page
        none(faults)

    def test_lists_every_chapter_in_llms_txt_and_nothing_that_is_not_there(self, book):
        text = (book.root / "llms.txt").read_text(encoding="utf-8")
        links = re.findall(r"^- \[(.+)\]\(([^)]+)\)(?:: (.+))?$", text, re.MULTILINE)
        assert {page.path for page in [*book.chapters, *book.script_pages] if page.path != "index.html"} <= {
            path for _, path, _ in links
        }
        assert all((book.root / path).is_file() and said for _, path, said in links)
        for title, path, _ in links:
            assert title == text_of(book.page(book.root / path).soup.h1).removesuffix("¶")

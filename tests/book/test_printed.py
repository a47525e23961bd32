"""The printed book: every chapter once, links that stay inside it, solutions at the end, no scripts."""

import sys
from collections import Counter
from pathlib import Path

import pytest
from bs4 import BeautifulSoup

from tests.book.pages import location
from tests.book.test_built import BUILT, none

DOCS = Path(__file__).parents[2] / "docs"
sys.path.insert(0, str(DOCS / "_ext"))

import printed  # noqa: E402

HEAD = '<head><title>x</title><link rel="stylesheet" href="{0}_static/a.css?v=1">{1}</head>'
NAV = (
    '<div class="sidebar-tree"><ul><li><a class="reference" href="notation.html">Notation</a></li></ul>'
    '<p class="caption"><span>1 · Part</span></p>'
    '<ul><li><a class="reference" href="why/one.html">One</a></li></ul>'
    '<p class="caption">Back</p>'
    '<ul><li><a class="reference" href="gallery/index.html">Gallery</a></li></ul></div>'
)
FOOT = '<footer><div class="copyright">2026</div><p class="licence">CC BY 4.0</p></footer>'
PAGES = {
    "index.html": f"{HEAD.format('', '')}<body>{NAV}<article role='main'><section id='book'><h1>Book"
    f"<a class='headerlink' href='#book'>¶</a></h1><a id='to' href='why/one.html#thm-1'>it</a></section>"
    f"</article>{FOOT}</body>",
    "notation.html": f"{HEAD.format('', '')}<body><article role='main'><h1 id='same'>N</h1></article></body>",
    "why/one.html": f"{HEAD.format('../', '')}<body><article role='main'><section id='same'>"
    "<h1>One &amp; all</h1>"
    "<p><a href='#thm-1'>up</a> <a href='#thm-1'>up</a></p>"
    "<div id='thm-1' aria-labelledby='same'>T</div><a id='self' href='#thm-1'>up</a>"
    "<a id='home' href='../index.html#to'>home</a><a id='out' href='https://x.example/'>out</a>"
    "<a id='script' href='../gallery/why/plot_x.html'>plot_x.py</a>"
    "<img alt='' src='../_images/a.svg'><div class='exercise' id='ex'>E</div>"
    "<details class='solution' id='s-1'><summary>Solution to E</summary><p>Yes.</p></details>"
    "<script>no()</script></section></article></body>",
}


@pytest.fixture
def html(tmp_path):
    for name, text in PAGES.items():
        file = tmp_path / "html" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"<!doctype html><html>{text}</html>")
    return tmp_path / "html"


def assembled(html):
    return BeautifulSoup(printed.assemble(html, html.parent / "pdf"), "html.parser")


def test_pages_stand_in_the_order_of_the_book_below_their_parts(html):
    book = assembled(html)
    assert [tag.get_text() for tag in book.select("h1, h2")] == [
        "Book",
        "N",
        "1 · Part",
        "One & all",
        "Solutions",
    ]
    assert [tag["id"] for tag in book.select(".page")] == ["index", "notation", "why-one"]
    titles = ["Book", "Notation", "One", "Solutions"]
    assert [tag.get_text() for tag in book.select(".all-pages a")] == titles
    assert [a["href"] for a in book.select(".all-pages a")] == [
        "#index",
        "#notation",
        "#why-one",
        "#solutions",
    ]


def test_links_between_pages_stay_links(html):
    book = assembled(html)
    hrefs = {tag["id"]: tag["href"] for tag in book.select(".page a[id]")}
    assert hrefs == {
        "index--to": "#why-one--thm-1",
        "why-one--self": "#why-one--thm-1",
        "why-one--home": "#index--to",
        "why-one--out": "https://x.example/",
    }
    assert {tag["href"] for tag in book.select(".page p > a") if tag.text == "up"} == {"#why-one--thm-1"}
    assert book.find(id="why-one--thm-1")["aria-labelledby"] == "why-one--same"


def test_a_link_to_what_is_left_out_is_text_until_the_book_has_an_address(html):
    assert "plot_x.py" in assembled(html).get_text()
    page = html / "why/one.html"
    canonical = '<link rel="canonical" href="https://book.example/why/one.html"></head>'
    page.write_text(page.read_text().replace("</head>", canonical))
    found = assembled(html).find(id="why-one--script")
    assert found["href"] == "https://book.example/gallery/why/plot_x.html"


def test_solutions_come_at_the_end_open_and_linked_from_their_exercises(html):
    book = assembled(html)
    solution = book.find(id="why-one--s-1")
    assert solution.name == "div"
    assert solution.find_previous("h1")["id"] == "solutions"
    assert solution.get_text(" ", strip=True) == "Solution to E Yes."
    link = book.select_one(".to-solution a")
    assert link["href"] == "#why-one--s-1"
    assert link.find_previous(class_="exercise")["id"] == "why-one--ex"


def test_pictures_and_styles_are_found_from_the_folder_of_the_whole_and_no_script_is_left(html):
    book = assembled(html)
    assert book.img["src"] == "../html/_images/a.svg"
    assert [tag["href"] for tag in book.select("link")] == ["../html/_static/a.css"]
    assert not book.find_all("script")


def test_a_machine_without_chromium_is_told_what_to_install(html, monkeypatch):
    monkeypatch.setenv("CHROMIUM", "no-such-browser")
    with pytest.raises(ValueError, match="apt-get install chromium"):
        printed.write(html, html.parent / "pdf")


@pytest.fixture(scope="module")
def whole(book):
    return BeautifulSoup(printed.assemble(location(), location().parent / "pdf"), "html.parser")


class TestTheBuiltBook:
    pytestmark = BUILT

    def test_has_every_chapter_and_every_solution(self, book, whole):
        ids = {tag["id"] for tag in whole.select(".page")}
        assert {page.path.removesuffix(".html").replace("/", "-") for page in book.chapters} <= ids
        solutions = sum(len(page.body.select("details.solution")) for page in book.chapters)
        assert len(whole.select("div.solution")) == solutions > 0
        assert not whole.find_all("details")

    def test_leads_nowhere_that_is_not_in_it_and_has_every_id_once(self, whole):
        ids = Counter(tag["id"] for tag in whole.find_all(id=True))
        faults = [f"{name} stands {number} times" for name, number in ids.items() if number > 1]
        for link in whole.select("a[href]"):
            url = link["href"]
            if not (url.startswith("#") and url[1:] in ids) and "://" not in url:
                faults.append(f"{link.get_text()!r} leads to {url}")
        folder = location().parent / "pdf"
        faults += [t["src"] for t in whole.select("img") if not (folder / t["src"]).resolve().is_file()]
        none(faults)

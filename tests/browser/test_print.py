"""A page that a reader prints: light, whole, and without the screen's furniture."""

import pytest

from tests.browser.test_pages import url
from tests.browser.views import DESK_DARK

pytestmark = [pytest.mark.book, pytest.mark.browser]
CHAPTER = "why/three-sentences.html"
FURNITURE = ".sidebar-drawer, .toc-drawer, .mobile-header, .content-icon-container, .related-pages"


@pytest.fixture
def paper(built, contexts):
    """A chapter as the printer gets it from a reader whose screen is dark."""
    with contexts.open(url(CHAPTER), DESK_DARK) as page:
        page.emulate_media(media="print")
        yield page
        page.emulate_media(media="screen")


def test_paper_has_no_furniture_of_the_screen(paper):
    assert paper.locator("article h1").is_visible()
    assert paper.locator(FURNITURE).evaluate_all("all => all.filter(e => e.checkVisibility()).length") == 0


def test_paper_shows_every_solution(paper):
    solutions = paper.locator("details.solution > :not(summary)")
    assert solutions.count() > 0
    assert all(solution.bounding_box()["height"] > 0 for solution in solutions.all())


def test_paper_is_light_even_from_a_dark_screen(paper):
    def style(selector, name):
        return paper.evaluate(f"getComputedStyle(document.querySelector({selector!r})).{name}")

    scheme, ink, claim = style("body", "colorScheme"), style("article p", "color"), style(".proved", "color")
    assert (scheme, ink, claim) == ("light", "rgb(0, 0, 0)", "rgb(27, 110, 74)")


def test_a_link_out_of_the_book_is_written_out(paper):
    written = paper.evaluate(
        "(() => { const a = document.createElement('a'); a.className = 'external'; a.href = 'https://x.example/';"
        " document.querySelector('article p').append(a); return getComputedStyle(a, '::after').content; })()"
    )
    assert written == '" (" attr(href) ")"' or "https://x.example/" in written


def test_nothing_scrolls_on_paper(paper):
    scrolling = paper.locator("article pre").evaluate_all(
        "all => all.filter(e => getComputedStyle(e).overflowX !== 'visible').length"
    )
    assert scrolling == 0

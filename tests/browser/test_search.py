"""The search, opened from a folder, finds first what a reader looks for."""

from urllib.parse import quote_plus, unquote, urlsplit

import pytest

from tests.book.pages import location
from tests.browser.views import DESK

SHOWN = 3
WANTED = [
    ("interleaved", "rotary/layouts"),
    ("clipped", "relative/shaw"),
    ("saturate", "relative/t5-bias"),
    ("buckets", "relative/t5-bias"),
    ("stale cache", "rotary/cache"),
    ("wavelength", "absolute/sinusoidal"),
    ("bfloat16", "rotary/precision"),
    ("slope", "relative/alibi"),
    ("causal mask", "why/causal-mask"),
    ("permutation", "why/set-operation"),
    ("symmetry", "why/symmetry"),
    ("learned table", "absolute/learned"),
    ("decay", "rotary/decay"),
    ("video", "rotary/grids"),
    ("KERPLE", "relative/others"),
    ("anticlockwise", "notation"),
    ("posbook.rotary", "reference/rotary"),
    ("NoPE", "none/trained"),
    ("RoPE breaks", "length/what-breaks"),
    ("beyond trained length", "length/what-breaks"),
    ("extrapolation", "length/train-short-test-long"),
    ("fluent then nonsense", "use/porting"),
    ("rotate_half", "rotary/layouts"),
    ("sink", "rotary/cache"),
    ("counting", "relative/others"),
]


@pytest.mark.book
@pytest.mark.browser
@pytest.mark.usefixtures("built", "browser")
@pytest.mark.parametrize("query, page", WANTED)
def test_the_page_that_a_reader_wants_is_among_the_first_three(query, page, contexts):
    html = location()
    with contexts.open(f"{(html / 'search.html').as_uri()}?q={quote_plus(query)}", DESK) as shown:
        # The results come one by one, and the summary after the last of them.
        shown.wait_for_function("document.querySelector('.search-summary')?.textContent")
        links = shown.locator("#search-results li a").evaluate_all("all => all.map(a => a.href)")
    found = [unquote(urlsplit(link).path).removeprefix(f"{html}/").removesuffix(".html") for link in links]
    assert page in found[:SHOWN], f"{query!r} finds {found[:8]}"

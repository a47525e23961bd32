r"""The built book in a browser: readable in every view, offline, and usable by keyboard.

The pages are opened from the disk, as a reader without a network opens them.
"""

import pytest

from tests.book.checks import KB, LOADED_LIMIT, PAGE_LIMIT
from tests.book.pages import is_built, is_chapter, is_script_page, location, page_paths
from tests.book.test_built import none
from tests.browser import views
from tests.browser.views import DESK, PHONE, VIEWS, View

HTML = location()
PAGES = page_paths(HTML) if is_built() else ["index.html"]
CHAPTERS = [path for path in PAGES if is_chapter(path)] or ["index.html"]


def one_of_each_kind():
    """A page of each kind that is generated, not written: what is right on one is right on its siblings."""
    kinds = [is_script_page, lambda path: path.startswith("reference/")]
    found = [next((path for path in PAGES if kind(path)), None) for kind in kinds]
    named = ["index.html", "gallery/index.html", "genindex.html", "search.html"]
    return {path for path in [*found, *named] if path in PAGES}


IN_ALL_VIEWS = {*CHAPTERS, *one_of_each_kind()}

pytestmark = pytest.mark.browser
every_page = pytest.mark.parametrize("path", PAGES)
every_chapter = pytest.mark.parametrize("path", CHAPTERS)


def url(path):
    return (HTML / path).as_uri()


@pytest.mark.book
@pytest.mark.usefixtures("built", "browser")
class TestAPage:
    @pytest.mark.parametrize(
        "path, view",
        [(path, view) for path in PAGES for view in (VIEWS if path in IN_ALL_VIEWS else [DESK])],
        ids=str,
    )
    def test_has_no_serious_barrier(self, path, view, contexts):
        with contexts.open(url(path), view) as page:
            none(views.axe_faults(page))

    @every_page
    def test_does_not_scroll_sideways(self, path, contexts):
        with contexts.open(url(path), PHONE) as page:
            none(views.sideways_faults(page))
            page.set_viewport_size({"width": 360, "height": views.HEIGHTS[360]})
            none(views.sideways_faults(page))

    @every_page
    def test_asks_for_nothing_outside_its_folder_and_has_no_error(self, path, contexts):
        traffic = views.Traffic()
        with contexts.open(url(path), DESK, traffic.listen) as page:
            # What comes late comes on scrolling: lazy pictures, observers.
            page.evaluate("window.scrollTo(0, document.body.scrollHeight)")
            page.wait_for_timeout(100)
        none(traffic.faults())


@pytest.mark.book
@pytest.mark.usefixtures("built", "browser")
class TestAChapter:
    @every_chapter
    def test_is_light(self, path, contexts):
        traffic = views.Traffic()
        with contexts.open(url(path), DESK, traffic.listen):
            html = (HTML / path).stat().st_size
            loaded = traffic.weight({".css", ".js", ".woff", ".woff2", ".ttf", ".otf"})
        assert html <= PAGE_LIMIT, f"{html // KB} KB of HTML"
        assert loaded <= LOADED_LIMIT, f"{loaded // KB} KB of styles, scripts and fonts"

    @every_chapter
    def test_begins_no_line_with_the_comma_of_a_formula(self, path, contexts):
        with contexts.open(url(path), PHONE) as page:
            none(views.stray_marks(page))

    @every_chapter
    def test_keeps_the_numbers_of_formulas_off_the_formulas(self, path, contexts):
        with contexts.open(url(path), PHONE) as page:
            none(views.covered_numbers(page))

    @every_chapter
    def test_opens_its_solutions_by_keyboard(self, path, contexts):
        with contexts.open(url(path), DESK) as page:
            none(views.fold_faults(page))

    @every_chapter
    def test_turns_its_figures_with_the_theme_against_the_system(self, path, contexts):
        with contexts.open(url(path), View(1280, "light", system="dark")) as page:
            light = views.pictures(page)
        with contexts.open(url(path), View(1280, "dark", system="light")) as page:
            dark = views.pictures(page)
        none(views.theme_faults(light, dark))


@pytest.mark.book
@pytest.mark.usefixtures("built", "browser")
class TestTheBook:
    @pytest.mark.parametrize("system", ["light", "dark"])
    @pytest.mark.parametrize("path", [CHAPTERS[0], "use/heard-and-checked.html"])
    def test_has_no_serious_barrier_for_who_never_touched_the_switch(self, path, system, contexts):
        with contexts.open(url(path), View(1280, "auto", system=system)) as page:
            none(views.axe_faults(page))

    def test_turns_its_figures_when_the_reader_turns_the_switch(self, contexts):
        with contexts.open(url(CHAPTERS[0]), View(1280, "light", system="dark")) as page:
            light = views.pictures(page)
            switch = page.locator("button.theme-toggle:visible").first
            for _ in range(3):
                switch.click()
                if page.evaluate("document.body.dataset.theme") == "dark":
                    break
            none(views.theme_faults(light, views.pictures(page)))

    def test_finds_a_page_by_its_words(self, contexts):
        traffic = views.Traffic()
        with contexts.open(url("search.html") + "?q=permutation", DESK, traffic.listen) as page:
            page.wait_for_selector("#search-results li a")
            found = page.locator("#search-results li a").first
            assert found.inner_text().strip()
            found.click()
            page.wait_for_load_state("load")
            assert "permutation" in page.locator("[role=main]").inner_text().lower()
        none(traffic.faults())


# The questions themselves, on pages in which a fault is planted.


@pytest.fixture
def blank(contexts, tmp_path):
    """A page with the given body, opened in a view."""

    def show(body, view=PHONE, listen=None):
        file = tmp_path / "page.html"
        file.write_text(
            "<!doctype html><html lang='en'><head><meta charset='utf-8'><title>A page</title>"
            "<meta name='viewport' content='width=device-width'></head>"
            f"<body><main role='main'><h1>A page</h1>{body}</main></body></html>",
            encoding="utf-8",
        )
        return contexts.open(file.as_uri(), view, listen)

    return show


COMMA = (
    "<p style='width: 1px; white-space: {}'><span class='math'>"
    "<span class='katex-base' style='display: inline-block'>x</span></span>, and</p>"
)
WIDE = "<pre style='{}'>" + "x" * 200 + "</pre>"


@pytest.mark.parametrize(
    "question, body, said",
    [
        (views.axe_faults, "<p>Black on white.</p>", None),
        (views.axe_faults, "<p style='color: #bbb'>Pale.</p>", "color-contrast"),
        (views.axe_faults, "<a href='page.html'></a>", "link-name"),
        (views.sideways_faults, WIDE.format("overflow-x: auto"), None),
        (views.sideways_faults, WIDE.format(""), "page scrolls sideways"),
        (views.sideways_faults, f"<div style='overflow: hidden'>{WIDE.format('')}</div>", "is cut off"),
        (
            views.sideways_faults,
            "<div style='overflow: auto'><article><p style='width: 600px'>Wide.</p></article></div>",
            "600 px",
        ),
        (
            views.sideways_faults,
            f"<div style='width: 600px; overflow: auto'>{WIDE.format('')}</div>",
            "sticks out",
        ),
        (views.fold_faults, "<details class='solution'><summary>S</summary><p>Yes.</p></details>", None),
        (
            views.fold_faults,
            "<details class='solution' open><summary>S</summary><p>Yes.</p></details>",
            "is open",
        ),
        (
            views.fold_faults,
            "<details class='solution'><summary onclick='return false'>S</summary><p>Yes.</p></details>",
            "does not open",
        ),
        (
            views.fold_faults,
            "<details class='solution'><summary style='visibility: hidden'>S</summary><p>Yes.</p></details>",
            "cannot be reached",
        ),
        (
            views.covered_numbers,
            "<div class='math'><span class='katex-html'><span class='katex-base'>x = 1</span></span>"
            " <a class='equation-number'>(1)</a></div>",
            None,
        ),
        (
            views.covered_numbers,
            "<div class='math' style='position: relative'>"
            "<span class='katex-html'><span class='katex-base'>x = 1</span></span>"
            "<a class='equation-number' style='position: absolute; left: 9px'>(1)</a></div>",
            "lies on its formula",
        ),
        (views.stray_marks, COMMA.format("nowrap"), None),
        (views.stray_marks, COMMA.format("normal"), "a line begins with"),
        (
            views.covered_numbers,
            "<div class='math'>x = 1 <a class='equation-number'>(1)</a></div>",
            "no formula",
        ),
    ],
)
def test_a_planted_fault_is_seen(question, body, said, blank):
    with blank(body) as page:
        faults = question(page)
    assert (faults == []) if said is None else any(said in fault for fault in faults)


@pytest.mark.parametrize(
    "body, said",
    [
        ("<p>Quiet.</p>", None),
        ("<img alt='' src='https://cdn.example/i.png'>", "asks the network for https://cdn.example/i.png"),
        ("<script>throw new Error('broken')</script>", "page error: broken"),
        ("<script>console.error('unwell')</script>", "console error: unwell"),
        ("<img alt='' src='gone.png'>", "ERR_FILE_NOT_FOUND"),
        ("<script>fetch('page.html')</script>", "console error"),
    ],
)
def test_a_request_or_an_error_is_heard(body, said, blank):
    traffic = views.Traffic()
    with blank(body, listen=traffic.listen) as page:
        page.wait_for_timeout(100)
    faults = traffic.faults()
    assert (faults == []) if said is None else any(said in fault for fault in faults)


def test_files_are_weighed_once(blank, tmp_path):
    (tmp_path / "a.js").write_text("0" * 10)
    (tmp_path / "b.css").write_text("p{}")
    traffic = views.Traffic()
    body = (
        "<script src='a.js?v=1'></script><script src='a.js?v=2'></script><link rel='stylesheet' href='b.css'>"
    )
    with blank(body, listen=traffic.listen):
        assert traffic.weight({".js", ".css"}) == 13


@pytest.mark.parametrize(
    "style, scheme, said",
    [
        (
            "svg { background: white } @media (prefers-color-scheme: dark) { svg { background: #111 } }",
            "",
            None,
        ),
        ("svg { background: white }", "", "is not dark in the dark"),
        ("svg { background: #111 }", "", "does not follow the theme"),
        # A page that sets no color-scheme leaves the picture to the system, which prefers the opposite.
        (
            "svg { background: white } @media (prefers-color-scheme: dark) { svg { background: #111 } }",
            "light dark",
            "is not dark in the dark",
        ),
    ],
)
def test_a_figure_that_does_not_turn_is_seen(style, scheme, said, blank, tmp_path):
    (tmp_path / "f.svg").write_text(
        f'<svg xmlns="http://www.w3.org/2000/svg" width="90" height="60"><style>{style}</style></svg>'
    )
    shots = []
    for theme, system in (("light", "dark"), ("dark", "light")):
        body = f"<figure style='color-scheme: {scheme or theme}'><img alt='' src='f.svg'></figure>"
        with blank(body, View(1280, theme, system=system)) as page:
            shots.append(views.pictures(page))
    faults = views.theme_faults(*shots)
    assert (faults == []) if said is None else any(said in fault for fault in faults)

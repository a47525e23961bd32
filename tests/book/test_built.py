r"""The built book keeps its promises: offline, unbroken, described, light, and complete in every chapter."""

import random

import pytest

from tests.book import checks
from tests.book.pages import Book

BUILT = [pytest.mark.book, pytest.mark.xdist_group("built")]


def none(faults):
    if faults:
        pytest.fail(f"{len(faults)} faults\n" + "\n".join(faults[:100]), pytrace=False)


class TestTheBuiltBook:
    pytestmark = BUILT

    def test_loads_nothing_from_the_network(self, book):
        none(checks.remote_resources(book.pages))

    def test_has_no_broken_link_or_anchor(self, book):
        none(checks.broken_links(book.pages))

    def test_gives_every_picture_an_alt_text(self, book):
        none(checks.missing_alt(book.pages))

    def test_describes_every_figure_in_words_of_its_own(self, book):
        none(checks.poor_alt(book.pages))

    def test_shows_no_picture_that_is_heavy(self, book):
        none(checks.heavy_pictures(book.pages))

    def test_names_its_licence_on_every_page(self, book):
        none(checks.missing_licence(book.pages))

    def test_can_be_searched_from_a_folder(self, book):
        none(checks.unsearchable(book.pages))

    def test_needs_no_server(self, book):
        none(checks.machine_only(book.pages))

    def test_names_no_address_while_none_is_set(self, book):
        invented = 'link[rel="canonical"], meta[property="og:url"], .edit-this-page, .view-this-page'
        none([f"{page.path}: {found}" for page in book.pages for found in page.soup.select(invented)])

    def test_lets_every_script_and_its_figure_be_downloaded(self, book):
        assert book.script_pages
        none(checks.missing_downloads(book.script_pages))

    def test_says_the_licence_inside_every_figure_that_can_be_downloaded(self, book):
        none(checks.unlicensed_files(book.script_pages))

    def test_has_no_picture_twice(self, book):
        none(checks.repeated_pictures(book.pages))


class TestEveryChapter:
    pytestmark = BUILT

    @pytest.fixture
    def chapters(self, book):
        assert book.chapters
        return book.chapters

    def test_is_light(self, chapters):
        none(checks.heavy_pages(chapters))

    def test_has_one_title_and_headings_in_order(self, chapters):
        none(checks.disordered_headings(chapters))

    def test_has_every_id_once(self, chapters):
        none(checks.repeated_ids(chapters))

    def test_asks_for_a_proof_and_for_a_computation(self, chapters):
        none(checks.missing_practice(chapters))

    def test_solves_its_exercises_in_folds(self, chapters):
        none(checks.unsolved_exercises(chapters))

    def test_ends_with_what_we_keep(self, chapters):
        none(checks.missing_keepsake(chapters))

    def test_shows_a_figure(self, chapters):
        none(checks.pages_without_figure(chapters))

    def test_links_its_figures_to_their_scripts_and_back(self, chapters):
        none(checks.unlinked_figures(chapters))


# The checks themselves, on a book of one chapter and one script where all is well until a fault is planted.

ALT = "A line that climbs from one to three over three steps, in the colour of positions."
FOOTER = "<footer>Text CC BY 4.0</footer>"
CHAPTER = f"""<!doctype html><head><title>x</title>
<link rel="stylesheet" href="../_static/book.css?v=1"><link rel="canonical" href="https://book.example/why/x.html">
<script src="../_static/book.js"></script></head>
<body><nav><a href="../index.html">Home</a></nav><article role="main"><h1>X</h1>
<p><a href="https://outside.example">outside</a> <a href="../index.html#start">start</a>
<a href="#ex-1">below</a></p>
<figure id="plot-x"><a href="../gallery/why/plot_x.html">
<img src="../_images/sphx_glr_plot_x_001.svg" alt="{ALT}"></a></figure>
<h2>What we keep<a class="headerlink" href="#plot-x">¶</a></h2><h2>Exercises</h2><h3>Easy</h3>
<div class="exercise proof admonition" id="ex-1"><p class="admonition-title">Exercise 1 (Prove it)</p></div>
<details class="solution" id="s-1"><summary>Solution to Exercise 1 (Prove it)</summary></details>
<div class="exercise computation admonition" id="ex-2"><p class="admonition-title">Exercise 2</p></div>
<details class="solution" id="s-2"><summary>Solution to Exercise 2</summary></details>
</article>{FOOTER}</body>"""
SCRIPT = f"""<body><nav><a href="../../why/x.html">X</a></nav><article role="main"><h1>Plot</h1>
<p class="shown-in"><a href="../../why/x.html">X</a></p>
<img src="../../_images/sphx_glr_plot_x_001.svg" alt="{ALT}">
<a class="download" href="../../_downloads/plot_x.py">py</a>
<a class="download" href="../../_downloads/plot_x.ipynb">nb</a>
<a class="download" href="../../_images/sphx_glr_plot_x_001.svg">SVG</a>
<a class="download" href="../../_images/sphx_glr_plot_x_001.png">PNG</a>
</article>{FOOTER}</body>"""
SOUND = {
    "index.html": f'<body><article role="main"><h1 id="start">Book</h1></article>{FOOTER}</body>',
    "search.html": f'<body><script src="searchindex.js"></script>{FOOTER}</body>',
    "searchindex.js": 'Search.setIndex({"docnames": ["index", "why/x", "gallery/why/plot_x"]})',
    "why/x.html": CHAPTER,
    "gallery/why/plot_x.html": SCRIPT,
    "gallery/index.html": f'<body><img alt="" src="../_images/x_thumb.svg">{FOOTER}</body>',
    "_sources/why/x.md.txt": "# X",
    "_static/book.css": '@import "more.css"; /* url(https://no.example) */ body { background: url(book.js) }',
    "_static/more.css": "p { color: red }",
    "_static/book.js": "0",
    "_images/sphx_glr_plot_x_001.svg": '<svg><use href="#a"/>CC BY 4.0</svg>',
    "_images/sphx_glr_plot_x_001.png": "CC BY 4.0",
    "_images/x_thumb.svg": "<svg/>",
    "_images/other.svg": "<svg> </svg>",
    "_downloads/plot_x.py": "",
    "_downloads/plot_x.ipynb": "",
}


def planted(folder, path=None, old=None, new=""):
    """The sound book, with `old` replaced by `new` in `path`."""
    for name, text in SOUND.items():
        if name == path:
            assert old in text, f"{old!r} is not in {path}: the fault would not be planted"
            text = text.replace(old, new)
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    return Book(folder)


# fmt: off
EVERYWHERE = [
    "remote_resources", "broken_links", "missing_alt", "poor_alt",
    "heavy_pictures", "missing_licence", "unsearchable", "machine_only", "repeated_pictures",
]
IN_CHAPTERS = [
    "heavy_pages", "disordered_headings", "repeated_ids", "missing_practice",
    "unsolved_exercises", "missing_keepsake", "pages_without_figure", "unlinked_figures",
]
FOR_SCRIPTS = ["missing_downloads", "unlicensed_files"]
# fmt: on


def run(name, book):
    if name in FOR_SCRIPTS:
        return getattr(checks, name)(book.script_pages)
    return getattr(checks, name)(book.pages if name in EVERYWHERE else book.chapters)


@pytest.mark.parametrize("check", [*EVERYWHERE, *IN_CHAPTERS, *FOR_SCRIPTS])
def test_a_sound_book_has_no_fault(check, tmp_path):
    assert run(check, planted(tmp_path)) == []


# Incompressible, so that gzip does not hide the weight.
NOISE = random.Random(0).randbytes(130_000).hex()
X, CSS, SVG = "why/x.html", "_static/book.css", "_images/sphx_glr_plot_x_001.svg"
LINK = '<a href="../gallery/why/plot_x.html">'


@pytest.mark.parametrize(
    "check, path, old, new, said",
    [
        ("remote_resources", X, "../_static/book.js", "https://cdn.example/a.js", "<script src>"),
        ("remote_resources", X, "../_static/book.css?v=1", "//cdn.example/a.css", "<link href>"),
        (
            "remote_resources",
            X,
            "<nav>",
            '<img srcset="a.png 1x, https://cdn.example/b.png 2x" alt="">',
            "srcset",
        ),
        (
            "remote_resources",
            X,
            "<nav>",
            '<link rel="preload" href="https://cdn.example/f.woff2">',
            "f.woff2",
        ),
        (
            "remote_resources",
            X,
            "<nav>",
            '<link rel="shortcut icon" href="http://cdn.example/i.ico">',
            "i.ico",
        ),
        ("remote_resources", X, "<nav>", '<iframe src="https://cdn.example/"></iframe>', "<iframe src>"),
        (
            "remote_resources",
            X,
            "<nav>",
            '<video poster="https://cdn.example/p.png"></video>',
            "<video poster>",
        ),
        ("remote_resources", X, "<nav>", '<object data="https://cdn.example/o"></object>', "<object data>"),
        (
            "remote_resources",
            X,
            "<nav>",
            '<p style="background: url(https://cdn.example/b)">',
            "a style loads",
        ),
        ("remote_resources", X, "<nav>", "<style>@import 'https://cdn.example/c';</style>", "a style loads"),
        (
            "remote_resources",
            CSS,
            "body",
            "@font-face { src: url('https://f.example/f') } body",
            "book.css loads",
        ),
        ("remote_resources", "_static/more.css", "p", "@import url(//f.example/f.css); p", "more.css loads"),
        ("remote_resources", SVG, "<use", '<image href="https://cdn.example/i.png"/><use', "001.svg loads"),
        ("broken_links", X, "../index.html#start", "../index.html#begin", "no such anchor"),
        ("broken_links", X, 'href="#ex-1"', 'href="#ex-9"', "no such anchor"),
        ("broken_links", X, "../index.html#start", "../nowhere.html", "no such file"),
        ("broken_links", X, "../index.html#start", "../", "no such file"),
        ("broken_links", X, "../index.html#start", "/index.html", "a folder on a disk"),
        ("broken_links", X, "sphx_glr_plot_x_001.svg", "gone.svg", "no such file"),
        ("broken_links", X, "_static/book.js", "_static/gone.js", "no such file"),
        ("broken_links", CSS, "url(book.js)", "url(gone.woff2)", "book.css names gone.woff2"),
        (
            "broken_links",
            "gallery/why/plot_x.html",
            "_downloads/plot_x.py",
            "_downloads/gone.py",
            "no such file",
        ),
        ("missing_alt", X, f' alt="{ALT}"', "", "no alt text"),
        ("missing_alt", X, f'alt="{ALT}"', 'alt=""', "no alt text"),
        ("missing_alt", "gallery/index.html", 'alt=""', "", "no alt text"),
        ("poor_alt", X, ALT, "A line that climbs.", "19 characters"),
        ("poor_alt", X, "sphx_glr_plot_x_001", "other", "two figures with the alt"),
        ("heavy_pages", X, "<h1>", f"{NOISE * 2}<h1>", "KB of HTML"),
        ("heavy_pages", "_static/more.css", "red", NOISE * 2, "KB of styles and scripts"),
        ("heavy_pages", "_static/book.js", "0", NOISE * 2, "KB of styles and scripts"),
        ("heavy_pictures", SVG, "<use", f"<!--{NOISE}--><use", "001.svg weighs"),
        ("disordered_headings", X, "<h1>X</h1>", "<h1>X</h1><h1>Y</h1>", "2 h1"),
        ("disordered_headings", X, "<h1>X</h1>", "", "0 h1"),
        ("disordered_headings", X, "h3>", "h4>", "h4 'Easy' follows an h2"),
        ("repeated_ids", X, 'id="s-2"', 'id="s-1"', "'s-1' stands 2 times"),
        ("missing_practice", X, "exercise proof", "exercise", "class proof"),
        ("missing_practice", X, "exercise computation", "exercise", "class computation"),
        (
            "unsolved_exercises",
            X,
            "Solution to Exercise 2",
            "Solution to Exercise 20",
            "'Exercise 2' has no solution",
        ),
        ("unsolved_exercises", X, '<details class="solution"', '<div class="solution"', "not a <details>"),
        ("unsolved_exercises", X, 'id="s-1"', 'id="s-1" open', "is open before"),
        ("missing_licence", X, "Text CC BY 4.0", "All rights reserved", "no licence"),
        ("missing_keepsake", X, "What we keep", "Summary", "What we keep"),
        ("pages_without_figure", X, "<img", "<span", "no figure"),
        ("unlinked_figures", X, LINK, '<a href="../index.html">', "does not link to its script"),
        (
            "unlinked_figures",
            "gallery/why/plot_x.html",
            '"shown-in"><a href="../../why/x.html">',
            '"shown-in"><a>',
            "link back",
        ),
        ("missing_downloads", "gallery/why/plot_x.html", "plot_x.ipynb", "plot_x.zip", "no .ipynb"),
        ("missing_downloads", "gallery/why/plot_x.html", "plot_x.py", "plot_x.zip", "no .py"),
        ("missing_downloads", "gallery/why/plot_x.html", 'x_001.png">', 'x_001.gif">', "no .png"),
        ("unlicensed_files", SVG, "CC BY 4.0", "mine", "001.svg does not name"),
        ("unlicensed_files", SVG.replace("svg", "png"), "CC BY 4.0", "mine", "001.png does not name"),
        ("repeated_pictures", "_images/other.svg", "<svg> </svg>", "<svg/>", "is a copy of"),
        ("unsearchable", "searchindex.js", '"why/x", ', "", "why/x.html: is not in the search index"),
        ("unsearchable", "search.html", "searchindex.js", "find.js", "does not load"),
        ("machine_only", X, "<nav>", '<a class="launch-button">', "needs a server"),
    ],
)
def test_a_planted_fault_is_caught(check, path, old, new, said, tmp_path):
    faults = run(check, planted(tmp_path, path, old, new))
    assert len(faults) >= 1
    assert said in faults[0]


def test_a_book_without_a_search_index_is_caught(tmp_path):
    book = planted(tmp_path)
    (tmp_path / "searchindex.js").unlink()
    assert "there is no search index" in checks.unsearchable(book.pages)[0]

"""Formulas are drawn while the book is built, and a wrong one fails the build with its place."""

import io
import re
import sys
import time
from pathlib import Path
from xml.etree import ElementTree

import pytest
from bs4 import BeautifulSoup
from sphinx.application import Sphinx
from sphinx.util.docutils import docutils_namespace, patch_docutils

DOCS = Path(__file__).parents[2] / "docs"
sys.path.insert(0, str(DOCS / "_ext"))  # where Sphinx, too, looks for the extension

import katex  # noqa: E402

CONF = {
    "project": "Book",
    "version": "1",
    "copyright": "the authors",
    "extensions": ["myst_parser", "katex"],
    "html_theme": "furo",
    "html_math_renderer": "katex",
    "html_static_path": [str(DOCS / "_static")],
    "myst_enable_extensions": ["dollarmath", "amsmath", "colon_fence"],
    "myst_update_mathjax": False,
    "numfig": True,
}

INDEX = """# Contents

```{toctree}
formulas
heading
```

Nothing here is drawn; see {eq}`eq-softmax`, {eq}`eq-rows` and {ref}`sec-angle`.
"""

FORMULAS = r"""# Formulas

Inline $q$, with a comma after it, and $q \in \R^d$, which may break at its relation.

$$
\Attn(Q, K, V) = \softmax\!\left(\frac{QK\T}{\sqrt{d}}\right) V
$$ (eq-softmax)

```{math}
:label: eq-rows

a &= b \\
  &= c
```

```{math}
a &= b

c &= d

e &= f
```

\begin{align}
a &= b \\
c &= d
\end{align}

$$
\begin{cases} a \\ b \end{cases}
$$
"""

HEADING = r"""# Why divide by $\sqrt{d}$

(sec-angle)=
## The angle $m\theta_i$
"""


def build(folder, pages, builder="html", **conf):
    """Exit status and warnings of a build of `pages`, with warnings as errors."""
    (folder / "docs").mkdir(exist_ok=True)
    for name, text in pages.items():
        page = folder / "docs" / f"{name}.md"
        if not page.exists() or page.read_text("utf-8") != text:  # an untouched page must stay untouched
            page.write_text(text, encoding="utf-8")
    warnings = io.StringIO()
    with patch_docutils(), docutils_namespace():
        app = Sphinx(
            srcdir=folder / "docs",
            confdir=None,
            outdir=folder / builder,
            doctreedir=folder / "doctrees",
            buildername=builder,
            confoverrides=CONF | conf,
            status=None,
            warning=warnings,
            warningiserror=True,
        )
        app.build()
    return app.statuscode, re.sub(r"\x1b\[[0-9;]*m", "", warnings.getvalue())


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    folder = tmp_path_factory.mktemp("book")
    status, warnings = build(folder, {"index": INDEX, "formulas": FORMULAS, "heading": HEADING})
    assert (status, warnings) == (0, "")
    files = folder.glob("html/*.html")
    return {file.stem: BeautifulSoup(file.read_text("utf-8"), "html.parser") for file in files}


def mathml(tex, **options):
    """The presentation MathML of a formula, without the TeX that is kept beside it."""
    markup = katex.render(tex, katex.MACROS, output="mathml", **options)
    return re.sub(r"<annotation.*?</annotation>", "", markup, flags=re.DOTALL)


# --- one formula -------------------------------------------------------------------------------------------


def test_a_formula_is_html_for_the_eye_and_mathml_for_the_ear():
    soup = BeautifulSoup(katex.render(r"\frac{a}{b}", {}), "html.parser")
    assert [tag.text for tag in soup.select("math mfrac > mi")] == ["a", "b"]
    assert soup.select_one(".katex-html")["aria-hidden"] == "true"


def test_mathml_is_well_formed_xml():
    tex = r"a < b \;\text{and}\; \begin{pmatrix} a & b \\ c & d \end{pmatrix}"
    ElementTree.fromstring(katex.render(tex, {}))


def test_an_operator_of_letters_is_one_word_in_mathml():
    """In <mo> MathML allows text alone, and epubcheck knows."""
    drawn = katex.render(r"a \bmod n", {}, output="mathml")
    assert ">mod</mo>" in drawn
    operators = ElementTree.fromstring(drawn).iter("{http://www.w3.org/1998/Math/MathML}mo")
    assert all(len(operator) == 0 for operator in operators)


@pytest.mark.parametrize(
    "short, long",
    [
        (r"\softmax(x)", r"\operatorname{softmax}(x)"),
        (r"\Attn(Q, K, V)", r"\operatorname{Attn}(Q, K, V)"),
        (r"x \in \R^d", r"x \in \mathbb{R}^d"),
        (r"QK\T", r"QK^{\mathsf{T}}"),
    ],
)
def test_the_macros_stand_for_what_they_say(short, long):
    assert mathml(short) == mathml(long)


def test_a_macro_defined_in_a_formula_stays_there():
    katex.render(r"\gdef\once{x} \once", katex.MACROS)
    with pytest.raises(katex.FormulaError, match=r"\\once"):
        katex.render(r"\once", katex.MACROS)


@pytest.mark.parametrize(
    "tex, message",
    [
        (r"a + \foo", r"Undefined control sequence: \\foo"),
        (r"\frac{a", "Unexpected end of input"),
        ("é", "Accented Unicode text character"),
        (r"\href{https://example.org}{x}", r"\\href is not allowed"),
    ],
)
def test_what_katex_refuses_or_warns_about_is_an_error(tex, message):
    with pytest.raises(katex.FormulaError, match=message):
        katex.render(tex, katex.MACROS)


def test_the_same_formula_is_drawn_once():
    katex.render("a_{once}", {})
    before = katex._draw.cache_info()
    katex.render("a_{once}", {})
    after = katex._draw.cache_info()
    assert (after.hits, after.misses) == (before.hits + 1, before.misses)


def test_two_hundred_formulas_take_a_few_seconds_at_most():
    start = time.process_time()
    for i in range(200):
        tex = rf"\softmax\left(\frac{{q_{{{i}}} K\T}}{{\sqrt{{d}}}}\right) V"
        katex.render(tex, katex.MACROS, display=True)
    assert time.process_time() - start < 4  # starting the engine for each would take 10


@pytest.mark.parametrize(
    "tex, text",
    [
        (r"\sqrt{d}", "√d"),
        (r"\sqrt{d_k + 1}", "√(dₖ+1)"),
        (r"m\theta_i", "mθᵢ"),
        (r"x \in \R^d", "x ∈ ℝᵈ"),
        (r"b^{-2i/d}", "b^(−2i/d)"),
        (r"\frac{1}{n}", "1/n"),
        (r"\softmax(x)", "softmax(x)"),
    ],
)
def test_a_short_formula_can_be_said_in_plain_text(tex, text):
    assert katex.plain(tex, katex.MACROS) == text


# --- the files ---------------------------------------------------------------------------------------------


def test_every_font_of_the_stylesheet_exists_and_no_other_format_is_named():
    folder = DOCS / "_static" / "katex"
    named = re.findall(r"url\(([^)]*)\)", (folder / "katex.min.css").read_text("utf-8"))
    assert sorted(named) == sorted(f"fonts/{font.name}" for font in folder.glob("fonts/*.woff2"))
    assert len(named) == 20  # the faces of KaTeX


def test_the_readme_names_the_version_that_is_vendored():
    version = re.search(r'version:"(\d+\.\d+\.\d+)"', katex.SOURCE.read_text("utf-8"))[1]
    assert f"KaTeX {version}" in (DOCS / "_static" / "katex" / "README.md").read_text("utf-8")


# --- the pages ---------------------------------------------------------------------------------------------


def test_an_equation_is_numbered_and_other_pages_link_to_it(pages):
    for label, number in [("eq-softmax", "(1)"), ("eq-rows", "(2)")]:
        anchor = pages["formulas"].select(f"#equation-{label}")
        assert len(anchor) == 1  # furo's wrapper and the formula would otherwise both carry the identifier
        permalink = anchor[0].select_one(".equation-number")
        assert (permalink.text, permalink["href"]) == (number, f"#equation-{label}")
        assert pages["index"].select_one(f'a[href="formulas.html#equation-{label}"]').text == number


def test_a_numbered_environment_gets_one_number(pages):
    numbers = [number.text for number in pages["formulas"].select(".equation-number")]
    assert numbers == ["(1)", "(2)", "(3)"]
    assert not pages["formulas"].select('[class*="eqn-num"]')


def test_rows_and_blank_lines_become_aligned_rows(pages):
    rows = [len(formula.select("math mtr")) for formula in pages["formulas"].select(".formula")]
    assert rows == [0, 2, 3, 2, 2]


def test_a_display_formula_is_a_named_box_that_the_keyboard_can_scroll(pages):
    for formula in pages["formulas"].select(".formula"):
        assert (formula["tabindex"], formula["role"]) == ("0", "group")
        assert formula["aria-label"].startswith("Formula")


def test_no_line_breaks_between_a_formula_and_its_comma(pages):
    short, long = pages["formulas"].select("span.tied")
    for tied in (short, long):
        assert tied.select_one("span.math").next_sibling == ","
    assert short.next_sibling.startswith(" with a comma")
    assert ".tied { white-space: nowrap; }" in (DOCS / "_static" / "maths.css").read_text()


def test_a_long_formula_that_keeps_its_comma_may_still_break_at_its_relation(pages):
    short, long = pages["formulas"].select("span.tied")
    assert not short.select("wbr")
    assert [gap.find_next_sibling()["class"] for gap in long.select("wbr")] == [["katex-base"]]


def test_only_pages_with_formulas_load_the_stylesheets_and_none_loads_a_script(pages):
    for name, wanted in [("index", 0), ("formulas", 2), ("heading", 2)]:
        styles = [link["href"] for link in pages[name].select("link[rel=stylesheet]")]
        assert sum("katex.min.css" in style or "maths.css" in style for style in styles) == wanted
        assert not [
            s for s in pages[name].select("script[src]") if re.search("katex|mathjax", s["src"], re.I)
        ]


def test_a_title_with_maths_is_drawn_once_and_plain_wherever_it_is_repeated(pages):
    page = pages["heading"]
    assert page.select_one("h1 math msqrt")
    assert page.title.text.startswith("Why divide by √d - ")
    assert pages["formulas"].select_one("link[rel=next]")["title"] == "Why divide by √d"
    assert page.select_one(".sidebar-tree .current-page > a").text == "Why divide by √d"
    assert page.select_one('.toc-tree a[href="#sec-angle"]').text == "The angle mθᵢ"
    assert pages["index"].select_one('a[href="heading.html#sec-angle"]').text == "The angle mθᵢ"


def test_epub_gets_mathml_alone(tmp_path):
    fonts = [f"_static/{file.relative_to(DOCS / '_static')}" for file in (DOCS / "_static").rglob("*")]
    status, warnings = build(tmp_path, {"index": FORMULAS}, "epub", epub_exclude_files=fonts)
    assert (status, warnings) == (0, "")
    page = (tmp_path / "epub" / "index.xhtml").read_text("utf-8")
    assert "<mfrac>" in page
    assert "katex-html" not in page
    # MathML Core knows these letters only as themselves.
    assert '<mi mathvariant="normal">ℝ</mi>' in page
    assert set(re.findall('mathvariant="([^"]*)"', page)) == {"normal"}


def test_latex_sets_the_formula_of_a_title_itself(tmp_path):
    status, _ = build(tmp_path, {"index": HEADING}, "latex")
    assert status == 0
    assert r"m\theta_i" in next((tmp_path / "latex").glob("*.tex")).read_text("utf-8")


# --- what is wrong -----------------------------------------------------------------------------------------


INDEX_WITH_FAULTS = r"""# Title

A wrong macro $a + \foo b$
and $x^y^z$.

$$
c + \bar
$$

```{toctree}
other
```
"""

OTHER_WITH_FAULTS = r"""# Wrong $\heading$

| a |
|---|
| $\cell$ |
"""


def test_wrong_formulas_fail_the_build_and_each_is_named_with_file_and_line(tmp_path):
    faulty = {"index": INDEX_WITH_FAULTS, "other": OTHER_WITH_FAULTS}
    for _ in range(2):  # what was written once counts as done, yet the second build must fail as well
        status, warnings = build(tmp_path, faulty)
        assert status == 1
        lines = warnings.splitlines()
        assert len(lines) == 5
        for place, formula in [
            ("index.md:3", r"a + \foo b"),
            ("index.md:3", "x^y^z"),
            ("index.md:6", r"c + \bar"),
            ("other.md:1", r"\heading"),
            ("other.md:5", r"\cell"),
        ]:
            assert any(place in line and f"in the formula: {formula}" in line for line in lines), warnings


def test_a_page_can_be_repaired(tmp_path):
    assert build(tmp_path, {"index": "# Title\n\n$\\foo$\n"})[0] == 1
    assert build(tmp_path, {"index": "# Title\n\n$\\phi$\n"}) == (0, "")


def test_macros_come_from_the_configuration(tmp_path):
    page = {"index": "# Title\n\n$\\answer$\n"}
    assert build(tmp_path, page, katex_macros={r"\answer": "42"}) == (0, "")
    assert "<mn>42</mn>" in (tmp_path / "html" / "index.html").read_text("utf-8")


def test_equations_are_numbered_without_numbered_figures_too(tmp_path):
    page = {"index": "# Title\n\n$$\nx\n$$ (eq-x)\n\nSee {eq}`eq-x`.\n"}
    assert build(tmp_path, page, numfig=False) == (0, "")
    soup = BeautifulSoup((tmp_path / "html" / "index.html").read_text("utf-8"), "html.parser")
    assert [link.text for link in soup.select('a[href="#equation-eq-x"]')] == ["(1)", "(1)"]

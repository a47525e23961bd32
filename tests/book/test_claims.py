"""Numbers, claims and figures come from what scripts and doctests computed; the build says where not."""

import io
import json
import sys
from pathlib import Path

import pytest
from bs4 import BeautifulSoup
from sphinx.application import Sphinx
from sphinx.util.docutils import docutils_namespace, patch_docutils

DOCS = Path(__file__).parents[2] / "docs"
sys.path.insert(0, str(DOCS / "_ext"))

# sphinx-proof and sphinx-exercise still use names that Sphinx is about to drop.
pytestmark = [
    pytest.mark.filterwarnings(f"ignore::sphinx.deprecation.RemovedInSphinx{version}Warning")
    for version in (10, 11)
]

CONF = {
    "project": "Book",
    "extensions": [
        "myst_parser",
        "sphinx_proof",
        "sphinxcontrib.bibtex",
        "gallery",
        "computed",
        "claims",
        "boxes",
        "ledger",
    ],
    "bibtex_bibfiles": ["references.bib"],
    "bibtex_reference_style": "in_badge",
    "numfig": True,
    "nitpicky": True,
    "myst_enable_extensions": ["colon_fence"],
    "exclude_patterns": ["bibliography"],
}
RECORD = {
    "script": "why/plot_x",
    "alt": "Three dots on a line, which is all there is to see in this figure of a test.",
    "numbers": {"count": 120, "share": 0.70249, "worst": 4.44e-16, "score": -3.48318, "word": "bites"},
    "measured": {"seed": 0, "size": "4 tokens", "spread": "worst of 24 shuffles"},
    "images": ["gallery/why/images/plot_x.svg"],
}
THEOREM = ":::{prf:theorem} Sums\n:label: thm-sum\n\nA sum does not know the order of its terms.\n:::\n"


@pytest.fixture
def build(tmp_path):
    """A book of one page and one script page; returns the page and the warnings."""
    images = tmp_path / "gallery" / "why" / "images"
    images.mkdir(parents=True)
    images.joinpath("plot_x.json").write_text(json.dumps(RECORD))
    images.joinpath("plot_x.svg").write_text('<svg xmlns="http://www.w3.org/2000/svg"/>')
    images.parent.joinpath("plot_x.rst").write_text("A script\n========\n\nText.\n")
    images.joinpath("plot_y.json").write_text(json.dumps(RECORD | {"script": "why/plot_y", "measured": None}))
    tmp_path.joinpath("index.md").write_text("# Book\n\n```{toctree}\npage\ngallery/why/plot_x\n```\n")
    tmp_path.joinpath("references.bib").write_text(
        "@misc{known2020,author={Known, Ann},title={What is known},year={2020}}\n"
    )

    def of(text):
        tmp_path.joinpath("page.md").write_text(f"# Page\n\n{text}\n\n```{{bibliography}}\n```\n")
        warnings = io.StringIO()
        with patch_docutils(), docutils_namespace():
            app = Sphinx(
                tmp_path,
                None,
                tmp_path / "out",
                tmp_path / "trees",
                "html",
                confoverrides=CONF,
                status=None,
                warning=warnings,
                freshenv=True,
            )
            app.build()
        page = BeautifulSoup(tmp_path.joinpath("out", "page.html").read_text(), "html.parser")
        return page.find(role="main"), warnings.getvalue()

    return of


@pytest.mark.parametrize(
    "role, shown",
    [
        ("{num}`120 <plot_x:count>`", "120"),
        ("{num}`0.70 <plot_x:share>`", "0.70"),
        ("{num}`70 % <plot_x:share>`", "70 %"),
        ("{num}`−3.4832 <plot_x:score>`", "−3.4832"),
        ("{num}`-3.48 <plot_x:score>`", "−3.48"),
        ("{num}`bites <plot_x:word>`", "bites"),
        ("{num}`4.4e-16 <plot_x:worst>`", "4.4 × 10−16"),
        ("{num}`<1e-12 <plot_x:worst>`", "4.4 × 10−16"),
        ("{num}`>0.5 <plot_x:share>`", "0.7"),
    ],
)
def test_a_number_that_the_script_reported_is_shown(build, role, shown):
    page, warnings = build(f"It is {role}.")
    assert warnings == ""
    number = page.find("span", class_="number")
    assert number.get_text() == shown
    assert number["data-script"] == "plot_x"


@pytest.mark.parametrize(
    "role, complaint",
    [
        ("{num}`121 <plot_x:count>`", "says 121, but plot_x.py computed count = 120"),
        ("{num}`0.71 <plot_x:share>`", "computed share = 0.70249"),
        ("{num}`0.703 <plot_x:share>`", "computed share = 0.70249"),
        ("{num}`<1e-16 <plot_x:worst>`", "computed 4.44e-16"),
        ("{num}`>0.8 <plot_x:share>`", "computed 0.70249"),
        ("{num}`dog <plot_x:word>`", "computed word = bites"),
        ("{num}`120 <plot_x:counts>`", "reports no 'counts', only count"),
        ("{num}`120 <plot_z:count>`", "no gallery script plot_z.py"),
        ("{num}`many <plot_x:count>`", "'many' is no number"),
        ("{num}`7`", "7 stands in no doctest output"),
    ],
)
def test_a_number_that_was_not_computed_fails_with_its_place(build, role, complaint):
    _, warnings = build(f"It is {role}.")
    assert complaint in warnings
    assert "page.md:3" in warnings


def test_a_number_may_come_from_a_doctest_of_its_page(build):
    page, warnings = build("```python\n>>> 6 * 7\n42\n>>> x = 17\n```\n\nIt is {num}`42`.")
    assert warnings == ""
    assert page.find("span", class_="number").get_text() == "42"
    _, warnings = build("```python\n>>> 6 * 7\n42\n>>> x = 17\n```\n\nIt is {num}`17`.")
    assert "17 stands in no doctest output" in warnings  # 17 is code there, not output


def test_claims_link_to_theorem_script_and_source(build):
    page, warnings = build(
        f"{THEOREM}\nOne {{proved}}`thm-sum`, two {{measured}}`plot_x`, three {{cited}}`known2020, Table 1`, "
        "four {cited}`147.18 <known2020, Table 4>`."
    )
    assert warnings == ""
    proved, measured, cited, around = page.find_all("span", class_="claim")
    assert proved.get_text() == "proved: Theorem 1"
    assert proved.a["href"] == "#thm-sum"
    assert measured.get_text() == "measured: 4 tokens; worst of 24 shuffles; seed 0"
    assert measured.a["href"] == "gallery/why/plot_x.html"
    assert cited.get_text() == "Known 2020, Table 1"
    assert around.find_previous("span", class_="cited-text").get_text() == "147.18"
    assert page.find(id=cited.a["href"].lstrip("#"))


@pytest.mark.parametrize(
    "role, complaint",
    [
        ("{proved}`thm-none`", "thm-none"),
        ("{measured}`plot_z`", "there is no such script"),
        ("{measured}`plot_y`", "reports no seed, size and spread"),
        ("{cited}`unknown1999, Table 1`", "unknown1999"),
        ("{cited}`known2020`", "say which table"),
    ],
)
def test_a_claim_without_its_evidence_fails(build, role, complaint):
    _, warnings = build(f"{THEOREM}\nSaid {role}.")
    assert complaint in warnings


def test_a_figure_is_embedded_by_its_scripts_name_and_its_page_links_back(build, tmp_path):
    page, warnings = build(":::{gallery-figure} plot_x\nThree dots.\n:::\n\nSee {numref}`plot_x`.")
    assert warnings == ""
    image = page.find("img")
    assert image["alt"] == RECORD["alt"]
    assert image.find_parent("a")["href"] == "gallery/why/plot_x.html"
    assert "Fig. 1" in page.find("figcaption").get_text()
    script = BeautifulSoup(tmp_path.joinpath("out/gallery/why/plot_x.html").read_text(), "html.parser")
    assert script.find("p", class_="shown-in").a["href"] == "../../page.html"


def test_a_figure_that_no_script_drew_fails(build):
    _, warnings = build(":::{gallery-figure} plot_z\nNothing.\n:::")
    assert "no gallery script plot_z.py" in warnings


def test_solutions_are_folded_natively_and_no_id_occurs_twice(build):
    page, warnings = build(
        "\n".join(
            f":::{{exercise}} Title {n}\n:label: ex-{n}\n:class: proof\n\nProve it.\n:::\n\n"
            f":::{{solution}} ex-{n}\nIt is so.\n:::\n"
            for n in (1, 2)
        )
    )
    assert warnings == ""
    solutions = page.find_all("details", class_="solution")
    assert [solution.summary.get_text() for solution in solutions] == [
        f"Solution to Exercise {n} (Title {n})" for n in (1, 2)
    ]
    assert all("It is so." in solution.get_text() for solution in solutions)
    ids = [element["id"] for element in page.find_all(id=True)]
    assert len(ids) == len(set(ids))


def test_a_proof_is_text_that_begins_with_its_word_and_two_have_no_id_in_common(build):
    page, warnings = build(2 * ":::{prf:proof}\nAdd **both** sides.\n:::\n\n")
    assert warnings == ""
    proofs = page.find_all(class_="proof-text")
    assert [proof.get_text().strip() for proof in proofs] == 2 * ["Proof. Add both sides."]
    assert [proof.em.get_text() for proof in proofs] == 2 * ["Proof."]
    assert not page.find(id="proof")


def test_boxes_have_their_titles_and_the_claim_is_set_apart(build):
    page, warnings = build(
        ":::{thirty-seconds}\nShort.\n:::\n\n:::{heard}\nAll swans are white.\n\nFalse.\n:::\n"
    )
    assert warnings == ""
    assert page.find(class_="thirty-seconds").p.get_text() == "The 30-second version"
    assert page.find(class_="claim-heard").get_text() == "All swans are white."


LEDGER = """
:::{verdicts}
:::

:::{claim} swans
:verdict: false
:chapter: index

All {num}`120 <plot_x:count>` swans are white.

One is black. {cited}`known2020, Table 1`
:::

:::{claim} ducks
:verdict: open

Ducks are fond of swans.

We know of no measurement.
:::
"""


def test_a_claim_shows_its_verdict_in_words_and_can_be_linked_to(build):
    page, warnings = build(LEDGER + "\nSee {ref}`the swans <claim-swans>`.")
    assert warnings == ""
    term = page.find("dt", id="claim-swans")
    assert term.get_text() == "False: All 120 swans are white.#"
    assert term.find("a")["href"] == "#claim-swans"
    reason = term.find_next_sibling("dd")
    assert "One is black." in reason.get_text()
    assert reason.find(class_="treated").a["href"] == "index.html"
    assert page.find("a", string="the swans")["href"] == "#claim-swans"


def test_the_claims_of_a_page_are_folded_by_verdict_and_counted(build):
    page, _ = build(LEDGER)
    false, missing = page.find_all("details", class_="verdicts")
    assert false.summary.get_text() == "False: 1 of 2"
    assert missing.summary.get_text() == "No evidence either way: 1 of 2"
    assert [(link["href"], link.get_text()) for link in false.find_all("a")] == [
        ("#claim-swans", "All 120 swans are white.")
    ]
    assert page.find_all("details") == [false, missing]  # verdicts that do not occur have no list


@pytest.mark.parametrize(
    "old, new, complaint",
    [
        (":verdict: false\n", "", "claim swans has no verdict"),
        (":verdict: false", ":verdict: wrong", "wrong"),
        (":chapter: index", ":chapter: nowhere", "nowhere"),
        ("{claim} ducks", "{claim} swans", "claim-swans"),
    ],
)
def test_a_claim_that_is_not_sound_fails_the_build(build, old, new, complaint):
    _, warnings = build(LEDGER.replace(old, new))
    assert complaint in warnings

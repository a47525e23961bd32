r"""Which encoding keeps which promise, and why: the table that docs/reference/promises.md shows."""

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "docs" / "_ext"))  # where Sphinx, too, looks for the extension

import promises  # noqa: E402

ALL = set(promises.SCHEMES)
ADDED = {"sinusoidal", "learned"}
TURNED = {"rotary", "rotary, dynamic NTK", "axial"}
CAUSAL = {name for name, scheme in promises.SCHEMES.items() if scheme.causal}
DISTANCE = {"ALiBi", "KERPLE"}
BY_LENGTH = {"rotary, dynamic NTK"}
SHARED = {"nothing", "nothing, causal", "Shaw", "T5", "CoPE, causal"}
FLAT = {"ALiBi", "ALiBi, causal", "KERPLE", "KERPLE, causal", "FIRE, causal"}

# (promise, whether it is kept, why, by whom)
TRUTH = [
    (
        "relative",
        True,
        "position enters through offsets, counts of tokens, or not at all",
        ALL - ADDED - BY_LENGTH - {"FIRE, causal"},
    ),
    ("relative", False, "a vector of one position stands in the score", ADDED),
    ("relative", False, "both frequencies change with the length", BY_LENGTH),
    ("relative", False, "past the threshold the query's position divides the distance", {"FIRE, causal"}),
    ("keeps norms", True, "queries and keys are left alone", ALL - ADDED - TURNED - {"xPos, causal"}),
    ("keeps norms", True, "a rotation keeps lengths", TURNED),
    ("keeps norms", False, "what is added has a length of its own", ADDED),
    ("keeps norms", False, "queries shrink and keys grow", {"xPos, causal"}),
    ("equivariant", True, "attention alone knows no order", {"nothing"}),
    ("equivariant", False, "position, or the mask, tells the tokens apart", ALL - {"nothing"}),
    ("blind to reversal", True, "only the distance counts, or nothing", DISTANCE | {"nothing"}),
    ("blind to reversal", False, "the mask knows left from right", CAUSAL),
    (
        "blind to reversal",
        False,
        "the sign of the offset counts, or the position",
        ALL - CAUSAL - DISTANCE - {"nothing"},
    ),
    ("shift-invariant", True, "the scores are relative", ALL - ADDED - BY_LENGTH - {"FIRE, causal"}),
    ("shift-invariant", False, "the scores are not relative", ADDED | BY_LENGTH | {"FIRE, causal"}),
    ("cache-safe", True, "what is stored of a key does not change later", ALL - BY_LENGTH),
    ("cache-safe", False, "a stored key was turned by the frequencies of a shorter text", BY_LENGTH),
    ("precise", True, "phases, powers and biases are taken in float64 or in counts", ALL),
    ("distinct", True, "each position has a vector", ADDED | TURNED | {"xPos, causal"}),
    ("distinct", True, "each distance has a vector", {"Transformer-XL, causal"}),
    ("distinct", False, "far tokens share what is added, if anything is", SHARED),
    ("distinct", False, "one step adds less than bfloat16 resolves", FLAT),
]
CELLS = [(scheme, promise) for scheme in promises.SCHEMES for promise in promises.PROMISES]


@pytest.mark.parametrize("scheme, promise", CELLS)
def test_a_promise_is_kept_or_broken_for_a_known_reason(scheme, promise):
    [(kept, why)] = [(kept, why) for p, kept, why, schemes in TRUTH if p == promise and scheme in schemes]
    violation, bound = promises.violation(scheme, promise), promises.PROMISES[promise][1]
    # Nothing lies near the bound: what is broken is broken by far.
    assert violation < bound if kept else violation > max(1e-3, 100 * bound), why


def test_every_encoding_of_the_package_has_a_row():
    others = {"__init__", "positions", "frequencies", "properties"}
    modules = {path.stem for path in (ROOT / "posbook").glob("*.py")} - others
    assert {scheme.module for scheme in promises.SCHEMES.values()} == modules


def test_the_reasons_name_only_what_there_is():
    assert {promise for promise, *_ in TRUTH} == set(promises.PROMISES)
    assert all(schemes and schemes <= ALL for *_, schemes in TRUTH)


def test_the_book_shows_what_was_measured():
    head, _, *rows = promises.table().splitlines()
    assert head.strip("| ").split(" | ") == list(promises.PROMISES)
    assert len(rows) == len(ALL)
    for row, name in zip(rows, promises.SCHEMES, strict=True):
        link, *cells = row.strip("| ").split(" | ")
        assert link == f"[{name}](/reference/{promises.SCHEMES[name].module}.md)"
        assert cells == ["yes" if promises.keeps(name, promise) else "no" for promise in promises.PROMISES]


def test_the_page_says_how_many_positions_are_looked_at_and_explains_each_column():
    page = (ROOT / "docs" / "reference" / "promises.md").read_text()
    assert f"first `2**{promises.LONG.bit_length() - 1}` positions" in page
    assert promises.LONG.bit_count() == 1
    for promise in promises.PROMISES:
        assert f"\n{promise}\n: " in page

r"""The table of models says what the files say, and leaves out those that should not be believed."""

import math
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "docs" / "_ext"))

import zoo


@pytest.fixture(scope="module")
def rows():
    return list(zoo.rows())


def test_every_file_that_is_told_is_in_a_row(rows):
    told = " ".join(row[0] for row in rows)
    assert all(name in told for name, _, default, _ in zoo.files() if not default)


def test_files_that_others_contradict_are_left_out(rows):
    names = " ".join(row[0] for row in rows)
    assert [name in names for name in ("gemma3-27b", "llama3.1-405b")] == [False, False]
    assert [name in names for name in ("gemma-3-27b-it", "llama3.1-70b")] == [True, True]


def test_a_row_has_a_cell_for_every_column(rows):
    assert {len(row) for row in rows} == {len(zoo.HEADER)}


def test_models_with_one_recipe_share_a_row(rows):
    (row,) = [row for row in rows if "llama3.1-8b" in row[0]]
    assert "llama3.1-70b" in row[0]
    assert row[1] == "32, 80"


def test_layers_that_do_not_turn_have_a_row_of_their_own(rows):
    (row,) = [row for row in rows if "exaone4" in row[0] and row[2] == "not turned"]
    assert row[1] == "16 others"


def test_pairs_that_never_come_round_are_counted_before_stretching(rows):
    (row,) = [row for row in rows if "llama3.1-8b" in row[0]]
    pairs = [i for i in range(64) if 8192 * 500_000 ** (-2 * i / 128) < 2 * math.pi]
    assert row[-1] == f"{len(pairs)}/64"


def test_pairs_that_stand_still_are_not_counted_as_pairs(rows):
    full = [row for row in rows if "gemma4" in row[0] and row[2] == "proportional"]
    assert {(row[4], row[-1]) for row in full} == {("128/512", "0/64")}

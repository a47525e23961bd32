"""The README's picture is drawn by a script too, and is not older than it."""

import re
from pathlib import Path

import pytest

from tests.book.pages import location

ROOT = Path(__file__).parents[2]
PICTURE = ROOT / ".github" / "readme.svg"
NUMBER = re.compile(r"-?\d+(?:\.\d+)?")


def same_drawing(one, other):
    """Same elements, texts and colours; coordinates within half a pixel."""
    if NUMBER.sub("0", one) != NUMBER.sub("0", other):
        return False
    pairs = zip(NUMBER.findall(one), NUMBER.findall(other), strict=True)
    return all(abs(float(a) - float(b)) <= 0.5 for a, b in pairs)


@pytest.mark.book
def test_the_readme_shows_what_the_script_draws():
    assert PICTURE.relative_to(ROOT).as_posix() in ROOT.joinpath("README.md").read_text()
    (drawn,) = location().glob("_images/sphx_glr_plot_symmetry_groups_001.svg")
    assert same_drawing(PICTURE.read_text(), drawn.read_text()), (
        f"copy {drawn} to {PICTURE}: the script draws something else now"
    )


def test_a_moved_or_missing_shape_is_another_drawing():
    picture = PICTURE.read_text()
    assert same_drawing(picture, picture)
    assert not same_drawing(picture, picture.replace("<use", "<path", 1))
    assert not same_drawing(picture, re.sub(r'y="(\d+)', lambda m: f'y="{int(m[1]) + 9}', picture, count=1))

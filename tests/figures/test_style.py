import re
from importlib import resources
from itertools import combinations

import pytest
from matplotlib import font_manager

from posbook import figures
from posbook.figures import style

# Machado, Oliveira and Fernandes (2009), severity 1.0; rows give linear red, green and blue.
VISION = {
    "full": [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
    "protanopia": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "deuteranopia": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
}
THEMES = pytest.mark.parametrize("theme", ["light", "dark"])
# Of the 13 encodings these meet in one plot; the others stand in small multiples, beside a marker and a dash.
TOGETHER = ["none", "learned", "sinusoidal", "shaw", "t5", "alibi", "rope"]


def linear(colour):
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    return [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]


def contrast(a, b):
    """WCAG 2.2: (L1 + 0.05) / (L2 + 0.05) of the relative luminances."""
    luminance = (sum(w * c for w, c in zip((0.2126, 0.7152, 0.0722), linear(x), strict=True)) for x in (a, b))
    dark, light = sorted(luminance)
    return (light + 0.05) / (dark + 0.05)


def seen(colour, matrix):
    """The colour as an eye with this matrix sees it, in CIE L*a*b* (D65)."""
    r, g, b = (min(1, max(0, sum(m * c for m, c in zip(row, linear(colour), strict=True)))) for row in matrix)
    xyz = (
        (0.4124 * r + 0.3576 * g + 0.1805 * b) / 0.9505,
        0.2126 * r + 0.7152 * g + 0.0722 * b,
        (0.0193 * r + 0.1192 * g + 0.9505 * b) / 1.089,
    )
    x, y, z = (t ** (1 / 3) if t > 0.008856 else 7.787 * t + 16 / 116 for t in xyz)
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


def apart(a, b):
    """The smallest ΔE (1976) that one of the three eyes sees between two colours; 2.3 is just noticeable."""
    return min(
        sum((p - q) ** 2 for p, q in zip(seen(a, eye), seen(b, eye), strict=True)) ** 0.5
        for eye in VISION.values()
    )


def shade(role, theme):
    colours = {**style.ROLES, **{name: c for name, (c, _, _) in style._ENCODINGS.items()}}
    return getattr(colours[role], theme)


def test_wcag_contrast_of_black_on_white_is_21():
    assert contrast("#000000", "#ffffff") == pytest.approx(21)


def test_a_light_colour_tells_its_dark_partner():
    lights = [colour.light for colour in style.PALETTE]
    assert len(set(lights)) == len(lights)


def test_no_colour_of_the_palette_is_black_or_white():
    assert not {"#000000", "#ffffff"} & {hex for colour in style.PALETTE for hex in colour}


@THEMES
@pytest.mark.parametrize("role", ["ink", "muted", *style.ENCODINGS, "query", "key", "value", "position",
                                  "content", "past", "future", "accent", "good", "warn"])  # fmt: skip
def test_text_in_a_role_stands_out_from_the_ground(role, theme):
    assert contrast(shade(role, theme), shade("paper", theme)) >= 4.5


@THEMES
def test_text_stands_out_from_a_panel(theme):
    assert contrast(shade("ink", theme), shade("panel", theme)) >= 4.5


@THEMES
def test_the_axes_stand_out_from_the_ground(theme):
    assert contrast(shade("axis", theme), shade("paper", theme)) >= 3


@THEMES
@pytest.mark.parametrize(
    "family",
    [TOGETHER, ["query", "key", "value"], ["past", "future"], ["good", "warn"], ["position", "content"]],
    ids=" ".join,
)
def test_colours_used_together_stay_apart_for_the_colour_blind(family, theme):
    distances = {(a, b): apart(shade(a, theme), shade(b, theme)) for a, b in combinations(family, 2)}
    assert min(distances.values()) >= 15, min(distances, key=distances.get)


def test_no_two_encodings_share_a_marker_or_a_dash():
    for a, b in combinations(style.ENCODINGS.values(), 2):
        assert a.marker != b.marker
        assert a.dash != b.dash


@pytest.mark.parametrize("ramp", [style.SEQUENTIAL, style.DIVERGING[12:], style.DIVERGING[12::-1]])
def test_low_values_lie_near_the_ground_and_high_ones_far_from_it(ramp):
    for theme in ("light", "dark"):
        ground = shade("paper", theme)
        ratios = [contrast(getattr(step, theme), ground) for step in ramp]
        assert ratios == sorted(ratios)
        assert ratios[0] < 1.3
        assert ratios[-1] > 8


def test_the_diverging_map_has_as_many_steps_on_either_side_of_zero():
    assert len(style.SEQUENTIAL) == style.SEQUENTIAL_STEPS
    assert len(style.DIVERGING) == style.DIVERGING_STEPS
    assert style.DIVERGING_STEPS % 2 == 1


def test_every_colour_of_the_style_file_is_in_the_palette():
    text = resources.files("posbook.figures").joinpath("posbook.mplstyle").read_text()
    colours = {f"#{word}" for word in re.findall(r"\b[0-9a-f]{6}\b", text)}
    assert len(colours) > 10
    assert colours <= set(style.DARK)


def test_the_typeface_comes_with_the_package():
    assert "posbook/figures/fonts" in font_manager.findfont("Posbook Inter", fallback_to_default=False)


def test_an_unknown_role_is_refused_with_those_there_are():
    with pytest.raises(ValueError, match=r"'quary'.*query"):
        figures.colour("quary")
    with pytest.raises(ValueError, match=r"'rotary'.*rope"):
        figures.look("rotary")

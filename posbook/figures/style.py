r"""One palette for every figure: a colour is asked for by its role, and each has a partner for the dark page.

A light colour occurs once in the whole palette, so the light hex written into an SVG is enough to find
its dark partner again: see :mod:`posbook.figures.svg`.
"""

from pathlib import Path
from typing import NamedTuple

import matplotlib
import numpy as np
from matplotlib import font_manager
from matplotlib.colors import ListedColormap


class Colour(NamedTuple):
    """One colour as it stands on the light ground and on the dark one."""

    light: str
    dark: str


class Look(NamedTuple):
    """How one encoding is drawn wherever it appears: never by colour alone."""

    colour: str  #: Hex of the light page.
    marker: str  #: As matplotlib names markers.
    dash: str | tuple  #: A line style of matplotlib.

    @property
    def line(self) -> dict:
        """Keywords for ``ax.plot``."""
        return {"color": self.colour, "marker": self.marker, "linestyle": self.dash}


ROLES = {
    # the ground, and what is written on it
    "paper": Colour("#faf9f6", "#1b1d22"),
    "panel": Colour("#f0eeea", "#262931"),
    "ink": Colour("#1f2328", "#e9e7e2"),
    "muted": Colour("#5c626b", "#a6abb5"),
    "axis": Colour("#80858d", "#767c87"),
    "grid": Colour("#e5e3dd", "#30333b"),
    # attention
    "query": Colour("#1c64c8", "#74aaff"),
    "key": Colour("#be4d0e", "#f58a45"),
    "value": Colour("#1d5c3a", "#b9f0c0"),
    # what a vector carries, and where it looks
    "position": Colour("#8e3bb0", "#d596f2"),
    "content": Colour("#4d6470", "#a9bcc6"),
    "past": Colour("#0f7285", "#5cc8dc"),
    "future": Colour("#a8590a", "#f2a94e"),
    # a judgement
    "accent": Colour("#c2185b", "#ff7fae"),
    "good": Colour("#1a6f9e", "#66c6f5"),
    "warn": Colour("#b3261e", "#ff8f84"),
    # a number inside a cell: legible on the steps before or after the middle of a map, on both grounds
    "on_low": Colour("#08090b", "#fdfdfc"),
    "on_high": Colour("#fefefe", "#0a0b0d"),
}

_ENCODINGS = {
    "none": (Colour("#585c63", "#e6e6e4"), "o", (0, (12, 1))),
    "learned": (Colour("#6f390e", "#fac00a"), "s", (0, (6, 2))),
    "sinusoidal": (Colour("#0a6fb5", "#7cc2fa"), "^", (0, (1, 1.2))),
    "shaw": (Colour("#4331a4", "#a27dfa"), "D", (0, (5, 1.5, 1, 1.5))),
    "t5": (Colour("#0b8256", "#86e894"), "v", (0, (3, 1.5))),
    "alibi": (Colour("#690659", "#c27194"), "P", (0, (8, 2, 2, 2))),
    "rope": (Colour("#d43a15", "#e96434"), "X", "-"),
    "transformer_xl": (Colour("#36548c", "#a3bdf0"), "<", (0, (2, 1))),
    "deberta": (Colour("#5f7300", "#c7d85c"), ">", (0, (4, 1, 1, 1, 1, 1))),
    "kerple": (Colour("#9a3d7c", "#f0a3d6"), "p", (0, (7, 1.5, 1, 1.5))),
    "fire": (Colour("#a34a00", "#ffb273"), "h", (0, (2, 2.5))),
    "cope": (Colour("#006d73", "#58d0d4"), "*", (0, (5, 3))),
    "xpos": (Colour("#8c2b2b", "#f2a09a"), "d", (0, (10, 2, 1, 2, 1, 2))),
}
ENCODINGS = {name: Look(colour.light, marker, dash) for name, (colour, marker, dash) in _ENCODINGS.items()}

# Oklab to linear sRGB (Ottosson, 2020).
_LMS = np.array(
    [[1, 0.3963377774, 0.2158037573], [1, -0.1055613458, -0.0638541728], [1, -0.0894841775, -1.2914855480]]
)
_RGB = np.array(
    [
        [4.0767416621, -3.3077115913, 0.2309699292],
        [-1.2684380046, 2.6097574011, -0.3413193965],
        [-0.0041960863, -0.7034186147, 1.7076147010],
    ]
)


def _hex(lightness: float, chroma: float, hue: float) -> str:
    """The sRGB colour of one Oklch triple, its chroma lowered until a screen can show it."""
    while True:
        lab = np.array([lightness, chroma * np.cos(np.radians(hue)), chroma * np.sin(np.radians(hue))])
        linear = _RGB @ (_LMS @ lab) ** 3
        if (linear.min() >= -1e-4 and linear.max() <= 1 + 1e-4) or chroma <= 0:
            break
        chroma -= 0.003
    linear = np.clip(linear, 0, 1)
    screen = np.where(linear <= 0.0031308, 12.92 * linear, 1.055 * linear ** (1 / 2.4) - 0.055)
    return "#" + "".join(f"{round(255 * c):02x}" for c in screen)


def _ramp(start: tuple, before: tuple, after: tuple, end: tuple, *, steps: int, turn: int) -> list[str]:
    """Colours through four (lightness, chroma, hue): at the ground, around the turn, and at the far end."""
    places = [0, turn - 1, turn, steps - 1]
    channels = zip(start, before, after, end, strict=True)
    return [_hex(*lch) for lch in zip(*(np.interp(range(steps), places, c) for c in channels), strict=True)]


# Low values lie near the ground in both themes: lightness falls on the light page and rises on the dark one.
# Both cross the lightness at which black and white text are equally legible at the same step, the turn:
# that is what lets a number in a cell keep one colour role whichever the theme.
SEQUENTIAL_STEPS, SEQUENTIAL_TURN = 24, 13
DIVERGING_STEPS, DIVERGING_TURN = 25, 8  # the turn counted from the middle step

_FALLING = [(0.945, 0.012, 240), (0.60, 0.115, 248), (0.565, 0.125, 250), (0.27, 0.10, 272)]
_RISING = [(0.285, 0.022, 262), (0.56, 0.125, 250), (0.60, 0.115, 246), (0.93, 0.045, 215)]
SEQUENTIAL = [
    Colour(light, dark)
    for light, dark in zip(
        _ramp(*_FALLING, steps=SEQUENTIAL_STEPS, turn=SEQUENTIAL_TURN),
        _ramp(*_RISING, steps=SEQUENTIAL_STEPS, turn=SEQUENTIAL_TURN),
        strict=True,
    )
]


def _arm(light_hues: tuple[int, int, int], dark_hues: tuple[int, int, int]) -> list[Colour]:
    """One half of the diverging map, from zero outwards."""
    (a, b, c), (d, e, f) = light_hues, dark_hues
    falling = [(0.945, 0.004, a), (0.60, 0.125, b), (0.565, 0.135, b), (0.33, 0.11, c)]
    rising = [(0.285, 0.006, d), (0.56, 0.125, e), (0.60, 0.12, e), (0.90, 0.07, f)]
    sizes = {"steps": DIVERGING_STEPS // 2 + 1, "turn": DIVERGING_TURN}
    pairs = zip(_ramp(*falling, **sizes), _ramp(*rising, **sizes), strict=True)
    return [Colour(light, dark) for light, dark in pairs]


_NEGATIVE = _arm((252, 255, 268), (262, 252, 225))
_POSITIVE = _arm((62, 48, 35), (40, 52, 78))
DIVERGING = [*_NEGATIVE[:0:-1], *_POSITIVE]

PALETTE = [*ROLES.values(), *(colour for colour, _, _ in _ENCODINGS.values()), *SEQUENTIAL, *DIVERGING]
DARK = {colour.light: colour.dark for colour in PALETTE}

MAPS = {
    "posbook.sequential": ListedColormap([c.light for c in SEQUENTIAL], name="posbook.sequential"),
    "posbook.diverging": ListedColormap([c.light for c in DIVERGING], name="posbook.diverging"),
}


def colour(role: str) -> str:
    r"""The colour of a role or of an encoding, as the hex of the light page.

    >>> colour("paper")
    '#faf9f6'
    """
    if role in ROLES:
        return ROLES[role].light
    if role in ENCODINGS:
        return ENCODINGS[role].colour
    raise ValueError(f"no colour has the role {role!r}; there are {', '.join([*ROLES, *ENCODINGS])}")


def look(encoding: str) -> Look:
    r"""Colour, marker and dash of one encoding.

    >>> look("alibi").marker
    'P'
    """
    if encoding not in ENCODINGS:
        raise ValueError(f"no look for the encoding {encoding!r}; there are {', '.join(ENCODINGS)}")
    return ENCODINGS[encoding]


def register() -> None:
    """Tell matplotlib of the typeface and the two maps that the style file names."""
    for font in sorted((Path(__file__).parent / "fonts").glob("*.ttf")):
        font_manager.fontManager.addfont(font)
    for name, colormap in MAPS.items():
        matplotlib.colormaps.register(colormap, name=name, force=True)

r"""Lines named where they end instead of in a legend, with a dot for every seed."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from jaxtyping import Real
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.text import Annotation
from matplotlib.ticker import FixedFormatter, FixedLocator, NullLocator
from matplotlib.transforms import BboxBase
from torch import Tensor

from posbook.figures import style


def curve(
    ax: Axes,
    x: Real[Tensor | np.ndarray, " points"] | Sequence[float | int],
    y: Real[Tensor | np.ndarray, " points"] | Sequence[float | int],
    role: str,
    *,
    label: str | None = None,
    seeds: Real[Tensor | np.ndarray, "seeds points"] | Sequence | None = None,
    markers: bool = True,
) -> Line2D:
    r"""A line in the look of an encoding, or in the colour of a role.

    ``label`` is what :func:`label_ends` writes at its end.
    ``seeds``, one row of values for each seed, are drawn as small dots around it.
    ``markers=False`` leaves off the markers: on a line that swings they look like points of interest.

    >>> from matplotlib.figure import Figure
    >>> curve(Figure().subplots(), [1, 2, 4], [0.1, 0.2, 0.4], "rope", label="RoPE").get_label()
    'RoPE'
    """
    kind = style.ENCODINGS.get(role) or style.Look(style.colour(role), "", "-")
    # Some six markers tell one dash from another; one at each of many points would hide the line.
    every = max(1, len(x) // 6)
    (line,) = ax.plot(x, y, **kind.line, markevery=(every // 2, every), label=label, zorder=3)
    if not markers:
        line.set_marker("")
    if seeds is not None:
        rows = np.atleast_2d(np.asarray(seeds, dtype=float))
        if rows.shape[1] != len(x):
            raise ValueError(f"a seed needs a value at each of {len(x)} places, not {rows.shape[1]}")
        ax.plot(x, rows.T, "o", color=kind.colour, markersize=3.4, alpha=0.55, zorder=2)
    return line


def label_ends(ax: Axes) -> list[Annotation]:
    r"""Write each line's label to the right of its last point, moved up or down until no two overlap.

    Of a line that leaves the axes above or below, the label stands at that edge.
    Call it last, when limits, scales and titles are set: it measures the axes as they will be drawn.
    """
    named = [line for line in ax.get_lines() if not line.get_label().startswith("_")]
    notes = [_note(ax, line) for line in named]
    ax.figure.draw_without_rendering()
    boxes = [note.get_window_extent() for note in notes]
    shifts = _apart(boxes)
    # A label far from its line is tied to it; all then stand a little further off, in one column.
    far = [abs(shift) > box.height / 2 for shift, box in zip(shifts, boxes, strict=True)]
    right = 22 if any(far) else 9
    for note, line, shift, tied in zip(notes, named, shifts, far, strict=True):
        note.set_position((right, shift * 72 / ax.figure.dpi))
        if tied:
            tie = {"arrowstyle": "-", "color": line.get_color(), "linewidth": 0.9, "shrinkA": 2, "shrinkB": 4}
            at = {"textcoords": "offset points", "annotation_clip": False}
            ax.annotate("", note.xy, note.get_position(), arrowprops=tie, **at)
    return notes


def _note(ax: Axes, line: Line2D) -> Annotation:
    x, y = line.get_xydata()[-1]
    return ax.annotate(
        line.get_label(),
        (x, np.clip(y, *ax.get_ybound())),
        (9, 0),
        textcoords="offset points",
        va="center",
        color=line.get_color(),
        fontweight="bold",
        annotation_clip=False,
    )


def _apart(boxes: Sequence[BboxBase]) -> np.ndarray:
    """How far to move each box up so that none overlaps another, in their order and as little as may be.

    Boxes that must touch are pooled around their mean place: isotonic regression, by pooling neighbours.
    """
    shifts = np.zeros(len(boxes))
    columns: list[list[int]] = []
    for i in sorted(range(len(boxes)), key=lambda i: boxes[i].x0):
        if columns and any(boxes[i].x0 < boxes[j].x1 for j in columns[-1]):
            columns[-1].append(i)
        else:
            columns.append([i])
    for column in columns:
        order = sorted(column, key=lambda i: boxes[i].y0 + boxes[i].y1)
        middles = np.array([(boxes[i].y0 + boxes[i].y1) / 2 for i in order])
        heights = [boxes[i].height for i in order]
        gaps = [1.04 * (a + b) / 2 for a, b in pairwise(heights)]
        stack = np.cumsum([0.0, *gaps])
        pools: list[list[float]] = []
        for wanted in middles - stack:
            pools.append([wanted])
            while len(pools) > 1 and np.mean(pools[-2]) > np.mean(pools[-1]):
                last = pools.pop()
                pools[-1] += last
        placed = np.concatenate([np.full(len(pool), np.mean(pool)) for pool in pools]) + stack
        shifts[order] = placed - middles
    return shifts


def dots(
    ax: Axes, rows: Sequence[str], series: dict[str, Sequence[float | int]], roles: Sequence[str]
) -> None:
    r"""One row for each name, on it one dot for each series, tied by a line; the first row names the series.

    On a logarithmic axis (set the scale first) a value of 0 stands at the left end, hollow, over a tick "0":
    a difference that is exactly nothing has no logarithm, and must not vanish.

    >>> from matplotlib.figure import Figure
    >>> ax = Figure().subplots()
    >>> ax.set_xscale("log")
    >>> dots(ax, ["scores", "output"], {"float32": [1e-7, 2e-7], "float64": [0, 3e-16]}, ["key", "query"])
    >>> ax.xaxis.get_ticklabels()[0].get_text()
    '0'
    """
    if len(series) != len(roles) or any(len(values) != len(rows) for values in series.values()):
        raise ValueError(f"each of {len(series)} series needs a role and {len(rows)} values, one for a row")
    values = np.array(list(series.values()), dtype=float)
    nothing = (values == 0) & (ax.get_xscale() == "log")
    if ax.get_xscale() == "log":
        values = _make_room_for_zero(ax, values, nothing)
    at = np.arange(len(rows))
    ax.hlines(at, values.min(0), values.max(0), color=style.colour("axis"), linewidth=1.4, zorder=2)
    rank = values[:, 0].argsort(kind="stable").argsort()
    for i, (label, role) in enumerate(zip(series, roles, strict=True)):
        colour = style.colour(role)
        look = {"color": colour, "marker": "os^Dv"[i % 5], "markersize": 9, "linestyle": "", "zorder": 3}
        hollow = {"markerfacecolor": style.colour("paper"), "markeredgewidth": 1.8}
        ax.plot(values[i][~nothing[i]], at[~nothing[i]], **look)
        ax.plot(values[i][nothing[i]], at[nothing[i]], **look, **hollow)
        # The outermost names lean outwards, where there is room for them.
        lean = {0: "right", len(series) - 1: "left"}.get(int(rank[i]), "center")
        ax.annotate(
            label,
            (values[i, 0], 0),
            (0, 11),
            textcoords="offset points",
            ha="left" if nothing[i, 0] else lean,
            color=colour,
            fontweight="bold",
            annotation_clip=False,
        )
    ax.set_yticks(at, rows)
    ax.tick_params(axis="y", labelcolor=style.colour("ink"))
    ax.set_ylim(len(rows) - 0.5, -0.8)
    ax.spines["left"].set_visible(False)
    ax.grid(axis="y", visible=False)


def _make_room_for_zero(ax: Axes, values: np.ndarray, nothing: np.ndarray) -> np.ndarray:
    """Set ticks at powers of ten, with one more to the left for the zeros when there are any."""
    some = values[~nothing] if not nothing.all() else np.ones(1)
    if some.min() < 0:
        raise ValueError(f"a logarithmic axis has no place for {some.min():g}")
    first, last = int(np.floor(np.log10(some.min()))), int(np.ceil(np.log10(some.max())))
    stride = max(1, -(-(last - first) // 5))
    powers = list(range(first, last + 1, stride))
    names = [rf"$\mathdefault{{10^{{{power}}}}}$" for power in powers]
    if nothing.any():
        powers, names = [first - stride, *powers], ["0", *names]
    ax.xaxis.set_major_locator(FixedLocator([10.0**power for power in powers]))
    ax.xaxis.set_major_formatter(FixedFormatter(names))
    ax.xaxis.set_minor_locator(NullLocator())
    margin = 10.0 ** (0.25 * stride)
    ax.set_xlim(10.0 ** powers[0] / margin, 10.0 ** max(powers[-1], last) * margin)
    return np.where(nothing, 10.0 ** powers[0], values)

r"""A matrix as cells, each in a step of the palette, so that it turns with the page's theme."""

from collections.abc import Callable, Sequence

import numpy as np
from jaxtyping import Real
from matplotlib.axes import Axes
from matplotlib.collections import QuadMesh
from torch import Tensor

from posbook.figures import style

LARGEST = 64


def cells(
    ax: Axes,
    matrix: Real[Tensor | np.ndarray, "rows columns"],
    *,
    limits: tuple[float | int, float | int],
    rows: Sequence[str] | None = None,
    columns: Sequence[str] | None = None,
    annotate: str | Callable[[float], str] | None = None,
    diverging: bool = False,
    label: str | None = None,
) -> QuadMesh:
    r"""Draw a matrix of at most 64 × 64 as square cells; NaN leaves a cell empty.

    ``limits`` are the values of the first and the last colour; a value outside them is a ValueError.
    ``diverging`` puts 0 on the ground, and needs limits (−a, a).
    ``annotate`` writes the value into each cell: a format such as ``".2f"``, or a function.
    ``label`` (what is shown, with its unit) adds the slim bar that tells the colours' values.

    >>> import torch
    >>> from matplotlib.figure import Figure
    >>> mesh = cells(Figure().subplots(), torch.eye(3), limits=(0, 1), rows="abc", columns="abc")
    """
    values = np.asarray(matrix.detach().cpu() if isinstance(matrix, Tensor) else matrix, dtype=float)
    low, high = limits
    _check(values, low, high, rows, columns, diverging)
    height, width = values.shape
    cell = min(ax.bbox.height / height, ax.bbox.width / width) * 72 / ax.figure.dpi  # points, before layout

    name = "posbook.diverging" if diverging else "posbook.sequential"
    mesh = ax.pcolormesh(
        np.ma.masked_invalid(values),
        cmap=style.MAPS[name].with_extremes(bad=style.colour("paper")),
        vmin=low,
        vmax=high,
        # A seam in the colour of the ground keeps cells apart; in small ones it would wash their colours out.
        edgecolors=style.colour("paper") if cell > 14 else "face",
        linewidth=1.4 if cell > 14 else 0.2,
    )
    ax.set_aspect("equal")
    ax.invert_yaxis()
    ax.grid(False)
    ax.spines[:].set_visible(False)
    ax.tick_params(length=0, labelcolor=style.colour("ink"))
    ax.set_yticks(np.arange(height) + 0.5 if rows is not None else [], rows or [])
    ax.set_xticks(np.arange(width) + 0.5 if columns is not None else [], columns or [])
    for text in ax.xaxis.get_ticklabels():
        # 0.62 em is about the width of a letter; names too long for their cells are set upright, all of them.
        if len(text.get_text()) * 0.62 * text.get_fontsize() > cell:
            ax.tick_params(axis="x", rotation=90)
    if annotate is not None:
        write = annotate if callable(annotate) else lambda value: format(value, annotate).replace("-", "−")
        for (i, j), value in np.ndenumerate(values):
            if not np.isnan(value):
                ink = style.colour(_ink(value, low, high, diverging))
                ax.text(j + 0.5, i + 0.5, write(value), ha="center", va="center_baseline", color=ink)
    if label is not None:
        bar(ax, mesh, label)
    return mesh


def bar(ax: Axes, mesh: QuadMesh, label: str) -> Axes:
    r"""The slim bar beside ``ax`` that tells what the colours of ``mesh`` mean; returns the bar's axes."""
    # An inset follows the axes after their aspect has been settled, so that the bar is as high as the matrix.
    side = ax.inset_axes((1.04, 0.0, 0.035, 1.0))
    colours = ax.figure.colorbar(mesh, cax=side)
    colours.outline.set_visible(False)
    colours.solids.set(edgecolor="face", linewidth=0.2)
    colours.set_label(label)
    side.tick_params(length=0)
    side.grid(False)
    return side


def _check(
    values: np.ndarray,
    low: float | int,
    high: float | int,
    rows: Sequence[str] | None,
    columns: Sequence[str] | None,
    diverging: bool,
) -> None:
    if max(values.shape) > LARGEST:
        raise ValueError(f"cells are drawn up to {LARGEST} × {LARGEST}, not {values.shape}: show every nth")
    if not low < high:
        raise ValueError(f"limits go from low to high, not {(low, high)}")
    if diverging and low != -high:
        raise ValueError(f"a diverging map has 0 in its middle: limits are (−a, a), not {(low, high)}")
    shown = values[~np.isnan(values)]
    slack = 1e-9 * (high - low)
    if shown.size and not (low - slack <= shown.min() and shown.max() <= high + slack):
        raise ValueError(f"values from {shown.min():g} to {shown.max():g} leave the limits {(low, high)}")
    for names, count, which in ((rows, values.shape[0], "rows"), (columns, values.shape[1], "columns")):
        if names is not None and len(names) != count:
            raise ValueError(f"{len(names)} names for {count} {which}")


def _ink(value: float, low: float | int, high: float | int, diverging: bool) -> str:
    """The role of a number's colour: which side of the map's turn its cell lies on."""
    steps = style.DIVERGING_STEPS if diverging else style.SEQUENTIAL_STEPS
    step = int(np.clip((value - low) / (high - low) * steps, 0, steps - 1))
    if diverging:
        return "on_low" if abs(step - steps // 2) < style.DIVERGING_TURN else "on_high"
    return "on_low" if step < style.SEQUENTIAL_TURN else "on_high"

r"""Words as a row of boxes, their positions beneath, and lines that follow each word into another row."""

from collections.abc import Sequence
from typing import NamedTuple

from matplotlib.axes import Axes
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch
from matplotlib.path import Path

from posbook.figures import style

WIDTH, HEIGHT = 0.86, 0.46


class Row(NamedTuple):
    """Where a row stands, in the units of its axes."""

    x: list[float]  #: The middles of the boxes.
    top: float  #: The upper edge.
    bottom: float  #: The lower edge, positions included.


def row(
    ax: Axes,
    words: Sequence[str],
    *,
    y: float | int = 0.0,
    roles: str | Sequence[str] = "content",
    positions: Sequence[int] | None = None,
    name: str | None = None,
) -> Row:
    r"""Draw words as boxes around height ``y``, one unit apart, with their positions beneath.

    ``roles`` colours all boxes, or each its own; ``name`` is written above the row.
    The axes lose their frame and grow to hold what is drawn.

    >>> from matplotlib.figure import Figure
    >>> row(Figure().subplots(), ["dog", "bites", "man"], positions=range(3)).x
    [0.0, 1.0, 2.0]
    """
    roles = [roles] * len(words) if isinstance(roles, str) else roles
    if len(roles) != len(words) or (positions is not None and len(positions) != len(words)):
        raise ValueError(
            f"{len(words)} words need as many roles ({len(roles)}) and positions, or no positions"
        )
    x = [float(i) for i in range(len(words))]
    for at, word, role in zip(x, words, roles, strict=True):
        ax.add_patch(
            FancyBboxPatch(
                (at - WIDTH / 2, y - HEIGHT / 2),
                WIDTH,
                HEIGHT,
                boxstyle="round,pad=0,rounding_size=0.09",
                facecolor=style.colour("panel"),
                edgecolor=style.colour(role),
                linewidth=1.8,
            )
        )
        ax.text(at, y - 0.02, word, ha="center", va="center_baseline", color=style.colour("ink"), fontsize=13)
    for at, position in zip(x, positions or [], strict=positions is not None):
        ax.text(
            at,
            y - HEIGHT / 2 - 0.20,
            str(position),
            ha="center",
            va="center_baseline",
            color=style.colour("position"),
        )
    placed = Row(x, y + HEIGHT / 2, y - HEIGHT / 2 - (0.38 if positions is not None else 0.0))
    if name is not None:
        ax.text(-0.5, placed.top + 0.12, name, color=style.colour("muted"), va="bottom")
    _hold(ax, len(words), placed, named=name is not None)
    return placed


def connect(
    ax: Axes,
    above: Row,
    below: Row,
    order: Sequence[int],
    *,
    roles: str | Sequence[str] = "muted",
    arrow: bool = True,
) -> None:
    r"""Follow each word down: box ``j`` below holds the word of box ``order[j]`` above.

    ``roles``, one for all or one for each box above, colours the lines.

    >>> from matplotlib.figure import Figure
    >>> ax = Figure().subplots()
    >>> connect(ax, row(ax, "abc"), row(ax, "cab", y=-2), [2, 0, 1])
    """
    if sorted(order) != list(range(len(above.x))) or len(below.x) != len(above.x):
        raise ValueError(f"the order {list(order)} is no permutation of {len(above.x)} boxes")
    roles = [roles] * len(order) if isinstance(roles, str) else roles
    start, end = above.bottom - 0.06, below.top + 0.06
    for j, i in enumerate(order):
        bend = (start + end) / 2
        path = Path(
            [(above.x[i], start), (above.x[i], bend), (below.x[j], bend), (below.x[j], end)],
            [Path.MOVETO, Path.CURVE4, Path.CURVE4, Path.CURVE4],
        )
        # A seam in the colour of the ground shows which line passes over which.
        for colour, width, head in (("paper", 5.0, "-"), (roles[i], 2.0, "-|>" if arrow else "-")):
            ax.add_patch(
                FancyArrowPatch(
                    path=path,
                    arrowstyle=head,
                    mutation_scale=11,
                    linewidth=width,
                    fill=head != "-",
                    facecolor=style.colour(colour),
                    edgecolor=style.colour(colour),
                    joinstyle="miter",
                )
            )


def _hold(ax: Axes, count: int, placed: Row, *, named: bool) -> None:
    """Stretch the axes around one more row; equal units keep the boxes' corners round."""
    started = not ax.axison
    ax.set_axis_off()
    ax.set_aspect("equal")
    low, high = ax.get_ylim() if started else (placed.bottom, placed.top)
    left, right = ax.get_xlim() if started else (-0.5, 0.5)
    ax.set_xlim(left, max(right, count - 0.5))
    ax.set_ylim(min(low, placed.bottom - 0.05), max(high, placed.top + (0.45 if named else 0.05)))

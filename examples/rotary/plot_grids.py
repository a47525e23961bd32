r"""
A head that reads two coordinates
=================================

Above: scores of a patch with its neighbours, where each pair reads one axis and where each reads both.
Below: which of the 64 pairs read time, row and column in two released models, by their wavelength.
"""

import matplotlib.pyplot as plt
import torch
from matplotlib.patches import Rectangle

from posbook import axial, figures, frequencies, rotary

plt.style.use("posbook.figures.posbook")

# %%
# All offsets of up to REACH rows and columns. Query and key are vectors of ones, turned by four pairs:
# two for the row and two for the column, or all four for a direction that is half row, half column.

REACH, CORNER = 8, 4  # up to 31, as a map has at most 64 rows; the corner of a square, at most REACH away
side = torch.arange(-REACH, REACH + 1)
grid = torch.cartesian_prod(side, side)
slow_and_fast = frequencies.geometric(4, base=4.0)
along_axes = axial.split(grid, slow_and_fast)
along_diagonal = frequencies.angles(grid[:, 0] - grid[:, 1], slow_and_fast.repeat(2))


def scores(angles):
    ones = torch.ones(len(grid), 8, dtype=torch.float64)
    return rotary.rotate(ones, angles, layout="halves").sum(dim=1).unflatten(0, (len(side), len(side)))


def corners(matrix):
    """Score and score at the two ends of either diagonal of one square of offsets, added."""
    a, b = REACH, REACH + CORNER
    return (matrix[a, a] + matrix[b, b]).item(), (matrix[a, b] + matrix[b, a]).item()


maps = {"axial": scores(along_axes), "mixed": scores(along_diagonal)}

# %%
# How two released models share out the pairs of a head of 128 features between time, row and column.

IMAGE = 32  # columns of a small picture, up to 256
models = {
    "Qwen2-VL: the columns get the slow pairs": (axial.chunked([16, 24, 24]), 1e6),
    "Qwen3-VL: every axis gets fast and slow ones": (axial.interleaved([24, 20, 20]), 5e6),
}


def fastest(model, axis):
    """The wavelength of the fastest pair that reads this axis."""
    axes, base = models[model]
    return frequencies.wavelengths(frequencies.geometric(128, base))[axes.index(axis)].item()


# %%
# One drawing of both.

fig = plt.figure(figsize=(7.2, 9.0))
places = fig.add_gridspec(3, 2, height_ratios=(2.5, 1, 1))
titles = {"axial": "each pair reads one axis", "mixed": "each pair reads both"}
for column, (name, matrix) in enumerate(maps.items()):
    ax = fig.add_subplot(places[0, column])
    figures.heatmaps.cells(ax, matrix, limits=(-8, 8), diverging=True)
    for down, right in torch.cartesian_prod(*2 * [torch.tensor([REACH, REACH + CORNER])]).tolist():
        ax.add_patch(
            Rectangle((right, down), 1, 1, fill=False, edgecolor=figures.colour("ink"), linewidth=2.4)
        )
    ax.set_xticks([0.5, REACH + 0.5, 2 * REACH + 0.5], [f"−{REACH}", "0", str(REACH)])
    ax.set_yticks([0.5, REACH + 0.5, 2 * REACH + 0.5], [f"−{REACH}", "0", str(REACH)])
    ax.set_title(titles[name], loc="center")
    ax.set_xlabel("columns to the right")
    if name == "axial":
        ax.set_ylabel("rows down")
    one, other = (f"{total:.1f}".replace("-", "−") for total in corners(matrix))
    both = f"opposite corners: {one} and {other}"
    ax.text(0.5, -0.27, both, weight="bold", ha="center", transform=ax.transAxes)

for row, (name, (axes, base)) in enumerate(models.items(), start=1):
    ax = fig.add_subplot(places[row, :])
    ax.set_xscale("log")
    ax.axvline(2 * torch.pi * IMAGE, color=figures.colour("muted"), linestyle=(0, (3, 2)), linewidth=1.4)
    waves = frequencies.wavelengths(frequencies.geometric(128, base))
    for axis, role in enumerate(("content", "good", "accent")):
        mine = [pair for pair, reads in enumerate(axes) if reads == axis]
        ax.plot(
            waves[mine], [axis] * len(mine), "|", color=figures.colour(role), markersize=15, markeredgewidth=2
        )
    ax.set_yticks(range(3), ["time", "row", "column"])
    ax.set_ylim(2.6, -0.6)
    ax.set_xlim(4, 6e7)
    ax.grid(False)
    ax.set_title(name)
    if row == 1:
        ax.set_xticklabels([])
        slower = f"slower than 1 rad in {IMAGE} steps"
        ax.text(8.125 * IMAGE, 0, slower, color=figures.colour("muted"), va="center")
ax.set_xlabel("wavelength of the pair, in steps along its axis")
fig.suptitle("Pairs that read one axis each cannot see a diagonal", x=0.02, ha="left")
figures.publish(
    fig,
    alt="Above, two maps of scores over the offset in rows and columns. Where each pair reads one axis the "
    "map is plaid, a sum of row stripes and column stripes; where each reads both it shows a stripe of high "
    "scores along the diagonal. Below, a mark for each of 64 pairs by wavelength. In Qwen2-VL time has fast "
    "pairs, the row middle ones and the column slow ones; in Qwen3-VL each has fast ones and slow ones.",
    numbers={
        "axial_corners": abs(corners(maps["axial"])[0] - corners(maps["axial"])[1]),
        "mixed_corners": abs(corners(maps["mixed"])[0] - corners(maps["mixed"])[1]),
        **{
            f"{axis}_{name[:5].lower()}": fastest(name, index)
            for name in models
            for index, axis in enumerate(("time", "row", "column"))
        },
    },
)

r"""
Three tokens later is one turn, wherever you start
==================================================

Each pair of features is a clock whose hand points at (sine, cosine). Moving on by the same number of tokens
turns each clock by an angle of its own, which does not depend on where one starts.
"""

import math

import matplotlib.pyplot as plt
import torch
from matplotlib.patches import Circle, Wedge

from posbook import figures, frequencies, properties, sinusoidal

plt.style.use("posbook.figures.posbook")

# %%
# A small table, and the matrix that should move each of its rows STEP tokens on. The base is small as well,
# so that all clocks visibly turn.

DIM = 6  # 4, 6 or 8: more clocks do not fit into one row, nor their numbers into the cells below
STEP, STARTS = 3, (1, 8)  # any step, and any two positions below 1000 − STEP
theta = frequencies.geometric(DIM, base=30.0)
at = torch.arange(1000)
table = sinusoidal.encode(frequencies.angles(at, theta))
later = sinusoidal.encode(frequencies.angles(at + STEP, theta))
matrix = sinusoidal.shift(theta, STEP)

# %%
# Rows are vectors, so the matrix stands on the right, transposed. Untransposed it turns the clocks back.

forth = properties.difference(table @ matrix.T, later)
back = properties.difference(table @ matrix, later)

# %%
# The clocks, each seen from two starts, and below them the one matrix that turns them all. A hand at
# (sine, cosine) starts at twelve and runs clockwise; matplotlib counts from three, the other way.

high = 0.275 * DIM  # of the matrix, in heights of the faces
fig = plt.figure(figsize=(7.2, 2.604 * (1 + high)))
upper, lower = fig.subfigures(2, 1, height_ratios=(1, high))
for i, ax in enumerate(upper.subplots(1, DIM // 2)):
    ax.add_patch(Circle((0, 0), 1, fill=False, edgecolor=figures.colour("axis"), linewidth=1.4))
    for start, role, radius in zip(STARTS, ("position", "sinusoidal"), (0.72, 0.5), strict=True):
        colour = figures.colour(role)
        ends = [90 - math.degrees(p * theta[i]) for p in (start, start + STEP)]
        ax.add_patch(Wedge((0, 0), radius, ends[1], ends[0], color=colour, alpha=0.3, linewidth=0))
        for p, width in ((start, 1.8), (start + STEP, 3.6)):
            sine, cosine = table[p, 2 * i : 2 * i + 2].tolist()
            ax.plot([0, sine], [0, cosine], color=colour, linewidth=width)
            ax.text(1.2 * sine, 1.2 * cosine, p, color=colour, ha="center", va="center_baseline")
    ax.set_title(f"pair {i}: {math.degrees(STEP * theta[i]):.0f}°", loc="center")
    ax.set_xlim(-1.35, 1.35)
    ax.set_ylim(-1.3, 1.3)
    ax.set_aspect("equal")
    ax.set_axis_off()

names = [f"{wave} {i}" for i in range(DIM // 2) for wave in ("sin", "cos")]
block = torch.block_diag(*[torch.ones(2, 2)] * (DIM // 2)).bool()
grid = lower.subplots()
shown = matrix.where(block, torch.nan)
figures.heatmaps.cells(grid, shown, limits=(-1, 1), rows=names, columns=names, annotate=".2f", diverging=True)
grid.set_title("The matrix that does it, at every position", loc="center")
fig.suptitle(f"{STEP} tokens later is the same turn, wherever you start", x=0.02, ha="left")
figures.publish(
    fig,
    alt=f"{DIM // 2} clock faces, each with two thin hands, at positions {STARTS[0]} and {STARTS[1]}, and "
    f"two thick ones {STEP} tokens later, at {STARTS[0] + STEP} and {STARTS[1] + STEP}. On each face the two "
    f"wedges between thin and thick are equally wide. Below, a matrix of {DIM // 2} blocks, 2 by 2 each: "
    "cosines on its diagonal, sines above them and minus the same sines below.",
    numbers={"forth": forth, "back": back},
)

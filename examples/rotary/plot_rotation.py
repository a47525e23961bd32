r"""
Which maps let a score see the offset alone
===========================================

One query and one key, moved to five positions each, in four ways.
A score that depends on the offset alone is the same number all along a diagonal.
"""

import matplotlib.pyplot as plt
import torch
from matplotlib.patches import Rectangle

from posbook import figures, frequencies, rotary, sinusoidal

plt.style.use("posbook.figures.posbook")

# %%
# Four ways to put a vector :math:`x` at position :math:`m`. Each leaves it as it is at position 0, but for
# the first, where a sinusoid is added.

POSITIONS, GROWTH = 5, 1.15  # 4 to 6 positions, whose scores fit their cells; a growth up to 1.3
at = torch.arange(POSITIONS)
angles = frequencies.angles(at, frequencies.geometric(4))
swap = [1, 0, 3, 2]  # the members of each pair change places: a reflection


def everywhere(x):
    return x.expand(POSITIONS, -1)


ways = {
    "add": ("add a vector", lambda x: everywhere(x) + sinusoidal.encode(angles)),
    "stretch": ("stretch", lambda x: everywhere(x) * GROWTH ** at[:, None]),
    "flip": ("flip at every step", lambda x: torch.where(at[:, None] % 2 == 0, x, x[swap])),
    "turn": ("turn", lambda x: rotary.rotate(everywhere(x), angles, layout="interleaved")),
}

# %%
# All scores, and how far those of one diagonal are apart in the worst case.

q = torch.tensor([1, 0, 1, 0], dtype=torch.float64)
k = torch.tensor([1, 2, 3, 4], dtype=torch.float64)
scores = {name: move(q) @ move(k).T for name, (_, move) in ways.items()}


def apart(matrix):
    diagonals = [matrix.diagonal(offset) for offset in range(1 - POSITIONS, POSITIONS)]
    return max((diagonal.max() - diagonal.min()).item() for diagonal in diagonals)


# %%
# The diagonal of offset 2 is outlined.

values = {name: len(matrix.round(decimals=9).unique()) for name, matrix in scores.items()}
largest = max(matrix.max().item() for matrix in scores.values())
fig, panels = plt.subplots(2, 2, figsize=(7.2, 7.6))
for ax, (name, (title, _)) in zip(panels.flat, ways.items(), strict=True):
    figures.heatmaps.cells(
        ax,
        scores[name],
        limits=(0, largest),
        annotate=".1f",
        rows=[str(m) for m in at.tolist()],
        columns=[str(n) for n in at.tolist()],
    )
    for m in range(POSITIONS - 2):
        ax.add_patch(
            Rectangle((m + 2, m), 1, 1, fill=False, edgecolor=figures.colour("accent"), linewidth=2.6)
        )
    along = "one number on each diagonal" if apart(scores[name]) < 1e-12 else "differs along diagonals"
    ax.set_title(title, loc="center")
    ax.set_xlabel(along, color=figures.colour("accent"), weight="bold")
for ax in panels[:, 0]:
    ax.set_ylabel("query at")
for ax in panels[0]:
    ax.annotate("key at", (0, 1), (-4, 4), xycoords="axes fraction", textcoords="offset points", ha="right")
fig.suptitle("Turning by an angle that grows with position leaves only the offset", x=0.02, ha="left")
figures.publish(
    fig,
    alt=f"Four matrices of {POSITIONS} by {POSITIONS} scores, a row for each position of the query and a "
    "column for each position of the key, with the cells of offset two outlined. Where a vector is added or "
    "both are stretched, these differ. Where both are flipped at every step, or turned, each diagonal holds "
    f"one number; flipping has only {values['flip']} numbers in all, turning {values['turn']}.",
    numbers={
        "add": apart(scores["add"]),
        "stretch": apart(scores["stretch"]),
        "flip": apart(scores["flip"]),
        "turn": apart(scores["turn"]),
        "values_flip": values["flip"],
        "values_turn": values["turn"],
        "ahead": scores["turn"][1, 3].item(),
        "behind": scores["turn"][3, 1].item(),
    },
)

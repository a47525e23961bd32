r"""
Two layouts, and what becomes of scores that mix them up
========================================================

Above: the same four pairs of a head of eight features, laid out in two ways, and where each feature goes.
Below: how much of a score is left when the layout, or the direction of the turn, is not the trained one.
"""

import matplotlib.pyplot as plt
import numpy as np
import torch

from posbook import figures, frequencies, rotary

plt.style.use("posbook.figures.posbook")
torch.set_num_threads(1)

# %%
# For random queries and keys with independent entries of variance 1, the scores :math:`q^\top A k` and
# :math:`q^\top B k` have the correlation :math:`\operatorname{tr}(A^\top B)/d` when A and B are rotations.
# No sample is drawn.

DIM = 128  # even, 64 or more: below, the curves swing into their names
theta = frequencies.geometric(DIM)
identity = torch.eye(DIM, dtype=torch.float64)


def rotation(offset, layout):
    return rotary.rotate(identity, (offset * theta).expand(DIM, -1), layout=layout).T


def kept(offset, other):
    return ((rotation(offset, "interleaved") * other).sum() / DIM).item()


offsets = sorted({0, *np.geomspace(1, 4096, 80).round().astype(int).tolist()})
curves = {
    "the other layout": [kept(r, rotation(r, "halves")) for r in offsets],
    "the other direction": [kept(r, rotation(-r, "interleaved")) for r in offsets],
}

# %%
# What mixing them up does to the worked example of the chapter, which has four features.

q = torch.tensor([[1, 0, 1, 0]], dtype=torch.float64)
k = torch.tensor([[1, 2, 3, 4]], dtype=torch.float64)


def score(layout):
    at_one, at_three = (frequencies.angles(torch.tensor([p]), frequencies.geometric(4)) for p in (1, 3))
    return (rotary.rotate(q, at_one, layout=layout) @ rotary.rotate(k, at_three, layout=layout).T).item()


# %%
# Pairs have a colour each.

fig, (ax, below) = plt.subplots(2, 1, figsize=(7.2, 7.6), height_ratios=(1.15, 1))
order = rotary.permutation(8).tolist()
pairs = ["accent", "good", "position", "future"]


def arcs(row, partners, edge, side):
    for (a, b), role in zip(partners, pairs, strict=True):
        x = np.linspace(row.x[a], row.x[b], 60)
        height = 0.2 + 0.13 * (b - a)
        bow = edge + side * (0.05 + height * np.sin(np.pi * (x - x[0]) / (x[-1] - x[0])))
        ax.plot(x, bow, color=figures.colour(role), linewidth=2.4)


above = figures.tokens.row(ax, [str(a) for a in range(8)], roles=[pairs[a // 2] for a in range(8)])
under = figures.tokens.row(ax, [str(a) for a in order], y=-2.0, roles=[pairs[a // 2] for a in order])
figures.tokens.connect(ax, above, under, order, roles=[pairs[a // 2] for a in range(8)])
arcs(above, [(2 * i, 2 * i + 1) for i in range(4)], above.top, 1)
arcs(under, [(i, i + 4) for i in range(4)], under.bottom, -1)
ax.text(-0.5, 0.75, "interleaved: neighbours", weight="bold", va="bottom")
ax.text(-0.5, -3.3, "halves: partners half a head apart", weight="bold", va="top")
ax.set_ylim(-3.75, 1.2)

below.set_xscale("symlog", linthresh=1)
styles = {"accent": "-", "muted": (0, (4, 1.5))}
for values, (role, dash) in zip(curves.values(), styles.items(), strict=True):
    below.plot(offsets, values, color=figures.colour(role), linestyle=dash)
below.axhline(0, color=figures.colour("axis"), linewidth=0.9)
below.text(2.2, 0.3, "the other layout", color=figures.colour("accent"), weight="bold")
below.text(25, 0.62, "the other direction", color=figures.colour("muted"), weight="bold")
below.set_xticks([0, 1, 10, 100, 1000], ["0", "1", "10", "100", "1,000"])
below.set_xlabel("offset between query and key, in tokens")
below.set_title(f"Correlation with the right score ({DIM} features)")
fig.suptitle("The same pairs in two places; mixed up, near scores still look right", x=0.02, ha="left")
figures.publish(
    fig,
    alt="Above, two rows of eight boxes. In the upper row arcs join neighbours, 0 with 1, 2 with 3 and so "
    "on; lines lead each feature to the lower row, 0 2 4 6 1 3 5 7, where arcs join the first box with the "
    "fifth, the second with the sixth and so on. Below, two falling curves: the correlation of scores in "
    "the wrong layout, or the wrong direction, with the right ones is 1 at offset 0, and falls towards 0.",
    numbers={
        "interleaved": score("interleaved"),
        "halves": score("halves"),
        **{f"kept_{r}": kept(r, rotation(r, "halves")) for r in (0, 1, 10, 100, 1000)},
        "direction_1": kept(1, rotation(-1, "interleaved")),
    },
)

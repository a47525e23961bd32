r"""
What "600 times smaller" compares
=================================

Position interpolation was argued for with two bounds: one for a score between two trained distances, and one
for a score beyond the trained range.
Here are both, with what they bound.
"""

import math

import matplotlib.pyplot as plt
import torch

from posbook import figures, frequencies

plt.style.use("posbook.figures.posbook")
torch.set_num_threads(1)

DIM, BASE, LENGTH, FARTHEST = 128, 10_000.0, 4096, 65_536  # FARTHEST is beyond LENGTH
theta = frequencies.geometric(DIM, BASE)

# %%
# A score is a sum over pairs, :math:`\mathrm{Re} \sum_j h_j e^{i s \theta_j}`, and everything here is in
# units of the largest :math:`|h_j|`. Halfway between two whole distances it can miss the straight line
# between them by the sum of :math:`1 - \cos(\theta_j/2)`, and by no more.

half = (1 - (theta / 2).cos()).sum().item()
printed = DIM / (32 * math.log(BASE))

# The phases that reach it, between the distances 3 and 4.
worst = torch.polar(torch.ones_like(theta), -3.5 * theta)


def score(h, distances):
    return (h * torch.polar(torch.ones_like(theta), frequencies.angles(distances, theta))).real.sum(dim=-1)


fine, whole = torch.linspace(0, 7, 561, dtype=torch.float64), torch.arange(8)

# %%
# The bound beyond the trained range has nothing to do with that range: it holds at every distance. Nor does
# it say more than that each term is at most 1.

sums = torch.cat(
    [
        torch.polar(torch.ones_like(theta), frequencies.angles(at, theta)).cumsum(dim=-1).abs().sum(dim=-1)
        for at in torch.arange(1, FARTHEST + 1).split(8192)
    ]
)
bound, trivial = 2 * sums, DIM / 2
inside, outside = sums[:LENGTH] / DIM, sums[LENGTH:] / DIM
shown = torch.logspace(0, math.log10(FARTHEST), 400).round().long().unique()

# %%
# Above a score, below the bounds.

fig, (above, below) = plt.subplots(2, 1, figsize=(7.2, 8.8))
rope, query = figures.colour("rope"), figures.colour("query")
above.plot(fine, score(worst, fine), color=rope, zorder=3)
above.plot(whole, score(worst, whole), color=figures.colour("muted"), linewidth=1.4, linestyle=(0, (4, 2)))
above.plot(whole, score(worst, whole), "o", color=figures.colour("ink"), markersize=8, zorder=4)
above.plot(
    torch.arange(57) / 8, score(worst, torch.arange(57) / 8), "o", color=query, markersize=3.6, zorder=5
)
above.set_ylim(trivial - 11.5, trivial + 2)
above.text(0, trivial + 0.6, "distances in training", color=figures.colour("ink"), weight="bold")
above.text(0, trivial - 0.6, "with interpolation, by 8", color=query, weight="bold")
above.annotate(
    f"misses the straight line\nby {half:.2f}, the most it can",
    (3.5, trivial - 0.2),
    (3.5, trivial - 6.5),
    ha="center",
    color=rope,
    weight="bold",
    arrowprops={"arrowstyle": "-", "color": rope, "linewidth": 0.9, "shrinkB": 4},
)
above.set_xlabel("distance to the key (tokens)")
above.set_ylabel("score (1 = largest term)")
above.set_title("Between two trained distances: nearly straight")

below.plot(shown, bound[shown - 1], color=figures.colour("future"), linestyle=(0, (5, 1.5)))
below.axhline(trivial, color=figures.colour("ink"), linewidth=1.4, linestyle=(0, (1, 1.2)))
below.axhline(half, color=rope)
below.axvspan(1, LENGTH, color=figures.colour("panel"), zorder=0)
below.set_xscale("log")
below.set_yscale("log")
below.set_xlim(1, FARTHEST)
below.set_ylim(half / 5, 5 * bound.max().item())
over = {"weight": "bold", "va": "bottom"}
below.text(40, 1.3 * bound[39], "bound for extrapolation", color=figures.colour("future"), **over)
below.text(1.2, 0.375 * trivial, "the largest score there is", color=figures.colour("ink"), **over)
below.text(1.2, 1.22 * half, "the largest miss between two distances", color=rope, **over)
below.text(1.2, half * 0.225, "trained distances", color=figures.colour("muted"), va="bottom")
below.set_xlabel("distance to the key (tokens)")
below.set_ylabel("size (1 = largest term)")
below.set_title("Two bounds, and how large a score can be")

figures.publish(
    fig,
    alt="Above, a score over distances 0 to 7: dots at whole distances, joined by dashed straight lines, "
    "and a curve through them with smaller dots at every eighth, which leaves the lines by at most "
    f"{half:.2f} of the largest term. Below, sizes over distances 1 to {FARTHEST} on logarithmic axes: the "
    f"bound for extrapolation falls from {bound[0]:.0f} to {bound[:LENGTH].min():.0f} within the trained "
    f"distances, and to {bound[LENGTH:].min():.0f} beyond; the largest score there is, {trivial:.0f}, lies "
    f"below it; and the largest miss between two distances far below, at {half:.2f}.",
    numbers={
        "half": half,
        "printed": printed,
        "printed_divisor": 32 * math.log(BASE),
        "short_by": half / printed - 1,
        "largest": int(trivial),
        "bound_inside": inside.min().item(),
        "bound_inside_at": int(inside.argmin()) + 1,
        "bound_outside": outside.min().item(),
        "bound_outside_at": int(outside.argmin()) + LENGTH + 1,
        "like_with_like": trivial / half,
        "ratio_printed": 2 * 32 * math.log(BASE),
        "ratio_inside": 2 * DIM * inside.min().item() / half,
        "ratio_outside": 2 * DIM * outside.min().item() / half,
        "trained": LENGTH,
        "farthest": FARTHEST,
    },
)

r"""
Does a rotary score fade with distance?
=======================================

The score of a query with keys that lie further and further back, before anything is trained.
All-ones vectors fade at first, random ones never do, a turned key peaks wherever it was turned to, and the
bound that is proved lies above all of it.
"""

import matplotlib.pyplot as plt
import torch

from posbook import attention, figures, frequencies, rotary

plt.style.use("posbook.figures.posbook")
torch.set_num_threads(1)

DIM, BASE = 128, 10_000  # an even width, 16 or more
LONGEST, PEAK = 32_768, 500  # the longest distance, 4096 or more, and one that is shorter
PAIRS, SEEDS = 500, 10  # pairs for each seed, 2 or more: of few, the squares stray from 1
theta = frequencies.geometric(DIM, BASE)

# %%
# All-ones: each pair of features adds twice the cosine of its angle, so a score is DIM times the mean cosine.
# The sums of the first pairs alone, as complex numbers, are what the bound is made of.

every = torch.arange(LONGEST + 1)
partial_sums = torch.polar(torch.ones_like(theta), frequencies.angles(every, theta)).cumsum(dim=-1)
mean_cosine = partial_sums[:, -1].real / len(theta)
rises = mean_cosine.diff() > 0

# %%
# Where the mean cosine is first negative, if it is, and the round distance beyond at which it is largest.

negative = (mean_cosine < 0).nonzero().flatten().tolist()[:1]
beyond = [r for r in range(1000, LONGEST + 1, 1000) if negative and r > negative[0]]
again = [max(beyond, key=lambda r: mean_cosine[r])] if beyond else []

grid = torch.logspace(0, torch.log10(torch.tensor(float(LONGEST))), 260).round().long()
shown = torch.cat((torch.arange(1, 41), grid[grid > 40], torch.tensor([PEAK, *negative, *again]))).unique()


# %%
# A key that lies at position 0 is not turned, so a query at distance :math:`r` is turned by :math:`r\theta`.


def looking_back(q, k, distances):
    """The scores of each query with its key, as far back as each distance: (pairs, distances)."""
    turned = rotary.rotate(
        q[:, None].expand(-1, len(distances), -1), frequencies.angles(distances, theta), layout="halves"
    )
    return attention.scores(turned, k[:, None])[..., 0]


at = torch.tensor([*(r for r in (1, 10, 100, 1000, 10_000) if r < LONGEST), LONGEST])
means, spreads = [], []
for seed in range(SEEDS):
    generator = torch.Generator().manual_seed(seed)
    q, k = torch.randn(2, PAIRS, DIM, generator=generator, dtype=torch.float64)
    scores = looking_back(q, k, at)
    means.append(scores.mean(dim=0))
    spreads.append(scores.std(dim=0))
means, spreads = torch.stack(means), torch.stack(spreads)
one_pair = looking_back(q[:1], k[:1], shown)[0]

# %%
# The key is the query, turned forward by PEAK positions: the distance at which the two agree.

query = q[:1] / q[:1].norm()
ahead = rotary.rotate(query, frequencies.angles(torch.tensor([PEAK]), theta), layout="halves")
peaked = looking_back(query, ahead, every)[0] * DIM**0.5

# %%
# The bound of the chapter's theorem for all-ones, where only the last of the differences of neighbouring
# pairs is not 0: it is 2. Nothing but the lengths of the vectors bounds the score by DIM.

bound = 2 * partial_sums.abs().sum(dim=-1)
trivial = DIM
stays = "stays above" if bound.min() > trivial else "dips below"

# %%
# Four panels, one distance.

fig, (ones, random, turned, proved) = plt.subplots(4, 1, figsize=(7.2, 11), sharex=True)
rope, zero = figures.look("rope").colour, {"color": figures.colour("axis"), "linewidth": 0.9, "zorder": 1}


def mark(ax, x, y, text, away):
    right, up = away
    if x < 30:  # no room on the left
        right = -right
    style = {"color": figures.colour("accent"), "weight": "bold", "ha": "right" if right < 0 else "left"}
    ax.plot(x, y, "o", color=figures.colour("accent"), markersize=8, zorder=4)
    ax.annotate(text, (x, y), (right, up), textcoords="offset points", **style)


ones.plot(shown, mean_cosine[shown], color=rope)
for r in negative:
    mark(ones, r, mean_cosine[r], f"negative first at {r}", (-8, -32))
for r in again:
    mark(ones, r, mean_cosine[r], "up again", (-2, 14))
ones.set_ylim(min(-0.42, mean_cosine.min().item() - 0.1), 1.05)
ones.set_title("Query and key all ones: it fades, not steadily" + (", not for good" if again else ""))
ones.set_ylabel("mean cosine")

random.plot(shown, one_pair, color=figures.colour("muted"), linewidth=0.9)
random.plot(at.expand(SEEDS, -1).T, means.T, "o", color=figures.colour("query"), markersize=4, alpha=0.8)
random.plot(at.expand(SEEDS, -1).T, spreads.T, "s", color=figures.colour("key"), markersize=4, alpha=0.8)
random.text(1.2, 1.4, "standard deviation", color=figures.colour("key"), weight="bold")
start = min(0, one_pair[shown <= 10].min().item())
begins = one_pair[shown <= 4]
struck = ((begins > 0.1) & (begins < 0.78)).any()  # the line would run through "mean": both names go below
heights = (start - 0.9, start - 1.75) if struck else (0.25, start - 0.9)
random.text(1.2, heights[0], "mean", color=figures.colour("query"), weight="bold")
random.text(1.2, heights[1], "one pair", color=figures.colour("muted"), weight="bold")
most = max(3.6, 1.1 * one_pair.abs().max().item())
random.set_ylim(-most, most)
random.set_title("Random query and key: nothing fades")
random.set_ylabel("score")

turned.plot(shown, peaked[shown], color=rope)
mark(turned, PEAK, peaked[PEAK], f"largest {PEAK} back", (-12, -4))
turned.set_title("A key turned to match: the peak is where you put it")
turned.set_ylabel("score (1 = largest)")

proved.plot(shown, bound[shown], color=figures.colour("future"), linestyle=(0, (5, 1.5)))
proved.plot(shown, (DIM * mean_cosine[shown]).abs(), color=rope)
proved.axhline(trivial, color=figures.colour("ink"), linewidth=1.4, linestyle=(0, (1, 1.2)))
proved.set_yscale("log")
proved.set_ylim(DIM / 64, 7.2 * bound[0].item())
above = {"weight": "bold", "va": "bottom"}
proved.text(1.2, 1.36 * bound[1].item(), "the bound that is proved", color=figures.colour("future"), **above)
proved.text(1.2, 1.33 * trivial, "the lengths alone", color=figures.colour("ink"), **above)
proved.text(1.2, 0.2 * DIM, "score of all ones", color=rope, **above)
proved.set_title(f"The bound falls, and {stays} what the lengths allow")
proved.set_ylabel("size of the score")
proved.set_xscale("log")
proved.set_xlim(0.9, 1.25 * LONGEST)
proved.set_xlabel(f"distance from the query back to the key (tokens; {len(shown)} distances are joined)")
for ax in (ones, random, turned):
    ax.axhline(0, **zero)

said = "".join(f", is negative first at {r}" for r in negative)
said += "".join(f" and positive again at {r}" for r in again)
figures.publish(
    fig,
    alt="Four panels over the distance between query and key, on a logarithmic axis. All-ones: the mean "
    f"cosine falls from near 1 in wiggles{said}. Random pairs: means at 0 and standard deviations at 1 at "
    f"every distance, and one pair that swings without end. A turned key: one peak, {PEAK} tokens back. The "
    f"proved bound falls, and {stays} the product of the lengths.",
    numbers={
        **{
            f"ones_{r}": mean_cosine[r].item() for r in (1, 10, 100, 1000, 4000, 8000, *again) if r <= LONGEST
        },
        "first_rise": int(rises.nonzero()[0]) + 1,
        "rises_in_100": int(rises[:100].sum()),
        "rises_in_4096": int(rises[:4096].sum()),
        "first_negative": negative[0] if negative else "never",
        "largest_mean": means.abs().max().item(),
        "smallest_spread": spreads.min().item(),
        "largest_spread": spreads.max().item(),
        "peak": int(peaked.argmax()),
        "bound_at_0": (bound[0] / trivial).item(),
        "bound_smallest": (bound / trivial).min().item(),
    },
    seed=f"0 to {SEEDS - 1}",
    size=f"{PAIRS} random pairs of width {DIM} for each seed, base {BASE:_}".replace("_", " "),
    spread=f"{SEEDS} means and {SEEDS} standard deviations at each of {len(at)} distances",
)

r"""
One number for a long text
==========================

Three predictors whose loss is known exactly at every position, and what is reported when their loss is
averaged over windows.
The text: every text has its own frequencies of 32 symbols, drawn at random, and nothing else to learn.
The best that a predictor can do is to count what it has seen.
"""

import math

import matplotlib.pyplot as plt
import torch

from posbook import figures

plt.style.use("posbook.figures.posbook")
torch.set_num_threads(1)

SYMBOLS, ALPHA, LONGEST = 32, 0.1, 2048
REMEMBERED, TRAINED = 64, 256  # the first is shorter than the second, and LONGEST is twice TRAINED or more


def losses(seen):
    r"""The expected loss of the best prediction after so many tokens, in nats, exactly.

    Frequencies are Dirichlet(ALPHA, …). A symbol seen c times among n then has the probability
    (c + ALPHA) / (n + SYMBOLS · ALPHA), and c is beta-binomial.
    """
    n = torch.arange(seen, dtype=torch.float64)[:, None]
    c = torch.arange(seen, dtype=torch.float64)[None]
    rest, total = (SYMBOLS - 1) * ALPHA, SYMBOLS * ALPHA
    ways = torch.lgamma(n + 1) - torch.lgamma(c + 1) - torch.lgamma((n - c).clamp(min=0) + 1)
    chance = torch.lgamma(c + ALPHA) + torch.lgamma((n - c).clamp(min=0) + rest) - torch.lgamma(n + total)
    known = math.lgamma(total) - math.lgamma(ALPHA) - math.lgamma(rest)
    weight = torch.where(c <= n, torch.exp(ways + chance + known), 0)
    p = (c + ALPHA) / (n + total)
    return -SYMBOLS * (weight * p * p.log()).sum(dim=1)


# %%
# One counts all that its window holds; one counts the last REMEMBERED tokens only; one counts all up to the
# length it was trained on, and beyond it guesses.

all_seen = losses(LONGEST)
last_seen = torch.where(torch.arange(LONGEST) < REMEMBERED, all_seen, all_seen[REMEMBERED])
breaks = torch.where(torch.arange(LONGEST) < TRAINED, all_seen, math.log(SYMBOLS))
limit = torch.digamma(torch.tensor([SYMBOLS * ALPHA + 1, ALPHA + 1], dtype=torch.float64))
limit = float(limit[0] - limit[1])  # the mean entropy of a text: nobody does better

forgetful = f"the last {REMEMBERED}"
readers = {
    "counts all": (all_seen, "position"),
    forgetful: (last_seen, "past"),
    "breaks": (breaks, "warn"),
}
lengths = torch.arange(1, LONGEST + 1)
means = {name: loss.cumsum(0) / lengths for name, (loss, _) in readers.items()}

# %%
# The same three, by position and as the mean over a window of each length.

fig, (above, below) = plt.subplots(2, 1, figsize=(7.2, 9), sharex=True, sharey=True)
for ax, of in ((above, {name: loss for name, (loss, _) in readers.items()}), (below, means)):
    for name, (_, role) in readers.items():
        first = 0 if name == "counts all" else REMEMBERED - 1 if name == forgetful else TRAINED - 1
        ax.plot(lengths[first:], of[name][first:], color=figures.colour(role), label=name)
    ax.axvline(TRAINED, color=figures.colour("axis"), linewidth=1.1, linestyle=(0, (1, 1.2)))
    ax.axhline(limit, color=figures.colour("axis"), linewidth=1.1, linestyle=(0, (1, 1.2)))
    ax.set_xscale("log", base=2)
    places = (1, 8, REMEMBERED, TRAINED, LONGEST)
    ax.set_xticks(places, map(str, places))
    ax.minorticks_off()
    ax.set_ylim(round(limit - 0.13, 1), round(math.log(SYMBOLS) + 0.13, 1))
    ax.set_ylabel("loss (nats per token)")
above.text(
    0.92 * TRAINED, math.log(SYMBOLS) - 0.37, "trained\nlength", color=figures.colour("muted"), ha="right"
)
above.text(1.1, limit - 0.02, "the best possible", color=figures.colour("muted"), va="top")
above.set_title("At each position: one breaks, one stops learning")
below.set_title("Mean over a window: a smear, and a false gain")
above.set_xlabel("place in the window")
below.set_xlabel("length of the window")
above.xaxis.set_tick_params(labelbottom=True)
figures.curves.label_ends(above)
figures.curves.label_ends(below)

twice = 2 * TRAINED
figures.publish(
    fig,
    alt="Two panels with the loss over the length, on a logarithmic axis. Above, by position: it falls as "
    f"more tokens are counted; one curve goes flat after {REMEMBERED} tokens, and one jumps at {TRAINED} to "
    "the level of a guess. Below, the mean over a window: the flat one goes on falling with the length of "
    "the window, and the broken one climbs only slowly, at twice the trained length still half way down.",
    numbers={
        "symbols": SYMBOLS,
        "guess": math.log(SYMBOLS),
        "limit": limit,
        f"all_{TRAINED}": all_seen[TRAINED].item(),
        f"all_{LONGEST - 1}": all_seen[-1].item(),
        f"mean_all_{TRAINED}": means["counts all"][TRAINED - 1].item(),
        f"mean_all_{LONGEST}": means["counts all"][-1].item(),
        "last": last_seen[-1].item(),
        **{
            f"mean_last_{n}": means[forgetful][n - 1].item()
            for n in (REMEMBERED, 2 * REMEMBERED, TRAINED, twice, LONGEST)
        },
        **{
            f"mean_breaks_{n}": means["breaks"][n - 1].item()
            for n in (TRAINED, TRAINED * 9 // 8, TRAINED * 5 // 4, twice, LONGEST)
        },
        "shown_at_twice": (
            (means["breaks"][twice - 1] - means["counts all"][TRAINED - 1])
            / (breaks[-1] - means["counts all"][TRAINED - 1])
        ).item(),
    },
)

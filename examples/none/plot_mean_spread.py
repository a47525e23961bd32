r"""
How much a mean of more values spreads
======================================

A head that attends uniformly returns the mean of the values so far, and the mean of more values spreads less.
Above: what is left of that when values are correlated, weights are not equal, the mean is not zero, or a norm
follows.
Below: the position that can be read off the length of one such mean.
"""

import math

import matplotlib.pyplot as plt
import torch

from posbook import attention, figures

plt.style.use("posbook.figures.posbook")
torch.set_num_threads(1)

TOKENS, DIM, TEXTS, SEEDS = 1024, 64, 20, 10  # TOKENS is a power of two
RHO, PHI, MEAN, SHARP = 0.3, 0.9, 0.3, 2.0  # RHO and PHI are correlations, from 0 to less than 1
counts = 2 ** torch.arange(TOKENS.bit_length())  # keys that a token sees: the token at position i sees i + 1
mask = torch.arange(TOKENS) < counts[:, None]
uniform = attention.weights(torch.zeros(mask.shape), mask)

# %%
# Values whose features have variance 1: all independent; all correlated alike; each correlated with the one
# before it; and with a mean that is not zero.


def values(kind, generator):
    fresh = torch.randn(TEXTS, TOKENS, DIM, generator=generator)
    if kind == "alike":
        shared = torch.randn(TEXTS, 1, DIM, generator=generator)
        return math.sqrt(RHO) * shared + math.sqrt(1 - RHO) * fresh
    if kind == "neighbours":
        for i in range(1, TOKENS):
            fresh[:, i] = PHI * fresh[:, i - 1] + math.sqrt(1 - PHI**2) * fresh[:, i]
    return fresh + MEAN if kind == "mean" else fresh


def size(rows):
    """The root mean square over texts and features, for each position."""
    return rows.square().mean(dim=(0, 2)).sqrt()


# %%
# Unequal weights: scores drawn at random with standard deviation SHARP, whatever the values are.

kinds = ("norm", "alike", "mean", "sharp", "neighbours", "independent")
measured = {kind: torch.empty(SEEDS, len(counts)) for kind in kinds}
squares = torch.empty(SEEDS, len(counts))
for seed in range(SEEDS):
    generator = torch.Generator().manual_seed(seed)
    for kind in ("independent", "alike", "neighbours", "mean"):
        measured[kind][seed] = size(attention.output(uniform, values(kind, generator)))
    x = values("independent", generator)
    scores = SHARP * torch.randn(TEXTS, *mask.shape, generator=generator)
    weights = attention.weights(scores, mask)
    measured["sharp"][seed] = size(attention.output(weights, x))
    squares[seed] = weights.square().sum(dim=-1).mean(dim=0)
    means = attention.output(uniform, x)
    measured["norm"][seed] = size(means / means.square().mean(dim=-1, keepdim=True).sqrt())

# %%
# What the theorem says: the root of the mean of all covariances, weighted.

n = counts.double()
proved = {
    "norm": torch.ones(len(n)),
    "alike": (RHO + (1 - RHO) / n).sqrt(),
    "mean": (MEAN**2 + 1 / n).sqrt(),
    "sharp": squares.mean(dim=0).sqrt(),
    "neighbours": ((1 + PHI) / (1 - PHI) / n - 2 * PHI * (1 - PHI**n) / (n * (1 - PHI)) ** 2).sqrt(),
    "independent": n**-0.5,
}
exact = {"independent": proved["independent"], "sharp": squares.sqrt()}
worst = max((measured[kind] / exact[kind] - 1).abs().max().item() for kind in exact)

# %%
# Reading: given the length of one mean, the likeliest number of keys is its width over its squared length.

WIDTHS, READERS = (64, 768), 200  # the first width is the smaller one
at = 4 ** torch.arange(0, 7)
read = {}
for width in WIDTHS:
    # The mean of n independent standard normal values is a normal vector with variance 1/n.
    lengths = torch.stack(
        [
            torch.randn(READERS, len(at), width, generator=torch.Generator().manual_seed(seed))
            .square()
            .sum(dim=-1)
            for seed in range(SEEDS)
        ]
    )
    read[width] = width / lengths  # in units of the true number: (seeds, readers, places)
error = {width: ratio.std(dim=1) for width, ratio in read.items()}

# %%
# The dots are what was measured, one for each seed; the lines what the theorem says.

fig, (above, below) = plt.subplots(2, 1, figsize=(7.2, 9.6), height_ratios=(5, 4))
looks = {
    "norm": ("after a norm", "ink"),
    "alike": (f"correlated, {RHO}", "key"),
    "mean": (f"mean {MEAN}", "value"),
    "sharp": ("unequal weights", "query"),
    "neighbours": (f"neighbours, {PHI}", "past"),
    "independent": ("uncorrelated", "accent"),
}
for kind, (name, role) in looks.items():
    figures.curves.curve(above, counts, proved[kind], role, label=name, seeds=measured[kind])
above.set_xscale("log", base=2)
above.set_yscale("log")
root = math.sqrt(TOKENS)
above.set_ylim(0.832 / root, max(1.25, 1.1 * math.sqrt(1 + MEAN**2)))
parts = [2**k for k in range(int(math.log2(root)) + 1)]
above.set_yticks([1 / part for part in parts], ["1", *(f"1/{part}" for part in parts[1:])])
places = counts[::2].tolist()
above.set_xticks(places, map(str, places))
above.minorticks_off()
above.set_xlabel("keys that the token sees, n = position + 1")
above.set_ylabel("root mean square of a feature")
above.set_title("Uncorrelated, equal weights, mean zero: then 1/√n")
figures.curves.label_ends(above)

for width, role in zip(WIDTHS, ("future", "position"), strict=True):
    colour = figures.colour(role)
    low, high = torch.quantile(read[width].flatten(0, 1), torch.tensor([0.025, 0.975]), dim=0)
    below.fill_between(at, low, high, color=colour, alpha=0.3, linewidth=0)
    below.plot(at, low, color=colour, linewidth=1.6)
    below.plot(at, high, color=colour, linewidth=1.6)
    below.text(1.15, high[0] + 0.03, f"{width} features", color=colour, weight="bold", va="bottom")
below.axhline(1, color=figures.colour("ink"), linewidth=1.2, linestyle=(0, (1, 1.2)))
below.set_xscale("log", base=2)
below.set_xticks([1, 16, 256, 4096], ["1", "16", "256", "4096"])
below.minorticks_off()
below.set_ylim(0.6, 1.68)
below.set_yticks([0.75, 1, 1.25, 1.5])
below.set_xlabel("keys that the token sees")
below.set_ylabel("keys read off / true number")
below.set_title("19 readings of 20: as far off at every position")

ends = {kind: f"{line[-1]:.2g}" for kind, line in proved.items()}
figures.publish(
    fig,
    alt="Two panels over the number of keys, on logarithmic axes. Above: the root mean square of a feature "
    f"of the mean. Uncorrelated values fall along a straight line from 1 to {1 / root:.3g} at {TOKENS} "
    f"keys; there correlated neighbours stand at {ends['neighbours']}, unequal weights at {ends['sharp']}; "
    f"values that are all correlated, or whose mean is not zero, level off, at {ends['alike']} and "
    f"{ends['mean']}; after a norm the line is flat at 1. Below: the band that holds 19 of 20 readings of "
    f"the number of keys keeps its relative width everywhere, wide for {WIDTHS[0]} features and narrow for "
    f"{WIDTHS[1]}.",
    numbers={
        "tokens": TOKENS,
        "worst": worst,
        **{
            f"{kind}_{i}": measured[kind][:, k].mean().item()
            for kind in kinds
            for k, i in enumerate(counts.tolist())
            if i in (16, 256, TOKENS)
        },
        **{f"{kind}_proved": proved[kind][-1].item() for kind in kinds},
        "sharp_keys": 1 / squares[:, -1].mean().item(),
        **{f"error_{width}": error[width].mean().item() for width in WIDTHS},
        **{f"smallest_error_{width}": error[width].min().item() for width in WIDTHS},
        **{f"largest_error_{width}": error[width].max().item() for width in WIDTHS},
        **{f"floor_{width}": math.sqrt(2 / width) for width in WIDTHS},
    },
    seed=f"0 to {SEEDS - 1}",
    size=f"{TEXTS} texts of {TOKENS} values, {DIM} features; below {READERS} means at {len(at)} places",
    spread=f"{SEEDS} seeds, all drawn above; below the middle 95 % of all readings",
)

r"""
One over t
==========

A head that attends uniformly, and a first token that has a value of its own: the output is one over the
number of tokens so far, whatever they are.
Below: how far off the position is that is read back from it, when it is kept in half or single precision.
"""

import matplotlib.pyplot as plt
import torch

from posbook import attention, figures

plt.style.use("posbook.figures.posbook")
torch.set_num_threads(1)

# TOKENS is a power of two, at least 2048: among them are the first two that look the same in half precision.
TOKENS, DIM, TEXTS = 4096, 64, 3
t = 2 ** torch.arange(TOKENS.bit_length())  # tokens so far, the first one counted


def head(values, seen):
    """What a uniform head returns to the token that sees so many: one query for each."""
    mask = torch.arange(len(values)) < seen[:, None]
    scores = torch.zeros(mask.shape, dtype=values.dtype)
    return attention.output(attention.weights(scores, mask), values)


# %%
# The value of the first token is 1, that of every other is 0. Beside it, the mean of values that are random:
# its squared length is the position's shadow of the page before.

first = torch.zeros(TOKENS, 1, dtype=torch.float64)
first[0] = 1
exact = head(first, t)[:, 0]
shadows = []
for seed in range(TEXTS):
    text = torch.randn(TOKENS, DIM, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    shadows.append(head(text, t).square().mean(dim=-1))
shadows = torch.stack(shadows)

# %%
# In half precision the same head runs at every position; in single precision, where it would need millions of
# keys, one over t is rounded as its softmax rounds it.

kinds = {"bfloat16": (torch.bfloat16, 8), "float16": (torch.float16, 11), "float32": (torch.float32, 24)}
every = torch.arange(1, TOKENS + 1)
halves = {
    name: torch.cat([head(first.to(kind), part)[:, 0] for part in every.split(512)])
    for name, (kind, _) in kinds.items()
    if kind != torch.float32
}


def first_twins(values):
    """How many values there are before the first that is the same as the next."""
    return int((values[1:] == values[:-1]).nonzero()[0])


twins = {name: int(every[first_twins(values)]) for name, values in halves.items()}
far = torch.arange(int(2**23.5), 2**24)
twins["float32"] = int(far[first_twins((1 / far.double()).float())])
none_earlier = torch.arange(1, int(2**23.5) + 1)
assert (1 / none_earlier.double()).float().diff().max() < 0  # strictly falling, so no two are the same

# %%
# Read back: one over what was kept. The largest error among up to 2048 positions of each octave.

octaves = torch.arange(2, 26)
off = {}
for name, (kind, _) in kinds.items():
    off[name] = torch.stack(
        [
            ((1 / (1 / at.double()).to(kind).double()) - at).abs().max()
            for at in (torch.linspace(2.0**k, 2.0 ** (k + 1) - 1, min(2048, 2**k)).round() for k in octaves)
        ]
    )

# %%
# Two panels.

fig, (above, below) = plt.subplots(2, 1, figsize=(7.2, 9))
above.plot(t, shadows.T, "o", color=figures.colour("muted"), markersize=4.5, alpha=0.8)
above.plot(t, exact, color=figures.colour("accent"), marker="s", markersize=6)
above.set_xscale("log", base=2)
above.set_yscale("log")
sixteens = [16**k for k in range(1, 8) if 16**k <= TOKENS]
above.set_xticks([1, *sixteens], map(str, [1, *sixteens]))
above.set_yticks([1, *(1 / part for part in sixteens)], ["1", *(f"1/{part}" for part in sixteens)])
above.minorticks_off()
above.text(
    1.2, 0.004, "a first token of its own:\nexactly 1/t", color=figures.colour("accent"), weight="bold"
)
above.text(
    1.1 * TOKENS,
    0.35,
    f"without: squared length of the\nmean of {DIM} features, {TEXTS} texts",
    color=figures.colour("muted"),
    weight="bold",
    ha="right",
)
above.set_xlabel("tokens so far, t")
above.set_ylabel("what the head returns")
above.set_title("A first token of its own makes it exact")

for (name, (_, bits)), role in zip(kinds.items(), ("key", "query", "value"), strict=True):
    colour = figures.colour(role)
    below.plot(2.0 ** (octaves + 1), off[name], color=colour)
    edge = twins[name]
    below.plot(edge, edge * 2.0**-bits, "o", color=colour, markersize=10, zorder=4)
below.axhline(0.5, color=figures.colour("ink"), linewidth=1.2, linestyle=(0, (1, 1.2)))
below.set_xscale("log", base=2)
below.set_yscale("log")
below.set_ylim(1e-6, 3e5)
below.set_xticks([2.0**k for k in (2, 8, 14, 20, 26)], ["4", "256", "16 384", "1 million", "67 million"])
below.set_yticks([1e-6, 1e-4, 1e-2, 1, 100, 1e4])
below.minorticks_off()
places = {"bfloat16": (1000, 60, "right"), "float16": (9000, 1.2, "left"), "float32": (6e7, 2e-4, "right")}
for (name, (x, y, side)), role in zip(places.items(), ("key", "query", "value"), strict=True):
    same = (f"{at:,}".replace(",", " ") if at > 9999 else str(at) for at in (twins[name], twins[name] + 1))
    text = f"{name}: {' = '.join(same)}"
    below.text(x, y, text, color=figures.colour(role), weight="bold", ha=side)
below.text(4.5, 0.7, "half a position", color=figures.colour("ink"), va="bottom")
below.set_xlabel("tokens so far, t")
below.set_ylabel("position read back: off by")
below.set_title("The dots: the first two positions that look the same")
fig.align_ylabels()

figures.publish(
    fig,
    alt="Two panels over the number of tokens, on logarithmic axes. Above: what the head returns with a "
    f"first token of its own lies on the line from 1 to 1/{TOKENS}; the squared lengths of random means "
    "scatter around it. Below: the error of the position that is read back rises in proportion to the "
    "position, in three lines, bfloat16 the highest, then float16, which steepens, far below float32. A "
    f"dot on each marks the first two positions that look the same: {twins['bfloat16']}, "
    f"{twins['float16']}, {twins['float32']}.",
    numbers={
        **{f"twins_{name}": at for name, at in twins.items()},
        "worst": (exact * t - 1).abs().max().item(),
        "distinct_bfloat16": len(halves["bfloat16"][:2048].unique()),
        "distinct_float16": len(halves["float16"][:2048].unique()),
        **{f"off_{name}_1024": off[name][8].item() for name in kinds},
        "octave": 2 ** int(octaves[8]),
        "off_float32_million": off["float32"][18].item(),
    },
)

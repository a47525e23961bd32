r"""
Equal on paper, not to the last bit
===================================

Shuffle the tokens of an attention layer and compare each output row with its old self, bit for bit.
In exact arithmetic all rows are equal at every length; floating point rounds a sum in another order
differently, and hardly any row of a long sequence is the same bits.
"""

from fractions import Fraction

import matplotlib.pyplot as plt
import torch

from posbook import attention, figures, properties

plt.style.use("posbook.figures.posbook")
torch.set_num_threads(1)  # matrices this small gain nothing from a second core

# Two lengths or more, from 2 up; the title needs one of at least 8, and beyond 128 fractions take their time.
lengths, seeds, features = [2, 3, 4, 8, 16, 32, 64], 10, 8


def start(n, seed):
    generator = torch.Generator().manual_seed(seed)
    return generator, torch.randn(3, n, features, generator=generator, dtype=torch.float64)


def shuffles(n, count, generator):
    """Random orders; one that leaves every token in its place would prove nothing, and is drawn again."""
    while count:
        order = torch.randperm(n, generator=generator)
        if not order.equal(torch.arange(n)):
            count -= 1
            yield order


# %%
# In floating point: ten shuffles for each of ten seeds.


def in_floats(n, seed, dtype):
    generator, qkv = start(n, seed)
    q, k, v = qkv.to(dtype)
    rows = attention.attend(q, k, v)
    pairs = [
        (rows[order], attention.attend(q[order], k[order], v[order])) for order in shuffles(n, 10, generator)
    ]
    equal = torch.stack([(old == new).all(dim=-1) for old, new in pairs])
    return 100 * equal.double().mean(), max(properties.difference(old, new) for old, new in pairs)


float64, float32 = (
    torch.tensor([[in_floats(n, seed, dtype) for seed in range(seeds)] for n in lengths], dtype=torch.float64)
    for dtype in (torch.float64, torch.float32)
)

# %%
# In exact arithmetic: any exact positive numbers may stand for the exponentials, and every float is a
# fraction, so the rounded exponentials will do. One feature of the values and three seeds are enough.


def attend_exactly(e, v):
    return [sum(a * b for a, b in zip(row, v, strict=True)) / sum(row) for row in e]


def in_fractions(n, seed):
    generator, (q, k, v) = start(n, seed)
    e = [[Fraction(a) for a in row] for row in attention.scores(q, k).exp().tolist()]
    v = [Fraction(a) for a in v[:, 0].tolist()]
    rows, equal = attend_exactly(e, v), []
    for order in shuffles(n, 2, generator):
        new = attend_exactly([[e[i][j] for j in order] for i in order], [v[j] for j in order])
        equal += [new[i] == rows[j] for i, j in enumerate(order)]
    return 100 * sum(equal) / len(equal)


exact = torch.tensor([[in_fractions(n, seed) for seed in range(3)] for n in lengths], dtype=torch.float64)

# %%
# Lines are means, every dot is a seed; dots stand a little aside so that the two precisions both show.

fig, ax = plt.subplots(figsize=(7.2, 4.4))
ax.set_xscale("log", base=2)
for label, role, dash, percent, aside in (
    ("exact", "ink", "-", exact, 1),
    ("float32", "key", "-", float32[..., 0], 1.06),
    ("float64", "query", (0, (4, 2)), float64[..., 0], 1 / 1.06),
):
    figures.curves.curve(ax, lengths, percent.mean(dim=1).tolist(), role, label=label).set_linestyle(dash)
    x = [n * aside for n in lengths]
    ax.plot(x, percent.numpy(), "o", markersize=4, color=figures.colour(role), alpha=0.6, zorder=4)
ax.set_xticks(lengths, [str(n) for n in lengths])
ax.set_xlabel("length (tokens)")
ax.set_ylabel("rows equal in every bit (percent)")
ax.set_ylim(-5, 106)
ax.set_title("A shuffle keeps every row on paper, few to the last bit")
figures.curves.label_ends(ax)

mean64, mean32 = (found[..., 0].mean(dim=1) for found in (float64, float32))
apart = (mean64 - mean32).abs().max().item()
falls = ", ".join(f"{percent:.0f} for {n}" for n, percent in zip(lengths, mean64.tolist(), strict=True))
figures.publish(
    fig,
    alt="Percent of output rows that are the same bits after a shuffle, against the length in tokens, with a "
    "dot for each seed. Exact arithmetic stays at one hundred. The lines of float64 and float32 are at "
    f"most {apart:.0f} apart; float64 has {falls}.",
    numbers={
        "worst_float64": float64[..., 1].max().item(),
        "worst_float32": float32[..., 1].max().item(),
        "longest": lengths[-1],
        "percent_equal_float64_longest": float64[-1, :, 0].mean().item(),
        "percent_equal_exact": int(exact.min()),
    },
    seed=f"0 to {seeds - 1}",
    size=f"{lengths[0]} to {lengths[-1]} tokens, {features} features",
    spread=f"worst of {seeds} seeds; shares are means over them",
)

r"""
Three laws of a shuffle, and two controls
=========================================

Shuffle the words, and the attention weights are shuffled in rows and columns alike.
All orders of four tokens obey three laws to rounding; shuffling only the values, or only the keys, does not.
"""

from itertools import permutations

import matplotlib.pyplot as plt
import numpy as np
import torch

from posbook import attention, figures, properties

plt.style.use("posbook.figures.posbook")

# %%
# One layer of self-attention with random weights, one block around it, and a query from elsewhere.

words = ["the", "dog", "bit", "him"]  # three to six: all their orders are tried
pi = (2, 0, 3, 1)  # the order drawn on the left: every number below len(words) once
QUERY, KEY = "bit", "dog"  # the weight that is framed; both words stand once
generator = torch.Generator().manual_seed(0)
x = torch.randn(len(words), 8, generator=generator, dtype=torch.float64)
to_q, to_k, to_v, up, down = torch.randn(5, 8, 8, generator=generator, dtype=torch.float64) / 8**0.5
query = torch.randn(1, 8, generator=generator, dtype=torch.float64)
k, v = x @ to_k, x @ to_v


def weights(x):
    return attention.weights(attention.scores(x @ to_q, x @ to_k))


def layer(x):
    return attention.output(weights(x), x @ to_v)


def block(x):
    x = x + layer(x)
    return x + torch.relu(x @ up) @ down


def answer(k, v):
    return attention.attend(query, k, v)


# %%
# How far each order is from each law, relative to the largest entry.

permute, difference = properties.permute, properties.difference
laws = {
    "invariance: one query": lambda pi: difference(answer(permute(k, pi), permute(v, pi)), answer(k, v)),
    "equivariance: self-attention": lambda pi: difference(layer(permute(x, pi)), permute(layer(x), pi)),
    "equivariance: a whole block": lambda pi: difference(block(permute(x, pi)), permute(block(x), pi)),
}
controls = {
    "control: only values shuffled": lambda pi: difference(answer(k, permute(v, pi)), answer(k, v)),
    "control: only keys shuffled": lambda pi: difference(answer(permute(k, pi), v), answer(k, v)),
}
orders = list(permutations(range(len(words))))
held = {name: [law(pi) for pi in orders] for name, law in laws.items()}
# The first order moves nothing, and a control has nothing to say of it.
failed = {name: [control(pi) for pi in orders[1:]] for name, control in controls.items()}

# %%
# On the left one shuffle, on the right all of them.

shuffled = [words[i] for i in pi]
layout = [["before", "all"], ["after", "all"]]
fig, panels = plt.subplot_mosaic(layout, figsize=(7.2, 6.2), width_ratios=[2, 3])
for name, sentence, rows in (("before", words, x), ("after", shuffled, permute(x, pi))):
    ax = panels[name]
    figures.heatmaps.cells(ax, weights(rows), limits=(0, 1), rows=sentence, columns=sentence, annotate=".2f")
    corner = sentence.index(KEY), sentence.index(QUERY)
    accent = {"color": figures.colour("accent"), "weight": "bold"}
    ax.get_xticklabels()[corner[0]].set(**accent)
    ax.get_yticklabels()[corner[1]].set(**accent)
    ax.add_patch(plt.Rectangle(corner, 1, 1, fill=False, edgecolor=accent["color"], lw=2.6, clip_on=False))
    ax.set_ylabel("query")
panels["before"].set_title("Weights move in rows\nand columns alike")
panels["after"].set_xlabel("key")

ax = panels["all"]
ax.set_title("Three laws hold,\ntwo controls fail")
ax.set_xscale("log")
zero = 1e-19  # a difference of exactly 0 has no logarithm: it is drawn here, hollow
for at, (name, found) in enumerate((held | failed).items()):
    colour = figures.colour("good" if name in held else "warn")
    ax.text(zero / 3, at - 0.38, name, color=colour, weight="bold")
    found, heights = np.array(found), np.linspace(at - 0.22, at + 0.26, len(found))
    some = found > 0
    hollow = {"markerfacecolor": figures.colour("paper"), "markeredgewidth": 1.4}
    ax.plot(found[some], heights[some], "o", markersize=4, color=colour, alpha=0.8)
    ax.plot(np.full((~some).sum(), zero), heights[~some], "o", markersize=5, color=colour, **hollow)
powers = range(-16, 1, 4)
ax.set_xticks([zero, *(10.0**power for power in powers)], ["0", *(f"$10^{{{power}}}$" for power in powers)])
ax.set_xlim(zero / 5, 20)
ax.set_ylim(at + 0.45, -0.7)
ax.set_yticks([])
ax.spines["left"].set_visible(False)
ax.set_xlabel("relative difference (a dot for each order)")

figures.publish(
    fig,
    alt=f"Left: attention weights of the sentence {' '.join(words)} and of its words in another order, as "
    f"two grids of {len(words)} by {len(words)} cells: the same numbers in other places; the weight from "
    f"{QUERY} to {KEY} is framed in both. Right: dots on a logarithmic axis. Under three laws all lie at "
    "rounding or at zero, under two controls all lie far to the right, most of them near one.",
    numbers={
        "orders": len(orders),
        "worst": max(max(found) for found in held.values()),
        "control_smallest": min(min(found) for found in failed.values()),
    },
    seed=0,
    size=f"{len(words)} tokens, 8 features",
    spread=f"worst of {len(orders)} orders",
)

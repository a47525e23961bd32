r"""
How far a mistake hides
=======================

Five mistakes in a rotation, and how much of the right score is left of each as query and key move apart.
A short prompt shows three of them; the other two pass.
"""

import matplotlib.pyplot as plt
import numpy as np
import torch

from posbook import figures, frequencies, rotary, scaling

plt.style.use("posbook.figures.posbook")
torch.set_num_threads(1)

# %%
# The model has the frequencies of Llama 3.1. For random queries and keys the scores :math:`q^\top A k` and
# :math:`q^\top B k` correlate by :math:`\operatorname{tr}(A^\top B)/d` where A and B are rotations. Where
# both turn the same pairs, this is the mean cosine of the angles between them: no sample is drawn.

MODEL, DIM, BASE, TRAINED, FACTOR = "Llama 3.1", 128, 500_000.0, 8192, 8
WRONG = 10_000.0  # the base that the mistaken model has
plain = frequencies.geometric(DIM, BASE)
right = scaling.llama3(plain, factor=FACTOR, trained_length=TRAINED)
other_base = scaling.llama3(frequencies.geometric(DIM, WRONG), factor=FACTOR, trained_length=TRAINED)
feature = torch.arange(DIM)
mistakes = {
    "layout": lambda r: (r * right)[:, feature // 2].cos() * (r * right)[:, feature % (DIM // 2)].cos(),
    "direction": lambda r: (2 * r * right).cos(),
    "one_off": lambda r: ((r + 1) * right - r * right).cos(),
    "base": lambda r: (r * (other_base - right)).cos(),
    "scaling": lambda r: (r * (plain - right)).cos(),
}

# %%
# The formula for the layouts is no obvious one; here are the two rotations themselves.

identity = torch.eye(DIM, dtype=torch.float64)
halves, neighbours = (
    rotary.rotate(identity, (7 * right).expand(DIM, -1), layout=layout)
    for layout in ("halves", "interleaved")
)
offset = torch.tensor([[7.0]], dtype=torch.float64)
torch.testing.assert_close((halves * neighbours).sum() / DIM, mistakes["layout"](offset).mean())

# %%
# What is left, averaged over distances up to a quarter longer or shorter: single ones jump up and down.


def kept(name, distance):
    around = torch.linspace(0.8, 1.25, 101, dtype=torch.float64) * distance
    return mistakes[name](around[:, None]).mean().item()


distances = np.geomspace(1, 131_072, 120)
fig, ax = plt.subplots(figsize=(7.2, 6.4))
# Each name stands where these curves leave room; for another model its place, the last entry, may be moved.
looks = {
    "scaling": ("query", (0, (6, 2)), "scaling left out", (2900, 0.86)),
    "one_off": ("position", (0, (8, 2, 2, 2)), "one token off", (20_000, 1.01)),
    "base": ("accent", "-", f"base {WRONG:,.0f}", (9, 0.9)),
    "direction": ("content", (0, (1, 1.2)), "the other direction", (230, 0.56)),
    "layout": ("muted", (0, (4, 1.5)), "the other layout", (3, 0.38)),
}
for name, (role, dash, text, place) in looks.items():
    ax.plot(distances, [kept(name, r) for r in distances], color=figures.colour(role), linestyle=dash)
    ax.text(*place, text, color=figures.colour(role), weight="bold")
ax.axhline(0, color=figures.colour("axis"), linewidth=0.9)
ax.set_xscale("log")
ax.set_xlim(1, 131_072)
ax.set_ylim(-0.1, 1.08)
ax.set_xticks([1, 10, 100, 1000, 10_000, 100_000], ["1", "10", "100", "1,000", "10,000", "100,000"])
ax.set_xlabel("tokens between query and key")
ax.set_title(f"Correlation with the right score ({DIM} features, {MODEL})")
fig.suptitle("A short prompt does not show every mistake", x=0.02, ha="left")
left = "; ".join(
    f"{text} " + ", ".join(f"{kept(name, r):.2f}" for r in (1, 100, 10_000))
    for name, (_, _, text, _) in looks.items()
)
figures.publish(
    fig,
    alt="Five curves over the distance from query to key, on a logarithmic axis, of what is left of the "
    f"right score at 1, 100 and 10,000 tokens: {left}.",
    numbers={
        f"{name}_{distance}": kept(name, distance)
        for name in mistakes
        for distance in (1, 10, 100, 1000, 10_000, 100_000)
    },
)

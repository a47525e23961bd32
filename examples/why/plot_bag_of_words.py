r"""
The same rows, somewhere else
=============================

Two sentences of the same words go through one attention layer that knows no positions.
Each word leaves it with the same row of numbers in both; only the place of the row differs.
"""

from itertools import combinations, permutations

import matplotlib.pyplot as plt
import torch

from posbook import attention, figures

plt.style.use("posbook.figures.posbook")

# %%
# The smallest layer there is: the embeddings themselves are queries, keys and values.

# The same words in two orders, up to seven of them, since all their orders are tried; one is framed.
first, second = ["the", "dog", "bit", "the", "man"], ["the", "man", "bit", "the", "dog"]
FRAMED = "bit"
generator = torch.Generator().manual_seed(0)
embedding = {word: torch.randn(8, generator=generator, dtype=torch.float64) for word in dict.fromkeys(first)}


def layer(words):
    x = torch.stack([embedding[word] for word in words])
    return attention.attend(x, x, x)


one, two = layer(first), layer(second)

# %%
# Follow each word from the first sentence to the second, and compare its two rows.

# Sorting keeps the order of equal words, so the first "the" leads to the first, and the second to the second.
by_word = [sorted(range(len(words)), key=words.__getitem__) for words in (first, second)]
moves = dict(zip(*by_word, strict=True))
row_of = dict(zip(first, one, strict=True))
same_word = max((one[i] - two[j]).abs().max().item() for i, j in moves.items())
closest_words = min((a - b).abs().max().item() for a, b in combinations(row_of.values(), 2))
copies = max((row - row_of[word]).abs().max().item() for word, row in zip(first, one, strict=True))

# %%
# The two sentences are two of many: every order of the words gives *bit* the same row.

orders = sorted(set(permutations(first)))
every_order = max((layer(order)[order.index(FRAMED)] - row_of[FRAMED]).abs().max().item() for order in orders)

# %%
# Every row is a strip of eight cells, and the lines lead to the same word.

fig, ax = plt.subplots(figsize=(7.2, 4.6))
ax.set_axis_off()
largest = max(one.abs().max().item(), two.abs().max().item())
gap, height = 5.5, 0.72
starts = (0, one.shape[1] + gap)
for words, rows, start in ((first, one, starts[0]), (second, two, starts[1])):
    edges = [start + feature for feature in range(rows.shape[1] + 1)]
    for at, (word, row) in enumerate(zip(words, rows, strict=True)):
        strip = ax.pcolormesh(
            edges,
            [at - height / 2, at + height / 2],
            row[None].numpy(),
            cmap="posbook.diverging",
            vmin=-largest,
            vmax=largest,
            edgecolors=figures.colour("paper"),
            linewidth=1.2,
        )
        name = {"x": edges[0] - 0.4, "ha": "right"} if start == 0 else {"x": edges[-1] + 0.4, "ha": "left"}
        look = {"color": figures.colour("ink")}
        if word == FRAMED:
            look = {"color": figures.colour("accent"), "weight": "bold"}
            frame = plt.Rectangle((start, at - height / 2), rows.shape[1], height, fill=False, lw=2.4)
            frame.set(edgecolor=figures.colour("accent"), zorder=3)
            ax.add_patch(frame)
        ax.text(y=at - 0.03, s=word, va="center_baseline", size=13, **name, **look)
    ax.text(start, -0.75, " ".join(words), color=figures.colour("muted"), size=13)

step = torch.linspace(0, 1, 60)
for i, j in moves.items():
    x, y = one.shape[1] + 0.3 + (gap - 0.6) * step, i + (j - i) * (3 * step**2 - 2 * step**3)
    role, over = ("accent", 3) if first[i] == FRAMED else ("content", 2)
    # A seam in the colour of the ground shows which line passes over which.
    ax.plot(x, y, color=figures.colour("paper"), linewidth=6, zorder=over)
    ax.plot(x, y, color=figures.colour(role), zorder=over)
ax.set_ylim(len(first) - 0.4, -1.3)
ax.set_title("Every word gets the same row in both sentences")
bar = fig.colorbar(strip, ax=ax, location="bottom", shrink=0.4, aspect=20, label="value of a feature")
bar.outline.set_visible(False)

moved = ", ".join(first[i] for i, j in sorted(moves.items()) if i != j)
figures.publish(
    fig,
    alt=f"Two lists of {len(first)} words, {' '.join(first)} and {' '.join(second)}, each word with a strip "
    f"of {one.shape[1]} coloured cells. Lines join each word to itself in the other list, and the strips at "
    f"their ends are alike. Those of {FRAMED} are framed; those of {moved} stand in other places.",
    numbers={
        "same_word": same_word,
        "closest_words": closest_words,
        "copies": copies,
        "orders": len(orders),
        "every_order": every_order,
    },
    seed=0,
    size=f"{len(first)} tokens, {one.shape[1]} features",
    spread="largest of all entries",
)

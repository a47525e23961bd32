r"""
Four terms in one score
=======================

Word plus position, times word plus position: the score falls into four parts. The last, made of two positions
alone, is then followed for two tokens that stand five apart, as both move along the sequence.
"""

import matplotlib.pyplot as plt
import torch

from posbook import figures, frequencies, properties, sinusoidal

plt.style.use("posbook.figures.posbook")
torch.set_num_threads(1)

WIDTH, HEAD, SEEDS = 512, 64, 10  # an even width, any width of a head
LENGTH, OFFSET = 512, 5  # the offset less than the length
table = sinusoidal.encode(frequencies.angles(torch.arange(LENGTH), frequencies.geometric(WIDTH)))


def draw(*shape, generator):
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


def projections(seed):
    generator = torch.Generator().manual_seed(seed)
    to_q, to_k = draw(2, WIDTH, HEAD, generator=generator) / WIDTH**0.5
    return to_q, to_k, draw(LENGTH, WIDTH, generator=generator)


# %%
# The four terms for one head with random weights, and whether they sum to the score.

to_q, to_k, words = projections(0)
parts = {"word": words, "position": table}
terms = {(a, b): (parts[a] @ to_q) @ (parts[b] @ to_k).T / HEAD**0.5 for a in parts for b in parts}
score = ((words + table) @ to_q) @ ((words + table) @ to_k).T / HEAD**0.5
rest = properties.difference(sum(terms.values()), score)

# %%
# How much of the variance of the position term the offset explains: all of it without projections.


def explained(scores):
    offsets = range(1 - len(scores), len(scores))
    within = sum((scores.diagonal(k) - scores.diagonal(k).mean()).square().sum() for k in offsets)
    return (1 - within / (scores - scores.mean()).square().sum()).item()


plain = table @ table.T
random = [(table @ to_q) @ (table @ to_k).T for to_q, to_k, _ in map(projections, range(SEEDS))]
shares = [explained(scores) for scores in random]
spread = [(scores.diagonal(OFFSET).std() / scores.std()).item() for scores in random]

# %%
# Above, the terms for the first tokens; below, the position term at one offset. Each line is in units of the
# spread of its own matrix, so that flat means flat.

SHOWN, FAR = 20, 150  # rows of the matrices, up to 64, and of the line, both up to the length
fig = plt.figure(figsize=(7.2, 10))
upper, lower = fig.subfigures(2, 1, height_ratios=(2.1, 1))
panels = upper.subplots(2, 2)
limit = max(term[:SHOWN, :SHOWN].abs().max().item() for term in terms.values())
for ax, ((query, key), term) in zip(panels.flat, terms.items(), strict=True):
    figures.heatmaps.cells(ax, term[:SHOWN, :SHOWN], limits=(-limit, limit), diverging=True)
    ax.set_title(f"{query} · {key}", loc="center")
    ax.set_xlabel("key")
    ax.set_ylabel("query")

ax = lower.subplots()
for scores, role, width in ((plain, "sinusoidal", 3), *((scores, "content", 1.2) for scores in random)):
    line = (scores.diagonal(OFFSET) - scores.mean()) / scores.std()
    ax.plot(line[:FAR], color=figures.colour(role), linewidth=width, alpha=1 if width == 3 else 0.65)
ax.set_ylim(-3.4, 5.6)
ax.set_yticks([-3, 0, 3])
beside = {"weight": "bold", "ha": "right", "transform": ax.get_yaxis_transform()}
ax.text(0.99, 4.6, "without projections: one value", color=figures.colour("sinusoidal"), **beside)
ax.text(0.99, 3.5, f"{SEEDS} random heads: it wanders", color=figures.colour("content"), **beside)
ax.set_xlabel("position of the query (tokens)")
ax.set_ylabel("score (spreads)")
ax.set_title(f"position · position, the key {OFFSET} tokens on", loc="center")
fig.suptitle("Three of the four terms know where the tokens stand", x=0.02, ha="left")
figures.publish(
    fig,
    alt=f"Four matrices of {SHOWN} by {SHOWN} scores under random weights. Word with word is noise, word "
    "with position has horizontal stripes, position with word vertical ones, position with position is "
    "a smooth landscape whose diagonals change along their way. Below, the score of two positions "
    f"{OFFSET} apart: a level line without projections, and {SEEDS} wandering lines under random ones.",
    numbers={
        "rest": rest,
        "plain": explained(plain),
        "share_min": min(shares),
        "share_max": max(shares),
        "spread_min": min(spread),
        "spread_max": max(spread),
    },
    seed=f"0 to {SEEDS - 1}",
    size=f"{LENGTH} positions, {WIDTH} features, {HEAD} a head",
    spread=f"smallest and largest of {SEEDS} random heads",
)

r"""
Shaw's vectors
==============

Which row of the table each pair of tokens gets, the table itself, and what two queries make of it: the same
offset can raise the scores of one and lower those of the other.
"""

import matplotlib.pyplot as plt
import torch

from posbook import figures, positions, shaw

plt.style.use("posbook.figures.posbook")

CLIP, DIM, LENGTH = 2, 4, 7  # DIM is the width of the two queries below; CLIP less than LENGTH − 1

# %%
# Offsets beyond the clipping distance share the outer rows, so that 2 CLIP + 1 vectors serve a text of any
# length.

at = torch.arange(LENGTH)
rows = shaw.indices(positions.offsets(queries=at, keys=at), CLIP)
table = torch.randn(2 * CLIP + 1, DIM, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
table = table.clamp(-2, 2)

# %%
# Two queries that differ in the sign of two features, and keys up to LENGTH − 1 places to either side.

queries = torch.tensor([[1, 1, 1, -1], [-1, 1, -1, -1]], dtype=torch.float64)
span = torch.arange(1 - LENGTH, LENGTH)
added = shaw.key_term(queries, table, shaw.indices(span.expand(2, -1), CLIP))

# %%
# The numbers in the cells are clipped offsets; the curves are what the table's vectors give with each query.

fig = plt.figure(figsize=(7.2, 6.8))
grid = fig.add_gridspec(2, 2, width_ratios=(1.3, 1), height_ratios=(1.25, 1))
pairs, vectors = fig.add_subplot(grid[0, 0]), fig.add_subplot(grid[0, 1])
numbers = [str(i) for i in range(LENGTH)]
figures.heatmaps.cells(
    pairs,
    rows - CLIP,
    limits=(-2 * CLIP, 2 * CLIP),
    diverging=True,
    annotate=".0f",
    rows=numbers,
    columns=numbers,
)
for ax in (pairs, vectors):
    ax.set_anchor("N")
pairs.set_title("clipped offset of each pair")
pairs.set(xlabel="key at", ylabel="query at")
names = [f"≤ −{CLIP}", *(str(i).replace("-", "−") for i in range(1 - CLIP, CLIP)), f"≥ {CLIP}"]
figures.heatmaps.cells(vectors, table, limits=(-2, 2), diverging=True, rows=names)
vectors.set_title("the table")
vectors.set(xlabel=f"{DIM} features", ylabel="offset")

ax = fig.add_subplot(grid[1, :])
for term, role, marker, label in zip(added, ("query", "accent"), "os", ("one query", "another"), strict=True):
    ax.plot(span, term, color=figures.colour(role), marker=marker, label=label)
ax.axhline(0, color=figures.colour("axis"), linewidth=0.9)
ax.set_xticks(span[::2])
ax.set(xlabel="offset in tokens, key minus query", ylabel="added to the score")
figures.curves.label_ends(ax)
fig.suptitle("One vector for each near offset; each query reads it its own way", x=0.02, ha="left")
figures.publish(
    fig,
    alt=f"Above on the left a matrix of {LENGTH} queries and {LENGTH} keys with the clipped offset in each "
    f"cell: 0 on the diagonal, up to {CLIP} to its right, down to minus {CLIP} to its left, and nothing "
    f"larger further out. On the right the table, {len(table)} rows of {DIM} coloured cells. Below, two "
    f"curves over the offset from minus {LENGTH - 1} to {LENGTH - 1}. Between minus {CLIP} and {CLIP} each "
    "goes its own way; beyond, both are flat.",
    numbers={"rows": len(table), "distinct": max(len(term.unique()) for term in added), "offsets": len(span)},
)

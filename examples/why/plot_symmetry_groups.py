r"""
What each scheme leaves unseen
==============================

Six matrices that can be added to the scores of five tokens: a row for each query, a column for each key.
Beneath each stands how many of the 120 shuffles leave it as it is; those are the ones attention cannot see.
"""

from math import factorial

import matplotlib.pyplot as plt
import torch

from posbook import attention, figures, positions, properties

plt.style.use("posbook.figures.posbook")

# %%
# Of five tokens, on a line a key lies up to 4 places before or after the query. On a circle of five, where an
# offset is known only modulo 5, it is at most 2 places away: the shorter way round.

TOKENS = 5  # from 3 to 7: every shuffle is tried
at = torch.arange(TOKENS)
line = positions.offsets(queries=at, keys=at)
circle = (line + TOKENS // 2) % TOKENS - TOKENS // 2

schemes = {
    "none": ("nothing", torch.zeros(TOKENS, TOKENS)),
    "distance": ("distance", -line.abs()),
    "signed": ("signed offset", line),
    "causal": ("causal mask", torch.where(attention.causal(TOKENS), 0, -torch.inf)),
    "circle_distance": ("distance\non a circle", -circle.abs()),
    "circle_signed": ("signed offset\non a circle", circle),
}

# %%
# Every shuffle is tried on every matrix, and the entries are compared exactly.

shuffles = factorial(TOKENS)
unseen = {name: len(properties.symmetries(matrix)) for name, (_, matrix) in schemes.items()}

# %%
# A cell holds what is added to one score; where the mask forbids, it is empty.

fig, panels = plt.subplots(2, 3, figsize=(7.2, 6.6))
for ax, (name, (title, matrix)) in zip(panels.flat, schemes.items(), strict=True):
    shown = matrix.where(matrix.isfinite(), torch.nan)
    figures.heatmaps.cells(ax, shown, limits=(1 - TOKENS, TOKENS - 1), diverging=True, annotate=".0f")
    ax.set_title(title, loc="center")
    ax.set_xlabel(f"{unseen[name]} of {shuffles}", color=figures.colour("accent"), weight="bold", size=15)
fig.suptitle(f"Of {shuffles} shuffles, the fewer leave a matrix alone, the more it tells", x=0.02, ha="left")
figures.publish(
    fig,
    alt=f"Six matrices of {TOKENS} by {TOKENS} cells, and under each the number of shuffles that leave it "
    f"alone. All zeros: {unseen['none']} of {shuffles}. Minus the distance, blue on both sides of the "
    f"diagonal: {unseen['distance']}. Signed offset, blue below the diagonal and orange above: "
    f"{unseen['signed']}. Causal mask, empty above the diagonal: {unseen['causal']}. Minus the distance on "
    f"a circle: {unseen['circle_distance']}. Signed offset on a circle: {unseen['circle_signed']}.",
    numbers=unseen,
)

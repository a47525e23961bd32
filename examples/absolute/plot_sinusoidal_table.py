r"""
The sinusoidal table itself
===========================

A row for each position, a column for each feature, and a colour for each number between −1 and 1.
Fast clocks stand on the left, slow ones on the right, each as a sine with its cosine beside it.
"""

import matplotlib.pyplot as plt
import torch
from matplotlib.patches import Rectangle

from posbook import figures, frequencies, sinusoidal

plt.style.use("posbook.figures.posbook")

# %%
# The whole table is computed in one line.

# 16 to 64 positions, and 32 to 64 features, a multiple of 8. Of a wider table draw every nth pair: of every
# second feature only sines would be left.
LENGTH, WIDTH = 48, 64
theta = frequencies.geometric(WIDTH)
table = sinusoidal.encode(frequencies.angles(torch.arange(LENGTH), theta))

# %%
# Which clocks come round within these positions, and how nearly rows repeat: in the first clock alone, and in
# all of them.

waves = frequencies.wavelengths(theta)
come_round = int((waves <= LENGTH).sum())
first_clock = (table[1:, :2] - table[0, :2]).norm(dim=-1)
again = int(first_clock.argmin()) + 1
apart = torch.cdist(table, table) + torch.eye(LENGTH) * WIDTH  # no row is its own rival

# %%
# Above all of it, with the tokens that a clock takes for one turn over some of the pairs; below, its corner.

ROWS, COLUMNS = 5, 8  # of the corner
fig, (whole, corner) = plt.subplots(2, 1, figsize=(7.2, 8.6), height_ratios=(1.45, 1))
figures.heatmaps.cells(whole, table, limits=(-1, 1), diverging=True, label="entry of the table")
ticks = range(0, LENGTH, 10)
whole.set_yticks([tick + 0.5 for tick in ticks], ticks)
ticks = range(0, WIDTH, 10)
whole.set_xticks([tick + 0.5 for tick in ticks], ticks)
whole.set_ylabel("position")
whole.set_xlabel("feature")
ink, accent = figures.colour("ink"), figures.colour("accent")
over = {"transform": whole.get_xaxis_transform(), "color": ink}
for pair in range(0, WIDTH // 2, WIDTH // 8):
    left = 2 * pair  # the column of its sine; the next one is its cosine
    whole.plot([left, left + 2], [1.015, 1.015], **over, linewidth=3, solid_capstyle="butt", clip_on=False)
    whole.text(left, 1.03, f"{waves[pair]:,.0f}", **over, va="bottom")
whole.set(xlim=(0, WIDTH), ylim=(LENGTH, 0))
whole.set_title("Tokens for one turn, above some pairs:", loc="left", pad=26, weight="normal", size=12)
frame = {"fill": False, "edgecolor": accent, "linewidth": 2.4, "clip_on": False}
whole.add_patch(Rectangle((0, 0), COLUMNS, ROWS, **frame))

names = [f"{wave} {pair}" for pair in range(COLUMNS // 2) for wave in ("sin", "cos")]
rows = [str(position) for position in range(ROWS)]
block = table[:ROWS, :COLUMNS]
figures.heatmaps.cells(
    corner, block, limits=(-1, 1), diverging=True, annotate=".1f", rows=rows, columns=names
)
corner.add_patch(Rectangle((0, 0), COLUMNS, ROWS, **frame))
corner.set_title("The framed corner", loc="center", color=accent)
corner.set_ylabel("position")
fig.suptitle("Fast clocks on the left, slow ones on the right", x=0.02, ha="left")
figures.publish(
    fig,
    alt=f"A table of {LENGTH} positions down by {WIDTH} features across, each number from −1 to 1 a colour. "
    "On the left the columns change sign every few rows, further right ever more slowly; the right part "
    "is upright stripes, sines near 0 beside cosines near 1. "
    f"Marks over some pairs say how many tokens a turn takes, from {waves[0]:,.0f} on the left to "
    f"{waves[-(WIDTH // 8)]:,.0f} near the right. Below, the upper left corner with its numbers: sine and "
    "cosine of pair 0, of pair 1 and so on.",
    numbers={
        "positions": LENGTH,
        "features": WIDTH,
        "pairs": WIDTH // 2,
        "come_round": come_round,
        "again": again,
        "again_apart": first_clock.min().item(),
        "nearest": apart.min().item(),
        "neighbours": (table[1] - table[0]).norm().item(),
        "slowest_sine": table[:, -2].max().item(),
    },
)

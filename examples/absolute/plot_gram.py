r"""
Products of a sinusoidal table
==============================

The dot product of two rows is a sum of cosines of their offset. It is the same along every diagonal, and it
does not fall steadily as the offset grows.
"""

import matplotlib.pyplot as plt
import torch

from posbook import figures, frequencies, sinusoidal

plt.style.use("posbook.figures.posbook")
torch.set_num_threads(1)

# %%
# All products of a table as wide as that of 2017, in units of a row's own, which is d/2.

WIDTH, OTHER = 512, 64  # even and above 8; the second is drawn for comparison
LENGTH = 2048  # above 140
table = sinusoidal.encode(frequencies.angles(torch.arange(LENGTH), frequencies.geometric(WIDTH)))
gram = table @ table.T / (WIDTH / 2)
uneven = max((gram.diagonal(offset) - gram[0, offset]).abs().max().item() for offset in range(LENGTH))

# %%
# The mean cosine at each offset, for three widths, and the first offset at which it is larger than before.

offsets = torch.arange(LENGTH)
means = {
    width: frequencies.angles(offsets, frequencies.geometric(width)).cos().mean(dim=-1)
    for width in (8, OTHER, WIDTH)
}
first = {width: int((mean.diff() > 0).nonzero()[0]) + 1 for width, mean in means.items()}

# %%
# How many directions the rows fill: singular values above a millionth of the largest.

singular = torch.linalg.svdvals(table)
rank = int((singular > 1e-6 * singular[0]).sum())

# %%
# Above, the products of the first positions; below, one row of them for each width.

SHOWN, FAR = 32, 140
fig, (matrix, lines) = plt.subplots(2, 1, figsize=(7.2, 7.8), height_ratios=(1.2, 1))
products = gram[:SHOWN, :SHOWN]
limits = (min(0, products.min().item()), 1)
figures.heatmaps.cells(matrix, products, limits=limits, label="product (1: a row with itself)")
ticks = range(0, SHOWN, 10)
matrix.set_xticks([tick + 0.5 for tick in ticks], ticks)
matrix.set_yticks([tick + 0.5 for tick in ticks], ticks)
matrix.set_ylabel("position")
matrix.set_title(f"Every diagonal has one colour (d = {WIDTH})", loc="center")

for width, role in ((OTHER, "position"), (WIDTH, "sinusoidal")):
    mean, at, colour = means[width][: FAR + 1], first[width], figures.colour(role)
    heavy = 2.8 if width == WIDTH else 1.8
    lines.plot(offsets[: FAR + 1], mean, color=colour, linewidth=heavy, label=f"d = {width}")
    lines.plot(at, mean[at], "o", color=colour, markersize=9)
    place = (14, 22) if width == OTHER else (2, -58)
    lines.annotate(
        f"rises at {at}",
        (at, mean[at].item()),
        place,
        textcoords="offset points",
        color=colour,
        weight="bold",
        arrowprops={"arrowstyle": "-", "color": colour, "linewidth": 0.9, "shrinkB": 6},
    )
lowest = min(means[width][: FAR + 1].min().item() for width in (OTHER, WIDTH))
lines.set_ylim(min(0.2, lowest - 0.03), 1.04)
lines.set_xlabel("offset (tokens)")
lines.set_ylabel("product")
lines.set_title("One row of it: where does it first rise?", loc="center")
figures.curves.label_ends(lines)
fig.suptitle("Products know the offset alone, and do not fall steadily", x=0.02, ha="left")
figures.publish(
    fig,
    alt=f"Above, a matrix of {SHOWN} by {SHOWN} products, darkest along the main diagonal and of one colour "
    f"along every parallel to it. Below, the product against the offset, at width {OTHER} and at width "
    f"{WIDTH}: two lines that fall, in waves the smaller the wider the table, and first rise at offset "
    f"{first[OTHER]} and at offset {first[WIDTH]}.",
    numbers={
        "uneven": uneven,
        "first_8": first[8],
        **{f"first_{width}": offset for width, offset in first.items()},
        **{f"rises_{width}": int((mean[:101].diff() > 0).sum()) for width, mean in means.items()},
        "rank": rank,
    },
)

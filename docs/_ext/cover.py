r"""The cover of the EPUB: a row of clocks for each position, turned as rotary embedding turns its pairs.

Drawn with the package, as all figures are. A book reader shows it small: few hands, and thick ones.
"""

import math

import matplotlib.pyplot as plt
import torch
from matplotlib.patches import Circle

from posbook import figures, frequencies

POSITIONS, PAIRS, BASE = 8, 7, 100
INCHES, DOTS = (6.25, 10), 160  # 1000 x 1600 pixels
FACE = 0.4


def draw(path, title, author):
    """Write the cover as PNG; the first word of the title has a line of its own."""
    plt.style.use("posbook.figures.posbook")
    fig = plt.figure(figsize=INCHES, dpi=DOTS, layout="none", facecolor=figures.colour("paper"))
    ax = fig.add_axes((0.08, 0.11, 0.84, 0.60))
    angles = frequencies.angles(torch.arange(POSITIONS), frequencies.geometric(2 * PAIRS, base=BASE))
    face = {"facecolor": figures.colour("panel"), "edgecolor": figures.colour("grid"), "lw": 1.5}
    for row, turned in enumerate(angles.tolist()):
        for column, angle in enumerate(turned):
            ax.add_patch(Circle((column, row), FACE, **face))
            # Anticlockwise from the right, as everywhere in the book; rows run downwards.
            tip = (column + 0.8 * FACE * math.cos(angle), row - 0.8 * FACE * math.sin(angle))
            colour = figures.colour("query" if row % 2 == 0 else "key")
            ax.plot(*zip((column, row), tip, strict=True), color=colour, lw=4.5, solid_capstyle="round")
    ax.set_xlim(-0.5, PAIRS - 0.5)
    ax.set_ylim(POSITIONS - 0.5, -0.5)
    ax.set_aspect("equal")
    ax.set_anchor("SW")
    ax.axis("off")
    first, *rest = title.split()
    ink = {"color": figures.colour("ink"), "va": "top", "ha": "left", "weight": "bold"}
    fig.text(0.08, 0.955, first, size=50, **ink)
    fig.text(0.08, 0.865, " ".join(rest), size=50, **ink)
    fig.text(0.08, 0.055, author, size=17, color=figures.colour("muted"), va="bottom", ha="left")
    fig.savefig(path, dpi=DOTS, facecolor=fig.get_facecolor())
    plt.close(fig)

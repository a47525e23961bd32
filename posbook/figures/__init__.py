r"""Drawing: every figure of the book in one look, legible in light and dark.

A script says ``plt.style.use("posbook.figures.posbook")``, draws with matplotlib, takes a colour by its role
from :func:`colour`, or an encoding's colour, marker and dash from :func:`look`, and ends in :func:`publish`.

for drawing
    ``curves``: lines labelled at their ends, dots for single seeds, several values a row on one axis.
    ``heatmaps``: matrices as cells.
    ``tokens``: words in a row, and lines between two rows.
    ``style``: the palette by role, one look for each encoding.

behind :func:`publish`
    ``svg``: one SVG for both themes.
    ``png``: the same in pixels, in the light colours.
    ``scraper``: what sphinx-gallery calls.
"""

from posbook.figures import curves, heatmaps, style, tokens
from posbook.figures.publish import publish
from posbook.figures.style import colour, look

__all__ = ["colour", "curves", "heatmaps", "look", "publish", "style", "tokens"]

# Reading the style file imports this package first, so the typeface and the maps it names are known in time.
style.register()

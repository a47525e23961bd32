r"""Drawing: every figure of the book in one look, legible in light and dark.

style     the palette by role, one look for each encoding (posbook.mplstyle beside it is the matplotlib style)
curves    lines labelled at their ends, dots for single seeds, several values a row on one axis
heatmaps  matrices as cells
tokens    words in a row, and lines between two rows
publish   the last line of a gallery script
svg       one SVG for both themes
scraper   what sphinx-gallery calls
"""

from posbook.figures import curves as curves
from posbook.figures import heatmaps as heatmaps
from posbook.figures import style as style
from posbook.figures import tokens as tokens
from posbook.figures.publish import publish as publish
from posbook.figures.style import colour as colour
from posbook.figures.style import look as look

# Reading the style file imports this package first, so the typeface and the maps it names are known in time.
style.register()

r"""The figure in pixels, for slides and for programs that draw no SVG; always in the light colours."""

import io

from matplotlib.figure import Figure
from PIL import Image
from PIL.PngImagePlugin import PngInfo

from posbook.figures import svg

DPI = 200  # the widest figure has 1440 pixels


def picture(fig: Figure, alt: str) -> bytes:
    r"""The figure as the bytes of a PNG that says what it shows and under which licence.

    It is drawn after the SVG, and keeps the layout found there.

    >>> import matplotlib.pyplot as plt
    >>> with plt.style.context("posbook.figures.posbook"):
    ...     drawn = picture(Figure(), "Nothing is drawn here.")
    >>> Image.open(io.BytesIO(drawn)).text["Copyright"]
    'the posbook authors, CC BY 4.0, https://creativecommons.org/licenses/by/4.0/'
    """
    buffer = io.BytesIO()
    # Saving a figure without a layout gives it the style's, and its axes would move.
    fig.set_layout_engine("none")
    fig.savefig(buffer, format="png", dpi=DPI)
    # Figures have few colours: a palette of 256 makes a third of the file, and nothing is seen of it.
    image = Image.open(buffer).convert("RGB").quantize(256, dither=Image.Dither.NONE)
    said = PngInfo()
    said.add_text("Title", svg.title(fig, alt))
    said.add_text("Description", alt)
    said.add_text("Copyright", f"the posbook authors, CC BY 4.0, {svg.LICENCE}")
    written = io.BytesIO()
    image.save(written, format="png", optimize=True, dpi=(DPI, DPI), pnginfo=said)
    return written.getvalue()

r"""One SVG for both themes: each palette colour that occurs gets a rule for the dark page.

The light colours stay where matplotlib wrote them, so a viewer that knows no CSS shows the light figure.
"""

import hashlib
import io
import re
from xml.etree import ElementTree
from xml.sax.saxutils import escape

import matplotlib
from matplotlib.figure import Figure

from posbook.figures import style

LICENCE = "https://creativecommons.org/licenses/by/4.0/"
_PAINTS = ("fill", "stroke", "color", "stop-color", "flood-color")
_DRAWN = {"path", "use", "rect", "circle", "ellipse", "line", "polyline", "polygon", "text"}


def themed(fig: Figure, alt: str) -> str:
    r"""The figure as the text of an SVG that follows the theme of the page around it.

    Raises ValueError when a colour outside :data:`posbook.figures.style.PALETTE` occurs, since it would stay
    as it is when the page turns dark; the pixels of an image are the one exception.

    >>> import matplotlib.pyplot as plt
    >>> with plt.style.context("posbook.figures.posbook"):
    ...     fig = Figure()
    ...     "prefers-color-scheme: dark" in themed(fig, "Nothing is drawn here.")
    True
    """
    buffer = io.StringIO()
    # Set here, not only in the style file: without the salt every build would write another file.
    with matplotlib.rc_context({"svg.fonttype": "path", "svg.hashsalt": "posbook"}):
        fig.savefig(
            buffer,
            format="svg",
            metadata={"Date": None, "Creator": "posbook", "Rights": "CC BY 4.0", "Description": alt},
        )
    text = re.sub(r"<!DOCTYPE[^>]*>\s*", "", buffer.getvalue())  # an EPUB may name no DTD on the web
    # The glyph of a space is a path without a path, which the SVG standard does not know.
    text = re.sub(r'(<path id="[^"]*")(?! d=)', r'\1 d=""', text)
    name = hashlib.sha256(alt.encode()).hexdigest()[:8]
    head = (
        f'<title id="title-{name}">{escape(title(fig, alt))}</title>\n'
        f'<desc id="alt-{name}">{escape(alt)}</desc>\n'
        f"<style>\n@media (prefers-color-scheme: dark) {{\n{_rules(text)}\n}}\n</style>"
    )
    root = re.search(r"<svg\b[^>]*>", text)
    # In pixels, 12 pt are the 16 px of the text around the figure; viewBox lets the whole shrink.
    opening = re.sub(r'\b(width|height)="([\d.]+)pt"', _pixels, root.group())
    opening = f'{opening[:-1]} role="img" aria-labelledby="title-{name} alt-{name}">'
    text = text[: root.start()] + opening + "\n" + head + text[root.end() :]
    return text.replace("</cc:Work>", f'<cc:license rdf:resource="{LICENCE}"/>\n   </cc:Work>', 1)


def _pixels(size: re.Match) -> str:
    return f'{size[1]}="{float(size[2]) * 96 / 72:g}"'


def title(fig: Figure, alt: str) -> str:
    """The figure's own title; the alt's start where that has formulas, which would be read out as TeX."""
    places = ("left", "center", "right")
    titles = [fig.get_suptitle(), *(ax.get_title(place) for ax in fig.axes for place in places)]
    plain = [title for title in titles if title and "$" not in title]
    return " ".join((plain[0] if plain else alt.partition(".")[0]).split())


def _rules(text: str) -> str:
    """The CSS lines of the dark theme, one for each paint and colour that occurs."""
    found = set()
    _collect(ElementTree.fromstring(text), filled=False, found=found)
    unknown = sorted({colour for _, colour, _ in found if colour not in style.DARK})
    if unknown:
        raise ValueError(
            f"the figure has colours outside the palette: {', '.join(unknown)}; "
            "take them from posbook.figures.colour(role), so that they can follow the theme"
        )
    return "\n".join(
        f"{selector}{{{paint}:{style.DARK[colour]}!important}}" for paint, colour, selector in sorted(found)
    )


def _collect(element: ElementTree.Element, *, filled: bool, found: set, shown: bool = True) -> None:
    """Gather (paint, colour, selector) from an element and all below it.

    matplotlib leaves a black fill unwritten, as it is SVG's default, so a shape that is shown (not one kept
    in <defs> or a clip) and has no fill from itself or above is black.
    """
    tag = element.tag.rpartition("}")[2]
    shown = shown and tag not in ("defs", "clipPath", "metadata", "style")
    declared = [part.partition(":")[::2] for part in element.get("style", "").split(";")]
    paints = [(name.strip(), value.strip(), "style") for name, value in declared]
    paints += [(name, element.get(name), "attribute") for name in _PAINTS if element.get(name)]
    for name, value, form in paints:
        if name not in _PAINTS:
            continue
        filled = filled or name == "fill"
        if value == "none" or value.startswith("url("):
            continue
        # The declaration is matched as matplotlib writes it. No other property's name ends in "fill" or
        # "stroke", and a hex always has six digits, so that no selector catches another's colour.
        selector = f'[style*="{name}: {value}"]' if form == "style" else f'[{name}="{value}"]'
        found.add((name, value, selector))
    if shown and tag in _DRAWN and not filled:
        found.add(("fill", "#000000", tag))
    for child in element:
        _collect(child, filled=filled, found=found, shown=shown)

import re
from xml.etree import ElementTree

import matplotlib.pyplot as plt
import numpy as np
import pytest

from posbook.figures import curves, heatmaps, style, svg, tokens

ALT = "Two lines & a grid of cells <rising> from left to right, drawn only to be tested."
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(autouse=True)
def _in_the_style():
    with plt.style.context("posbook.figures.posbook"):
        yield
    plt.close("all")


def everything():
    """A figure with each kind of thing matplotlib writes: paths, text, markers, hatches, cells, patches."""
    fig, (left, right, low) = plt.subplots(3, 1, figsize=(7, 9))
    curves.curve(left, [0, 1, 2], [1, 2, 4], "rope", label="RoPE", seeds=[[1, 2, 3], [1, 3, 4]])
    curves.curve(left, [0, 1, 2], [1, 2, 3.9], "alibi", label="ALiBi")
    left.bar([0, 1], [1, 2], color=style.colour("query"), hatch="//")
    left.scatter([0, 1], [3, 3], color=style.colour("key"), s=[20, 40])
    left.set_title(r"A title with $\theta_i$")
    curves.label_ends(left)
    heatmaps.cells(
        right,
        np.linspace(-1, 1, 9).reshape(3, 3),
        rows="abc",
        columns="abc",
        limits=(-1, 1),
        diverging=True,
        annotate=".1f",
        label="score",
    )
    tokens.connect(low, tokens.row(low, "ab"), tokens.row(low, "ba", y=-2), [1, 0])
    return fig


def painted(text):
    """Every (property, colour) a browser would paint, read without the code under test."""
    found = set()
    for element in ElementTree.fromstring(text).iter():
        if element.tag != f"{SVG}style":
            found |= set(re.findall(r"(?:^|[; ])(fill|stroke): (#[0-9a-f]+)", element.get("style", "")))
            found |= {
                (p, element.get(p)) for p in ("fill", "stroke") if (element.get(p) or "").startswith("#")
            }
    return found


def test_every_colour_that_occurs_has_a_rule_for_the_dark_page():
    text = svg.themed(everything(), ALT)
    css = re.search(r"@media \(prefers-color-scheme: dark\) \{(.*?)\n\}", text, re.S)[1]
    partner = {colour.light: colour.dark for colour in style.PALETTE}
    rules = re.findall(r'\[(?:style\*="(\w+): (#\w{6})"|(\w+)="(#\w{6})")\]\{(\w+):(#\w{6})!important\}', css)
    switched = {(a or c, b or d): (prop, dark) for a, b, c, d, prop, dark in rules}
    assert painted(text) == set(switched)
    assert all(dark == (prop, partner[colour]) for (prop, colour), dark in switched.items())
    assert {"fill", "stroke"} == {prop for prop, _ in switched}


def test_a_colour_outside_the_palette_is_refused_by_name():
    fig, ax = plt.subplots()
    ax.plot([0, 1], color="#ff00ff")
    with pytest.raises(ValueError, match="#ff00ff"):
        svg.themed(fig, ALT)


@pytest.mark.parametrize("draw", [
    lambda ax: ax.text(0, 0, "black", color="black"),
    lambda ax: ax.bar([0], [1], color="black"),
    lambda ax: ax.plot([0, 1], color="black"),
    lambda ax: ax.scatter([0, 1], [0, 1], color="black"),
], ids=["text", "bar", "line", "dots"])  # fmt: skip
def test_black_is_refused_even_where_svg_leaves_it_unwritten(draw):
    fig, ax = plt.subplots()
    draw(ax)
    with pytest.raises(ValueError, match="#000000"):
        svg.themed(fig, ALT)


def test_white_is_refused():
    fig, _ = plt.subplots(facecolor="white")
    with pytest.raises(ValueError, match="#ffffff"):
        svg.themed(fig, ALT)


def test_the_pixels_of_an_image_may_have_any_colour():
    fig, ax = plt.subplots()
    ax.imshow(np.random.default_rng(0).random((80, 80)), cmap="viridis")
    assert "data:image/png" in svg.themed(fig, ALT)


def test_the_same_figure_gives_the_same_file():
    plt.rcParams["svg.hashsalt"] = None  # as where a script forgets the style
    assert svg.themed(everything(), ALT) == svg.themed(everything(), ALT)


def test_the_figure_scales_and_tells_what_is_seen_and_who_may_use_it():
    fig = plt.figure(figsize=(7.2, 3.6))
    root = ElementTree.fromstring(svg.themed(fig, ALT))
    assert root.get("role") == "img"
    assert root.get("viewBox").split()[2:] == ["518.4", "259.2"]  # 72 points an inch
    assert (root.get("width"), root.get("height")) == ("691.2", "345.6")  # 96 pixels an inch
    ids = root.get("aria-labelledby").split()
    labels = [next(e for e in root.iter() if e.get("id") == name) for name in ids]
    assert [e.tag for e in labels] == [f"{SVG}title", f"{SVG}desc"]
    assert labels[1].text == ALT
    assert "creativecommons.org/licenses/by/4.0" in svg.themed(fig, ALT)


def test_a_title_with_formulas_is_not_read_out_as_tex():
    fig, ax = plt.subplots()
    ax.set_title(r"$\theta$")
    assert "\\theta" not in svg.themed(fig, ALT).partition("<desc")[0]


def test_an_svg_names_no_dtd_and_every_path_has_one():
    """An EPUB with a figure that breaks either rule is not valid."""
    drawn = svg.themed(everything(), ALT)
    assert "<!DOCTYPE" not in drawn
    paths = list(ElementTree.fromstring(drawn).iter(f"{SVG}path"))
    assert paths
    assert all(path.get("d") is not None for path in paths)

import io

import matplotlib.pyplot as plt
import numpy as np
import pytest
from PIL import Image

from posbook.figures import png, style, svg

ALT = "A line that rises from left to right beside a label – drawn only to be tested."


@pytest.fixture
def fig():
    with plt.style.context("posbook.figures.posbook"):
        fig, ax = plt.subplots(figsize=(6, 4))
        ax.plot([0, 1], color=style.colour("query"), label="a long label of the line")
        ax.set_ylabel("an axis with a label, for which the layout makes room")
        yield fig
    plt.close("all")


def opened(fig):
    return Image.open(io.BytesIO(png.picture(fig, ALT)))


def test_a_png_says_what_it_shows_and_under_which_licence(fig):
    fig.axes[0].set_title("Up")
    said = opened(fig).text
    assert said["Title"] == "Up"
    assert said["Description"] == ALT
    assert "CC BY 4.0" in said["Copyright"]
    assert "https://creativecommons.org/licenses/by/4.0/" in said["Copyright"]


def test_the_svg_names_the_same_licence(fig):
    drawn = svg.themed(fig, ALT)
    assert '<cc:license rdf:resource="https://creativecommons.org/licenses/by/4.0/"/>' in drawn
    assert "CC BY 4.0" in drawn


def test_a_png_has_the_light_colours_on_paper(fig):
    pixels = np.asarray(opened(fig).convert("RGB")).reshape(-1, 3)
    paper, line = (tuple(bytes.fromhex(style.colour(role)[1:])) for role in ("paper", "query"))

    def nearest(colour):
        return np.abs(pixels.astype(int) - colour).max(1).min()

    assert tuple(pixels[0]) == paper
    assert nearest(line) <= 8  # a palette of 256 colours serves a smooth edge, too


def test_a_png_has_the_size_of_its_figure(fig):
    assert opened(fig).size == (6 * png.DPI, 4 * png.DPI)


def test_a_png_has_the_layout_of_the_svg(fig):
    svg.themed(fig, ALT)
    before = fig.axes[0].get_position().bounds
    png.picture(fig, ALT)
    assert fig.axes[0].get_position().bounds == before


def test_a_figure_without_a_layout_keeps_its_axes(recwarn):
    with plt.style.context("posbook.figures.posbook"):
        fig = plt.figure(layout="none")
        fig.add_axes((0, 0, 1, 1)).plot([0, 1], color=style.colour("query"))
        svg.themed(fig, ALT)
        png.picture(fig, ALT)
    assert fig.axes[0].get_position().bounds == (0, 0, 1, 1)
    assert not recwarn.list
    plt.close("all")

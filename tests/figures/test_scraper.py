import json
import os
import subprocess
import sys
from pathlib import Path

import matplotlib.pyplot as plt
import pytest
from sphinx_gallery.scrapers import ImagePathIterator

from posbook.figures import publish, style
from posbook.figures.publish import Published
from posbook.figures.scraper import scraper

ALT = "A line that rises from left to right, drawn only to see it scraped."
CONF = """
import os
os.environ["POSBOOK_GALLERY"] = "1"
project, copyright, author = "t", "t", "t"
extensions = ["sphinx_gallery.gen_gallery"]
exclude_patterns = ["gallery/**/*.ipynb"]
sphinx_gallery_conf = {
    "examples_dirs": ["../examples"],
    "gallery_dirs": ["gallery"],
    "image_scrapers": ("posbook.figures.scraper.scraper",),
    "write_computation_times": False,
    "abort_on_example_error": True,
}
"""
SCRIPT = '''r"""
A line
======

It rises.
"""

import matplotlib.pyplot as plt

from posbook import figures

plt.style.use("posbook.figures.posbook")

# %%
# It is drawn.

fig, ax = plt.subplots()
ax.plot([0, 1], color=figures.colour("query"))
figures.publish(fig, alt="{alt}", numbers={{"n": 120}})
'''


@pytest.fixture
def gallery(tmp_path, monkeypatch):
    """A script examples/why/plot_line.py as sphinx-gallery tells a scraper of it."""
    monkeypatch.setenv("POSBOOK_GALLERY", "1")
    images = tmp_path / "docs/gallery/why/images/sphx_glr_plot_line_{0:03}.png"
    conf = {
        "src_dir": str(tmp_path / "docs"),
        "examples_dirs": [str(tmp_path / "examples")],
        "gallery_dirs": ["gallery"],
    }
    variables = {
        "src_file": str(tmp_path / "examples/why/plot_line.py"),
        "image_path_iterator": ImagePathIterator(images),
    }
    with plt.style.context("posbook.figures.posbook"):
        yield lambda: scraper(("code", "", 1), variables, conf)
    plt.close("all")


def draw(**said):
    fig, ax = plt.subplots()
    ax.plot([0, 1], color=style.colour("query"))
    publish(fig, alt=ALT, **said)
    return fig


def test_a_block_without_a_figure_adds_nothing(gallery):
    assert gallery() == ""


def test_the_figure_and_what_was_said_of_it_are_saved_side_by_side(gallery, tmp_path):
    draw(numbers={"worst": 0.1 + 0.2}, seed=0, size="n = 4", spread="worst of 24")
    rst = gallery()
    images = tmp_path / "docs/gallery/why/images"
    assert sorted(p.name for p in images.iterdir()) == ["plot_line.json", "png", "sphx_glr_plot_line_001.svg"]
    assert json.loads((images / "plot_line.json").read_text()) == {
        "script": "why/plot_line",
        "alt": ALT,
        "alts": [ALT],
        "numbers": {"worst": 0.1 + 0.2},
        "measured": {"seed": 0, "size": "n = 4", "spread": "worst of 24"},
        "images": ["gallery/why/images/sphx_glr_plot_line_001.svg"],
    }
    assert ".. image:: /gallery/why/images/sphx_glr_plot_line_001.svg\n" in rst
    assert f":alt: {ALT}\n" in rst
    assert ":class: sphx-glr-single-img\n" in rst
    assert plt.get_fignums() == []


def test_data_for_a_figure_that_moves_is_saved_and_not_printed(gallery, tmp_path, capsys):
    draw(data={"models": [{"name": "Llama", "base": 1e4}]})
    gallery()
    record = json.loads((tmp_path / "docs/gallery/why/images/plot_line.json").read_text())
    assert record["data"] == {"models": [{"name": "Llama", "base": 1e4}]}
    assert capsys.readouterr().out == ""


def test_a_figure_that_was_not_published_is_refused(gallery):
    plt.figure()
    with pytest.raises(ValueError, match=r"plot_line\.py: .*not published"):
        gallery()
    assert plt.get_fignums() == []


def test_a_figure_without_alt_text_is_refused(gallery):
    draw().published = Published("", {}, None)
    with pytest.raises(ValueError, match=r"plot_line\.py: .*alt text"):
        gallery()


def test_two_figures_are_refused_in_one_block_and_in_two(gallery):
    draw(), draw()
    with pytest.raises(ValueError, match=r"plot_line\.py: more than one"):
        gallery()
    draw()
    gallery()
    draw()
    with pytest.raises(ValueError, match=r"plot_line\.py: more than one"):
        gallery()


def draw_steps(count):
    steps = []
    for number in range(count):
        fig, ax = plt.subplots()
        ax.plot([0, number], color=style.colour("query"))
        steps.append(fig)
    return steps


def test_the_steps_of_one_figure_are_saved_in_the_order_of_publication(gallery, tmp_path):
    steps = draw_steps(3)
    alts = [f"Step {number}. {ALT}" for number in (1, 2, 3)]
    publish(steps[::-1], alt=alts, numbers={"n": 3})
    rst = gallery()
    images = tmp_path / "docs/gallery/why/images"
    names = [f"sphx_glr_plot_line_{number:03}.svg" for number in (1, 2, 3)]
    assert sorted(p.name for p in images.iterdir()) == ["plot_line.json", "png", *names]
    record = json.loads((images / "plot_line.json").read_text())
    assert record["images"] == [f"gallery/why/images/{name}" for name in names]
    assert (record["alt"], record["alts"], record["numbers"]) == (alts[0], alts, {"n": 3})
    for name, alt in zip(names, alts, strict=True):
        assert f">{alt}</desc>" in (images / name).read_text()
        assert f".. image:: /gallery/why/images/{name}\n   :alt: {alt}\n" in rst
    assert plt.get_fignums() == []


def test_a_step_that_was_closed_or_a_figure_beside_the_steps_is_refused(gallery):
    steps = draw_steps(3)
    publish(steps, alt=[f"Step {number}. {ALT}" for number in (1, 2, 3)])
    plt.close(steps[1])
    with pytest.raises(ValueError, match=r"plot_line\.py: more than one"):
        gallery()
    publish(draw_steps(2), alt=[f"Step {number}. {ALT}" for number in (1, 2)])
    draw()
    with pytest.raises(ValueError, match=r"plot_line\.py: more than one"):
        gallery()


def test_a_colour_outside_the_palette_is_laid_to_the_script_and_nothing_is_saved(gallery, tmp_path):
    draw().axes[0].plot([1, 0], color="#ff00ff")
    with pytest.raises(ValueError, match=r"plot_line\.py: .*#ff00ff"):
        gallery()
    assert not (tmp_path / "docs").exists()


@pytest.fixture
def book(tmp_path):
    """Build a book of one script with this alt text, as often as one likes."""
    for path, text in {
        "conf.py": CONF,
        "docs/index.rst": "t\n=\n\n.. toctree::\n\n   gallery/index\n",
        "examples/GALLERY_HEADER.rst": "Gallery\n=======\n",
        "examples/why/GALLERY_HEADER.rst": "Why\n---\n",
    }.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)

    def build(alt):
        (tmp_path / "examples/why/plot_line.py").write_text(SCRIPT.format(alt=alt))
        command = [sys.executable, "-m", "sphinx", "-W", "-b", "html", "-c", ".", "docs", "build"]
        return subprocess.run(command, cwd=tmp_path, env=os.environ, capture_output=True, text=True)

    return build


def test_sphinx_gallery_takes_the_scraper_by_name_and_builds_only_once(book, tmp_path):
    done = book(ALT)
    assert done.returncode == 0, done.stderr + done.stdout
    images = tmp_path / "docs/gallery/why/images"
    assert json.loads((images / "plot_line.json").read_text())["numbers"] == {"n": 120}
    drawn = (images / "sphx_glr_plot_line_001.svg").read_text()
    assert (images / "thumb/sphx_glr_plot_line_thumb.svg").read_text() == drawn
    page = (tmp_path / "build/gallery/why/plot_line.html").read_text()
    assert f'alt="{ALT}"' in page
    assert Path(tmp_path / "build/_images/sphx_glr_plot_line_001.svg").read_text() == drawn
    assert "n = 120" in page

    again = book(ALT).stdout
    assert "0 added, 0 changed, 0 removed" in again or "no targets are out of date" in again


def test_a_build_stops_at_a_script_whose_alt_text_says_nothing_and_names_it(book, tmp_path):
    done = book("A line.")
    assert done.returncode != 0
    assert "plot_line.py: alt text of 7 characters" in done.stderr
    assert not list((tmp_path / "docs/gallery/why/images").glob("*.svg"))

import os
import subprocess
import sys

import matplotlib.pyplot as plt
import nbformat
import numpy as np
import pytest

from posbook.figures import publish
from posbook.figures.publish import write_whole

ALT = "A line that rises from left to right, drawn only to see it published."
SCRIPT = """
import matplotlib.pyplot as plt
from posbook import figures
plt.style.use("posbook.figures.posbook")
fig, ax = plt.subplots()
ax.plot([0, 1], color=figures.colour("query"))
figures.publish(fig, alt="{alt}", numbers={{"n": 120, "worst": 4.440892098500626e-16, "name": "x"}})
"""


@pytest.fixture
def fig(monkeypatch):
    monkeypatch.setenv("POSBOOK_GALLERY", "1")
    yield plt.figure()
    plt.close("all")


@pytest.mark.parametrize("said,message", [
    ({}, "0 characters"),
    ({"alt": "A short one."}, "12 characters"),
    ({"alt": "A short one, stretched by spaces" + 60 * " " + "."}, "34 characters"),
    ({"alt": ALT, "numbers": {"n": np.float64(1)}}, "n is a float64"),
    ({"alt": ALT, "numbers": {"n": True}}, "n is a bool"),
    ({"alt": ALT, "numbers": {"n": [1]}}, "n is a list"),
    ({"alt": ALT, "numbers": {"n": float("nan")}}, "n is nan"),
    ({"alt": ALT, "numbers": {"d = 8": 1}}, "'d = 8' needs a Python name"),
    ({"alt": ALT, "data": {1, 2}}, "data is nothing that JSON can hold"),
    ({"alt": ALT, "data": [float("inf")]}, "data is nothing that JSON can hold"),
    ({"alt": ALT, "seed": 0}, "size and spread missing"),
    ({"alt": ALT, "size": "n = 4", "spread": "worst of 24"}, "seed missing"),
])  # fmt: skip
def test_what_is_refused_names_the_script(fig, said, message):
    # As sphinx-gallery runs a script: compiled under its name, in a module that has no __file__.
    script = compile("publish(fig, **said)", "examples/why/plot_line.py", "exec")
    with pytest.raises(ValueError, match=rf"plot_line\.py: .*({message})"):
        exec(script, {"__name__": "__main__", "publish": publish, "fig": fig, "said": said})


def test_numbers_are_printed_short_and_stored_whole(fig, capsys):
    numbers = {"permutations": 24, "worst": 4.440892098500626e-16, "big": 1234567.0, "layout": "halves"}
    assert publish(fig, alt=ALT, numbers=numbers) is None
    printed = capsys.readouterr().out.splitlines()
    assert printed == ["permutations = 24", "worst = 4.44089e-16", "big = 1.23457e+06", "layout = halves"]
    assert fig.published.numbers == numbers


def test_a_seed_of_nought_counts_as_told(fig):
    publish(fig, alt=ALT, seed=0, size="n = 4", spread="worst of 24")
    assert fig.published.measured == {"seed": 0, "size": "n = 4", "spread": "worst of 24"}


def test_a_figure_that_was_not_measured_says_so(fig):
    publish(fig, alt=ALT)
    assert fig.published.measured is None


def test_a_script_alone_prints_its_numbers_and_saves_its_figure(tmp_path):
    (tmp_path / "plot_line.py").write_text(SCRIPT.format(alt=ALT))
    env = {name: value for name, value in os.environ.items() if name != "POSBOOK_GALLERY"} | {
        "MPLBACKEND": "Agg"
    }
    command = [sys.executable, "-W", "error", "plot_line.py"]
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True)
    assert done.stderr == ""
    assert done.stdout.splitlines() == ["n = 120", "worst = 4.44089e-16", "name = x", "plot_line.svg"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["plot_line.py", "plot_line.svg"]
    assert (tmp_path / "plot_line.svg").read_text().rstrip().endswith("</svg>")


# In a process of its own: what a kernel leaves to the garbage collector would be a warning in any later test.
EXECUTE = """
import sys, nbformat
from nbclient import NotebookClient
notebook = nbformat.read(sys.argv[1], as_version=4)
NotebookClient(notebook, resources={"metadata": {"path": sys.argv[2]}}).execute()
nbformat.write(notebook, sys.argv[1])
"""


def test_a_notebook_shows_the_figure_below_its_cell_and_saves_no_file(tmp_path):
    place, file = tmp_path / "place", tmp_path / "line.ipynb"
    place.mkdir()
    cell = nbformat.v4.new_code_cell(SCRIPT.format(alt=ALT))
    nbformat.write(nbformat.v4.new_notebook(cells=[cell]), file)
    clean = {k: v for k, v in os.environ.items() if k not in ("POSBOOK_GALLERY", "MPLBACKEND")}
    subprocess.run([sys.executable, "-c", EXECUTE, file, place], env=clean, check=True, capture_output=True)
    (ran,) = nbformat.read(file, as_version=4).cells
    assert ["image/png" in output.get("data", {}) for output in ran.outputs] == [False, True]
    assert ran.outputs[0]["text"] == "n = 120\nworst = 4.44089e-16\nname = x\n"
    assert list(place.iterdir()) == []


@pytest.mark.parametrize("where,globals", [("/tmp/123/1961509632.py", {"get_ipython": 1}), ("<stdin>", {})])
def test_what_is_run_from_no_file_is_not_named_by_what_python_calls_it(where, globals, tmp_path, monkeypatch):
    monkeypatch.delenv("POSBOOK_GALLERY", raising=False)
    monkeypatch.chdir(tmp_path)
    with plt.style.context("posbook.figures.posbook"):
        said = {"publish": publish, "fig": plt.figure(), "alt": ALT}
        exec(compile("publish(fig, alt=alt)", where, "exec"), {"__name__": "__main__", **said, **globals})
    plt.close("all")
    assert [path.name for path in tmp_path.iterdir()] == ["figure.svg"]


STEPS = """
import matplotlib.pyplot as plt
from posbook import figures
plt.style.use("posbook.figures.posbook")
steps = [plt.figure(), plt.figure(), plt.figure()]
figures.publish(steps, alt=["First. {alt}", "Second. {alt}", "Third. {alt}"], numbers={{"n": 3}})
"""


def test_a_figure_in_several_steps_is_saved_as_one_file_a_step(tmp_path):
    (tmp_path / "plot_line.py").write_text(STEPS.format(alt=ALT))
    env = {name: value for name, value in os.environ.items() if name != "POSBOOK_GALLERY"} | {
        "MPLBACKEND": "Agg"
    }
    command = [sys.executable, "-W", "error", "plot_line.py"]
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True)
    assert done.stderr == ""
    saved = ["plot_line.svg", "plot_line_2.svg", "plot_line_3.svg"]
    assert done.stdout.splitlines() == ["n = 3", *saved]
    for name, place in zip(saved, ["First.", "Second.", "Third."], strict=True):
        assert f">{place} {ALT}</desc>" in (tmp_path / name).read_text()


def test_each_step_keeps_its_alt_and_its_place(fig):
    steps = [fig, plt.figure()]
    publish(steps, alt=[ALT, f"Then another. {ALT}"], numbers={"n": 2})
    assert [step.published[:2] for step in steps] == [(ALT, {"n": 2}), (f"Then another. {ALT}", {"n": 2})]
    assert [step.published[3:5] for step in steps] == [(1, 2), (2, 2)]


@pytest.mark.parametrize("alt,message", [
    ([ALT], "2 figures and 1 alt texts"),
    (ALT, "2 figures and 1 alt texts"),
    ([ALT, ALT], "same alt text"),
    ([ALT, "Short."], "6 characters"),
])  # fmt: skip
def test_steps_that_are_not_each_described_are_refused(fig, alt, message):
    with pytest.raises(ValueError, match=message):
        publish([fig, plt.figure()], alt=alt)


def test_no_figure_at_all_is_refused(fig):
    with pytest.raises(ValueError, match="0 figures and 0 alt"):
        publish([], alt=[])


def test_a_figure_that_cannot_be_drawn_leaves_no_file(fig, tmp_path, monkeypatch):
    monkeypatch.delenv("POSBOOK_GALLERY")
    monkeypatch.chdir(tmp_path)
    fig.set_facecolor("#ff00ff")
    with pytest.raises(ValueError, match="#ff00ff"):
        publish(fig, alt=ALT)
    assert list(tmp_path.iterdir()) == []


def test_a_file_is_written_whole_or_not_at_all(tmp_path):
    path = tmp_path / "figure.svg"
    path.write_text("before")
    with pytest.raises(UnicodeEncodeError):
        write_whole(path, "half \ud800")
    assert path.read_text() == "before"
    assert list(tmp_path.iterdir()) == [path]

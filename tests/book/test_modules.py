r"""Reference pages show the figures that use a module."""

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "docs" / "_ext"))

import modules


@pytest.fixture
def examples(tmp_path):
    scripts = {
        "why/plot_b": "from posbook import alibi, figures\n",
        "why/plot_a": "import posbook.alibi\n",
        "why/plot_c": '"""Speaks of posbook.alibi."""\nfrom posbook import rotary\n',
        "why/helper": "from posbook import alibi\n",
    }
    for name, text in scripts.items():
        path = tmp_path / f"{name}.py"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    return tmp_path


def test_the_scripts_that_import_a_module_come_in_the_order_of_the_book(examples):
    order = ["plot_b", "plot_c", "plot_a"]
    found = modules.using("posbook.alibi", order, examples)
    assert found == [f"{examples.name}/why/plot_b.py", f"{examples.name}/why/plot_a.py"]


def test_a_module_that_is_only_spoken_of_is_not_used(examples):
    assert modules.using("posbook.rotary", ["plot_c"], examples) == [f"{examples.name}/why/plot_c.py"]
    assert not modules.using("posbook.shaw", [], examples)


def test_a_page_is_made_again_when_a_script_comes_or_goes_and_not_otherwise(monkeypatch):
    order = ["plot_a", "plot_b"]
    pages = {"alibi": {"reference-of": ("posbook.alibi", ["examples/why/plot_a.py"])}, "prose": {}}
    app = SimpleNamespace(config=SimpleNamespace(gallery_order=order))
    env = SimpleNamespace(all_docs=pages, metadata=pages)

    def made_again(scripts):
        monkeypatch.setattr(modules, "using", lambda module, order: scripts)
        return modules.outdated(app, env, set(), set(), set())

    assert made_again(["examples/why/plot_a.py"]) == []
    assert made_again(["examples/why/plot_a.py", "examples/why/plot_b.py"]) == ["alibi"]
    assert made_again([]) == ["alibi"]

r"""Reference pages show the figures that use a module."""

import sys
from pathlib import Path

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
    assert [script.stem for script in modules.using("posbook.alibi", order, examples)] == ["plot_b", "plot_a"]


def test_a_module_that_is_only_spoken_of_is_not_used(examples):
    assert [s.stem for s in modules.using("posbook.rotary", ["plot_c"], examples)] == ["plot_c"]
    assert not modules.using("posbook.shaw", [], examples)

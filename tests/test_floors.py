r"""The floors of the package: imports only point down, and siblings do not import each other.

::

    3  examples, practice.cli              everything below
    2  practice, experiments, figures      the mathematics
    1  encodings, scaling                  positions, frequencies     (axial and xpos: rotary as well)
       attention, properties               positions, frequencies: they know no encoding
    0  positions, frequencies              nothing of the package
"""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
GROUND = {"positions", "frequencies"}
USES = {"practice", "experiments", "figures"}
ROTARY = {"axial", "xpos"}


def imports(source, package):
    """The dotted names of this repository that a file imports, anywhere in it; package is where it lies."""
    for node in ast.walk(ast.parse(source)):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            origin = ".".join([*above, *filter(None, [node.module])])
            names = [f"{origin}.{alias.name}" if origin == "posbook" else origin for alias in node.names]
        yield from (name for name in names if name.split(".")[0] in {"posbook", "examples", "tests", "docs"})


def may_import(importer, imported):
    top, *rest = importer.split(".")[1:] or ["__init__"]
    into, *names = imported.split(".")
    if into != "posbook":
        return False
    name = names[0] if names else None
    if importer.startswith("examples") or [top, *rest] == ["practice", "cli"]:
        return True
    if top in USES:
        return name == top or name not in USES
    if top == "__init__":
        return name not in USES
    return name in (set() if top in GROUND else GROUND | ({"rotary"} if top in ROTARY else set()))


def violations(path, source):
    module = ".".join(path.with_suffix("").parts)
    package = ".".join(path.parent.parts)
    return sorted(
        {name for name in imports(source, package) if not may_import(module.removesuffix(".__init__"), name)}
    )


FILES = sorted(
    path.relative_to(ROOT) for floor in ("posbook", "examples") for path in (ROOT / floor).rglob("*.py")
)


@pytest.mark.parametrize("path", FILES, ids=str)
def test_imports_point_down(path):
    assert violations(path, (ROOT / path).read_text()) == []


@pytest.mark.parametrize(
    "path, source, found",
    [
        ("posbook/alibi.py", "from posbook import rotary", ["posbook.rotary"]),
        ("posbook/alibi.py", "def bias():\n    from .rotary import rotate", ["posbook.rotary"]),
        ("posbook/alibi.py", "from . import positions, shaw", ["posbook.shaw"]),
        ("posbook/alibi.py", "import posbook", ["posbook"]),
        ("posbook/axial.py", "from posbook import rotary, frequencies", []),
        ("posbook/axial.py", "from posbook import xpos", ["posbook.xpos"]),
        ("posbook/frequencies.py", "from posbook import positions", ["posbook.positions"]),
        ("posbook/scaling.py", "from posbook import frequencies, attention", ["posbook.attention"]),
        ("posbook/attention.py", "import posbook.alibi as a", ["posbook.alibi"]),
        ("posbook/properties.py", "from posbook.rotary import rotate", ["posbook.rotary"]),
        ("posbook/properties.py", "from tests import by_equation", ["tests"]),
        ("posbook/rotary.py", "import posbook.figures.clocks", ["posbook.figures.clocks"]),
        ("posbook/__init__.py", "from . import alibi, figures", ["posbook.figures"]),
        ("posbook/figures/clocks.py", "from ..experiments import tasks", ["posbook.experiments"]),
        ("posbook/figures/clocks.py", "from . import style\nfrom posbook import rotary", []),
        ("posbook/practice/probe.py", "from posbook import figures", ["posbook.figures"]),
        ("posbook/practice/cli.py", "from posbook import figures", []),
        ("posbook/experiments/training.py", "from posbook.practice import config", ["posbook.practice"]),
        ("examples/why/plot_x.py", "from posbook import attention, figures", []),
        ("examples/why/plot_x.py", "from tests import by_equation", ["tests"]),
    ],
)
def test_a_planted_violation_is_seen(path, source, found):
    assert violations(Path(path), source) == found

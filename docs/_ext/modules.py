r"""A reference page from one directive: the module's docstrings, the chapter that explains it, its figures.

    :::{reference-of} posbook.alibi
    [ALiBi](../relative/alibi.md)
    :::

The figures are those whose scripts import the module, in the order of the book; a script that comes or goes
changes the page.
"""

import ast
from pathlib import Path

from sphinx.util.docutils import SphinxDirective

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def imported(script):
    """The modules that a script imports, as posbook.alibi."""
    for node in ast.walk(ast.parse(script.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def using(module, order, examples=EXAMPLES):
    """The scripts that import the module, in the order of the book."""
    found = [script for script in examples.glob("*/plot_*.py") if module in imported(script)]
    return sorted(found, key=lambda script: order.index(script.stem))


class Module(SphinxDirective):
    required_arguments = 1
    has_content = True

    def run(self):
        module = self.arguments[0]
        for folder in EXAMPLES.iterdir():  # its time changes when a script comes or goes
            self.env.note_dependency(str(folder))
        scripts = using(module, self.config.gallery_order)
        lines = [f"**Explained in** {' '.join(self.content)}", ""] if self.content else []
        lines += ["```{eval-rst}", f".. automodule:: {module}"]
        if scripts:
            lines += ["", ".. rubric:: Figures that use it", "", ".. minigallery::"]
        for script in scripts:
            self.env.note_dependency(str(script))
            lines.append(f"   ../{script.relative_to(EXAMPLES.parent).as_posix()}")
        return self.parse_text_to_nodes("\n".join([*lines, "```"]))


def setup(app):
    app.add_directive("reference-of", Module)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}

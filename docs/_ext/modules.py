r"""A reference page from one directive: the module's docstrings, the chapter that explains it, its figures.

    :::{reference-of} posbook.alibi
    [ALiBi](../relative/alibi.md)
    :::

The figures are those whose scripts import the module, in the order of the book; a script that comes or goes
changes the page.
"""

import ast
from functools import cache
from pathlib import Path

from sphinx.util.docutils import SphinxDirective

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


@cache
def imported(code):
    """The modules that a script imports, as posbook.alibi."""
    found = set()
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.ImportFrom):
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
    return found


def using(module, order, examples=EXAMPLES):
    """The scripts that import the module, as examples/why/plot_a.py, in the order of the book."""
    scripts = examples.glob("*/plot_*.py")
    found = [script for script in scripts if module in imported(script.read_text(encoding="utf-8"))]
    found.sort(key=lambda script: order.index(script.stem))
    return [script.relative_to(examples.parent).as_posix() for script in found]


class Module(SphinxDirective):
    required_arguments = 1
    has_content = True

    def run(self):
        module = self.arguments[0]
        scripts = using(module, self.config.gallery_order)
        self.env.metadata[self.env.docname]["reference-of"] = (module, scripts)
        lines = [f"**Explained in** {' '.join(self.content)}", ""] if self.content else []
        lines += ["```{eval-rst}", f".. automodule:: {module}"]
        if scripts:
            lines += ["", ".. rubric:: Figures that use it", "", ".. minigallery::"]
        for script in scripts:
            self.env.note_dependency(str(EXAMPLES.parent / script))
            lines.append(f"   ../{script}")
        return self.parse_text_to_nodes("\n".join([*lines, "```"]))


def outdated(app, env, added, changed, removed):
    """The pages to which a script came, or from which one went."""
    pages = ((name, env.metadata[name].get("reference-of")) for name in env.all_docs)
    return [name for name, of in pages if of and of[1] != using(of[0], app.config.gallery_order)]


def adopt(app, doctree):
    """eval-rst makes nodes in a document of its own that knows all of Sphinx: 5 MB more a saved page."""
    for node in doctree.findall():
        node.document = doctree


def setup(app):
    app.add_directive("reference-of", Module)
    app.connect("env-get-outdated", outdated)
    app.connect("doctree-read", adopt, priority=900)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}

r"""Figures that move: a custom element around the figure that a gallery script drew.

    :::{gallery-figure} plot_rotary_dial
    :moves: rotary-dial
    The caption, which holds for both.
    :::

The element's script, docs/_static/rotary-dial.js, takes the static figure's place in the browser. Print, EPUB
and readers without JavaScript see the static one. A page loads the scripts only if it has such a figure.
What the gallery script published as `data` stands in the element's attribute data-given, as JSON: a figure
that moves knows of the world what its script knew when the book was built.
"""

import html
import json
from pathlib import Path

from docutils import nodes

SHARED = "moving"  # moving.js and moving.css, which every figure that moves needs


class moving(nodes.Element):
    """Wraps what it enhances; its name is that of the custom element and of the script."""


def wrap(name, content, static, given=None):
    if not (Path(static) / f"{name}.js").is_file():
        raise ValueError(f":moves: {name}: there is no {name}.js in {static}")
    return moving("", content, element=name, given=given)


def visit(self, node):
    # A custom element is no XHTML, and a book reader would not run its script.
    if "epub" not in self.builder.name:
        given = ""
        if node["given"] is not None:
            given = f' data-given="{html.escape(json.dumps(node["given"], ensure_ascii=False))}"'
        self.body.append(f"<{node['element']}{given}>")


def depart(self, node):
    if "epub" not in self.builder.name:
        self.body.append(f"</{node['element']}>")


def load(app, pagename, templatename, context, doctree):
    names = sorted({node["element"] for node in doctree.findall(moving)}) if doctree else []
    if not names or "epub" in app.builder.name:
        return
    app.add_css_file(f"{SHARED}.css")
    for name in [SHARED, *names]:
        # Not modules, which a browser refuses to load from a folder; deferred scripts run in this order.
        app.add_js_file(f"{name}.js", loading_method="defer")


def nothing(self, node):
    """Other formats show what is inside."""


def setup(app):
    others = dict.fromkeys(("latex", "text", "man", "texinfo"), (nothing, nothing))
    app.add_node(moving, html=(visit, depart), **others)
    app.connect("html-page-context", load)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}

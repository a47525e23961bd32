r"""All that the book proves, by name.

    ```{results}
    ```

lists the theorems, propositions, lemmas and corollaries under their parts and chapters, in the order of the
book, each with how its statement begins. All comes from where they stand, so that the list is never behind.
"""

import textwrap

from described import parts, read_again, text
from docutils import nodes
from katex import FormulaError, plain
from sphinx.util.docutils import SphinxDirective
from sphinx.util.nodes import make_refnode

COUNTED = "theorem"  # conf.py counts all that is proved as theorems
LONGEST = 320  # letters of a statement


class results(nodes.General, nodes.Element):
    """Where the list goes; filled when every page has been read and every theorem has its number."""


class Results(SphinxDirective):
    def run(self):
        self.env.metadata[self.env.docname]["results"] = True
        return [results()]


def collect(app, doctree):
    """Note the names of a page's theorems, which may hold a formula, and their words."""
    found = [
        (
            node["label"],
            node["realtype"],
            [child.deepcopy() for child in node[0].children],
            words(node[1], app.config.katex_macros),
        )
        for node in doctree.findall(nodes.Element)
        if node.get("countertype") == COUNTED
    ]
    names(app.env)[app.env.docname] = found


def words(statement, macros):
    """A statement as plain text, with dots for what is set on lines of its own or is too much."""
    kinds = nodes.paragraph | nodes.math_block
    parts = [
        display(node, macros) if isinstance(node, nodes.math_block) else text(node, macros)
        for node in statement.findall(lambda node: isinstance(node, kinds))
    ]
    return textwrap.shorten(" ".join(parts), LONGEST, placeholder=" …")


def display(node, macros):
    """A formula of one row; text has no place for more."""
    tex = node.astext()
    try:
        return "…" if "\\\\" in tex or "\\begin" in tex else plain(tex, macros)
    except FormulaError:  # it is reported where it stands
        return "…"


def names(env):
    if not hasattr(env, "posbook_results"):
        env.posbook_results = {}
    return env.posbook_results


def purge(app, env, docname):
    names(env).pop(docname, None)


def merge(app, env, docnames, other):
    names(env).update({name: names(other)[name] for name in docnames if name in names(other)})


def fill(app, doctree, docname):
    for place in list(doctree.findall(results)):
        place.replace_self(listed(app, docname))


def listed(app, docname):
    env, shown = app.env, []
    for caption, documents in parts(env, app.config.root_doc):
        chapters = [name for name in documents if names(env).get(name)]
        if not chapters:
            continue
        shown.append(nodes.rubric(text=caption))
        for chapter in chapters:
            title = nodes.strong(text=env.titles[chapter].astext())
            link = make_refnode(app.builder, docname, chapter, None, title)
            lines = [line(app, docname, chapter, *entry) for entry in names(env)[chapter]]
            shown += [nodes.paragraph("", "", link), nodes.bullet_list("", *lines, classes=["results"])]
    return shown


def line(app, docname, chapter, label, kind, name, statement):
    number = ".".join(map(str, app.env.toc_fignumbers[chapter][COUNTED][label]))
    text = nodes.inline("", f"{kind.title()} {number}", classes=["verdict"])
    link = make_refnode(
        app.builder, docname, chapter, label, [text, nodes.Text(" "), *(child.deepcopy() for child in name)]
    )
    return nodes.list_item("", nodes.paragraph("", "", link), nodes.paragraph(text=statement))


def setup(app):
    app.add_node(results)
    app.add_directive("results", Results)
    app.connect("doctree-read", collect)
    app.connect("env-purge-doc", purge)
    app.connect("env-merge-info", merge)
    app.connect("env-get-outdated", read_again("results"))
    app.connect("doctree-resolved", fill)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}

r"""The boxes of a chapter: the 30-second version, heard and checked, and folded solutions.

Solutions are native <details>: they open by mouse, touch and keyboard, print opened by the book's
stylesheet, and need no script.
"""

from docutils import nodes
from sphinx.util.docutils import SphinxDirective
from sphinx_exercise.nodes import solution_node


class Box(SphinxDirective):
    """An admonition with a fixed title, so that every box of a kind reads the same."""

    has_content = True
    title = ""
    kind = ""

    def run(self):
        box = nodes.admonition("", classes=[self.kind])
        box += nodes.title("", self.title)
        self.set_source_info(box)
        box += self.parse_content_to_nodes()
        return [box]


class ThirtySeconds(Box):
    title = "The 30-second version"
    kind = "thirty-seconds"


class Heard(Box):
    """The first paragraph is the claim as one hears it; the rest says what is true."""

    title = "Heard and checked"
    kind = "heard"

    def run(self):
        (box,) = super().run()
        box[1]["classes"].append("claim-heard")
        return [box]


def visit_solution(self, node):
    title = node.pop(0)
    self.body.append(self.starttag(node, "details", CLASS="solution"))
    self.body.append(f"<summary>{self.encode(title.astext())}</summary>\n")


def depart_solution(self, node):
    self.body.append("</details>\n")


def mend(app, doctree):
    """Exercises, theorems and proofs come with one id for all of a kind; a page must not have an id twice."""
    for node in doctree.findall(nodes.admonition):
        if node["ids"] == ["proof"]:
            node["ids"] = []
            node["classes"].append("proof-text")
            text = node[0][0].astext()
            node[0][:1] = [nodes.emphasis(text="Proof."), nodes.Text(text.removeprefix("Proof."))]
    inner = [node for node in doctree.findall(nodes.section) if isinstance(node.parent, nodes.Admonition)]
    for section in inner:
        section.parent.replace(
            section, nodes.container("", *section.children, is_div=True, classes=["inside"])
        )


def setup(app):
    app.setup_extension("sphinx_exercise")
    app.add_directive("thirty-seconds", ThirtySeconds)
    app.add_directive("heard", Heard)
    app.add_node(solution_node, override=True, html=(visit_solution, depart_solution))
    app.connect("doctree-read", mend)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}

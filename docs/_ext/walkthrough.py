r"""A figure in several steps, one picture and at most sixty words each.

    ::::{walkthrough} plot_sinusoid_walkthrough
    :::{step} Two equal rows
    The text of the step.
    :::
    …
    The caption of the whole.
    ::::

Each step takes the next picture of the script, with its alt text. Together they are one figure, numbered and
linked to its script as those of {gallery-figure} are. In the page the steps stand under each other; where it
can, walkthrough.js shows one at a time.
"""

import json

from docutils import nodes
from gallery import record, to_script
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

logger = logging.getLogger(__name__)
MOST_WORDS = 60


class walkthrough(nodes.General, nodes.Element):
    """The steps; `settings` are the numbers that the script reported."""


class step(nodes.General, nodes.Element):
    """One step: its picture, and a container with its text."""


class Step(SphinxDirective):
    required_arguments = 1
    final_argument_whitespace = True
    has_content = True

    def run(self):
        node = step(title=self.arguments[0])
        self.set_source_info(node)
        node += nodes.container("", *self.parse_content_to_nodes(), is_div=True, classes=["text"])
        words = len(node.astext().split())
        if words > MOST_WORDS:
            logger.warning(
                "step %r has %d words; at most %d", node["title"], words, MOST_WORDS, location=node
            )
        return [node]


class Walkthrough(SphinxDirective):
    required_arguments = 1
    has_content = True

    def run(self):
        script = self.arguments[0]
        entry = record(self.env, script)
        if entry is None:
            logger.warning("no gallery script %s.py drew a figure", script, location=self.get_location())
            return []
        content = self.parse_content_to_nodes()
        steps = [node for node in content if isinstance(node, step)]
        pictures = list(zip(entry["images"], entry.get("alts", [entry["alt"]]), strict=True))
        if len(steps) != len(pictures):
            logger.warning(
                "%s.py drew %d pictures, and there are %d steps",
                script,
                len(pictures),
                len(steps),
                location=self.get_location(),
            )
            return []
        for number, (node, (image, alt)) in enumerate(zip(steps, pictures, strict=True), 1):
            node["name"] = f"step-{number}"
            place = nodes.inline(text=f"Step {number}", classes=["step-number"])
            # A rubric is a heading that stands in no table of contents.
            title = nodes.rubric("", "", place, nodes.Text(f" {node['title']}"), ids=[f"step-{number}-title"])
            title["heading-level"] = 3
            picture = nodes.image(uri=f"/{image}", alt=alt)
            node.insert(0, [title, nodes.container("", picture, is_div=True, classes=["picture"])])
        around = walkthrough("", *steps, settings=json.dumps(entry["numbers"]))
        caption = nodes.caption()
        for paragraph in (node for node in content if isinstance(node, nodes.paragraph)):
            caption += [*paragraph.children, nodes.Text(" ")]
        caption += to_script(entry, nodes.inline(text=f"{script}.py", classes=["figure-source"]))
        figure = nodes.figure("", around, caption, align="default", classes=["walkthrough"])
        self.set_source_info(figure)
        figure["names"].append(script)
        self.state.document.note_explicit_target(figure)
        return [figure]


def visit_walkthrough(self, node):
    # An EPUB knows no element of our own, and runs no script.
    tag = "div" if self.builder.name == "epub" else "walk-through"
    data = {} if tag == "div" else {"data-settings": node["settings"]}
    self.body.append(self.starttag(node, tag, **data))
    self.context.append(f"</{tag}>\n")


def visit_step(self, node):
    name = node["name"]
    self.body.append(f'<div class="step" id="{name}" role="group" aria-labelledby="{name}-title">\n')
    self.context.append("</div>\n")


def depart(self, node):
    self.body.append(self.context.pop())


def visit_plain(self, node):
    """Builders without steps show pictures and text under each other."""


def depart_plain(self, node):
    pass


def load_where_used(app, pagename, templatename, context, doctree):
    if doctree is not None and app.builder.name != "epub" and any(doctree.findall(walkthrough)):
        app.add_css_file("walkthrough.css")
        app.add_js_file("walkthrough.js", loading_method="defer")


def setup(app):
    plain = (visit_plain, depart_plain)
    others = dict.fromkeys(("latex", "text", "man", "texinfo"), plain)
    app.add_node(walkthrough, html=(visit_walkthrough, depart), **others)
    app.add_node(step, html=(visit_step, depart), **others)
    app.add_directive("walkthrough", Walkthrough)
    app.add_directive("step", Step)
    app.connect("html-page-context", load_where_used)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}

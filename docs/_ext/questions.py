r"""Questions with folded answers, a control that shows one at a time, and the same questions as cards.

    ::::{question} Why is attention blind to order?
    :label: q-order-blind
    :class: proof
    The answer, folded until the reader has tried.
    ::::

A question is an exercise whose answer stands with it: a box with its number, and a native <details>. Its
label is its address, and the identity of its card for good.

`:::{another}` puts the control (docs/_static/another.js) where it stands; without JavaScript it is nothing,
and all questions are there. `:::{cards} posbook-questions` offers the questions of the page as an Anki deck
and as CSV (cards.py), and writes both into the built book.
"""

from typing import ClassVar

import cards
from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

logger = logging.getLogger(__name__)
KINDS = ("proof", "computation", "recall")


class answer(nodes.General, nodes.Element):
    """What a question's fold holds; `number` is that of the question."""


class another(nodes.General, nodes.Element):
    """Where the control stands."""


class offered(nodes.General, nodes.Element):
    """Where the cards are offered; `name` is that of the files."""


def kind(argument):
    return directives.choice(argument, KINDS)


class Question(SphinxDirective):
    required_arguments = 1
    final_argument_whitespace = True
    has_content = True
    option_spec: ClassVar = {"label": directives.unchanged_required, "class": kind}

    def run(self):
        label = self.options.get("label", "")
        if not label.startswith("q-"):
            logger.warning("a question needs a :label: that begins with q-", location=self.get_location())
        number = sum(1 for _ in self.asked()) + 1
        self.asked().append(label)
        text, problems = self.parse_inline(self.arguments[0])
        classes = ["exercise", "question", self.options.get("class", "recall")]
        box = nodes.admonition("", classes=classes, ids=[label])
        self.set_source_info(box)
        box += [nodes.title("", f"Question {number}"), nodes.paragraph("", "", *text)]
        fold = answer("", *self.parse_content_to_nodes(), number=number)
        self.set_source_info(fold)
        if not fold.children:
            logger.warning("question %s has no answer", label, location=self.get_location())
        return [box, fold, *problems]

    def asked(self):
        """The labels of the questions of this page so far."""
        return self.env.temp_data.setdefault("questions", [])


class Another(SphinxDirective):
    def run(self):
        return [another()]


class Cards(SphinxDirective):
    required_arguments = 1

    def run(self):
        return [offered(name=self.arguments[0])]


def visit_answer(self, node):
    self.body.append(self.starttag(node, "details", CLASS="solution"))
    self.body.append(f"<summary>Answer to Question {node['number']}</summary>\n")


def depart_answer(self, node):
    self.body.append("</details>\n")


def visit_another(self, node):
    if "epub" not in self.builder.name:
        self.body.append("<show-another></show-another>\n")
    raise nodes.SkipNode


def is_page(app):
    return app.builder.format == "html" and "epub" not in app.builder.name


def offer(app, doctree, page):
    """Write the cards of a page, and put links to them where it offers them."""
    for place in list(doctree.findall(offered)):
        if not is_page(app):
            place.parent.remove(place)
            continue
        asked = cards.collect(doctree)
        links = nodes.paragraph("", "", nodes.Text(f"Take the {len(asked)} cards with you: "))
        up = "../" * page.count("/")
        made = cards.write(asked, app.outdir / "_downloads" / "cards", place["name"])
        for file, what in zip(made, ("an Anki deck", "CSV for anything else"), strict=True):
            address = f"{up}_downloads/cards/{file.name}"
            link = nodes.reference("", what, refuri=address, internal=True, classes=["download"])
            size = f" ({file.stat().st_size / 1000:.0f} KB)"
            links += [link, nodes.Text(size), nodes.Text(", " if file == made[0] else ".")]
        place.replace_self(links)


def load_where_used(app, pagename, templatename, context, doctree):
    if doctree is not None and is_page(app) and any(doctree.findall(another)):
        app.add_css_file("another.css")
        app.add_js_file("another.js", loading_method="defer")


def nothing(self, node):
    """Other formats show what is inside."""


def setup(app):
    plain = dict.fromkeys(("latex", "text", "man", "texinfo"), (nothing, nothing))
    app.add_node(answer, html=(visit_answer, depart_answer), **plain)
    app.add_node(another, html=(visit_another, nothing), **plain)
    app.add_node(offered, html=(nothing, nothing), **plain)
    app.add_directive("question", Question)
    app.add_directive("another", Another)
    app.add_directive("cards", Cards)
    app.connect("doctree-resolved", offer)
    app.connect("html-page-context", load_where_used)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}

r"""The ledger: claims, each with a verdict, what it rests on, and the chapter that treats it.

    :::{claim} last-bit
    :verdict: false
    :chapter: why/set-operation

    After a shuffle a row is the same to the last bit.

    The proof renames an index, and floating-point addition is not associative. {measured}`plot_last_bit`
    :::

The first paragraph is the claim, the rest its reason; `claim-last-bit` is the anchor of the entry. Verdicts
are true, condition, false and open, and are shown in words. `{verdicts}` lists all claims of its page, folded
by verdict and counted, so that a reader finds the false ones without a script.
"""

from typing import ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx import addnodes
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

logger = logging.getLogger(__name__)

VERDICTS = {
    "true": "True",
    "condition": "True with a condition",
    "false": "False",
    "open": "No evidence either way",
}


class verdicts(nodes.General, nodes.Element):
    """Where the lists go; filled when the whole page has been read."""


class fold(nodes.General, nodes.Element):
    """A title and a list; <details> in HTML."""


def a_verdict(argument):
    return directives.choice(argument, tuple(VERDICTS))


class Claim(SphinxDirective):
    required_arguments = 1
    has_content = True
    option_spec: ClassVar = {"verdict": a_verdict, "chapter": directives.unchanged}

    def run(self):
        if "verdict" not in self.options:
            logger.warning("claim %s has no verdict", self.arguments[0], location=self.get_location())
            return []
        verdict, anchor = self.options["verdict"], f"claim-{self.arguments[0]}"
        claim, *reason = self.parse_content_to_nodes()
        link = nodes.reference("", "#", internal=True, refuri=f"#{anchor}", classes=["headerlink"])
        badge = nodes.inline(text=f"{VERDICTS[verdict]}:", classes=["verdict"])
        said = nodes.inline("", "", *claim.children, classes=["claim-heard"])
        term = nodes.term("", "", badge, nodes.Text(" "), said, link, verdict=verdict)
        term["names"].append(anchor)
        self.state.document.note_explicit_target(term)
        definition = nodes.definition("", *reason)
        chapters = [name.strip() for name in self.options.get("chapter", "").split(",") if name.strip()]
        if chapters:
            definition += nodes.paragraph("", *self.links(chapters), classes=["treated"])
        item = nodes.definition_list_item("", term, definition)
        self.set_source_info(item)
        return [nodes.definition_list("", item, classes=["ledger", verdict])]

    def links(self, chapters):
        yield nodes.Text("In the book: ")
        for number, name in enumerate(chapters):
            if number:
                yield nodes.Text(", ")
            reference = addnodes.pending_xref(
                name,
                nodes.inline(text=name),
                refdomain="std",
                reftype="doc",
                reftarget=f"/{name}",
                refdoc=self.env.docname,
                refexplicit=False,
                refwarn=True,
            )
            self.set_source_info(reference)
            yield reference


class Verdicts(SphinxDirective):
    def run(self):
        return [verdicts()]


def fill(app, doctree):
    """The lists of a page's claims, in the order in which they stand there."""
    terms = [term for term in doctree.findall(nodes.term) if "verdict" in term]
    for place in list(doctree.findall(verdicts)):
        lists = []
        for verdict, words in VERDICTS.items():
            found = [term for term in terms if term["verdict"] == verdict]
            if found:
                title = nodes.paragraph(text=f"{words}: {len(found)} of {len(terms)}")
                lists.append(fold("", title, nodes.bullet_list("", *map(line, found))))
        place.replace_self(lists)


def line(term):
    _, _, said, _ = term.children  # verdict, space, claim, link
    words = [child.deepcopy() for child in said.children]
    link = nodes.reference("", "", *words, internal=True, refuri=f"#{term['ids'][0]}")
    return nodes.list_item("", nodes.paragraph("", "", link))


def visit_fold(self, node):
    title = node.pop(0)
    self.body.append(self.starttag(node, "details", CLASS="verdicts"))
    self.body.append(f"<summary>{self.encode(title.astext())}</summary>\n")


def depart_fold(self, node):
    self.body.append("</details>\n")


def plain(self, node):
    """Builders without folds show the title and the list."""


def setup(app):
    others = dict.fromkeys(("latex", "text", "man", "texinfo"), (plain, plain))
    app.add_node(fold, html=(visit_fold, depart_fold), **others)
    app.add_directive("claim", Claim)
    app.add_directive("verdicts", Verdicts)
    app.connect("doctree-read", fill)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}

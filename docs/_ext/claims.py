r"""Every claim says what it is.

    {proved}`thm-invariance`                      a theorem of this book
    {measured}`plot_permutation`                  a gallery script that reported seed, size and spread
    {cited}`haviv2022nope, Table 4`               a source, and the place in it
    {cited}`147.18 <haviv2022nope, Table 4>`      the same, around the number that was cited

The build fails where the theorem, the script's record or the bibliography entry is missing, and where a
citation does not say which table, section or equation is meant.
"""

import re
from dataclasses import dataclass, field

from docutils import nodes
from gallery import page, record
from sphinx import addnodes
from sphinx.util import logging
from sphinx.util.docutils import SphinxRole
from sphinxcontrib.bibtex.plugin import register_plugin
from sphinxcontrib.bibtex.style.referencing import BracketStyle
from sphinxcontrib.bibtex.style.referencing.author_year import AuthorYearReferenceStyle

logger = logging.getLogger(__name__)

AROUND = re.compile(r"^(?P<text>.*\S)\s*<(?P<source>[^<>]+)>$", re.DOTALL)


@dataclass
class InBadge(AuthorYearReferenceStyle):
    """Author and year without brackets, since a claim stands in brackets already."""

    bracket_textual: BracketStyle = field(default_factory=lambda: BracketStyle(left="", right=""))


register_plugin("sphinxcontrib.bibtex.style.referencing", "in_badge", InBadge, force=True)


def badge(kind, *children):
    return nodes.inline("", "", *children, classes=["claim", kind])


class Proved(SphinxRole):
    def run(self):
        reference = addnodes.pending_xref(
            self.rawtext,
            nodes.inline(text=self.text),
            refdomain="prf",
            reftype="ref",
            reftarget=self.text,
            refdoc=self.env.docname,
            refexplicit=False,
            refwarn=True,
        )
        self.set_source_info(reference)
        return [badge("proved", nodes.Text("proved: "), reference)], []


class Measured(SphinxRole):
    def run(self):
        entry = record(self.env, self.text)
        if entry is None or not entry.get("measured"):
            said = (
                "there is no such script" if entry is None else "the script reports no seed, size and spread"
            )
            logger.warning("measured %s: %s", self.text, said, location=self.get_location())
            return [nodes.Text(self.text)], []
        how = entry["measured"]
        reference = addnodes.pending_xref(
            self.rawtext,
            nodes.inline(text=f"{how['size']}; {how['spread']}; seed {how['seed']}"),
            refdomain="std",
            reftype="doc",
            reftarget="/" + page(entry),
            refdoc=self.env.docname,
            refexplicit=True,
            refwarn=True,
        )
        self.set_source_info(reference)
        return [badge("measured", nodes.Text("measured: "), reference)], []


class Cited(SphinxRole):
    def run(self):
        around = AROUND.match(self.text)
        text, source = (around["text"], around["source"]) if around else ("", self.text)
        key, _, place = (part.strip() for part in source.partition(","))
        if not place:
            logger.warning("cited %s: say which table, section or page", key, location=self.get_location())
        cite = self.env.get_domain("cite").role("t")
        reference, problems = cite("cite:t", self.rawtext, key, self.lineno, self.inliner)
        out = badge("cited", *reference, nodes.Text(f", {place}"))
        if text:
            return [nodes.inline(text=text, classes=["cited-text"]), nodes.Text(" "), out], problems
        return [out], problems


def setup(app):
    app.add_role("proved", Proved())
    app.add_role("measured", Measured())
    app.add_role("cited", Cited())
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}

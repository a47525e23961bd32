r"""The questions of a page as cards to learn with: an Anki deck, and CSV for everything else.

Both are made from the page's own tree, after roles and references are resolved, so that a card says what
the page says, computed numbers included. Formulas are TeX between \( and \), which Anki draws, with the
book's own macros written out. A note's identity is made from the question's label alone: import a newer deck,
and it changes the notes that you have, and leaves what you have learned.
"""

import csv
import html
import os
import re
import time
from dataclasses import dataclass

import genanki
from docutils import nodes
from katex import MACROS, display_source
from sphinx.util import logging

logger = logging.getLogger(__name__)

# Drawn once; another number would make another deck beside the one that a reader has.
DECK, MODEL = 1_703_915_264, 1_415_872_093
CSS = """.card { font: 18px/1.45 sans-serif; text-align: left; max-width: 42em; margin: auto; padding: 1em; }
pre, code { font: 14px/1.4 monospace; } pre { overflow-x: auto; } .claim { font-size: .8em; opacity: .75; }
.level { font-size: .8em; opacity: .75; }"""
FRONT = '<p class="level">{{Level}}</p><p>{{Question}}</p>'
BACK = "{{FrontSide}}<hr id=answer>{{Answer}}"
# Written as they stand in HTML; the same in every other notation.
INLINE = {nodes.emphasis: "em", nodes.strong: "strong", nodes.literal: "code", nodes.superscript: "sup"}
BLOCKS = {nodes.paragraph: "p", nodes.bullet_list: "ul", nodes.enumerated_list: "ol", nodes.list_item: "li"}
BLOCKS |= {nodes.table: "table", nodes.row: "tr", nodes.entry: "td"}
CELLS = (nodes.tgroup, nodes.thead, nodes.tbody)
INSIDE = (nodes.inline, nodes.reference, nodes.container, nodes.compound, *CELLS)
NOT_SHOWN = (nodes.comment, nodes.raw, nodes.target, nodes.colspec)


@dataclass(frozen=True)
class Card:
    label: str
    level: str
    question: nodes.Element
    answer: nodes.Element


def collect(doctree):
    """The questions of a page, each with the heading under which it stands."""
    found = []
    for box in doctree.findall(nodes.admonition):
        if "question" in box["classes"]:
            section = box.parent
            while not isinstance(section, nodes.section):
                section = section.parent
            following = box.next_node(descend=False, siblings=True)
            found.append(Card(box["ids"][0], section[0].astext(), box[1], following))
    return found


def tex(source):
    """TeX without the book's macros, which nothing else knows."""
    for macro, meaning in MACROS.items():
        source = re.sub(re.escape(macro) + r"(?![A-Za-z])", lambda _, m=meaning: m, source)
    return source


def where(claim):
    """The page of a theorem that a claim names: its number alone says nothing outside the book."""
    if "proved" not in claim["classes"]:
        return ""
    links = " ".join(link.get("refuri", "") for link in claim.findall(nodes.reference))
    page = re.search(r"([\w-]+/[\w-]+)\.html", links)
    return f", {page[1]}" if page else ""


def as_html(node):
    inside = "".join(as_html(child) for child in node.children)
    kind = type(node)
    if isinstance(node, nodes.Text):
        return html.escape(node.astext(), quote=False)
    if kind is nodes.math:
        return rf"\({html.escape(tex(node.astext()), quote=False)}\)"
    if kind is nodes.math_block:
        return rf"<p>\[{html.escape(tex(display_source(node)), quote=False)}\]</p>"
    if kind is nodes.literal_block:
        return f"<pre>{html.escape(node.astext().rstrip(), quote=False)}</pre>"
    if isinstance(node, NOT_SHOWN):
        return ""
    if kind in INLINE | BLOCKS:
        tag = (INLINE | BLOCKS)[kind]
        return f"<{tag}>{inside}</{tag}>"
    if "claim" in node.get("classes", []):
        return f'<span class="claim">[{inside}{where(node)}]</span>'
    if not isinstance(node, INSIDE):
        logger.warning("a card cannot hold <%s>", node.tagname, location=node)
    return inside


def as_text(node):
    """The same for programs that know no HTML; blocks stand apart, and formulas stay TeX."""
    kind = type(node)
    if isinstance(node, nodes.Text):
        return node.astext()
    if kind is nodes.math:
        return rf"\({tex(node.astext())}\)"
    if kind is nodes.math_block:
        return rf"\[{tex(display_source(node))}\]" + "\n\n"
    if kind is nodes.literal_block:
        return node.astext().rstrip() + "\n\n"
    if isinstance(node, NOT_SHOWN):
        return ""
    inside = "".join(as_text(child) for child in node.children)
    if kind is nodes.superscript:
        return f"^{inside}"
    if kind is nodes.list_item:
        return f"- {inside.strip()}\n"
    if kind is nodes.entry:
        return f"{inside.strip()}\t"
    if kind is nodes.row:
        return inside.rstrip() + "\n"
    if "claim" in node.get("classes", []):
        return f"[{inside}{where(node)}]"
    return inside.rstrip() + "\n\n" if kind in BLOCKS else inside


def anki(cards, file):
    model = genanki.Model(
        MODEL,
        "posbook question",
        fields=[{"name": name} for name in ("Label", "Level", "Question", "Answer")],
        templates=[{"name": "Card", "qfmt": FRONT, "afmt": BACK}],
        css=CSS,
    )
    deck = genanki.Deck(DECK, "posbook: position in attention")
    for card in cards:
        fields = [card.label, html.escape(card.level), inner(card.question), inner(card.answer)]
        tag = re.sub(r"\W+", "-", card.level.lower()).strip("-")
        guid = genanki.guid_for("posbook", card.label)
        deck.add_note(genanki.Note(model, fields, guid=guid, tags=[tag], sort_field=card.label))
    # A newer deck must have a later time, or Anki takes it for the one that it has.
    genanki.Package(deck).write_to_file(
        file, timestamp=float(os.environ.get("SOURCE_DATE_EPOCH", time.time()))
    )


def inner(node):
    return "".join(as_html(child) for child in node.children)


def table(cards, file):
    with file.open("w", encoding="utf-8", newline="") as out:
        rows = csv.writer(out)
        rows.writerow(("label", "level", "question", "answer"))
        for card in cards:
            texts = ("".join(map(as_text, part.children)).strip() for part in (card.question, card.answer))
            rows.writerow((card.label, card.level, *texts))


def write(cards, folder, name):
    """The deck and the table of these cards, in `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    files = folder / f"{name}.apkg", folder / f"{name}.csv"
    anki(cards, files[0])
    table(cards, files[1])
    return files

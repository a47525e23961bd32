"""The words of the glossary and the links to them, read in the sources."""

import re
from pathlib import Path

DOCS = Path(__file__).resolve().parents[2] / "docs"
CHAPTERS = ("why", "absolute", "relative", "rotary", "length", "none", "use")
ENTRY = re.compile(r"^(\S.*)\n  \S", re.MULTILINE)  # a word, and under it, set in, what it means
LINK = re.compile(r"\{term\}`(?:[^`<]*<([^`>]+)>|([^`]+))`")
STATEMENT = re.compile(
    r"^(:{3,})\{prf:(?:theorem|proposition|lemma|corollary)\}.*?^\1$", re.DOTALL | re.MULTILINE
)


def words():
    glossary = re.search(r"```\{glossary\}\n(.*?)\n```", (DOCS / "glossary.md").read_text("utf-8"), re.DOTALL)
    return ENTRY.findall(glossary[1])


def linked(text):
    return [target or alone for target, alone in LINK.findall(text)]


def pages(*folders):
    found = (path for folder in folders for path in sorted((DOCS / folder).glob("*.md")))
    return {path: path.read_text("utf-8") for path in found}


def test_the_words_stand_in_order_and_once():
    found = [word.lower().replace("-", " ") for word in words()]
    assert len(found) > 60
    assert found == sorted(set(found))


def test_every_word_is_linked_from_a_chapter():
    assert set(words()) - {word for text in pages(*CHAPTERS).values() for word in linked(text)} == set()


def test_every_link_to_a_word_finds_it():
    known = set(words())
    everywhere = pages(".", "practice", "reference", *CHAPTERS)
    assert {path.name: lost for path, text in everywhere.items() if (lost := set(linked(text)) - known)} == {}


def test_a_page_links_a_word_once_and_not_in_headings_or_statements():
    for path, text in pages(*CHAPTERS).items():
        found = linked(text)
        assert len(found) == len(set(found)), path
        assert not linked("\n".join(re.findall(r"^#+ .*$", text, re.MULTILINE))), path
        assert not linked("\n".join(match.group() for match in STATEMENT.finditer(text))), path

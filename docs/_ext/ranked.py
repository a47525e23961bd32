r"""The search finds first the chapter that speaks most of what was asked.

Sphinx's own search gives every page in which a word occurs the same score, once or fifty times, and sorts by
title. So each chapter's words are counted while it is read, and scorer.js, which becomes part of the search,
adds up to 20 points for them. What a reader may call by another word stands in a page's front matter as
`html_meta: keywords`, and counts as if the page spoke of it often.
"""

import json
from collections import Counter, defaultdict
from pathlib import Path

from docutils import nodes
from sphinx.search.en import SearchEnglish

# Pages that speak of everything: whoever looks for a word wants the chapter that explains it.
NO_CHAPTERS = ("gallery/", "reference/", "practice/", "glossary", "cheat-sheet", "use/heard-and-checked")
LEAST, KEYWORD = 3, 40
COUNTS = "searchcounts.js"


def count(app, doctree):
    name = app.env.docname
    if name.startswith(NO_CHAPTERS):
        return
    language = SearchEnglish({})
    words = Counter(language.stem(word.lower()) for word in language.split(doctree.astext()))
    for meta in doctree.findall(nodes.meta):
        if meta.get("name") == "keywords":
            words.update({language.stem(word.lower()): KEYWORD for word in language.split(meta["content"])})
    app.env.metadata[name]["words"] = {
        word: number for word, number in words.items() if number >= LEAST and language.word_filter(word)
    }


def write(app, env):
    if app.builder.name != "html":
        return
    pages = defaultdict(dict)
    for name, metadata in sorted(env.metadata.items()):
        for word, number in metadata.get("words", {}).items():
            pages[word][name] = number
    file = Path(app.outdir, "_static", COUNTS)
    file.parent.mkdir(parents=True, exist_ok=True)
    table = json.dumps(dict(sorted(pages.items())), ensure_ascii=False, separators=(",", ":"))
    file.write_text(f"var SearchCounts = {table};\n", encoding="utf-8")


def load(app, pagename, templatename, context, doctree):
    if pagename == "search" and app.builder.name == "html":
        app.add_js_file(COUNTS)


def setup(app):
    app.connect("doctree-read", count, priority=800)  # after Sphinx has set the metadata
    app.connect("env-updated", write)
    app.connect("html-page-context", load)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}

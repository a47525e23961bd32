r"""What `make merit` measured, and what the build counts.

    ```{merit} scores
    ```

`scores` are Lighthouse's, `size` how large the book is, `builds` how long it takes to build: all three from
docs/colophon.json, and "not measured" where that says nothing. `counts` are taken from the build that is
going on, so that they need no measurement and are never old.
"""

import doctest
import json
import re
from pathlib import Path

from described import read_again
from docutils import nodes
from docutils.parsers.rst import directives
from gallery import GALLERY
from sphinx.util.docutils import SphinxDirective

CATEGORIES = {
    "performance": "performance",
    "accessibility": "accessibility",
    "best-practices": "best practices",
    "seo": "SEO",
}
SCREENS = ("desktop", "mobile")
FENCE = re.compile(r"^ *```python\n(.*?)^ *```", re.DOTALL | re.MULTILINE)


class counts(nodes.General, nodes.Element):
    """Where the counts go; filled when every page has been read."""


def table(header, rows):
    """A table of text, whose first column names its row."""
    group = nodes.tgroup("", *(nodes.colspec(colwidth=1) for _ in rows[0]), cols=len(rows[0]))
    if header:
        group += nodes.thead("", row(header))
    group += nodes.tbody("", *map(row, rows))
    return nodes.table("", group, classes=["merit"])


def row(cells):
    return nodes.row("", *(nodes.entry("", nodes.paragraph(text=str(cell))) for cell in cells))


def measured_on(*facts):
    return nodes.paragraph(text="; ".join(facts) + ".", classes=["shown-in"])


def not_measured(what):
    return [nodes.paragraph(text=f"{what}: not measured.")]


# --- from the record ----------------------------------------------------------------------------------------


def scores(record):
    found = record.get("lighthouse")
    if not found:
        return not_measured("Lighthouse's scores")
    rows = [
        (page, *(f"{screens['desktop'][name]} / {screens['mobile'][name]}" for name in CATEGORIES),
         f"{screens['desktop']['sent_kib']} KiB")
        for page, screens in found["pages"].items()
    ]  # fmt: skip
    how = measured_on(
        record["date"],
        record["machine"],
        f"load {found['load']} while it measured",
        f"median of {found['rounds']} visits",
        f"Lighthouse {found['version']}, Node {found['node']}, Chromium {found['chromium']}",
    )
    return [table(("page", *CATEGORIES.values(), "sent"), rows), how]


def size(record):
    found = record.get("size")
    if not found:
        return not_measured("The size of the book")
    rows = [
        ("files", found["files"]),
        ("on the disk", f"{found['mib']} MiB"),
        ("as a host sends it, compressed", f"{found['sent_mib']} MiB"),
    ]
    return [table((), rows), measured_on(record["date"])]


def builds(record):
    found = record.get("builds")
    if not found:
        return not_measured("The time of a build")
    rows = [
        ("from nothing", f"{found['cold_s']} s"),
        ("with nothing changed", f"{found['unchanged_s']} s"),
        ("with one page edited", f"{found['one_page_s']} s"),
    ]
    how = measured_on(found["date"], found["machine"], f"load {found['load']} at its end")
    return [table((), rows), how]


SHOWN = {"scores": scores, "size": size, "builds": builds}


# --- from the build -----------------------------------------------------------------------------------------


def examples(source):
    """How many examples a page's tests execute."""
    parser = doctest.DocTestParser()
    return sum(len(parser.get_examples(fence)) for fence in FENCE.findall(source))


def counted(env):
    """(what, how many) of the whole book, as it was read."""
    scripts = list(Path(env.srcdir, GALLERY).glob("*/images/plot_*.json"))
    generated = [name for name in env.all_docs if name.startswith(f"{GALLERY}/")]
    written = env.all_docs.keys() - generated
    exercises = getattr(env, "sphinx_exercise_registry", {}).values()
    cited = env.get_domain("cite")
    yield "pages that somebody wrote", len(written)
    yield "pages that the gallery wrote", len(generated)
    yield "figures, each from its script", len(scripts)
    yield (
        "theorems, propositions, lemmas and corollaries",
        sum(entry["countertype"] == "theorem" for entry in getattr(env, "proof_list", {}).values()),
    )
    yield "exercises", sum(entry["type"] == "exercise" for entry in exercises)
    yield (
        "examples that the tests run",
        sum(examples(Path(env.doc2path(name)).read_text(encoding="utf-8")) for name in written),
    )
    yield "sources", len({citation.key for citation in cited.citations})
    yield "places that cite one", sum(len(reference.targets) for reference in cited.citation_refs)


def fill(app, doctree, docname):
    for place in list(doctree.findall(counts)):
        place.replace_self(table((), list(counted(app.env))))


class Merit(SphinxDirective):
    required_arguments = 1

    def run(self):
        what = directives.choice(self.arguments[0], (*SHOWN, "counts"))
        if what == "counts":
            self.env.metadata[self.env.docname]["counts"] = True
            return [counts()]
        path = Path(self.env.srcdir, "colophon.json")
        self.env.note_dependency(str(path))
        return SHOWN[what](json.loads(path.read_text(encoding="utf-8")) if path.exists() else {})


def setup(app):
    app.add_node(counts)
    app.add_directive("merit", Merit)
    app.connect("env-get-outdated", read_again("counts"))
    app.connect("doctree-resolved", fill)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}

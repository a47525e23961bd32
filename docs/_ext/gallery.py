r"""Figures in chapters come from gallery scripts, by name.

    :::{gallery-figure} plot_permutation
    The caption, in the chapter's words.
    :::

The directive embeds what the script drew, takes the alt text from the script, links to the script's page and
makes the figure referable as {numref}`plot_permutation`, unless `:again:` says that another page does.
`:moves: rotary-dial` puts it into an element that moves (moving.py). The script's page gets a line that leads
back to every chapter that shows it. `record` is how the other extensions read what a script reported.
"""

import json
from pathlib import Path
from typing import ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from moving import wrap
from sphinx.environment.collectors import EnvironmentCollector
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective
from sphinx.util.nodes import make_refnode
from sphinx_gallery.sorting import FileNameSortKey

logger = logging.getLogger(__name__)
GALLERY = "gallery"  # the generated folder inside the source folder


def record(env, script):
    """What `script` reported when it last ran, or None; a change makes Sphinx read the current page again."""
    found = sorted(Path(env.srcdir, GALLERY).glob(f"*/images/{script}.json"))
    if not found:
        return None
    env.note_dependency(str(found[0]))
    return json.loads(found[0].read_text(encoding="utf-8"))


def page(entry):
    """The document that sphinx-gallery wrote for a record's script."""
    return f"{GALLERY}/{entry['script']}"


class GalleryFigure(SphinxDirective):
    required_arguments = 1
    has_content = True
    option_spec: ClassVar = {
        "again": directives.flag,  # shown elsewhere already: no number, no label here
        "moves": directives.unchanged_required,
    }

    def run(self):
        script = self.arguments[0]
        entry = record(self.env, script)
        if entry is None:
            logger.warning("no gallery script %s.py drew a figure", script, location=self.get_location())
            return []
        image = nodes.image(uri="/" + entry["images"][0], alt=entry["alt"])
        # Sphinx numbers what has a caption, so a figure that is shown again has a legend instead.
        caption = nodes.legend() if "again" in self.options else nodes.caption()
        text, problems = self.parse_inline(" ".join(self.content))
        source = nodes.inline(text=f"{script}.py", classes=["figure-source"])
        line = [*text, nodes.Text(" "), to_script(entry, source)]
        caption += nodes.paragraph("", "", *line) if "again" in self.options else line
        still = to_script(entry, image)
        if "moves" in self.options:
            try:
                static = Path(self.env.srcdir) / "_static"
                still = wrap(self.options["moves"], still, static, entry.get("data"))
            except ValueError as error:
                logger.warning("%s", error, location=self.get_location())
        figure = nodes.figure("", still, caption, align="default")
        self.set_source_info(figure)
        if "again" not in self.options:
            figure["names"].append(script)
            self.state.document.note_explicit_target(figure)
        return [figure, *problems]


def to_script(entry, content):
    """A link to a script's page; its address is set when the page it stands on is written."""
    return nodes.reference("", "", content, internal=True, refuri="", script_page=page(entry))


class ShownIn(EnvironmentCollector):
    """Knows which chapters show a script's figure, and rewrites the script's page when that changes."""

    def clear_doc(self, app, env, docname):
        getattr(env, "shown_in", {}).pop(docname, None)

    def merge_other(self, app, env, docnames, other):
        shown = self._all(env)
        shown.update(
            {name: other.shown_in[name] for name in docnames if name in getattr(other, "shown_in", {})}
        )

    def process_doc(self, app, doctree):
        name = app.env.docname
        links = doctree.findall(lambda node: isinstance(node, nodes.reference) and "script_page" in node)
        self._all(app.env)[name] = sorted({link["script_page"] for link in links})

    def get_updated_docs(self, app, env):
        before = getattr(env, "shown_before", {})
        now = {}
        for chapter, scripts in self._all(env).items():
            for script in scripts:
                now.setdefault(script, []).append(chapter)
        env.shown_before = now
        return [name for name in now.keys() | before.keys() if now.get(name) != before.get(name)]

    @staticmethod
    def _all(env):
        if not hasattr(env, "shown_in"):
            env.shown_in = {}
        return env.shown_in


def link_to_scripts(app, doctree, docname):
    for link in doctree.findall(nodes.reference):
        if "script_page" in link:
            link["refuri"] = app.builder.get_relative_uri(docname, link["script_page"])


def link_back(app, doctree, docname):
    chapters = getattr(app.env, "shown_before", {}).get(docname)
    if not chapters or not docname.startswith(GALLERY + "/"):
        return
    line = nodes.paragraph("", "Explained in ", classes=["shown-in"])
    for number, chapter in enumerate(sorted(chapters)):
        if number:
            line += nodes.Text(", ")
        title = app.env.titles[chapter].astext()
        line += make_refnode(app.builder, docname, chapter, "", nodes.inline(text=title))
    line += nodes.Text(".")
    section = next(doctree.findall(nodes.section))
    section.insert(1, line)


class BookOrder(FileNameSortKey):
    """Scripts in the order of the book, which is the order of `gallery_order` in conf.py."""

    order = ()

    def __call__(self, filename):
        name = Path(filename).stem
        if name not in self.order:
            raise ValueError(f"{name}.py is not in gallery_order of conf.py")
        return self.order.index(name)


def set_order(app, config):
    BookOrder.order = tuple(config.gallery_order)


def setup(app):
    app.add_config_value("gallery_order", [], "env")
    app.connect("config-inited", set_order, priority=1)
    app.add_directive("gallery-figure", GalleryFigure)
    app.add_env_collector(ShownIn)
    app.connect("doctree-resolved", link_to_scripts)
    app.connect("doctree-resolved", link_back)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}

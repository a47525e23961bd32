r"""Figures in chapters come from gallery scripts, by name.

    :::{gallery-figure} plot_permutation
    The caption, in the chapter's words.
    :::

The directive embeds what the script drew, takes the alt text from the script, links to the script's page and
makes the figure referable as {numref}`plot_permutation`, unless `:again:` says that another page does.
`:moves: rotary-dial` puts it into an element that moves (moving.py). The script's page gets a line that leads
back to every chapter that shows it, and links to the figure's files. `record` is how the other extensions
read what a script reported.
"""

import json
import re
import shutil
from pathlib import Path, PurePosixPath
from typing import ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from moving import wrap
from sphinx.environment.collectors import EnvironmentCollector
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective
from sphinx.util.nodes import make_refnode
from sphinx.util.osutil import relative_uri
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


# --- the files of a figure ----------------------------------------------------------------------------------

THUMBNAIL = re.compile(r"thumb/(sphx_glr_plot_\w+)_thumb\.\w+$")


def show_the_figure_itself(app, doctree):
    """sphinx-gallery's thumbnail of an SVG is a copy of it, so show the SVG: one file, in both themes."""
    for image in doctree.findall(nodes.image):
        image["uri"] = THUMBNAIL.sub(r"\1_001.svg", image["uri"])
    # Its list of tags is empty here, and has the same id in each part of the gallery.
    for html in [node for node in doctree.findall(nodes.raw) if "sg-tag-list" in node.astext()]:
        html.parent.remove(html)


def png_of(srcdir, uri):
    """Where the scraper put the PNG of the figure at `uri`."""
    return Path(srcdir, uri).parent / "png" / PurePosixPath(uri).with_suffix(".png").name


def offer_files(app, doctree, docname):
    """Below each figure on a script's page, links to its SVG and PNG; both carry their licence."""
    if app.builder.name != "html" or not docname.startswith(GALLERY + "/"):
        return
    here = app.builder.get_target_uri(docname)
    shown = [node for node in doctree.findall(nodes.image) if "sphx-glr-single-img" in node["classes"]]
    for number, image in enumerate(shown, 1):
        drawing = PurePosixPath(app.builder.imagedir, app.env.images[image["uri"]][1])
        name = Path(docname).name + (f"_{number}" if number > 1 else "")
        svg, png = (
            f'<a class="download" href="{relative_uri(here, str(file))}" download="{name}{file.suffix}">'
            for file in (drawing, drawing.with_suffix(".png"))
        )
        line = f'<p class="shown-in">This figure as {svg}SVG</a> or {png}PNG</a>, CC BY 4.0.</p>'
        image.parent.insert(image.parent.index(image) + 1, nodes.raw("", line, format="html"))


def copy_pngs(app, error):
    if error or app.builder.name != "html":
        return
    for uri, (_, name) in app.env.images.items():
        if png_of(app.srcdir, uri).is_file():
            target = Path(app.outdir, app.builder.imagedir, name).with_suffix(".png")
            shutil.copyfile(png_of(app.srcdir, uri), target)


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
    app.connect("doctree-read", show_the_figure_itself, priority=400)  # before Sphinx collects the images
    app.connect("doctree-resolved", offer_files)
    app.connect("build-finished", copy_pngs)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}

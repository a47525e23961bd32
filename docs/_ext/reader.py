r"""The book for a book reader: Sphinx's EPUB without scripts, and with a manifest that knows of the maths.

`make epub` builds it. Formulas are MathML alone (katex.py), figures that move are the still ones (moving.py,
walkthrough.py), and of the stylesheets only those of a book are kept.
"""

import re
from pathlib import Path

import cover
from docutils import nodes
from sphinx.builders.epub3 import Epub3Builder

STYLES = {"pygments.css", "reader.css"}
ITEM = re.compile(r'<item id="(?!nav")[^>]*href="([^"]+\.xhtml)"[^>]*?(?= ?/>)')


class Reader(Epub3Builder):
    def handle_finish(self):
        # Themes and extensions copy what a page on the web needs; a book reader would carry it for nothing.
        for file in Path(self.outdir, "_static").rglob("*"):
            if file.is_file() and file.name not in STYLES:
                file.unlink()
        cover.draw(
            Path(self.outdir, self.config.epub_cover[0]), self.config.epub_title, self.config.epub_author
        )
        super().handle_finish()

    def prepare_writing(self, docnames):
        super().prepare_writing(docnames)
        # The index of modules folds and unfolds by a script; the general index has the same names.
        self.domain_indices = [index for index in self.domain_indices if index[0] != "py-modindex"]

    def build_content(self):
        super().build_content()
        manifest = Path(self.outdir, "content.opf")
        items = ITEM.sub(self.with_maths, manifest.read_text(encoding="utf-8"))
        # Sphinx names the cover as EPUB 2 did.
        picture = f'href="{self.config.epub_cover[0]}"'
        items = items.replace(picture, f'{picture} properties="cover-image"')
        manifest.write_text(items, encoding="utf-8")

    def with_maths(self, item):
        page = Path(self.outdir, item[1])
        maths = page.is_file() and "<math" in page.read_text(encoding="utf-8")
        return f'{item[0]} properties="mathml"' if maths else item[0]


def valid(app, doctree, docname):
    """sphinx-gallery gives its thumbnails an attribute that XHTML does not know."""
    if app.builder.name == "epub":
        for html in list(doctree.findall(nodes.raw)):
            html[:] = [nodes.Text(re.sub(r'\stooltip="[^"]*"', "", html.astext()))]


def only_its_own(app, pagename, templatename, context, doctree):
    if app.builder.name == "epub":
        context["css_files"] = [
            style for style in context["css_files"] if Path(str(style.filename)).name in STYLES
        ]
        context["script_files"] = []


def setup(app):
    app.add_builder(Reader, override=True)
    app.connect("doctree-resolved", valid)
    app.connect("html-page-context", only_its_own, priority=900)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}

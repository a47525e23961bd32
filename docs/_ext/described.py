r"""What machines read: a description of every page, llms.txt; once the book has an address, cards and a map.

A page's description is the one of its front matter (`html_meta`), or else its opening, as far as its first
question. llms.txt names every page with its description, in the order of the book. Open Graph and sitemap.xml
need absolute addresses, so they wait for `html_baseurl`; the theme does the same with canonical addresses.
"""

import re
from html import escape
from pathlib import Path, PurePosixPath

from docutils import nodes
from gallery import png_of
from katex import FormulaError, plain
from sphinx import addnodes

LONGEST = 300
GENERATED = {  # pages that no source file opens
    "genindex": "Every function, class and module of the package, by name.",
    "py-modindex": "Every module of the package, by name.",
    "search": "Search the book; this works without a network, too.",
}
SENTENCE_ENDS = re.compile(r"(?<=[.?!])\s+(?=\S)")


def text(node, macros):
    """A node as plain text: formulas as letters, without the sources of claims."""
    if isinstance(node, nodes.Text):
        return str(node)
    if isinstance(node, nodes.math):
        try:
            return plain(node.get("tex", node.astext()), macros)
        except FormulaError:
            return ""  # the formula itself is reported where it stands
    if isinstance(node, nodes.image) or "claim" in node.get("classes", ()):
        return ""
    return "".join(text(child, macros) for child in node.children)


def opening(paragraphs):
    """The sentences up to the first question, the last of them if they are too long; else the first ones."""
    read = []
    for paragraph in paragraphs:
        for sentence in SENTENCE_ENDS.split(" ".join(paragraph.split())):
            read.append(sentence)
            if sentence.endswith("?"):
                while len(" ".join(read)) > LONGEST and len(read) > 1:
                    del read[0]
                return " ".join(read)
    first = read[:1]
    for sentence in read[1:]:
        if len(" ".join([*first, sentence])) > LONGEST:
            break
        first.append(sentence)
    return " ".join(first)


def begins_in_bold(paragraph):
    written = (child for child in paragraph.children if child.astext())
    return isinstance(next(written, None), nodes.strong)


def describe(app, doctree):
    """Note the page's description, and write it into the page where its author did not."""
    written = [node["content"] for node in doctree.findall(nodes.meta) if node.get("name") == "description"]
    found = written[0] if written else ""
    section = next(doctree.findall(nodes.section), None)
    if not written and section is not None:
        # The opening ends at the first heading; a line in bold is a label, such as "Explained in".
        paragraphs = [
            text(node, app.config.katex_macros)
            for node in section.children
            if isinstance(node, nodes.paragraph) and not begins_in_bold(node)
        ]
        found = opening(paragraphs)
        if found:
            doctree.insert(0, nodes.meta(name="description", content=found))
    app.env.metadata[app.env.docname]["description"] = found


# --- the card of a page -------------------------------------------------------------------------------------


def card(app, pagename, templatename, context, doctree):
    """The generated pages' descriptions; where the book has an address, what a shared link shows."""
    if app.builder.name != "html":
        return
    if pagename in GENERATED:
        context["metatags"] = f'<meta name="description" content="{GENERATED[pagename]}">'
    base = app.config.html_baseurl
    if not base or doctree is None:
        return
    index = pagename == app.config.root_doc
    said = {
        "og:type": "website" if index else "article",
        "og:site_name": app.config.html_title,
        "og:title": app.env.titles[pagename].astext(),
        "og:description": app.env.metadata[pagename].get("description", ""),
        "og:url": address(app, pagename),
    }
    for image in doctree.findall(nodes.image):
        drawn = app.env.images.get(image["uri"])
        if drawn and png_of(app.srcdir, image["uri"]).is_file():  # a card takes no SVG
            name = PurePosixPath(drawn[1]).with_suffix(".png")
            said["og:image"] = f"{base.rstrip('/')}/{app.builder.imagedir}/{name}"
            said["og:image:alt"] = image.get("alt", "")
            break
    tags = [f'<meta property="{name}" content="{escape(value)}">' for name, value in said.items() if value]
    context["metatags"] = "\n".join([context.get("metatags", ""), *tags])


def address(app, docname):
    """The page's address as the book knows it: absolute, or from the book's folder."""
    base = app.config.html_baseurl
    target = app.builder.get_target_uri(docname)
    return f"{base.rstrip('/')}/{target}" if base else target


# --- the whole book -----------------------------------------------------------------------------------------


def parts(env, root):
    """(caption, documents) for each table of contents of the front page, with all that lies below."""
    for tree in env.get_doctree(root).findall(addnodes.toctree):
        documents = []
        for _, name in tree["entries"]:
            documents += below(env, name)
        yield tree.get("caption") or "Before you begin", list(dict.fromkeys(documents))


def below(env, name):
    if name in env.all_docs:
        yield name
        for child in env.toctree_includes.get(name, ()):
            yield from below(env, child)


def read_again(key):
    """A handler of env-get-outdated: pages with this key in their metadata are read whenever any page is."""

    def outdated(app, env, added, changed, removed):
        if not (added or changed or removed):
            return []
        return [name for name in env.all_docs if env.metadata[name].get(key) and name not in removed]

    return outdated


def write(app, error):
    if error or app.builder.name != "html":
        return
    env, root = app.env, app.config.root_doc
    lines = [f"# {env.titles[root].astext()}", "", f"> {env.metadata[root].get('description', '')}"]
    for caption, documents in parts(env, root):
        lines += ["", f"## {caption}", ""]
        for name in documents:
            said = env.metadata[name].get("description", "")
            lines.append(f"- [{env.titles[name].astext()}]({address(app, name)})" + f": {said}" * bool(said))
    Path(app.outdir, "llms.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")

    sitemap = Path(app.outdir, "sitemap.xml")
    sitemap.unlink(missing_ok=True)
    if app.config.html_baseurl:
        places = [f"<url><loc>{escape(address(app, name))}</loc></url>" for name in sorted(env.all_docs)]
        head = '<?xml version="1.0" encoding="UTF-8"?>\n<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">'
        sitemap.write_text("\n".join([head, *places, "</urlset>", ""]), encoding="utf-8")


def setup(app):
    app.connect("doctree-read", describe, priority=800)  # after Sphinx has set the metadata
    app.connect("html-page-context", card)
    app.connect("build-finished", write)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}

r"""Mends two things that theme and docutils write without what their ARIA roles require.

furo gives the captions of its sidebar the role of a heading without a level; docutils wraps the entries of a
bibliography in a list whose children are no list items.
"""


def mend(app, pagename, templatename, context, doctree):
    tree = context.get("furo_navigation_tree")
    if tree:
        context["furo_navigation_tree"] = tree.replace('role="heading"', 'role="heading" aria-level="2"')
    if "body" in context:
        context["body"] = context["body"].replace(
            '<div role="list" class="citation-list">', '<div class="citation-list">'
        )


def setup(app):
    app.connect("html-page-context", mend, priority=900)  # after furo has filled the context
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}

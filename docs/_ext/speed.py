r"""Shows what `make bench` measured, with the ratios that may be compared.

```{speed} float32
```
"""

import json
from pathlib import Path

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

HEADER = ("method", "median, ms", "times clone", "extra memory, MiB", "largest error")


def rows(record, dtype):
    """The cells of the table: numbers as text, in the order in which they were measured."""
    clone = next(row["ms"] for row in record[dtype] if row["method"] == "clone")
    for row in record[dtype]:
        error = "" if row["error"] is None else f"{row['error']:.1g}"
        yield row["method"], f"{row['ms']:.0f}", f"{row['ms'] / clone:.2f}", f"{row['extra_mib']:.0f}", error


class Speed(SphinxDirective):
    required_arguments = 1

    def run(self):
        path = Path(self.env.srcdir, "reference", "speed.json")
        self.env.note_dependency(str(path))
        record = json.loads(path.read_text(encoding="utf-8"))
        table = nodes.table(classes=["speed"])
        group = nodes.tgroup(cols=len(HEADER))
        table += group
        group += [nodes.colspec(colwidth=1) for _ in HEADER]
        group += nodes.thead("", self.row(HEADER))
        group += nodes.tbody("", *(self.row(cells) for cells in rows(record, self.arguments[0])))
        libraries = ", ".join(f"{name} {number}" for name, number in record["versions"].items())
        how = f"{record['date']}; {record['machine']}; median of {record['rounds']} rounds; {libraries}."
        return [table, nodes.paragraph(text=how, classes=["shown-in"])]

    @staticmethod
    def row(cells):
        return nodes.row("", *(nodes.entry("", nodes.paragraph(text=cell)) for cell in cells))


def setup(app):
    app.add_directive("speed", Speed)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}

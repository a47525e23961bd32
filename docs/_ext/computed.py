r"""Numbers in prose are computed, not typed.

    {num}`120 <plot_symmetry_groups:none>`   what the script reported as `none`; fails unless that is 120
    {num}`<1e-12 <plot_permutation:worst>`   what the script reported; fails unless that is below the bound
    {num}`0.6847`                            stands in the output of a doctest on this page

The writer sees the number in the source, the reader sees the computed one, and where they disagree the build
says so. A decimal agrees when the computed value rounds to it, and `29 %` stands for 0.29.
"""

import re
from decimal import Decimal, InvalidOperation
from pathlib import Path

from docutils import nodes
from gallery import record
from sphinx.util import logging
from sphinx.util.docutils import SphinxRole

logger = logging.getLogger(__name__)

TEXT = re.compile(r"^\s*(?P<shown>.+?)(?:\s+<(?P<script>\w+):(?P<name>\w+)>)?\s*$", re.DOTALL)
BOUND = re.compile(r"^(?P<side>[<>])\s*(?P<limit>[\d.]+(?:e[+-]?\d+)?)$")
POWER = re.compile(r"(-?[\d.]+)e\+?(-?)0*(\d+)")
OUTPUT_NUMBER = re.compile(r"[-−]?\d+(?:,\d{3})*(?:\.\d+)?(?:e[+-]?\d+)?")


def decimal(shown):
    """The number a writer wrote: 1,024 or −3.48 or 4.4e-16 or 29 %."""
    text = shown.replace("−", "-").replace(",", "").replace(" ", " ").strip()
    scale = 1
    if text.endswith("%"):
        text, scale = text[:-1].strip(), 100
    try:
        return Decimal(text), scale
    except InvalidOperation:
        raise ValueError(f"{shown!r} is no number") from None


def agrees(shown, value):
    """Whether `value` is what `shown` says, to the digits it shows."""
    if isinstance(value, str):
        return shown == value
    written, scale = decimal(shown)
    unit = Decimal(1).scaleb(written.as_tuple().exponent)
    # A value that lies on the edge between two roundings agrees with both.
    return abs(Decimal(repr(value)) * scale - written) <= unit / 2 * (1 + Decimal("1e-9"))


def within(bound, value):
    limit = float(bound["limit"])
    return value < limit if bound["side"] == "<" else value > limit


def typeset(text):
    """A number as inline nodes: a true minus, and powers of ten as such."""
    power = POWER.fullmatch(text)
    if power:
        mantissa, sign, exponent = (part.replace("-", "−") for part in power.groups())
        return [nodes.Text(f"{mantissa} × 10"), nodes.superscript(text=sign + exponent)]
    return [nodes.Text(text.replace("-", "−"))]


def outputs(source):
    """The numbers in the expected outputs of a page's doctests."""
    found = []
    for block in re.findall(r"^ *```python\n(.*?)^ *```", source, re.DOTALL | re.MULTILINE):
        inside = False
        for line in block.splitlines():
            line = line.strip()
            if line.startswith((">>>", "...")):
                inside = True
            elif not line:
                inside = False
            elif inside:
                found += OUTPUT_NUMBER.findall(line)
    return found


class number(nodes.inline):
    """A computed number; it keeps its origin, so that the built page can be checked against a fresh run."""


def visit_number(self, node):
    data = {f"data-{key}": node[key] for key in ("script", "name", "bound") if node.get(key)}
    self.body.append(self.starttag(node, "span", "", CLASS="number", **data))


def depart_number(self, node):
    self.body.append("</span>")


class Number(SphinxRole):
    def run(self):
        match = TEXT.match(self.text)
        shown, script, name = match["shown"], match["script"], match["name"]
        try:
            text, bound = self.checked(shown, script, name)
        except ValueError as error:
            logger.warning("%s", error, location=self.get_location())
            text, bound = shown, ""
        node = number(self.rawtext, "", script=script or "", name=name or "", bound=bound)
        node += typeset(text)
        return [node], []

    def checked(self, shown, script, name):
        if script is None:
            source = Path(self.env.doc2path(self.env.docname)).read_text(encoding="utf-8")
            if not any(
                agrees(shown, float(out.replace(",", "").replace("−", "-"))) for out in outputs(source)
            ):
                raise ValueError(f"{shown} stands in no doctest output of this page")
            return shown, ""
        entry = record(self.env, script)
        if entry is None:
            raise ValueError(f"{shown}: there is no gallery script {script}.py")
        if name not in entry["numbers"]:
            raise ValueError(f"{script}.py reports no {name!r}, only {', '.join(sorted(entry['numbers']))}")
        value = entry["numbers"][name]
        bound = BOUND.match(shown)
        if bound is None:
            if not agrees(shown, value):
                raise ValueError(f"the page says {shown}, but {script}.py computed {name} = {value}")
            return shown, ""
        if not within(bound, value):
            raise ValueError(f"the page says {name} {shown}, but {script}.py computed {value}")
        return f"{value:.1e}" if 0 < abs(value) < 1e-2 else f"{value:.2g}", shown


def plain(self, node):
    """Builders without attributes show the number alone."""


def setup(app):
    app.add_node(
        number,
        html=(visit_number, depart_number),
        latex=(plain, plain),
        text=(plain, plain),
        man=(plain, plain),
        texinfo=(plain, plain),
    )
    app.add_role("num", Number())
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}

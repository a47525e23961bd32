r"""The zoo: what released models do with position, read from their files while the book is built.

    :::{zoo}
    :::

One row for each recipe. Models with one recipe share a row, a model whose layers differ has several. Files
that leave a value open, or that another source contradicts, are left out.
"""

import json
import re
from importlib import resources

from sphinx.util.docutils import SphinxDirective

from posbook import frequencies
from posbook.practice import config, schema

HEADER = ("model", "layers", "scaling", "base", "turned", "layout", "length", "never round")
FOUND, MADE = ("as-found", "converted"), "class-default"
# Contradicted by another file of the same model, as the page says, or a second copy of one with less in it.
LEFT_OUT = schema.CONTRADICTED | {"microsoft/Phi-4-mini-instruct by litgpt"}


def files():
    """(name, family, default, model) of every shipped file that can be trusted and says all it should."""
    text = resources.files("posbook.practice").joinpath("data", "rope_configs.jsonl").read_text("utf-8")
    for record in map(json.loads, text.splitlines()):
        converted = record["trust"] == "converted"
        name = record["name"] + (" by litgpt" if converted else "")
        if record["trust"] not in (*FOUND, MADE) or name in LEFT_OUT:
            continue
        model = config.read(record["config"])
        if any(finding.severity == "error" for finding in model.findings):
            continue
        family = "litgpt" if converted else model.model_type
        name = re.sub(r" \(.*\)$", "", record["name"].rpartition("/")[2])
        yield name, family, record["trust"] == MADE, model


def never_round(group):
    """Pairs that complete no turn within the length, and pairs that turn, before any stretching."""
    if group.scheme != "rotary" or not group.trained_length:
        return None
    stretched = group.rope_type in ("yarn", "llama3", "longrope", "dynamic")
    theta = frequencies.geometric(group.rotary_dim, group.base) if stretched else group.frequencies()
    theta = theta[theta > 0]
    return int((frequencies.turns(theta, group.trained_length) < 1).sum()), len(theta)


def rows():
    """Cells as text; released models by family, then classes of which no file is here."""
    merged, seen = {}, set()
    for name, family, default, model in files():
        if default and family in seen:
            continue
        seen.add(family)
        turning = [group for group in model.groups if group.scheme != "none"]
        recipe = tuple((group.kinds, *cells_of(group)) for group in turning)
        counts = tuple(len(group.layers) for group in turning)
        still = sum(len(group.layers) for group in model.groups if group.scheme == "none")
        merged.setdefault((default, family, recipe, bool(still)), []).append((name, counts, still))
    in_order = sorted(merged.items(), key=lambda item: (item[0][0], item[0][1] == "litgpt", item[0][1]))
    for (default, family, recipe, some_still), models in in_order:
        names = "class default" if default else ", ".join(dict.fromkeys(name for name, _, _ in models))
        for part, (kinds, *cells) in enumerate(recipe):
            label = f"{names} `{family}`" if part == 0 else f"… `{family}`"
            kind = kinds[0].removesuffix("_attention") if len(kinds) == 1 else ""
            counts = ", ".join(dict.fromkeys(str(counts[part] or "") for _, counts, _ in models))
            yield label, f"{counts} {kind}".strip() or "all", *cells
        if some_still:
            counts = ", ".join(dict.fromkeys(str(still) for _, _, still in models))
            yield f"… `{family}`", f"{counts} others", "not turned", *[""] * (len(HEADER) - 3)


def cells_of(group):
    scaling = {"default": "none"}.get(group.rope_type, group.rope_type)
    if group.factor != 1:
        scaling += f" × {group.factor:g}"
    count = never_round(group)
    return (
        scaling,
        short(group.base),
        f"{group.rotary_dim if group.rope_type != 'proportional' else 2 * count[1]}/{group.head_dim}",
        group.layout,
        f"{group.trained_length:,}" if group.trained_length else "",
        f"{count[0]}/{count[1]}" if count else "",
    )


def short(base):
    """10k, 2.5M …: four figures at most."""
    return f"{base / 1e6:g}M" if base >= 1e6 else f"{base / 1e3:g}k"


def table():
    """Markdown, so that the book's own parser makes it."""
    lines = ["| " + " | ".join(HEADER) + " |", "|---" * len(HEADER) + "|"]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows())])


class Zoo(SphinxDirective):
    def run(self):
        made = self.parse_text_to_nodes(table())
        made[0]["classes"].append("zoo")  # eight columns, set smaller by book.css
        return made


def setup(app):
    app.add_directive("zoo", Zoo)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}

r"""
Bases and lengths of released models
====================================

Each dot is a model: the length before any stretching, and the base of its frequencies.
On a line, a fixed share of the pairs never comes round within that length.
"""

import json
import math
from importlib import resources

import matplotlib.pyplot as plt
import numpy as np
import torch

from posbook import figures, frequencies
from posbook.practice import config

plt.style.use("posbook.figures.posbook")
torch.set_num_threads(1)

# %%
# The files that come with the package, as far as they were found as they are, say all they should and rotate
# by plain frequencies or stretch them. Layers with a window see no long distance and are left out; so are two
# families whose files contradict one another.

CONTRADICTED = {
    "gemma3_text": "converted as-found",
    "stablelm": "converted",
}  # by other files of these models
text = resources.files("posbook.practice").joinpath("data", "rope_configs.jsonl").read_text("utf-8")
dots, models = {}, 0
for record in map(json.loads, text.splitlines()):
    model = config.read(record["config"])
    if record["trust"] not in ("as-found", "converted"):
        continue
    if record["trust"] in CONTRADICTED.get(model.model_type, ""):
        continue
    groups = [g for g in model.groups if g.rope_type in ("default", "llama3", "yarn", "longrope")]
    groups = [g for g in groups if g.kinds != ("sliding_attention",) and g.trained_length]
    if any(f.severity == "error" for f in model.findings) or not groups:
        continue
    models += 1
    for group in groups:
        dots[group.trained_length, group.base, group.rope_type != "default"] = group

# %%
# A row of base b has the share 1 − ln(L/2π)/ln b of its pairs too slow for a turn within L tokens, but for
# rounding to whole pairs.


def share_of(group):
    theta = frequencies.geometric(group.rotary_dim, group.base)
    return (frequencies.turns(theta, group.trained_length) < 1).double().mean().item()


for (length, base, _), group in dots.items():
    exact = max(0.0, 1 - math.log(length / (2 * math.pi)) / math.log(base))
    assert abs(share_of(group) - exact) <= 2 / group.rotary_dim

# %%
# Dots are used at this length, rings are stretched to more.

fig, ax = plt.subplots(figsize=(7.2, 6.6))
lengths = np.geomspace(400, 2e6, 50)
for share, words in ((0, "all come round"), (0.25, "a quarter never"), (0.5, "half never")):
    bases = (lengths / (2 * math.pi)) ** (1 / (1 - share))
    ax.plot(lengths, bases, color=figures.colour("axis"), linewidth=1.2, linestyle="-" if not share else "--")
    height = {0: 4e3, 0.25: 1.2e4, 0.5: 4.4e4}[share]
    place = 2 * math.pi * height ** (1 - share)
    ax.text(place * 1.12, height * 0.93, words, color=figures.colour("muted"), va="top")
for length, base, stretched in sorted(dots, key=lambda dot: not dot[2]):  # dots over rings
    if stretched:
        colour = figures.colour("query")
        paper = figures.colour("paper")
        ax.plot(length, base, "o", markersize=14, color=paper, markeredgecolor=colour, markeredgewidth=2)
    else:
        ax.plot(length, base, "o", markersize=8, color=figures.colour("accent"))
names = {
    "Pythia": (512, 1e4, (12, -15)),
    "Llama 3": (8192, 5e5, (12, -4)),
    "Mistral, Qwen 3": (32_768, 1e6, (-20, 10)),
    "Qwen 3.5": (262_144, 1e7, (-66, 6)),
    "DeepSeek V3": (4096, 1e4, (-60, 12)),
    "DeepSeek V4": (1_048_576, 1e4, (-94, -4)),
    "gpt-oss": (4096, 150_000, (-31, -20)),
    "Devstral 2": (4096, 1e6, (-78, -4)),
}
for name, (x, y, shift) in names.items():
    ax.annotate(name, (x, y), shift, textcoords="offset points", weight="bold")
ax.set_xscale("log")
ax.set_yscale("log")
ax.set_xlim(400, 2e6)
ax.set_ylim(2e3, 3e7)
ax.set_xlabel("length before stretching (tokens)")
ax.set_ylabel("base")
ax.set_title("dot: used at this length; ring: stretched to more")
fig.suptitle("Released models leave slow pairs unfinished", x=0.02, ha="left")
shares = [share_of(group) for group in dots.values()]
figures.publish(
    fig,
    alt="Scatter of models, length before stretching against base, both logarithmic. Most dots lie between "
    "the line where a quarter of the pairs never come round and the one where half never do; bases rise with "
    "lengths from ten thousand at two thousand tokens to ten million at a quarter of a million tokens.",
    numbers={
        "models": models,
        "dots": len(dots),
        "least": min(shares),
        "most": max(shares),
        "between": sum(0.25 <= share <= 0.5 for share in shares),
    },
)

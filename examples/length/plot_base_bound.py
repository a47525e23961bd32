r"""
How far a base reaches
======================

The mean cosine of all pairs says by how much a key that is like the query leads over a random one, on average
and before any training. Where it is negative, the like key is behind.
Below: the first distance at which that happens, for every base, and the contexts of released models.
"""

import json
from importlib import resources

import matplotlib.pyplot as plt
import torch

from posbook import figures, frequencies
from posbook.practice import config

plt.style.use("posbook.figures.posbook")
torch.set_num_threads(1)

# The width of the heads, and how many distances are computed at once. Of heads narrower than 64 no base here
# reaches the longest of LENGTHS.
DIM, BLOCK = 128, 128
SHOWN = {500: "past", 10_000: "rope", 500_000: "position"}  # three bases above, rising: their colours


def within_block(theta):
    """The cosines and sines of the first angles, once for each base."""
    b = frequencies.angles(torch.arange(BLOCK), theta)
    return torch.cat((b.cos(), -b.sin()), dim=-1).mT / len(theta)


def mean_cosine(theta, block, start, length):
    """At the distances start, start + 1, …: cos(a + b) from the cosines and sines of few a and b."""
    a = frequencies.angles(start + torch.arange(0, length, BLOCK), theta)
    return (torch.cat((a.cos(), a.sin()), dim=-1) @ block).flatten()


def reach(theta):
    """The first distance at which the mean cosine is negative; the chapter proves that there is one."""
    block, start, piece = within_block(theta), 0, 8 * BLOCK
    while True:
        lead = mean_cosine(theta, block, start, piece)
        if lead.min() < 0:
            return start + int((lead < 0).nonzero()[0])
        start, piece = start + piece, min(2 * piece, 2**14)


# %%
# Whole bases from one hundred to ten million, in equal proportions: where does each end, how often does the
# next end sooner, and which is the smallest that reaches a length?

bases = torch.logspace(2, 7, 2501, dtype=torch.float64).round().unique()
reached = torch.tensor([reach(frequencies.geometric(DIM, base)) for base in bases.tolist()])
falls = int((reached.diff() < 0).sum())
LENGTHS = (1024, 2048, 4096, 8192, 16_384, 32_768)
smallest = {length: bases[reached >= length][0].item() for length in LENGTHS}
too_short = {length: bases[reached < length][-1].item() for length in LENGTHS}

# %%
# Released models with heads of this width that turn as a whole with unchanged frequencies. Those named here
# are 128 wide; for another DIM they are left out.

NAMES = {
    "microsoft/phi-4": "Phi-4",
    "meta-llama/Meta-Llama-3-70B": "Llama 3",
    "mistralai/Mistral-7B-Instruct-v0.3": "Mistral v0.3, Qwen2.5",
    "Qwen/Qwen3-235B-A22B-Thinking-2507": "Qwen3 235B",
}
file = resources.files("posbook.practice").joinpath("data", "rope_configs.jsonl")
rows = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
found = {}
for row in rows:
    if row["name"] in NAMES:
        (group,) = config.read(row["config"]).groups
        if (group.head_dim, group.rotary_dim, group.rope_type) == (DIM, DIM, "default"):
            found[NAMES[row["name"]]] = (group.base, row["config"]["max_position_embeddings"])

# %%
# Two panels.

grid = torch.logspace(0, 5, 400).round().long().unique()
fig, (above, below) = plt.subplots(2, 1, figsize=(7.2, 9.6), height_ratios=(4, 5))
above.axhline(0, color=figures.colour("axis"), linewidth=0.9, zorder=1)
ends = {}
for height, (base, role) in zip((0.68, 0.79, 0.9), SHOWN.items(), strict=True):
    theta, colour = frequencies.geometric(DIM, base), figures.colour(role)
    ends[base] = reach(theta)
    curve = mean_cosine(theta, within_block(theta), 0, 2**17)
    above.plot(grid, curve[grid], color=colour, linewidth=1.6)
    if ends[base] < 1e5:  # where the axis ends: a base that reaches farther has no dot
        dot = {"color": colour, "markersize": 10, "zorder": 4, "mec": figures.colour("paper")}
        above.plot(ends[base], curve[ends[base]], "o", **dot)
    name = f"base {base:,}".replace(",", " ")
    above.text(8e4, height, name, color=colour, weight="bold", ha="right")
above.set_xscale("log")
above.set_xlim(1, 1e5)
above.set_xticks([1, 10, 100, 1000, 1e4, 1e5], ["1", "10", "100", "1000", "10 000", "100 000"])
above.set_ylabel(f"mean cosine of {DIM // 2} pairs")
above.set_xlabel("distance (tokens)")
above.set_title("A larger base keeps it positive for longer")

below.plot(bases, reached, color=figures.colour("rope"), linewidth=1.3)
sides = {"below": [], "above": []}
for name, (base, context) in found.items():
    within = context <= reach(frequencies.geometric(DIM, base))
    sides["below" if within else "above"].append(name)
    marker, role = ("o", "good") if within else ("^", "warn")
    colour, named = figures.colour(role), {"textcoords": "offset points", "weight": "bold"}
    below.plot(base, context, marker, color=colour, markersize=9, zorder=4)
    if within:
        below.annotate(name, (base, context), (9, -14), color=colour, **named)
    else:
        below.annotate(name, (base, context), (-9, 5), color=colour, ha="right", **named)
below.set_xscale("log")
below.set_yscale("log")
below.set_xlim(80, 1.4e7)
below.set_ylim(40, 2e6)
below.set_xticks(
    [1e2, 1e3, 1e4, 1e5, 1e6, 1e7], ["100", "1000", "10 000", "100 000", "1 million", "10 million"]
)
below.set_yticks([1e2, 1e3, 1e4, 1e5, 1e6], ["100", "1000", "10 000", "100 000", "1 million"])
below.minorticks_off()
below.text(
    2e4,
    0.16 * reach(frequencies.geometric(DIM, 2e4)),
    "first distance at which\nit is negative",
    color=figures.colour("rope"),
    weight="bold",
)
below.text(110, 6e5, "▲ context beyond it\n● context within it", color=figures.colour("muted"), va="top")
below.set_xlabel("base")
below.set_ylabel("tokens")
below.set_title("But not for every larger base")

first_negative = ", ".join(f"at {end} for base {base}" for base, end in ends.items())
contexts = [f"; {side} it the contexts of {', '.join(some)}" for side, some in sides.items() if some]
figures.publish(
    fig,
    alt="Above: the mean cosine over the distance for three bases; it falls in wiggles and is first negative "
    f"{first_negative}. Below: that distance over the base, on logarithmic axes, a rising curve with {falls} "
    f"small falls{''.join(contexts)}.",
    numbers={
        **{f"reach_{base}": end for base, end in ends.items()},
        "reach_12000": reach(frequencies.geometric(DIM, 12_000)),
        "bases": len(bases),
        "falls": falls,
        "step": 10 ** (5 / 2500) - 1,
        **{f"smallest_{length}": int(base) for length, base in smallest.items()},
        **{f"too_short_{length}": int(base) for length, base in too_short.items()},
    },
)

r"""
Which pairs never came round
============================

The turns that every pair of a dozen released models completes within the trained length, read from their
configurations. Left of one turn a pair never came round: the rest of its circle stood in no training text.

To add a model, write ``MODELS["Mine"] = "mine"`` and ``records["mine"] = …``, its config.json as a dict.
"""

import json
import math
from importlib import resources

import matplotlib.pyplot as plt
import torch

from posbook import figures, frequencies, scaling
from posbook.practice import config

plt.style.use("posbook.figures.posbook")
torch.set_num_threads(1)

# %%
# From old to new, each by the number of its configuration among those that ship with the package. What the
# file calls its original length, or its length where it names no other, is taken for the trained one.

MODELS = {
    "Pythia 1B": "C069",
    "Phi-1": "C052",
    "Llama 2 7B": "C154",
    "Mixtral 8x7B": "C040",
    "Llama 3 70B": "C073",
    "Llama 3.1 8B": "C044",
    "SmolLM2 1.7B": "C056",
    "DeepSeek-V3": "C031",
    "Phi-4-mini": "C055",
    "Qwen3 8B": "C017",
    "gpt-oss 120B": "C035",
    "Qwen3-Next 80B": "C037",
}
lines = (resources.files("posbook.practice") / "data" / "rope_configs.jsonl").read_text("utf-8").splitlines()
records = {record["id"]: record["config"] for record in map(json.loads, lines)}
# To try another base, change a record here, as in records["C069"]["rope_theta"] = 1e6.


def rotating(model):
    """The group of layers that rotate, and of two such groups the one that attends in full."""
    return [group for group in model.groups if group.scheme == "rotary"][-1]


models = {name: config.read(records[number]) for name, number in MODELS.items()}
groups = {name: rotating(model) for name, model in models.items()}
unscaled = {name: frequencies.geometric(group.rotary_dim, group.base) for name, group in groups.items()}
turns = {name: frequencies.turns(unscaled[name], group.trained_length) for name, group in groups.items()}
never = {name: int((turns[name] < 1).sum()) for name in MODELS}

# %%
# Llama 2, wanted eight times as long: how far its pairs that never came round go, unscaled and NTK-aware.

LLAMA, FACTOR = "Llama 2 7B", 8
theta, trained = unscaled[LLAMA], groups[LLAMA].trained_length
late = turns[LLAMA] < 1  # none, if its base is small enough
wider = scaling.ntk(theta, FACTOR)[late] * FACTOR / theta[late]  # the widest angle, over the trained one
first = int((~late).sum())
# The factor by which NTK-aware scaling must slow the last pair, so that even the first of them stays inside.
enough = FACTOR ** ((len(theta) - 1) / first)

# Llama 3.1 as its file has it, at the length that this is for.
EXTENDED = "Llama 3.1 8B"
extended = models[EXTENDED]
reached = frequencies.turns(groups[EXTENDED].frequencies(extended.longest), extended.longest)
further = (reached / turns[EXTENDED])[turns[EXTENDED] < 1]
some = sum(count > 0 for count in never.values())

# %%
# What the moving figure is given: the models as their files describe them.


def described(name):
    model, group = models[name], groups[name]
    said = {
        "name": name,
        "base": round(group.base),
        "dim": group.rotary_dim,
        "head": group.head_dim,
        "trained": group.trained_length,
        "longest": model.longest,
    }
    if group.rope_type == "default":
        return said
    said |= {"method": group.rope_type, "scores": group.attention_factor**2 * group.softmax_factor}
    of_method = {
        "linear": ("factor",),
        "dynamic": ("factor",),
        "yarn": ("factor", "beta_fast", "beta_slow", "truncate"),
        "llama3": ("factor", "low", "high"),
        "longrope": ("short_factor", "long_factor"),
    }
    return said | {key: getattr(group, key) for key in of_method[group.rope_type]}


def slug(name):
    return name.lower().replace(" ", "-")


# %%
# One row a model, one stroke a pair, the fastest on the right.

fig, ax = plt.subplots(figsize=(7.2, 9.4))
for row, (name, group) in enumerate(groups.items()):
    came_round = turns[name] >= 1
    ax.plot(turns[name][came_round], [row] * int(came_round.sum()), "|", color=figures.colour("position"),
            markersize=13, markeredgewidth=1.4)  # fmt: skip
    ax.plot(turns[name][~came_round], [row] * never[name], "o", color=figures.colour("warn"), markersize=5,
            markerfacecolor=figures.colour("paper"), markeredgewidth=1.3)  # fmt: skip
    ax.text(1.2e-3, row - 0.36, name, weight="bold", va="center")
    told = f"base {group.base:,.0f} · {group.trained_length:,} tokens".replace(",", "\N{THIN SPACE}")
    ax.text(5e4, row - 0.36, told, color=figures.colour("muted"), ha="right", va="center")
    count = f"{never[name]} of {len(turns[name])}"
    ax.text(0.8, row - 0.36, count, color=figures.colour("warn"), ha="right", va="center")
ax.axvline(1, color=figures.colour("ink"), linewidth=1.2)
ax.set(
    xscale="log",
    xlim=(
        min(1e-3, *(float(t.min()) / 2 for t in turns.values())),
        max(6e4, *(float(t.max()) * 1.4 for t in turns.values())),
    ),
    ylim=(len(MODELS) - 0.5, -1.5),
    yticks=[],
)
ax.text(0.8, -1.05, "never came round", color=figures.colour("warn"), weight="bold", ha="right", va="center")
ax.text(1.25, -1.05, "came round", color=figures.colour("position"), weight="bold", va="center")
ax.set_xticks([1e-2, 1, 1e2, 1e4], ["0.01", "1", "100", "10 000"])
ax.set_xlabel("turns completed within the trained length")
ax.grid(False)
ax.spines["left"].set_visible(False)
which = "every model" if some == len(MODELS) else f"{some} of {len(MODELS)} models"
ax.set_title(f"In {which} some pairs never came round")
figures.publish(
    fig,
    alt=f"One row for each of {len(MODELS)} models, with a mark for every pair at the number of turns it "
    "completes within the trained length, on a logarithmic axis from a thousandth to tens of thousands, and "
    "a line at one turn: "
    + ", ".join(f"{never[name]} of {len(turns[name])} pairs of {name}" for name in MODELS)
    + " lie left of it.",
    numbers={
        **{f"never_{slug(name).replace('-', '_').replace('.', '_')}": never[name] for name in MODELS},
        "smallest_part": min(never[name] / len(turns[name]) for name in MODELS),
        "largest_part": max(never[name] / len(turns[name]) for name in MODELS),
        "llama_2_trained": trained,
        "wanted": FACTOR * trained,
        "width_llama_2": groups[LLAMA].rotary_dim,
        "pairs_llama_2": len(theta),
        "neighbours": math.degrees(theta[0]),
        "neighbours_interpolated": math.degrees(scaling.linear(theta, FACTOR)[0]),
        "llama_2_first": first,
        "llama_2_before": turns[LLAMA][first - 1].item(),
        "llama_2_slowest_turns": turns[LLAMA][-1].item(),
        "llama_2_slowest_degrees": 360 * turns[LLAMA][-1].item(),
        "llama_3_first": int((turns["Llama 3 70B"] >= 1).sum()),
        "llama_3_slowest_degrees": 360 * turns["Llama 3 70B"][-1].item(),
        "llama_3_slowest_degrees_at_8": 8 * 360 * turns["Llama 3 70B"][-1].item(),
        "llama_3_1_times": extended.longest // groups[EXTENDED].trained_length,
        "llama_3_1_wider": min(further.tolist(), default=1.0),
        "ntk_wider": int((wider > 1 + 1e-9).sum()),
        "ntk_worst": max(wider.tolist(), default=1.0),
        "ntk_enough": enough,
        "all_round_llama_2": 2 * math.pi / theta[-1].item(),
        "all_round_llama_3_rounded": round(2 * math.pi / unscaled["Llama 3 70B"][-1].item(), -3),
    },
    data={"models": {slug(name): described(name) for name in MODELS}, "start": slug(LLAMA)},
)

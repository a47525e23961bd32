r"""
Which pairs never came round
============================

The turns that every pair of a dozen released models completes within the trained length, read from their
configurations. Left of one turn a pair never came round: the rest of its circle stood in no training text.
"""

import json
import math
import re
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

# %%
# To try another base, change a record here, as in ``records["C069"]["rope_theta"] = 1e6``. To add a model
# that rotates, put its config.json here as a dict; these keys are enough::
#
#     MODELS["Mine"] = "mine"
#     records["mine"] = {
#         "model_type": "llama",
#         "hidden_size": 3072,
#         "num_attention_heads": 32,
#         "head_dim": 128,
#         "rope_theta": 1e6,
#         "max_position_embeddings": 40960,
#     }
#
# Any model may be taken out of ``MODELS``: the three of which the chapter says more are read all the same.

LLAMA, LLAMA_3, EXTENDED = "Llama 2 7B", "Llama 3 70B", "Llama 3.1 8B"
told = {LLAMA: "C154", LLAMA_3: "C073", EXTENDED: "C044"}
every = MODELS | {name: number for name, number in told.items() if name not in MODELS}


def rotating(model):
    """The group of layers that rotate, and of two such groups the one that attends in full."""
    return [group for group in model.groups if group.scheme == "rotary"][-1]


models = {name: config.read(records[number]) for name, number in every.items()}
groups = {name: rotating(model) for name, model in models.items()}
unscaled = {name: group.unscaled() for name, group in groups.items()}
# Where rope_type is "proportional", some pairs stand still by design: they are left out.
unscaled = {name: theta[theta > 0] for name, theta in unscaled.items()}
turns = {name: frequencies.turns(unscaled[name], group.trained_length) for name, group in groups.items()}
never = {name: int((turns[name] < 1).sum()) for name in groups}

# %%
# Llama 2, wanted eight times as long: how far its pairs that never came round go, unscaled and NTK-aware.

FACTOR = 8
theta, trained = unscaled[LLAMA], groups[LLAMA].trained_length
late = turns[LLAMA] < 1  # none, if its base is small enough
wider = scaling.ntk(theta, FACTOR)[late] * FACTOR / theta[late]  # the widest angle, over the trained one
first = int((~late).sum())
# The factor by which NTK-aware scaling must slow the last pair, so that even the first of them stays inside.
enough = FACTOR ** ((len(theta) - 1) / first)

# Llama 3.1 as its file has it, at the length that this is for.
extended = models[EXTENDED]
reached = frequencies.turns(groups[EXTENDED].frequencies(extended.longest), extended.longest)
further = (reached / turns[EXTENDED])[turns[EXTENDED] < 1]
some = sum(never[name] > 0 for name in MODELS)

# %%
# What the moving figure is given: the models as their files describe them, if it knows their method.

OF_METHOD = {
    "default": (),
    "linear": ("factor",),
    "dynamic": ("factor",),
    "yarn": ("factor", "beta_fast", "beta_slow", "truncate"),
    "llama3": ("factor", "low", "high"),
    "longrope": ("short_factor", "long_factor"),
}


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
    return said | {key: getattr(group, key) for key in OF_METHOD[group.rope_type]}


def slug(name):
    return name.lower().replace(" ", "-")


def underscored(name):
    return re.sub(r"\W", "_", name.lower())


# %%
# One row a model, one stroke a pair, the fastest on the right.

fig, ax = plt.subplots(figsize=(7.2, 1.4 + len(MODELS) * 2 / 3))
along = {"transform": ax.get_yaxis_transform(), "va": "center"}  # x is a part of the axis, however wide
for row, name in enumerate(MODELS):
    group, came_round = groups[name], turns[name] >= 1
    ax.plot(turns[name][came_round], [row] * int(came_round.sum()), "|", color=figures.colour("position"),
            markersize=13, markeredgewidth=1.4)  # fmt: skip
    ax.plot(turns[name][~came_round], [row] * never[name], "o", color=figures.colour("warn"), markersize=5,
            markerfacecolor=figures.colour("paper"), markeredgewidth=1.3)  # fmt: skip
    ax.text(0.01, row - 0.36, name, weight="bold", **along)
    recipe = f"base {group.base:,.0f} · {group.trained_length:,} tokens".replace(",", "\N{THIN SPACE}")
    ax.text(0.99, row - 0.36, recipe, color=figures.colour("muted"), ha="right", **along)
    count = f"{never[name]} of {len(turns[name])}"
    ax.text(0.8, row - 0.36, count, color=figures.colour("warn"), ha="right", va="center")
ax.axvline(1, color=figures.colour("ink"), linewidth=1.2)
ax.set(
    xscale="log",
    xlim=(
        min(1e-3, *(float(turns[name].min()) / 2 for name in MODELS)),
        max(6e4, *(float(turns[name].max()) * 1.4 for name in MODELS)),
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
shown = {slug(name): described(name) for name in every if groups[name].rope_type in OF_METHOD}
which = "every model" if some == len(MODELS) else f"{some} of {len(MODELS)} models"
ax.set_title(f"In {which} some pairs never came round")
figures.publish(
    fig,
    alt=f"{len(MODELS)} model{'s' * (len(MODELS) > 1)}, one row for each, with a mark for "
    "every pair at the number of turns it completes within the trained length, on a logarithmic "
    "axis, and a line at one turn: "
    + ", ".join(f"{never[name]} of {len(turns[name])} pairs of {name}" for name in MODELS)
    + " lie left of it.",
    numbers={
        **{f"never_{underscored(name)}": never[name] for name in every},
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
        "llama_3_first": int((turns[LLAMA_3] >= 1).sum()),
        "llama_3_slowest_degrees": 360 * turns[LLAMA_3][-1].item(),
        "llama_3_slowest_degrees_at_8": 8 * 360 * turns[LLAMA_3][-1].item(),
        "llama_3_1_times": extended.longest // groups[EXTENDED].trained_length,
        "llama_3_1_wider": min(further.tolist(), default=1.0),
        "ntk_wider": int((wider > 1 + 1e-9).sum()),
        "ntk_worst": max(wider.tolist(), default=1.0),
        "ntk_enough": enough,
        "all_round_llama_2": 2 * math.pi / theta[-1].item(),
        "all_round_llama_3_rounded": round(2 * math.pi / unscaled[LLAMA_3][-1].item(), -3),
    },
    data={"models": shown, "start": slug(LLAMA)},
)

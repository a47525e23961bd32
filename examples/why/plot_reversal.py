r"""
Dog bites man, man bites dog
============================

Ten random encoders read a sentence and its reverse: how far apart are the two rows of *bites*?
From one scheme to the next nothing changes but the encoding.
"""

from functools import partial

import matplotlib.pyplot as plt
import torch

from posbook import alibi, attention, figures, frequencies, positions, rotary, sinusoidal, t5_bias

plt.style.use("posbook.figures.posbook")
torch.set_num_threads(1)  # matrices this small are not worth a second thread's start

FEATURES, HEADS, DEPTH, SEEDS = 128, 8, 2, 10  # an even number of features for each head
WIDTH = FEATURES // HEADS

# %%
# An encoder with random weights, open in three places: ``embed`` changes the input, ``rotate`` the
# queries and the keys, and ``bias`` is added to the scores.


def normed(x):
    return x / x.square().mean(dim=-1, keepdim=True).sqrt()


def encode(x, layers, embed=lambda x: x, rotate=lambda x: x, bias=None):
    x = embed(x)
    for to_q, to_k, to_v, to_out, up, down in layers:
        q, k, v = ((normed(x) @ to).unflatten(1, (HEADS, WIDTH)).transpose(0, 1) for to in (to_q, to_k, to_v))
        heads = attention.attend(rotate(q), rotate(k), v, bias=bias)
        x = x + heads.transpose(0, 1).flatten(1) @ to_out
        x = x + torch.relu(normed(x) @ up) @ down
    return x


# %%
# What each scheme puts there. T5 learns its table; here it is random, as the weights are.

at = torch.arange(3)
offsets = positions.offsets(queries=at, keys=at)
buckets = t5_bias.buckets(offsets, bidirectional=True)
penalty = alibi.bias(alibi.slopes(HEADS), offsets)
clocks = sinusoidal.encode(frequencies.angles(at, frequencies.geometric(FEATURES)))
angles = frequencies.angles(at, frequencies.geometric(WIDTH))


def schemes(table):
    return {
        "none": {},
        "alibi": {"bias": penalty},
        "t5": {"bias": t5_bias.bias(table, buckets)},
        "rotary": {"rotate": lambda x: rotary.rotate(x, angles, layout="halves")},
        "sinusoidal": {"embed": lambda x: x + clocks},
        "alibi_causal": {"bias": penalty.masked_fill(~attention.causal(len(at)), -torch.inf)},
    }


# %%
# The difference of the two rows, in units of the row's length: one number for each scheme and each encoder.

shapes = 4 * [(FEATURES, FEATURES)] + [(FEATURES, 4 * FEATURES), (4 * FEATURES, FEATURES)]
found = {name: [] for name in schemes(torch.zeros(32, HEADS))}
for seed in range(SEEDS):
    draw = partial(torch.randn, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    layers = [[draw(*shape) / shape[0] ** 0.5 for shape in shapes] for _ in range(DEPTH)]
    sentence, table = draw(3, FEATURES), draw(32, HEADS)
    for name, encoding in schemes(table).items():
        there, back = (encode(x, layers, **encoding)[1] for x in (sentence, sentence.flip(0)))
        found[name].append(((there - back).norm() / there.norm()).item())

# %%
# A mark for every encoder.

fig, ax = plt.subplots(figsize=(7.2, 5))
ax.set_xscale("log")
nothing = 1e-17  # where a difference of exactly 0 is drawn
rows = (
    ("none", "no encoding", "none"),
    ("alibi", "ALiBi, no mask", "alibi"),
    ("t5", "T5's bias", "t5"),
    ("rotary", "rotary", "rope"),
    ("sinusoidal", "added sinusoids", "sinusoidal"),
    ("alibi_causal", "ALiBi, causal mask", "alibi"),
)
for y, (name, label, encoding) in enumerate(rows):
    look, heights = figures.look(encoding), torch.linspace(y - 0.25, y + 0.25, SEEDS)
    ax.plot([max(one, nothing) for one in found[name]], heights, look.marker, color=look.colour, alpha=0.8)
    beside = {"transform": ax.get_yaxis_transform(), "ha": "right", "va": "center"}
    ax.text(-0.02, y, label, color=look.colour, weight="bold", **beside)
note = {"color": figures.colour("muted"), "va": "center", "backgroundcolor": figures.colour("paper")}
ax.text(1e-14, 0.5, "the same row, to rounding", **note)
ax.text(2e-3, 3.5, "two different rows", ha="right", **note)
ax.set_xticks([1e-16, 1e-12, 1e-8, 1e-4, 1])
ax.set_xlim(5e-18, 9)
ax.set_yticks([])
ax.set_ylim(5.6, -0.6)
ax.set_xlabel("difference of the two rows of “bites” (1 = their length)")
fig.suptitle("A penalty on distance alone cannot tell who bites whom", x=0.02, ha="left")
figures.publish(
    fig,
    alt=f"Six rows of {SEEDS} marks, one row for each scheme, on a logarithmic axis. Without an encoding, "
    "and with ALiBi and no mask, the two rows of the word bites differ by rounding only. With T5's bias, "
    "rotary, added sinusoids, and ALiBi under a causal mask, they differ visibly.",
    numbers={name: (max if name in ("none", "alibi") else min)(each) for name, each in found.items()},
    seed=f"0 to {SEEDS - 1}",
    size=f"3 tokens, {FEATURES} features, {DEPTH} layers",
    spread=f"of {SEEDS} random encoders the largest where it is rounding, the smallest elsewhere",
)

r"""
Which reasons are rotary's own?
===============================

Six reasons that are given for rotary embedding, each measured on seven schemes, rotary among them.
Below, the distance that random pairs of a query and a key like best.
"""

from dataclasses import dataclass
from typing import Any

import matplotlib.pyplot as plt
import torch

from posbook import (
    alibi,
    attention,
    figures,
    frequencies,
    learned,
    positions,
    properties,
    rotary,
    shaw,
    sinusoidal,
    t5_bias,
)

plt.style.use("posbook.figures.posbook")
torch.set_num_threads(1)

DIM, TOKENS, SEED = 32, 6, 0  # an even width, two or more tokens
ROWS, CLIP = 2048, 16  # rows of the learned table, 1006 or more, and where Shaw stops counting
FAR, PAIRS, LOOK_BACK = 10**6, 10, 64  # a place beyond the table, pairs to draw, distances to try
draw = torch.Generator().manual_seed(SEED)


def randn(*shape):
    return torch.randn(*shape, generator=draw, dtype=torch.float64)


theta = frequencies.geometric(DIM)
table, buckets, on_keys, on_values = randn(ROWS, DIM), randn(32, 1), *randn(2, 2 * CLIP + 1, DIM)


# %%
# A scheme says what it does to a row of the input, to queries and keys, to scores and to the output, and what
# it would have to learn for that.


@dataclass
class Scheme:
    label: str
    look: str
    learns: tuple = ()
    embed: Any = lambda x, at: x
    rotate: Any = lambda x, at: x
    bias: Any = lambda q, offsets: 0
    values: Any = lambda weights, offsets: 0


def waves(x, at):
    return x + sinusoidal.encode(frequencies.angles(at, theta))


def turn(x, at):
    return rotary.rotate(x, frequencies.angles(at, theta), layout="halves")


def by_bucket(q, offsets):
    return t5_bias.bias(buckets, t5_bias.buckets(offsets, bidirectional=True))[0]


def by_vector(q, offsets):
    return shaw.key_term(q, on_keys, shaw.indices(offsets, clip=CLIP))


def to_values(weights, offsets):
    return shaw.value_term(weights, on_values, shaw.indices(offsets, clip=CLIP))


schemes = {
    "nothing": Scheme("no encoding", "none"),
    "learned": Scheme(
        "learned table", "learned", (table,), embed=lambda x, at: x + learned.lookup(table, at)
    ),
    "sinusoidal": Scheme("sinusoidal", "sinusoidal", embed=waves),
    "shaw": Scheme("Shaw", "shaw", (on_keys, on_values), bias=by_vector, values=to_values),
    "t5": Scheme("T5's bias", "t5", (buckets,), bias=by_bucket),
    "alibi": Scheme("ALiBi", "alibi", bias=lambda q, offsets: alibi.bias(alibi.slopes(8)[:1], offsets)[0]),
    "rotary": Scheme("rotary", "rope", rotate=turn),
}


def scores(scheme, q, k, m, n):
    q, k = scheme.embed(q, m), scheme.embed(k, n)
    q, k = scheme.rotate(q, m), scheme.rotate(k, n)
    return attention.scores(q, k) + scheme.bias(q, positions.offsets(queries=m, keys=n))


def layer(scheme, x, at, stored=None, *, causal=True):
    x = scheme.embed(x, at)
    q, k, v, n = scheme.rotate(x, at), scheme.rotate(x, at), x, at
    if stored is not None:
        n, k, v = (torch.cat(pair) for pair in zip(stored, (n, k, v), strict=True))
    offsets = positions.offsets(queries=at, keys=n)
    mask = attention.causal(len(at), len(n)) if causal else None
    weights = attention.weights(attention.scores(q, k) + scheme.bias(q, offsets), mask)
    return attention.output(weights, v) + scheme.values(weights, offsets), (n, k, v)


# %%
# The reasons, each as a question with a measure: 0, or rounding, where the answer is yes.

x, q, k = randn(TOKENS, DIM), *randn(2, 16, 1, DIM)


def place(at):
    return torch.tensor([at])


def at_offset(scheme, q, k, m, n):
    return scores(scheme, q, k, place(m), place(n))


def learned_numbers(scheme):
    return sum(tensor.numel() for tensor in scheme.learns)


def relative(scheme):
    return properties.relativity(
        lambda q, k, m, n: at_offset(scheme, q, k, m, n), q, k, m=5, n=2, shifts=[1, 10, 1000]
    )


def clean_values(scheme):
    """Equal tokens get equal outputs where no value carries a position."""
    output, _ = layer(scheme, x[:1].expand(TOKENS, -1), torch.arange(TOKENS), causal=False)
    return properties.difference(output, output[:1].expand(TOKENS, -1))


def stored_keys(scheme):
    return properties.caching(lambda *given: layer(scheme, *given), x)


def any_length(scheme):
    try:
        return float(not at_offset(scheme, q, k, FAR, FAR - 3).isfinite().all())
    except ValueError:
        return 1.0


def times_content(scheme):
    """Whether what three tokens' distance adds to a score differs from one pair of vectors to the next."""
    added = at_offset(scheme, q, k, 5, 2) - at_offset(scheme, q, k, 5, 5)
    return float((added - added[:1]).abs().max() < 1e-9)


reasons = {
    "nothing\nto learn": learned_numbers,
    "only the\noffset": relative,
    "values\nclean": clean_values,
    "keys\nstored": stored_keys,
    "any\nlength": any_length,
    "times\ncontent": times_content,
}
kept = {name: [measure(scheme) < 1e-9 for measure in reasons.values()] for name, scheme in schemes.items()}

# %%
# Where a query at the end would look, of all tokens less than LOOK_BACK back, if only one key stood there.

back = torch.arange(LOOK_BACK)
q, k = randn(2, PAIRS, DIM)
favourite = {}
for name in ("alibi", "t5", "shaw", "rotary"):
    one_key = k[:, None].expand(-1, LOOK_BACK, -1)
    each = scores(schemes[name], q[:, None], one_key, torch.tensor([FAR]), FAR - back)
    favourite[name] = each[:, 0].argmax(dim=-1)

# %%
# Filled: the scheme has it. Hollow: it has not.

fig, (has, likes) = plt.subplots(2, 1, figsize=(7.2, 8.4), height_ratios=(7, 4))
for y, (name, answers) in enumerate(kept.items()):
    look = figures.look(schemes[name].look)
    for column, yes in enumerate(answers):
        fill = look.colour if yes else figures.colour("paper")
        edge = look.colour if yes else figures.colour("axis")
        has.plot(column, y, "o", markersize=17, color=fill, markeredgecolor=edge, markeredgewidth=1.4)
    bold = "bold" if all(answers) else "normal"
    has.text(-0.6, y, schemes[name].label, color=look.colour, ha="right", va="center", weight=bold)
has.set_xlim(-0.5, len(reasons) - 0.5)
has.set_ylim(len(schemes) - 0.5, -0.5)
has.xaxis.tick_top()
has.set_xticks(range(len(reasons)), list(reasons))
has.tick_params(axis="x", length=0, labelcolor=figures.colour("ink"))
has.set_yticks([])
has.grid(False)
has.spines[:].set_visible(False)
fig.suptitle("ALiBi has the five usual reasons, and lacks “times content”", x=0.02, ha="left")

for y, (name, places) in enumerate(favourite.items()):
    look = figures.look(schemes[name].look)
    heights = torch.linspace(y - 0.24, y + 0.24, PAIRS)
    likes.plot(places, heights, look.marker, color=look.colour, alpha=0.8)
    likes.text(-0.047 * LOOK_BACK, y, schemes[name].label, color=look.colour, ha="right", va="center")
likes.set_xlim(-0.0234 * LOOK_BACK, LOOK_BACK)
likes.set_ylim(len(favourite) - 0.5, -0.5)
likes.set_yticks([])
likes.set_title(f"The distance that each of {PAIRS} random pairs likes best")
likes.set_xlabel("distance from the query back to the key (tokens)")
figures.publish(
    fig,
    alt="Above, a table of dots: seven schemes by six reasons. Rotary has all six. ALiBi, and no encoding, "
    "have all but the last, times content. T5's bias lacks that and learns its numbers. The sinusoidal and "
    "the learned table have times content, and lack the offset and clean values. Below, favourite distances "
    f"of {PAIRS} random pairs: one and the same for ALiBi and for T5's bias, scattered for Shaw and rotary.",
    numbers={
        **{name: sum(answers) for name, answers in kept.items()},
        "reasons": len(reasons),
        **{f"favourites_{name}": len(places.unique()) for name, places in favourite.items()},
    },
    seed=SEED,
    size=f"width {DIM}, {PAIRS} random pairs, learned numbers random",
    spread="every pair is drawn",
)

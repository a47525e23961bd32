r"""
Where position enters
=====================

One attention layer and the four places at which a scheme can put position in.
Each scheme is run twice: on different words, of which it must notice a shuffle, and on one word
repeated, whose places only some of them can tell apart.
"""

import matplotlib.pyplot as plt
import torch
from matplotlib.patches import Circle, FancyBboxPatch

from posbook import (
    alibi,
    attention,
    cope,
    figures,
    fire,
    frequencies,
    kerple,
    learned,
    positions,
    rotary,
    shaw,
    sinusoidal,
    t5_bias,
    transformer_xl,
    xpos,
)

plt.style.use("posbook.figures.posbook")
torch.set_num_threads(1)

# LENGTH is 3 or more. DIM is even, 32 or less: of wider words a query may attend to one token alone, and
# notice no shuffle.
# CLIP is at least 3: of a smaller one DeBERTa's two terms leave a query only itself and all others.
LENGTH, DIM, CLIP, SEEDS = 12, 16, 4, 5
at = torch.arange(LENGTH)
offsets = positions.offsets(queries=at, keys=at)
mask = attention.causal(LENGTH)
angles = frequencies.angles(at, frequencies.geometric(DIM))
near = shaw.indices(offsets, CLIP)

# %%
# A causal layer whose queries, keys and values are the tokens themselves. ``turn`` acts on queries and keys,
# ``score`` is added to the scores, ``mean`` to the mean of the values. What joins the stream comes before.


def layer(x, turn=lambda x: (x, x), score=lambda x: 0, mean=lambda weights: 0):
    weights = attention.weights(attention.scores(*turn(x)) + score(x), mask)
    return attention.output(weights, x) + mean(weights)


# %%
# What each scheme puts there; what a model would learn is drawn at random. DeBERTa has no module in posbook:
# here are the two terms that its released code adds.


def grown(x):
    scales = xpos.scales(at, DIM, scale_base=8)
    return tuple(xpos.rotate(x, angles, each, layout="halves") for each in (scales, 1 / scales))


def deberta(x, for_keys, for_queries):
    row = (CLIP - offsets).clamp(0, 2 * CLIP - 1)
    return (x @ for_keys.T).gather(1, row) + (x @ for_queries.T).gather(1, row.T).T


def outputs(x, draw):
    table, keys, values = draw(LENGTH, DIM), draw(2 * CLIP + 1, DIM), draw(2 * CLIP + 1, DIM)
    r, (u, v), halves = transformer_xl.encode(angles), draw(2, DIM), draw(2, 2 * CLIP, DIM)
    buckets, one = t5_bias.buckets(offsets, bidirectional=False), torch.ones(1, dtype=torch.float64)
    shares = fire.distances(queries=at, keys=at, c=1, threshold=4)
    counts = cope.positions(cope.gates(attention.scores(x, x), mask), LENGTH)
    turned = rotary.rotate(x, angles, layout="halves")
    return {
        "sinusoidal": layer(x + sinusoidal.encode(angles)),
        "learned": layer(x + learned.lookup(table, at)),
        "rope": layer(x, turn=lambda x: (turned, turned)),
        "xpos": layer(x, turn=grown),
        "t5": layer(x, score=lambda x: t5_bias.bias(draw(32, 1), buckets)[0]),
        "alibi": layer(x, score=lambda x: alibi.bias(one / 2, offsets)[0]),
        "kerple": layer(x, score=lambda x: kerple.logarithmic(one, one, offsets)[0]),
        "fire": layer(x, score=lambda x: fire.bias(shares, lambda share: -4 * share)[0]),
        "shaw_keys": layer(x, score=lambda x: shaw.key_term(x, keys, near)),
        "transformer_xl": layer(x, score=lambda x: transformer_xl.terms(x, x, r, u, v, offsets)),
        "deberta": layer(x, score=lambda x: deberta(x, *halves)),
        "cope": layer(x, score=lambda x: cope.term(x, table, counts)),
        "shaw_values": layer(x, mean=lambda weights: shaw.value_term(weights, values, near)),
    }


# %%
# Rows are compared in units of their length. Of the seeds the largest difference is kept where it is
# rounding, the smallest elsewhere.


def apart(a, b):
    return ((a - b).norm(dim=-1) / b.norm(dim=-1)).max().item()


constant, order = {}, {}
for seed in range(SEEDS):
    words = torch.randn(LENGTH, DIM, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    shuffled = words[[*reversed(range(LENGTH - 1)), LENGTH - 1]]
    draws = (torch.Generator().manual_seed(100 + seed) for _ in range(3))
    same, read, moved = (
        outputs(x, lambda *shape, g=g: torch.randn(*shape, generator=g, dtype=torch.float64))
        for x, g in zip((words[:1].expand(LENGTH, DIM), words, shuffled), draws, strict=True)
    )
    for name in same:
        constant.setdefault(name, []).append(apart(same[name], same[name][:1]))
        order.setdefault(name, []).append(apart(moved[name][-1:], read[name][-1:]))
constant = {name: (max if max(each) < 1e-6 else min)(each) for name, each in constant.items()}

# %%
# The layer runs down the left; a ring on its way is a place where position enters.

fig, ax = plt.subplots(figsize=(7.2, 8.2))
ax.set(xlim=(0, 10), ylim=(-0.35, 11.3))
ax.set_axis_off()
ink, muted, paper = (figures.colour(role) for role in ("ink", "muted", "paper"))


def box(x, y, text, role, width=1.1):
    look = {"facecolor": figures.colour("panel"), "edgecolor": figures.colour(role), "linewidth": 1.8}
    shape = "round,pad=0,rounding_size=0.12"
    ax.add_patch(FancyBboxPatch((x - width / 2, y - 0.3), width, 0.6, boxstyle=shape, **look))
    ax.text(x, y, text, ha="center", va="center_baseline", color=ink)


def way(*points, head=True):
    x, y = zip(*points, strict=True)
    ax.plot(x, y, color=muted, linewidth=1.4, zorder=0, solid_joinstyle="round")
    if head:
        arrow = {"arrowstyle": "-|>", "color": muted, "linewidth": 1.4}
        ax.annotate("", points[-1], points[-2], arrowprops=arrow)


def place(y, ports, sign, title, verdict, columns, kinds=()):
    mark, middle = figures.colour("position"), {"va": "center_baseline"}
    for x in ports:
        ax.add_patch(Circle((x, y), 0.2, facecolor=paper, edgecolor=mark, linewidth=2, zorder=3))
        ax.text(x, y, sign, ha="center", color=mark, weight="bold", zorder=4, **middle)
    ax.plot([ports[-1] + 0.2, 4.25], [y, y], color=mark, linewidth=1.2, linestyle=":", zorder=0)
    ax.text(4.4, y, title, color=mark, weight="bold", **middle)
    under = y - 0.55 - 0.47 * bool(kinds)
    for x, kind in zip((4.4, 7.1), kinds, strict=False):
        ax.text(x, y - 0.55, kind, color=ink, **middle)
    for x, names in zip((4.6, 7.3), columns, strict=False):
        for line, (encoding, name) in enumerate(names):
            look, height = figures.look(encoding), under - 0.47 * line
            ax.plot(x, height, look.marker, color=look.colour, markersize=8)
            ax.text(x + 0.3, height, name, color=look.colour, weight="bold", **middle)
    lowest = under - 0.47 * max(map(len, columns))
    ax.text(4.4, lowest, f"a a a a: {verdict}", color=muted, style="italic", **middle)


def verdict(*names):
    told = {constant[name] > 1e-6 for name in names}
    return {(True,): "rows differ", (False,): "all rows the same"}[tuple(told)]


for x, y, text, role in (
    (2, 10.8, "tokens", "content"),
    (0.7, 8.75, "q", "query"),
    (2, 8.75, "k", "key"),
    (3.3, 8.75, "v", "value"),
    (1.35, 6.2, "scores", "ink"),
    (1.35, 2.6, "softmax", "ink"),
    (2.3, 0.05, "mean of v", "value"),
):
    box(x, y, text, role, width=1.8 if text in ("tokens", "mean of v", "scores", "softmax") else 0.9)
way((2, 10.5), (2, 9.5), head=False)
for x in (0.7, 2, 3.3):
    way((2, 9.5), (x, 9.5), (x, 9.07))
way((0.7, 8.45), (0.7, 6.52))
way((2, 8.45), (2, 6.52))
way((1.35, 5.9), (1.35, 2.92))
way((1.35, 2.3), (1.35, 0.7), (1.9, 0.7), (1.9, 0.37))
way((3.3, 8.45), (3.3, 0.7), (2.7, 0.7), (2.7, 0.37))

stream = [("sinusoidal", "sinusoids")], [("learned", "learned table")]
turn = [("rope", "rotary")], [("xpos", "xPos")]
plain = [("t5", "T5"), ("alibi", "ALiBi"), ("kerple", "KERPLE"), ("fire", "FIRE")]
heard = [("shaw", "Shaw, on keys"), ("transformer_xl", "Transformer-XL"), ("deberta", "DeBERTa")]
heard, kinds = [*heard, ("cope", "CoPE")], ("deaf to the words", "reads the words")
place(10.0, [2], "+", "1  added to the stream", verdict("sinusoidal", "learned"), stream)
place(7.65, [0.7, 2], "↻", "2  turned: queries and keys", verdict("rope", "xpos"), turn)
scored = ("t5", "alibi", "kerple", "fire", "shaw_keys", "transformer_xl", "deberta", "cope")
place(5.4, [1.35], "+", "3  added to the scores", verdict(*scored), (plain, heard), kinds)
place(1.7, [3.3], "+", "4  added to the values", verdict("shaw_values"), ([("shaw", "Shaw, on values")],))
fig.suptitle("Four places for position; two of them reach the values", x=0.02, ha="left")
figures.publish(
    fig,
    alt="An attention layer drawn from top to bottom: tokens; queries, keys and values; scores; softmax; the "
    "mean of the values. Rings mark four places. One, in the stream before queries, keys and values part: "
    "sinusoids and a learned table. Two, on queries and keys: rotary and xPos. Three, on the scores: T5, "
    "ALiBi, KERPLE and FIRE, deaf to the words, and beside them Shaw on keys, Transformer-XL, DeBERTa and "
    "CoPE, which read the words. Four, on the values: Shaw on values. For one repeated word the rows differ "
    "with places one and four, and are all the same with two and three.",
    numbers={
        **{f"constant_{name}": value for name, value in constant.items()},
        "order_least": min(min(each) for each in order.values()),
        "constant_scores": max(constant[name] for name in ("rope", "xpos", *scored)),
        "constant_values": min(constant[name] for name in ("sinusoidal", "learned", "shaw_values")),
    },
    seed=f"0 to {SEEDS - 1}",
    size=f"{LENGTH} tokens, {DIM} features, one causal layer",
    spread=f"of {SEEDS} seeds the largest where it is rounding, the smallest elsewhere",
)

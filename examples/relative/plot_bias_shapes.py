r"""
Shapes of biases
================

What eight schemes add to the score of a key so many tokens before the query, up to four times the length on
which a model is taken to be trained. What it would learn is set by hand or drawn at random.
"""

import matplotlib.pyplot as plt
import torch

from posbook import alibi, attention, cope, figures, fire, frequencies, kerple, positions, shaw, t5_bias
from posbook import transformer_xl as xl

plt.style.use("posbook.figures.posbook")
torch.set_num_threads(1)

# DIM is even. Half of the schemes end flat, as the title has it, if LENGTH is beyond 128, where T5's last
# bucket has begun, and well beyond CLIP and twice COUNTED.
TRAINED, LENGTH, DIM, CLIP, COUNTED = 128, 512, 32, 48, 64
at = torch.arange(LENGTH)
offsets = positions.offsets(queries=at[-1:], keys=at)
back = -offsets[0]

# %%
# Four are deaf to the words. T5's table falls evenly from bucket to bucket, and FIRE's network is a straight
# line. FIRE's bias depends on where the query stands: one stands at the trained length, one at the end.

one = torch.ones(1, dtype=torch.float64)
table = -torch.arange(32, dtype=torch.float64)[:, None] / 3


def fires(query):
    share = fire.distances(queries=at[query:][:1], keys=at[: query + 1], c=1, threshold=TRAINED / 2)
    return fire.bias(share, lambda share: -4 * share)[0, 0].flip(0)


deaf = {
    "alibi": alibi.bias(one / 32, offsets)[0, 0].flip(0),
    "t5": t5_bias.bias(table, t5_bias.buckets(offsets, bidirectional=False))[0, 0].flip(0),
    "kerple": kerple.logarithmic(one, one, offsets)[0, 0].flip(0),
    "fire": fires(LENGTH - 1),
}

# %%
# Four read the words: each is shown for two queries. Tables are random walks, so that neighbouring rows are
# alike. CoPE counts the tokens that a query wants, until its table ends.

draw = torch.Generator().manual_seed(1)
q, k, (v, key) = (torch.randn(n, DIM, generator=draw, dtype=torch.float64) for n in (2, LENGTH, 2))
near, counted, k_rows, q_rows = (
    torch.randn(n, DIM, generator=draw, dtype=torch.float64).cumsum(0) / 8
    for n in (2 * CLIP + 1, COUNTED + 1, 2 * CLIP, 2 * CLIP)
)
both = offsets.expand(2, -1)
row = (CLIP - both).clamp(0, 2 * CLIP - 1)
r = xl.encode(frequencies.angles(at, frequencies.geometric(DIM)))
gates = cope.gates(attention.scores(q, k), torch.ones(2, LENGTH, dtype=torch.bool))
read = {
    "shaw": shaw.key_term(q, near, shaw.indices(both, CLIP)),
    "transformer_xl": xl.terms(q, k, r, torch.zeros_like(v), v, both),
    "deberta": ((q @ k_rows.T).gather(1, row) + (q_rows @ key)[row]) / (3 * DIM) ** 0.5,
    "cope": cope.term(q, counted, cope.positions(gates, COUNTED + 1)),
}

# %%
# The nearest key is on the left, and a vertical line marks the trained length.

fig, panels = plt.subplot_mosaic(
    [["deaf", "deaf"], ["shaw", "transformer_xl"], ["deberta", "cope"]],
    figsize=(7.2, 8.4),
    height_ratios=(2, 1, 1),
)
ax = panels["deaf"]
names = {"alibi": "ALiBi", "t5": "T5", "kerple": "KERPLE, log", "fire": "FIRE"}
for name, bias in deaf.items():
    figures.curves.curve(ax, at, bias, name, label=names[name])
figures.curves.curve(ax, at[:TRAINED], fires(TRAINED - 1), "fire")
ax.annotate(
    "FIRE for an\nearlier query",
    (TRAINED - 1, fires(TRAINED - 1)[-1]),
    (TRAINED + 47, -1.6),
    color=figures.look("fire").colour,
    va="center",
    arrowprops={"arrowstyle": "-", "color": figures.look("fire").colour},
)
lowest = round(min(bias.min().item() for bias in deaf.values()))
ax.text(TRAINED + 6, lowest + 0.5, "trained\nlength", color=figures.colour("muted"), va="center")
ax.set(xlabel="tokens from the query back to the key", ylabel="added to the score", ylim=(lowest - 1.5, 0.8))
ax.set_yticks(range(0, lowest, -5))
ax.set_title("deaf to the words")
titles = {"shaw": "Shaw", "transformer_xl": "Transformer-XL", "deberta": "DeBERTa", "cope": "CoPE"}
for name, terms in read.items():
    for term, dash in zip(terms, ("-", (0, (3, 1.5))), strict=True):
        panels[name].plot(back, term, color=figures.look(name).colour, linestyle=dash, linewidth=1.8)
    panels[name].set_title(f"{titles[name]}, two queries", color=figures.look(name).colour)
for panel in panels.values():
    panel.axvline(TRAINED, color=figures.colour("muted"), linewidth=1)
    panel.set_xticks([0, TRAINED, LENGTH // 2, LENGTH])
figures.curves.label_ends(ax)
fig.suptitle("Four are deaf to the words, four read them; half end flat", x=0.02, ha="left")
flat = int((deaf["t5"] != deaf["t5"][-1]).sum())
figures.publish(
    fig,
    alt=f"Above, what four schemes add to the score, from the query back over {LENGTH} tokens. ALiBi falls "
    f"in a straight line. KERPLE falls ever more slowly. T5 falls in steps and is flat from {flat} tokens "
    f"on; the trained length is {TRAINED}. FIRE falls to the same lowest value for a query at {TRAINED} and "
    f"for one at {LENGTH}. Below, four panels with two queries each: Shaw, DeBERTa and CoPE differ from "
    "query to query and end flat; Transformer-XL goes up and down to the end.",
    numbers={
        **{f"{name}_trained": bias[TRAINED - 1].item() for name, bias in deaf.items()},
        **{f"{name}_end": bias[-1].item() for name, bias in deaf.items()},
        "fire_early_end": fires(TRAINED - 1)[-1].item(),
        "t5_flat_from": flat,
        "trained": TRAINED,
        "length": LENGTH,
    },
)

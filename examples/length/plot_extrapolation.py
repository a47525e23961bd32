r"""
Train short, test long
======================

The same small model with six encodings, trained on 64 characters and asked with contexts of up to eight
times that. All contexts are asked for the same characters; only how far they reach back differs.
"""

import statistics

import matplotlib.pyplot as plt
from matplotlib.ticker import FixedLocator, NullLocator

from posbook import figures
from posbook.experiments import records

plt.style.use("posbook.figures.posbook")

TRAINED = 64  # of the models that were trained: no setting

# %%
# The records of trained models come with the package; ``python -m posbook.experiments extrapolation`` makes
# them anew, at two minutes a model. Three models that only count letters show what a loss is worth.

record = records.load("extrapolation")
names = {
    "rope": "RoPE",
    "alibi": "ALiBi",
    "sinusoidal": "sinusoidal",
    "learned": "learned",
    "t5": "T5",
    "none": "none",
}
found = {name: records.runs(record, name) for name in names}
lengths = found["rope"][0]["lengths"]
counted = {name: records.runs(record, name)[0]["loss"] for name in ("unigram", "bigram", "trigram")}


def losses(name, length, what="last"):
    """One loss a seed, at the end of contexts of this length, or over the whole of them."""
    return [run[what][lengths.index(length)] for run in found[name]]


# %%
# The learned table has no row beyond the 64th: there its last row is repeated.

fig, ax = plt.subplots(figsize=(7.2, 6.4))
for name, label in names.items():
    rows = [run["last"] for run in found[name]]
    middle = [statistics.median(column) for column in zip(*rows, strict=True)]
    figures.curves.curve(ax, lengths, middle, name, label=label, seeds=rows)
for name, loss in counted.items():
    ax.axhline(loss, color=figures.colour("muted"), linewidth=0.9, linestyle=(0, (1, 2)), zorder=1)
    ax.text(16.5, loss + 0.03, name, color=figures.colour("muted"))
ax.axvline(TRAINED, color=figures.colour("axis"), linewidth=1.2, linestyle=(0, (2, 2)))
ax.set_xscale("log", base=2)
ax.xaxis.set_major_locator(FixedLocator([16, 32, 64, 128, 256, 512]))
ax.xaxis.set_major_formatter("{x:.0f}")
ax.xaxis.set_minor_locator(NullLocator())
ax.text(
    TRAINED * 0.94, ax.get_ylim()[1], "trained length", ha="right", va="top", color=figures.colour("muted")
)
ax.set_xlabel("context (characters)")
ax.set_ylabel("loss on the same characters (nats)")
ax.set_title("Beyond the trained length")
figures.curves.label_ends(ax)


def middle(name, length, what="last"):
    return statistics.median(losses(name, length, what))


def spread(name, length):
    return max(losses(name, length)) - min(losses(name, length))


figures.publish(
    fig,
    alt="Loss over the length of the context, for six encodings, with dotted lines for models that count "
    "letters. Up to the trained length of 64 all fall. Beyond it sinusoids jump at once to above three, RoPE "
    "holds to about 96 and then jumps as high, the learned table and no encoding rise too, and ALiBi and T5 "
    "stay where they were.",
    numbers={
        **{
            f"{name}_{length}": middle(name, length)
            for name in names
            for length in (64, 80, 96, 128, 256, 512)
        },
        **{f"{name}_spread": spread(name, TRAINED) for name in names},
        **{f"{name}_spread_256": spread(name, 256) for name in names},
        **{
            f"{name}_mean_{n}": middle(name, n, "mean")
            for name in ("rope", "alibi")
            for n in (64, 128, 256, 512)
        },
        **counted,
        "gap_alibi": middle("alibi", TRAINED) - middle("rope", TRAINED),
        "gap_none": middle("none", TRAINED) - middle("rope", TRAINED),
        "rope_worse": middle("rope", 4 * TRAINED) - middle("rope", TRAINED),
        "trained": TRAINED,
    },
    seed="0 to 2 for RoPE, ALiBi and sinusoids, 0 and 1 for the others",
    size="four layers of width 64, 1500 steps of 2048 characters; loss on 4096 characters",
    spread="median; every seed drawn",
)

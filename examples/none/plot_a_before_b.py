r"""
A before B, beyond the trained length
=====================================

Small decoders learn on sequences of 4 to 16 tokens whether A came before B, and are asked on up to 128.
Ten seeds for each encoding: with fewer, the ranking is an accident.
"""

import statistics

import matplotlib.pyplot as plt
from matplotlib.ticker import FixedLocator, NullLocator

from posbook import figures
from posbook.experiments import records

plt.style.use("posbook.figures.posbook")

# %%
# The records come with the package; ``python -m posbook.experiments a_before_b`` makes them anew in five
# minutes.

record = records.load("a_before_b")
names = {
    "none": "none",
    "learned": "learned, last row repeated",
    "sinusoidal": "sinusoidal",
    "t5": "T5",
    "alibi": "ALiBi",
    "rope": "RoPE",
}
found = {name: records.runs(record, name) for name in names}
lengths = found["none"][0]["lengths"]


def at(name, length):
    """One share of right answers a seed."""
    return [run["accuracy"][lengths.index(length)] for run in found[name]]


# %%
# One line a seed.

fig, panels = plt.subplots(3, 2, figsize=(7.2, 8.4), sharex=True, sharey=True)
for ax, (name, label) in zip(panels.flat, names.items(), strict=True):
    look = figures.look(name)
    for run in found[name]:
        ax.plot(
            lengths, run["accuracy"], color=look.colour, linewidth=1.1, alpha=0.5, marker="o", markersize=3
        )
    middle = [statistics.median(at(name, length)) for length in lengths]
    ax.plot(lengths, middle, color=look.colour, linewidth=3)
    ax.axhline(0.5, color=figures.colour("axis"), linewidth=1, linestyle=(0, (2, 2)))
    ax.set_title(label)
    ax.set_xscale("log", base=2)
    ax.xaxis.set_major_locator(FixedLocator(lengths))
    ax.xaxis.set_major_formatter("{x:.0f}")
    ax.xaxis.set_minor_locator(NullLocator())
    ax.set_ylim(0.42, 1.03)
for ax in panels[:, 0]:
    ax.set_ylabel("right answers")
for ax in panels[-1]:
    ax.set_xlabel("length (tokens)")

figures.publish(
    fig,
    alt="Six panels, one for each encoding, of the share of right answers over the length of the "
    "sequence, from the longest in training, 16, to 128; thin lines are ten seeds, the thick one "
    "their median, the dashed line one half. All begin at one. Some seeds of every encoding fall; "
    "how many and how far differs.",
    numbers={
        **{
            f"{name}_{what}_{length}": value
            for name in names
            for length in lengths
            for what, value in (
                ("median", statistics.median(at(name, length))),
                ("worst", min(at(name, length))),
                ("best", max(at(name, length))),
            )
        },
        **{f"{name}_perfect_128": sum(value > 0.99 for value in at(name, 128)) for name in names},
        "seeds": len(found["none"]),
    },
    seed="0 to 9",
    size="two layers of width 64, 300 steps; 1024 sequences asked at each length",
    spread="every seed drawn",
)

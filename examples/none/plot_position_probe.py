r"""
Where the position can be read
==============================

From the stream of a trained model, before its first block and after each, a small reader guesses where a
token stands. The model without an encoding knows it in the middle, and forgets it in the end.
"""

import matplotlib.pyplot as plt

from posbook import figures
from posbook.experiments import records

plt.style.use("posbook.figures.posbook")

# %%
# The records come with the package; ``python -m posbook.experiments position_probe`` makes them anew.

record = records.load("position_probe")
names = {
    "none": "none",
    "none-untrained": "none, untrained",
    "rope": "RoPE",
    "alibi": "ALiBi",
    "t5": "T5",
    "learned": "learned",
    "sinusoidal": "sinusoidal",
}
found = {name: records.runs(record, name) for name in names}
guessing = found["none"][0]["guessing"]


def middle(name, what):
    return records.middle(found[name], what)


# %%
# Two readers: a linear one, and one with a hidden layer. Guessing is off by a quarter of the length.

fig, panels = plt.subplots(2, 1, figsize=(7.2, 9.0), sharex=True)
for ax, what, title in (
    (panels[0], "linear", "A linear reader"),
    (panels[1], "hidden", "A reader with a hidden layer"),
):
    ax.axhline(guessing, color=figures.colour("muted"), linewidth=1, linestyle=(0, (2, 2)))
    ax.text(0, guessing + 0.6, "guessing", color=figures.colour("muted"))
    for name, label in names.items():
        rows = [run[what] for run in found[name]]
        if name == "none-untrained":
            ax.plot(range(5), middle(name, what), color=figures.colour("muted"), linewidth=1.6, label=label)
        else:
            figures.curves.curve(ax, range(5), middle(name, what), name, label=label, seeds=rows)
    ax.set_ylim(-0.5, 18.5)
    ax.set_xlim(-0.15, 4.15)
    ax.set_ylabel("mean error (tokens)")
    ax.set_title(title)
panels[1].set_xticks(range(5), ["embedding", "block 1", "block 2", "block 3", "block 4"])
for ax in panels:
    figures.curves.label_ends(ax)

shuffled = {name: middle(name, "shuffled") for name in ("none", "none-untrained")}
figures.publish(
    fig,
    alt="Two panels of curves over depth: the mean error of a reader that guesses the position, from "
    "the embedding to block four. Sinusoidal and learned start near zero and stay low until the "
    "last block. RoPE, ALiBi and T5 stay near guessing. Without an encoding the error starts at "
    "guessing, falls to about seven tokens after blocks two and three, and rises again; untrained "
    "it stays at guessing.",
    numbers={
        "guessing": guessing,
        **{f"{name}_linear_best": min(middle(name, "linear")) for name in ("rope", "alibi")},
        **{
            f"{name.replace('-', '_')}_{what}_{depth}": middle(name, what)[depth]
            for name in names
            for what in ("linear", "hidden")
            for depth in range(5)
        },
        **{
            f"{name.replace('-', '_')}_shuffled_{depth}": values[depth]
            for name, values in shuffled.items()
            for depth in range(5)
        },
        **{
            f"{name.replace('-', '_')}_fall": middle(name, "spread")[0] / middle(name, "spread")[-1]
            for name in ("none", "none-untrained")
        },
    },
    seed="0 and 1",
    size="four layers of width 64, 64 characters; readers fitted on 400 windows, asked on 100",
    spread="median; every seed drawn",
)

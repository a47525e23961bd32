r"""
Learned and sinusoidal, by the length of the training
=====================================================

"They perform alike" is a statement about the end of training. The same small model is trained three times,
each time for longer, with a table of its own and with sinusoids.
"""

import statistics

import matplotlib.pyplot as plt

from posbook import figures
from posbook.experiments import records

plt.style.use("posbook.figures.posbook")

# %%
# The records come with the package; ``python -m posbook.experiments parity`` makes them anew.

record = records.load("parity")
trainings = sorted({int(run["variant"].split("-")[1]) for run in record["runs"]})
loss = {
    name: [[run["last"][0] for run in records.runs(record, f"{name}-{steps}")] for steps in trainings]
    for name in ("learned", "sinusoidal")
}

# %%
# The fewest seeds where a training takes longest; every one is drawn.

fig, ax = plt.subplots(figsize=(7.2, 4.8))
for name, label in (("learned", "learned"), ("sinusoidal", "sinusoidal")):
    look = figures.look(name)
    middle = [statistics.median(found) for found in loss[name]]
    ax.plot(trainings, middle, **look.line, label=label, zorder=3)
    for steps, found in zip(trainings, loss[name], strict=True):
        ax.plot([steps] * len(found), found, "o", color=look.colour, markersize=3.6, alpha=0.6)
ax.set_xscale("log")
ax.set_xticks(trainings, [f"{steps:,}".replace(",", " ") for steps in trainings])
ax.minorticks_off()
ax.set_xlabel("steps of training")
ax.set_ylabel("loss (nats a character)")
ax.set_title("The gap closes late")
figures.curves.label_ends(ax)

gaps = [
    statistics.median(a) - statistics.median(b)
    for a, b in zip(loss["learned"], loss["sinusoidal"], strict=True)
]
figures.publish(
    fig,
    alt="Two falling curves of the loss over 600, 1500 and 3000 steps of training. After 600 steps the "
    "model with a learned table is clearly behind that with sinusoids; after 1500 by less; after "
    "3000 the two are nearly alike.",
    numbers={
        **{f"gap_{steps}": gap for steps, gap in zip(trainings, gaps, strict=True)},
        **{f"learned_{n}": statistics.median(x) for n, x in zip(trainings, loss["learned"], strict=True)},
        **{
            f"sinusoidal_{n}": statistics.median(x)
            for n, x in zip(trainings, loss["sinusoidal"], strict=True)
        },
        "spread_600": max(max(x[0]) - min(x[0]) for x in loss.values()),
        "steps_first": trainings[0],
        "steps_middle": trainings[1],
        "steps_last": trainings[-1],
    },
    seed="0 to 2 at 600 steps, 0 and 1 at 1500, 0 at 3000",
    size="four layers of width 64, 64 characters; loss on 4096 characters",
    spread="median; every seed drawn",
)

r"""
The rules of scaling on a trained model
=======================================

A small rotary model, trained on 64 characters, at two, four and eight times that under every rule of
``posbook.scaling``; and what each rule costs where nothing had to be changed.
"""

import statistics

import matplotlib.pyplot as plt

from posbook import figures, frequencies, scaling
from posbook.experiments import records

plt.style.use("posbook.figures.posbook")

TRAINED = 64  # of the models that were trained, as their width of 16 is: no settings
theta = frequencies.geometric(16)
turns = frequencies.turns(theta, TRAINED)

# %%
# The records come with the package; ``python -m posbook.experiments extension`` makes them anew. The fastest
# pair makes ten turns in the trained length. By turns, as in the paper, a ramp that begins at 32 slows it
# too; by the index of the pair, as released, the ramp is cut off at pair 0, which is kept. "Fitted" keeps
# pairs with two turns, and slows by the whole factor those with half a turn.

record = records.load("extension")
names = {
    "plain": "as trained",
    "linear": "interpolation",
    "ntk": "NTK-aware",
    "dynamic": "dynamic NTK",
    "yarn-turns": "YaRN, ramp by turns",
    "yarn": "YaRN, as released",
    "llama3": "Llama 3",
    "longrope": "LongRoPE, by hand",
    "yarn-fitted": "YaRN, fitted",
}
found = {name: records.runs(record, name) for name in names}
factors = found["plain"][0]["factors"]
reference = statistics.median(run["at_length"][0] for run in found["plain"])


def middle(name, what, factor=None):
    """The median over the seeds."""
    values = [run[what] if factor is None else run[what][factors.index(factor)] for run in found[name]]
    return statistics.median(values)


# %%
# Above, further out than the model was trained; below, what stands at its own length once the rule is set for
# four times that, and what a short training at four times the length makes of it.

fig, (beyond, tuned) = plt.subplots(2, 1, figsize=(7.2, 10.0))
rows = list(names)
for factor, role, marker in zip(factors, ("good", "position", "warn"), "os^", strict=True):
    for row, name in enumerate(rows):
        values = [run["zero_shot"][factors.index(factor)] for run in found[name]]
        ax = beyond
        ax.plot(values, [row] * len(values), marker, color=figures.colour(role), markersize=6, alpha=0.7)
    beyond.annotate(
        f"{factor}×",
        (middle(rows[0], "zero_shot", factor), 0),
        (0, 10),
        textcoords="offset points",
        ha="center",
        color=figures.colour(role),
        weight="bold",
    )
for row, name in enumerate(rows):
    values = [run["at_length"][factors.index(4)] for run in found[name]]
    tuned.plot(values, [row] * len(values), "D", color=figures.colour("key"), markersize=6, alpha=0.7)
    after = [run["tuned"] for run in found[name] if "tuned" in run]
    tuned.plot(after, [row] * len(after), "o", color=figures.colour("query"), markersize=6, alpha=0.7)
for what, role, value, side in (
    ("at its own length", "key", middle(rows[0], "at_length", 4), "left"),
    ("at four times, trained on", "query", middle(rows[0], "tuned"), "center"),
):
    at = {"textcoords": "offset points", "ha": side, "weight": "bold", "color": figures.colour(role)}
    tuned.annotate(what, (value, 0), (4 if side == "left" else 0, 10), **at)
for ax in (beyond, tuned):
    ax.axvline(reference, color=figures.colour("muted"), linewidth=1.2, linestyle=(0, (2, 2)))
    ax.set_yticks(range(len(rows)), [names[name] for name in rows])
    ax.set_ylim(len(rows) - 0.5, -0.9)
    ax.grid(axis="y", visible=False)
    ax.set_xlabel("loss (nats a character)")
beyond.set_title("Beyond the trained length, nothing trained anew")
tuned.set_title("Set for four times the length")

figures.publish(
    fig,
    alt="Two panels of dots, one row for each rule. Above, losses at two, four and eight times the "
    "trained length: as trained they lie far from the dashed line of the trained length; NTK-aware "
    "is near it at twice the length and not beyond; rules that slow only the pairs that never came "
    "round stay nearest. Below, with rules set for four times: what each costs at the trained "
    "length, and the loss after a short training.",
    numbers={
        "reference": reference,
        **{
            f"{name.replace('-', '_')}_{factor}": middle(name, "zero_shot", factor)
            for name in rows
            for factor in factors
        },
        **{
            f"{name.replace('-', '_')}_home_{f}": middle(name, "at_length", f)
            for name in rows
            for f in factors
        },
        **{f"{name.replace('-', '_')}_tuned": middle(name, "tuned") for name in rows if name != "dynamic"},
        "seeds": len(found["plain"]),
        "trained": TRAINED,
        "tuning": record["settings"]["tuning"],
        "most_turns": int(turns[0]),
        "yarn_turns_slows": float((theta / scaling.yarn(theta, 4, TRAINED, ramp="turns"))[0]),
        "ntk_slows": float((theta / scaling.ntk(theta, factor=4))[turns < 1][0]),
    },
    seed="0 to 2",
    size="four layers of width 64, trained on 64 characters; loss on 2048 characters",
    spread="every seed drawn; medians quoted",
)

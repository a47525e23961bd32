r"""
Every map of frequencies in one figure
======================================

A model with heads of width 128, trained on 4096 tokens, shall read eight times as many.
Above, by how much each method slows each pair; below, how far each moves the scores that the model was
trained with.
"""

import math

import matplotlib.pyplot as plt
import torch

from posbook import figures, frequencies, scaling

plt.style.use("posbook.figures.posbook")
torch.set_num_threads(1)

DIM, TRAINED, FACTOR = 128, 4096, 8
theta = frequencies.geometric(DIM)
turns = frequencies.turns(theta, TRAINED)
maps = {
    "interpolation": scaling.linear(theta, FACTOR),
    "ntk": scaling.ntk(theta, FACTOR),
    "yarn_turns": scaling.yarn(theta, FACTOR, TRAINED, ramp="turns"),
    "yarn_index": scaling.yarn(theta, FACTOR, TRAINED),
    "llama3": scaling.llama3(theta, FACTOR, TRAINED),
}
names = {
    "interpolation": "position interpolation",
    "ntk": "NTK-aware",
    "yarn_turns": "YaRN, as in the paper",
    "yarn_index": "YaRN, as released",
    "llama3": "Llama 3.1",
}
looks = {
    "interpolation": ("past", "-"),
    "ntk": ("future", (0, (6, 2))),
    "yarn_turns": ("position", (0, (1, 1.2))),
    "yarn_index": ("position", "-"),
    "llama3": ("query", (0, (5, 1.5, 1, 1.5))),
}

# %%
# A pair that made less than one turn in training must be slowed by the whole factor, or else it comes to
# angles that it never had. The others have been all around.

slower = {name: theta / slowed for name, slowed in maps.items()}
never = turns < 1
beyond = {name: int((slower[name][never] < FACTOR * (1 - 1e-12)).sum()) for name in maps}

# %%
# The score of random vectors, before and after, at a distance: the root of the mean square of the difference
# over that of the score itself. The chapter proves the formula, so nothing needs to be drawn at random.

at = torch.logspace(0, torch.log10(torch.tensor(TRAINED - 1.0)), 240).round().unique().to(torch.float64)


def moved(slowed, distances):
    """How far a random score moves, in units of its own spread, at each distance."""
    return (2 * (1 - (distances[:, None] * (slowed - theta)).cos()).mean(dim=-1)).sqrt()


change = {name: moved(slowed, at) for name, slowed in maps.items()}
places = torch.tensor([1.0, 16.0, 256.0])

# %%
# Two panels, five lines each, named where they lie apart.

fig, (above, below) = plt.subplots(2, 1, figsize=(7.2, 9.6), height_ratios=(5, 4))
pairs = torch.arange(len(theta))
first_slow, last_fast = int(never.nonzero()[0]), int((turns >= 32).nonzero()[-1])
above.axvspan(first_slow - 0.5, 64, color=figures.colour("panel"), zorder=0)
above.axvspan(-1, last_fast + 0.5, color=figures.colour("panel"), zorder=0)
for name in maps:
    role, dash = looks[name]
    style = {"color": figures.colour(role), "linestyle": dash}
    above.plot(pairs, slower[name], **style, zorder=3)
    below.plot(at, change[name], **style, zorder=3)
for name, x, y, side in (
    ("interpolation", 0, 8.35, "left"),
    ("ntk", 1, 1.85, "left"),
    ("yarn_turns", 34.5, 5.3, "right"),
    ("yarn_index", 41.5, 1.75, "left"),
    ("llama3", 41.5, 1.42, "left"),
):
    above.text(x, y, names[name], color=figures.colour(looks[name][0]), weight="bold", ha=side, va="bottom")
above.set_yscale("log", base=2)
above.set_yticks([1, 2, 4, 8], ["1", "2", "4", "8"])
above.set_ylim(0.66, 10.4)
above.set_xlim(-1, 64)
above.set_xticks([0, 16, 32, 48, 63])
inside = {"color": figures.colour("muted"), "va": "bottom", "ha": "center"}
above.text(9.75, 0.7, "32 turns or more\nin training", **inside)
above.text(33, 0.7, "at least one turn", **inside)
above.text(55, 0.7, "less than one\nturn", **inside)
above.set_xlabel("pair, from the fastest to the slowest")
above.set_ylabel("slowed by")
above.set_title("How much each pair is slowed, for 8 times the length")
below.set_xscale("log", base=2)
below.set_xticks([1, 4, 16, 64, 256, 1024, 4096], ["1", "4", "16", "64", "256", "1024", "4096"])
below.axhline(2**0.5, color=figures.colour("ink"), linewidth=1.2, linestyle=(0, (1, 1.2)))
below.text(1.1, 1.5, "two scores that have nothing in common", va="bottom")
below.set_yscale("log")
below.set_ylim(5e-4, 3)
below.set_yticks([1e-3, 1e-2, 1e-1, 1], ["0.001", "0.01", "0.1", "1"])
below.set_xlabel("distance to the key (tokens), all within the trained length")
below.set_ylabel("change (1 = spread of a score)")
below.set_title("How far that moves a random score")

# At short distances every line has slope 1, and its name runs along it.
fig.draw_without_rendering()
here, there = below.transData.transform([(2, 0.002), (32, 0.032)])
slope = math.degrees(math.atan2(*(there - here)[::-1]))
for name, x, y, side in (
    ("interpolation", 1.1, 0.86, "bottom"),
    ("ntk", 1.25, 0.047, "bottom"),
    ("yarn_turns", 2, 0.0098, "bottom"),
    ("yarn_index", 4.5, 0.0084, "top"),
    ("llama3", 12, 0.0068, "top"),
):
    along = {"rotation": 0 if name == "interpolation" else slope, "rotation_mode": "anchor"}
    below.text(x, y, names[name], color=figures.colour(looks[name][0]), weight="bold", va=side, **along)

figures.publish(
    fig,
    alt="Two panels. Above, by how much each of 64 pairs is slowed: position interpolation 8 for all; NTK- "
    "aware a straight rise on the logarithmic axis from 1 to 8; both ramps of YaRN 1 up to pair 20 and "
    "8 from pair 46, the paper's rising sooner; Llama 3.1 1 up to pair 35, then steeply to 8. Below, "
    "how far a random score moves at distances up to 4096: interpolation far even for neighbours, NTK- "
    "aware from some ten tokens on, YaRN and Llama 3.1 little up to some thirty.",
    numbers={
        "never": int(never.sum()),
        "first_slow": first_slow,
        "last_fast": last_fast,
        **{f"beyond_{name}": count for name, count in beyond.items()},
        **{
            f"moved_{name}_{int(place)}": moved(slowed, places)[i].item()
            for name, slowed in maps.items()
            for i, place in enumerate(places)
        },
        "far": int(places[-1]),
    },
)

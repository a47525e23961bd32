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

# TRAINED is less than 2π times the base, 10 000, or all pairs came round; from about 1024 to 8192 the names
# of the lines have room.
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
count, first_slow, last_fast = len(theta), int(never.nonzero()[0]), int((turns >= 32).nonzero()[-1])
above.axvspan(first_slow - 0.5, count, color=figures.colour("panel"), zorder=0)
above.axvspan(-1, last_fast + 0.5, color=figures.colour("panel"), zorder=0)
for name in maps:
    role, dash = looks[name]
    style = {"color": figures.colour(role), "linestyle": dash}
    above.plot(pairs, slower[name], **style, zorder=3)
    below.plot(at, change[name], **style, zorder=3)
ramp = first_slow - last_fast  # how many pairs lie between the bands
for name, x, power, side in (
    ("interpolation", 0, 1.02, "left"),
    ("ntk", 1, 0.296, "left"),
    ("yarn_turns", last_fast + 0.56 * ramp, 0.8, "right"),
    ("yarn_index", last_fast + 0.83 * ramp, 0.27, "left"),
    ("llama3", last_fast + 0.83 * ramp, 0.17, "left"),
):
    y = FACTOR**power
    above.text(x, y, names[name], color=figures.colour(looks[name][0]), weight="bold", ha=side, va="bottom")
above.set_yscale("log", base=2)
ticks = [2**k for k in range(int(math.log2(FACTOR)) + 1)]
above.set_yticks(ticks, map(str, ticks))
above.set_ylim(FACTOR**-0.2, 1.3 * FACTOR)
above.set_xlim(-1, count)
above.set_xticks([0, count // 4, count // 2, count * 3 // 4, count - 1])
low = FACTOR**-0.17
inside = {"color": figures.colour("muted"), "va": "bottom", "ha": "center"}
above.text((last_fast - 0.5) / 2, low, "32 turns or more\nin training", **inside)
above.text((last_fast + first_slow) / 2, low, "at least one turn", **inside)
above.text((first_slow + count) / 2, low, "less than one\nturn", **inside)
above.set_xlabel("pair, from the fastest to the slowest")
above.set_ylabel("slowed by")
above.set_title(f"How much each pair is slowed, for {FACTOR} times the length")
below.set_xscale("log", base=2)
ticks = [4**k for k in range(12) if 4**k <= TRAINED]
below.set_xticks(ticks, map(str, ticks))
below.axhline(2**0.5, color=figures.colour("ink"), linewidth=1.2, linestyle=(0, (1, 1.2)))
below.text(1.1, 1.5, "two scores that have nothing in common", va="bottom")
below.set_yscale("log")
below.set_ylim(5e-4, 3)
below.set_yticks([1e-3, 1e-2, 1e-1, 1], ["0.001", "0.01", "0.1", "1"])
below.set_xlabel("distance to the key (tokens), all within the trained length")
below.set_ylabel("change (1 = spread of a score)")
below.set_title("How far that moves a random score")

# At short distances every line has slope 1, and its name runs along it, a little above or below.
fig.draw_without_rendering()
here, there = below.transData.transform([(2, 0.002), (32, 0.032)])
slope = math.degrees(math.atan2(*(there - here)[::-1]))
for name, x, times, side in (
    ("interpolation", 1.1, 3.65, "bottom"),
    ("ntk", 1.25, 1.17, "bottom"),
    ("yarn_turns", 2, 1.16, "bottom"),
    ("yarn_index", 4.5, 0.86, "top"),
    ("llama3", 12, 0.85, "top"),
):
    y = times * moved(maps[name], torch.tensor([x])).item()
    along = {"rotation": 0 if name == "interpolation" else slope, "rotation_mode": "anchor"}
    below.text(x, y, names[name], color=figures.colour(looks[name][0]), weight="bold", va=side, **along)

last_kept = int((slower["llama3"] == 1).nonzero()[-1])
at_16 = ", ".join(f"{names[name]} {moved(slowed, places)[1]:.2g}" for name, slowed in maps.items())
figures.publish(
    fig,
    alt=f"Two panels. Above, by how much each of {count} pairs is slowed: position interpolation {FACTOR} "
    f"for all; NTK-aware a straight rise on the logarithmic axis from 1 to {FACTOR}; both ramps of YaRN 1 "
    f"up to pair {last_fast} and {FACTOR} from pair {first_slow}, the paper's rising sooner; Llama 3.1 1 up "
    f"to pair {last_kept}, then steeply to {FACTOR}. Below, how far a random score moves at distances up to "
    f"{TRAINED}, in units of its spread, rising with the distance; at a distance of 16: {at_16}.",
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

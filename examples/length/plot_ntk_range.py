r"""
What NTK-aware scaling leaves alone, and what it leaves out of range
====================================================================

The pair is slowed by a power of its number.
At eight times the trained length, all slow pairs but the last come to angles that they never had; and of the
fast ones only the first keeps its pace.
"""

import matplotlib.pyplot as plt
import torch

from posbook import figures, frequencies, scaling

plt.style.use("posbook.figures.posbook")
torch.set_num_threads(1)

# DIM is at least 64, FACTOR whole. TRAINED is less than 2π times the base, 10 000, or no pair is slow; and
# up to 8192 the names have room.
DIM, TRAINED, FACTOR = 128, 4096, 8
theta = frequencies.geometric(DIM)
slowed = scaling.ntk(theta, FACTOR)
never = (frequencies.turns(theta, TRAINED) < 1).nonzero()[:, 0]

# %%
# Turns that the slow pairs make: in training, and at eight times the length under each map.

made = {
    "unchanged": frequencies.turns(theta, FACTOR * TRAINED)[never],
    "NTK-aware": frequencies.turns(slowed, FACTOR * TRAINED)[never],
    "in training": frequencies.turns(theta, TRAINED)[never],
}
over = made["NTK-aware"] / made["in training"]
enough = FACTOR ** ((DIM - 2) / (2 * int(never[0])))

# %%
# A pair that is slowed a little falls behind a little with each token. The distance at which it is one radian
# behind; at half a turn its part of a score has the opposite sign of that in training.

pairs = torch.arange(len(theta))
behind = {
    "NTK-aware": 1 / (theta - slowed),
    "position interpolation": 1 / (theta - scaling.linear(theta, FACTOR)),
    "YaRN, as released": 1 / (theta - scaling.yarn(theta, FACTOR, TRAINED)),
}

# %%
# Above the slow pairs, below all of them.

fig, (above, below) = plt.subplots(2, 1, figsize=(7.2, 8.8))
looks = {
    "unchanged": ("rope", "X"),
    "NTK-aware": ("future", "s"),
    "in training": ("ink", "o"),
    "position interpolation": ("past", "o"),
    "YaRN, as released": ("position", "^"),
}
above.vlines(never, made["in training"], made["NTK-aware"], color=figures.colour("axis"), linewidth=1.4)
for name, turns in made.items():
    role, marker = looks[name]
    above.plot(never, turns, marker, color=figures.colour(role), markersize=7, zorder=3)
above.axhline(1, color=figures.colour("muted"), linewidth=1.2, linestyle=(0, (1, 1.2)))
first, last = int(never[0]), len(theta) - 1
above.text(last + 0.4, 1.05, "one turn", color=figures.colour("muted"), ha="right", va="bottom")
above.set_yscale("log", base=2)
halves = [2**k for k in range(1, 4)]
doubles = [2**k for k in range(FACTOR.bit_length())]
above.set_yticks([*(1 / k for k in halves), *doubles], [*(f"1/{k}" for k in halves), *map(str, doubles)])
lowest = made["in training"].min().item()
above.set_ylim(0.6 * lowest, 1.13 * FACTOR)
above.set_xlim(first - 0.6, last + 0.6)
above.set_xticks([int(x) for x in torch.linspace(first, last, 5)])
# Each name stands above its dots, at some part of the way from the first slow pair to the last.
longer = f"at {FACTOR} times the length"
for part, times, name, text in (
    (0.43, 1.3, "unchanged", f"unchanged, {longer}"),
    (0.61, 1.31, "NTK-aware", f"NTK-aware,\n{longer}"),
):
    x = first + part * (last - first)
    y = times * made[name][round(x) - first]
    above.text(x, y, text, color=figures.colour(looks[name][0]), weight="bold", va="bottom")
text, colour = f"in training;\ninterpolation, {longer}", figures.colour(looks["in training"][0])
above.text(first, 1.7 * lowest, text, color=colour, weight="bold", va="bottom")
above.set_xlabel("pair: those that made less than one turn in training")
above.set_ylabel("turns at the end of the text")
above.set_title(f"{int((over > 1 + 1e-12).sum())} of {len(never)} slow pairs leave their trained range")

for name, distance in behind.items():
    role, marker = looks[name]
    finite = distance.isfinite() & (distance < 1e12)
    below.plot(pairs[finite], distance[finite], marker, color=figures.colour(role), markersize=5, zorder=3)
below.set_yscale("log")
below.set_ylim(0.7, 30_000)
below.set_xlim(-1, len(theta))
ticks = [0, *(len(theta) * eighths // 8 for eighths in (1, 2, 4, 6)), last]
below.set_xticks([1, *ticks], ["", *map(str, ticks)])
for x, y, name in (
    (len(theta) / 5, 1.25, "position interpolation"),
    (2, 1.6 * behind["NTK-aware"][1], "NTK-aware"),
    (3, 3300, "YaRN, as released"),
):
    below.text(x, y, name, color=figures.colour(looks[name][0]), weight="bold", va="bottom")
below.set_xlabel("pair")
below.set_ylabel("tokens until one radian behind")
below.set_title("Slowed a little is soon behind")

soonest, yarn = behind["NTK-aware"], behind["YaRN, as released"]
slows = yarn.isfinite() & (yarn < 1e12)
figures.publish(
    fig,
    alt=f"Above, turns made by pairs {first} to {last} at the end of a text on a logarithmic axis: in "
    f"training less than one, from {made['in training'][0]:.2f} down to {made['in training'][-1]:.2g}; "
    f"unchanged at {FACTOR} times the length {FACTOR} times that; NTK-aware in between, above the trained "
    f"dots by a factor that shrinks from {over[0]:.2f} to {over[-1]:.2f} at the last pair. Below, tokens "
    f"until a pair is one radian behind: interpolation {behind['position interpolation'][0]:.1f} for the "
    f"first pair, rising; NTK-aware never for pair 0, {behind['NTK-aware'][1]:.0f} tokens for pair 1, "
    f"fewest, {soonest.min():.0f}, at pair {int(soonest.argmin())}, then rising; YaRN only from pair "
    f"{int(slows.nonzero()[0])} on, {yarn.min():.0f} or more.",
    numbers={
        "never": len(never),
        "over": int((over > 1 + 1e-12).sum()),
        "worst": over.max().item(),
        "worst_pair": int(never[over.argmax()]),
        "enough": enough,
        **{f"slower_{i}": (theta / slowed)[i].item() for i in (1, 8, 16, first, last)},
        "slower_1_more": (theta / slowed)[1].item() - 1,
        **{f"behind_{i}": behind["NTK-aware"][i].item() for i in (1, 8, 16)},
        "behind_soonest": soonest.min().item(),
        "behind_soonest_pair": int(soonest.argmin()),
        "yarn_soonest": yarn.min().item(),
        "yarn_soonest_pair": int(yarn.argmin()),
    },
)

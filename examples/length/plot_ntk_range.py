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
above.text(63.4, 1.05, "one turn", color=figures.colour("muted"), ha="right", va="bottom")
above.set_yscale("log", base=2)
above.set_yticks([0.125, 0.25, 0.5, 1, 2, 4, 8], ["1/8", "1/4", "1/2", "1", "2", "4", "8"])
above.set_ylim(0.045, 9)
above.set_xlim(45.4, 63.6)
above.set_xticks([46, 50, 54, 58, 63])
for x, y, name, text in (
    (53.3, 3.3, "unchanged", "unchanged, at 8 times the length"),
    (56.4, 0.34, "NTK-aware", "NTK-aware,\nat 8 times the length"),
    (46, 0.13, "in training", "in training;\ninterpolation, at 8 times the length"),
):
    above.text(x, y, text, color=figures.colour(looks[name][0]), weight="bold", va="bottom")
above.set_xlabel("pair: those that made less than one turn in training")
above.set_ylabel("turns at the end of the text")
above.set_title(f"{int((over > 1 + 1e-12).sum())} of {len(never)} slow pairs leave their trained range")

for name, distance in behind.items():
    role, marker = looks[name]
    finite = distance.isfinite() & (distance < 1e12)
    below.plot(pairs[finite], distance[finite], marker, color=figures.colour(role), markersize=5, zorder=3)
below.set_yscale("log")
below.set_ylim(0.7, 30_000)
below.set_xlim(-1, 64)
below.set_xticks([0, 1, 8, 16, 32, 48, 63], ["0", "", "8", "16", "32", "48", "63"])
for x, y, name in (
    (13, 1.25, "position interpolation"),
    (2, 60, "NTK-aware"),
    (3, 3300, "YaRN, as released"),
):
    below.text(x, y, name, color=figures.colour(looks[name][0]), weight="bold", va="bottom")
below.set_xlabel("pair")
below.set_ylabel("tokens until one radian behind")
below.set_title("Slowed a little is soon behind")

figures.publish(
    fig,
    alt="Above, turns made by pairs 46 to 63 at the end of a text on a logarithmic axis: in training less "
    "than one, from nearly one down to a thirteenth; unchanged at eight times the length eight times "
    "that; NTK-aware in between, above the trained dots by a factor that shrinks from 1.75 to 1 at the "
    "last pair. Below, tokens until a pair is one radian behind: interpolation one token for the first "
    "pair, rising; NTK-aware none for pair 0, 36 tokens for pair 1, fewer around pair 6, then rising; "
    "YaRN only from pair 21 on, above a hundred.",
    numbers={
        "never": len(never),
        "over": int((over > 1 + 1e-12).sum()),
        "worst": over.max().item(),
        "worst_pair": int(never[over.argmax()]),
        "enough": enough,
        **{f"slower_{i}": (theta / slowed)[i].item() for i in (1, 8, 16, 32, 46, 63)},
        "slower_1_more": (theta / slowed)[1].item() - 1,
        **{f"behind_{i}": behind["NTK-aware"][i].item() for i in (1, 8, 16)},
        "behind_soonest": behind["NTK-aware"].min().item(),
        "behind_soonest_pair": int(behind["NTK-aware"].argmin()),
        "yarn_soonest": behind["YaRN, as released"].min().item(),
        "yarn_soonest_pair": int(behind["YaRN, as released"].argmin()),
    },
)

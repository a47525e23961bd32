r"""
Three bands of Llama 3.1
========================

The frequencies of Llama 3.1, in the order of their wavelengths: kept, slowed by eight, and in between.
Below, what that means for a text of 128K tokens.
"""

import matplotlib.pyplot as plt
import torch

from posbook import figures, frequencies, scaling

plt.style.use("posbook.figures.posbook")
torch.set_num_threads(1)

DIM, BASE, TRAINED, LONG, FACTOR = 128, 500_000.0, 8192, 131_072, 8
theta = frequencies.geometric(DIM, BASE)
slowed = scaling.llama3(theta, FACTOR, TRAINED)
ratio, waves = slowed / theta, frequencies.wavelengths(theta)
keep, slow = ratio == 1, ratio <= 1 / FACTOR * (1 + 1e-12)
between = ~keep & ~slow

# %%
# Turns at the end of the text, for the pairs that made less than one in the first stage of training.

pairs = torch.arange(len(theta))[frequencies.turns(theta, TRAINED) < 1]
made = {
    "8K, first stage": frequencies.turns(theta, TRAINED)[pairs],
    "128K, slowed": frequencies.turns(slowed, LONG)[pairs],
    "128K, not slowed": frequencies.turns(theta, LONG)[pairs],
}
looks = {"8K, first stage": ("ink", "o"), "128K, slowed": ("query", "^"), "128K, not slowed": ("rope", "X")}

fig, (above, below) = plt.subplots(2, 1, figsize=(7.2, 8.6))
edges = (waves[0] / 1.6, TRAINED / 4, TRAINED, waves[-1] * 1.6)
above.axvspan(edges[1], edges[2], color=figures.colour("panel"), zorder=0)
above.plot(waves, ratio, "o", color=figures.colour("query"), markersize=6, zorder=3)
above.set_xscale("log")
above.set_yscale("log", base=2)
above.set_xlim(edges[0], edges[3])
above.set_yticks([1, 0.5, 0.25, 0.125], ["1", "1/2", "1/4", "1/8"])
above.set_ylim(0.08, 2.1)
label = {"color": figures.colour("ink"), "weight": "bold", "va": "bottom"}
above.text(100, 1.25, f"kept: {int(keep.sum())} pairs", ha="center", **label)
above.text(4100, 1.25, f"{int(between.sum())}", ha="center", **label)
above.text(150_000, 0.145, f"slowed by 8:\n{int(slow.sum())} pairs", ha="center", **label)
above.text(1900, 0.086, "2048", ha="right", color=figures.colour("muted"), va="bottom")
above.text(8800, 0.086, "8192", ha="left", color=figures.colour("muted"), va="bottom")
above.set_xlabel("wavelength before (tokens)")
above.set_ylabel("slowed to")
above.set_title("Each of 64 pairs, by its wavelength")

for name, turns in made.items():
    role, marker = looks[name]
    below.plot(pairs, turns, marker, color=figures.colour(role), markersize=6, zorder=3)
below.axhline(1, color=figures.colour("muted"), linewidth=1.2, linestyle=(0, (1, 1.2)))
below.text(63.6, 1.08, "one turn", color=figures.colour("muted"), ha="right", va="bottom")
below.set_yscale("log")
below.set_ylim(0.002, 30)
below.set_xticks([35, 42, 49, 56, 63])
for x, y, name, side in (
    (46, 5, "128K, not slowed", "left"),
    (49, 0.165, "128K, slowed", "left"),
    (44, 0.03, "8K, first stage", "right"),
):
    below.text(x, y, name, color=figures.colour(looks[name][0]), weight="bold", ha=side, va="bottom")
below.set_xlabel("pair: those with less than one turn in 8192 tokens")
below.set_ylabel("turns at the end of the text")
below.set_title("Sixteen times the length, slowed by eight")

figures.publish(
    fig,
    alt="Above, 64 pairs by wavelength: 29 with wavelengths below 2048 tokens are kept, 6 between 2048 and "
    "8192 fall from 1 to an eighth, 29 longer ones are slowed by 8. Below, turns of these 29 at the "
    "end of a text, on a logarithmic axis: at 8192 tokens below one for all; at 131 072 tokens, slowed "
    "by 8, twice as much; not slowed, sixteen times as much.",
    numbers={
        "kept": int(keep.sum()),
        "between": int(between.sum()),
        "slowed": int(slow.sum()),
        "last_kept": int(keep.nonzero()[-1]),
        "first_slowed": int(slow.nonzero()[0]),
        "times": (made["128K, slowed"] / made["8K, first stage"]).max().item(),
        "never_8k": len(pairs),
        "never_128k": int((frequencies.turns(slowed, LONG) < 1).sum()),
        "never_128k_unslowed": int((frequencies.turns(theta, LONG) < 1).sum()),
        "slowest_degrees": (360 * frequencies.turns(theta, TRAINED)[-1]).item(),
    },
)

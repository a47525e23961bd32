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

# As in Llama 3.1. TRAINED and LONG are whole multiples of 1024, FACTOR is a power of two.
DIM, BASE, TRAINED, LONG, FACTOR = 128, 500_000.0, 8192, 131_072, 8
short, long = f"{TRAINED // 1024}K, first stage", f"{LONG // 1024}K, slowed"
unslowed = f"{LONG // 1024}K, not slowed"
theta = frequencies.geometric(DIM, BASE)
slowed = scaling.llama3(theta, FACTOR, TRAINED)
ratio, waves = slowed / theta, frequencies.wavelengths(theta)
keep, slow = ratio == 1, ratio <= 1 / FACTOR * (1 + 1e-12)
between = ~keep & ~slow

# %%
# Turns at the end of the text, for the pairs that made less than one in the first stage of training.

pairs = torch.arange(len(theta))[frequencies.turns(theta, TRAINED) < 1]
made = {
    short: frequencies.turns(theta, TRAINED)[pairs],
    long: frequencies.turns(slowed, LONG)[pairs],
    unslowed: frequencies.turns(theta, LONG)[pairs],
}
looks = {short: ("ink", "o"), long: ("query", "^"), unslowed: ("rope", "X")}

fig, (above, below) = plt.subplots(2, 1, figsize=(7.2, 8.6))
edges = (waves[0] / 1.6, TRAINED / 4, TRAINED, waves[-1] * 1.6)
above.axvspan(edges[1], edges[2], color=figures.colour("panel"), zorder=0)
above.plot(waves, ratio, "o", color=figures.colour("query"), markersize=6, zorder=3)
above.set_xscale("log")
above.set_yscale("log", base=2)
above.set_xlim(edges[0], edges[3])
halves = [2**k for k in range(FACTOR.bit_length())]
above.set_yticks([1 / k for k in halves], ["1", *(f"1/{k}" for k in halves[1:])])
above.set_ylim(0.64 / FACTOR, 2.1)
label = {"color": figures.colour("ink"), "weight": "bold", "va": "bottom"}
above.text(edges[1] / 20, 1.25, f"kept: {int(keep.sum())} pairs", ha="center", **label)
above.text(TRAINED / 2, 1.25, f"{int(between.sum())}", ha="center", **label)
above.text(
    (edges[2] * edges[3]) ** 0.5,
    1.16 / FACTOR,
    f"slowed by {FACTOR}:\n{int(slow.sum())} pairs",
    ha="center",
    **label,
)
above.text(
    0.93 * edges[1], 0.69 / FACTOR, str(TRAINED // 4), ha="right", color=figures.colour("muted"), va="bottom"
)
above.text(
    1.07 * edges[2], 0.69 / FACTOR, str(TRAINED), ha="left", color=figures.colour("muted"), va="bottom"
)
above.set_xlabel("wavelength before (tokens)")
above.set_ylabel("slowed to")
above.set_title(f"Each of {len(theta)} pairs, by its wavelength")

for name, turns in made.items():
    role, marker = looks[name]
    below.plot(pairs, turns, marker, color=figures.colour(role), markersize=6, zorder=3)
below.axhline(1, color=figures.colour("muted"), linewidth=1.2, linestyle=(0, (1, 1.2)))
below.text(len(theta) - 0.4, 1.08, "one turn", color=figures.colour("muted"), ha="right", va="bottom")
below.set_yscale("log")
lowest, highest = min(t.min().item() for t in made.values()), made[unslowed].max().item()
below.set_ylim(lowest / 2, 2 * highest)
below.set_xticks([int(x) for x in torch.linspace(pairs[0], pairs[-1], 5)])
# Each name stands above its dots or below them, at some part of the way from the first pair to the last.
for part, times, name, side in (
    (0.4, 3.0, unslowed, "left"),
    (0.5, 1.46, long, "left"),
    (0.33, 0.19, short, "right"),
):
    at = int(part * (len(pairs) - 1))
    x, y = pairs[at], times * made[name][at]
    below.text(x, y, name, color=figures.colour(looks[name][0]), weight="bold", ha=side, va="bottom")
below.set_xlabel(f"pair: those with less than one turn in {TRAINED} tokens")
below.set_ylabel("turns at the end of the text")
below.set_title(f"{LONG // TRAINED} times the length, slowed by {FACTOR}")

figures.publish(
    fig,
    alt=f"Above, {len(theta)} pairs by wavelength: {int(keep.sum())} with wavelengths below {TRAINED // 4} "
    f"tokens are kept, {int(between.sum())} between {TRAINED // 4} and {TRAINED} fall from 1 to 1/{FACTOR}, "
    f"{int(slow.sum())} longer ones are slowed by {FACTOR}. Below, turns of these {len(pairs)} at the end "
    f"of a text, on a logarithmic axis: at {TRAINED} tokens below one for all; at {LONG} tokens, slowed by "
    f"{FACTOR}, {LONG / TRAINED / FACTOR:g} times as much; not slowed, {LONG / TRAINED:g} times as much.",
    numbers={
        "kept": int(keep.sum()),
        "between": int(between.sum()),
        "slowed": int(slow.sum()),
        "last_kept": int(keep.nonzero()[-1]),
        "first_slowed": int(slow.nonzero()[0]),
        "times": (made[long] / made[short]).max().item(),
        f"never_{TRAINED // 1024}k": len(pairs),
        f"never_{LONG // 1024}k": int((frequencies.turns(slowed, LONG) < 1).sum()),
        f"never_{LONG // 1024}k_unslowed": int((frequencies.turns(theta, LONG) < 1).sum()),
        "slowest_degrees": (360 * frequencies.turns(theta, TRAINED)[-1]).item(),
    },
)

r"""
YaRN has two ramps
==================

Between the pairs that are kept and those that are slowed by the whole factor, the paper lets the share that
is kept fall with the turns, and the released code with the pair's number.
"""

import matplotlib.pyplot as plt
import torch

from posbook import figures, frequencies, scaling

plt.style.use("posbook.figures.posbook")
torch.set_num_threads(1)

# Two settings, each a trained length and a factor; the first is the upper panel's. Some pairs must make 32
# turns in its length and some less than one: it is from 500 to 50 000.
DIM, SETTINGS = 128, ((4096, 8), (2048, 16))
theta = frequencies.geometric(DIM)
pairs = torch.arange(len(theta))

# %%
# The share of its own pace that a pair keeps, read off what each ramp makes of it.


def kept(trained, factor, ramp):
    ratio = scaling.yarn(theta, factor, trained, ramp=ramp) / theta
    return (ratio * factor - 1) / (factor - 1)


trained, factor = SETTINGS[0]
shares = {ramp: kept(trained, factor, ramp) for ramp in ("turns", "index")}
turns = frequencies.turns(theta, trained)
first, last = int((turns >= 32).nonzero()[-1]), int((turns < 1).nonzero()[0])

# %%
# What that does to the frequencies: how many times faster a pair turns by the released ramp.

faster = {
    setting: scaling.yarn(theta, setting[1], setting[0])
    / scaling.yarn(theta, setting[1], setting[0], ramp="turns")
    for setting in SETTINGS
}

fig, (above, below) = plt.subplots(2, 1, figsize=(7.2, 7.8), sharex=True, height_ratios=(5, 4))
purple, blue = figures.colour("position"), figures.colour("query")
above.plot(pairs, shares["turns"], "o", color=figures.colour("muted"), markersize=6, zorder=3)
above.plot(pairs, shares["index"], "^", color=purple, markersize=6.5, zorder=3)
above.set_ylim(-0.06, 1.3)
above.set_yticks([0, 0.5, 1])
above.set_ylabel("share kept")
above.set_title("The share of its pace that a pair keeps")
above.text(last, 0.42, "as released:\nby the pair's number", color=purple, weight="bold", va="bottom")
above.text(
    first - 0.6, 0.42, "in the paper:\nby the turns", color=figures.colour("muted"), weight="bold", ha="right"
)
for i, text, side in ((first, "32 turns", "right"), (last - 1, "1 turn", "left")):
    above.axvline(i, color=figures.colour("axis"), linewidth=1.2, linestyle=(0, (1, 1.2)), zorder=1)
    lean = 0.6 if side == "left" else -0.6
    above.text(i + lean, 1.14, text, color=figures.colour("muted"), ha=side)
for (setting, ratio), colour, marker, (aside, part) in zip(
    faster.items(), (purple, blue), "^v", ((8, 0.76), (-7, 0.89)), strict=True
):
    below.plot(pairs, ratio, marker, color=colour, markersize=6, zorder=3)
    x = int(ratio.argmax()) + aside, part * ratio.max()
    side = "left" if colour == purple else "right"
    name = f"{setting[0]} tokens,\n{setting[1]} times"
    below.text(*x, name, color=colour, weight="bold", ha=side, va="center")
below.set_ylim(0.9, 1.06 * max(ratio.max().item() for ratio in faster.values()))
below.set_xticks([0, *(len(theta) * quarters // 4 for quarters in (1, 2, 3)), len(theta) - 1])
below.set_xlabel("pair")
below.set_ylabel("times as fast")
below.set_title("Released over paper")

hump = " and ".join(
    f"of up to {ratio.max():.1f} around pair {int(ratio.argmax())} for {length} tokens and factor {times}"
    for (length, times), ratio in faster.items()
)
figures.publish(
    fig,
    alt=f"Two panels over {len(theta)} pairs. Above, the share of its pace that each pair keeps: both ramps "
    f"are 1 up to pair {first}, where a pair makes 32 turns in {trained} tokens, and 0 from pair {last}, "
    "where it makes less than one; the released ramp falls in a straight line, the paper's steeply at "
    f"first and then slowly, below it. Below, the quotient of the frequencies, a hump {hump}.",
    numbers={
        "first": first,
        "last": last,
        **{f"most_{length}_{times}": ratio.max().item() for (length, times), ratio in faster.items()},
        **{f"most_{length}_{times}_pair": int(ratio.argmax()) for (length, times), ratio in faster.items()},
        "scores_grow": scaling.yarn_temperature(factor) ** 2 - 1,
        "factor_wide": SETTINGS[1][1],
        **{
            f"{ramp}_{i}": shares[ramp][i].item()
            for ramp in shares
            for i in (first + 1, (first + last) // 2, last - 1)
        },
    },
)

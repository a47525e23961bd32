r"""
How far each head of ALiBi looks back
=====================================

When all keys match a query equally: above, the part of a head's weight that lies within a distance of it.
Below, how far each head looks back on average, also where the number of heads is no power of two.
"""

import math

import matplotlib.pyplot as plt
import numpy as np
import torch

from posbook import alibi, attention, figures

plt.style.use("posbook.figures.posbook")
torch.set_num_threads(1)

HEADS = 8  # above, and the first row below; up to 16, or the names of the slopes collide: more go to OTHERS
OTHERS = (12, 6, 3)  # the other rows; no powers of two, since the lower panel is about those that are none
TOKENS = 8192  # long enough for the flattest head: nothing of its weight is cut off
WINDOW = 512

# %%
# With equal content all scores are equal, so that the weights of the last query show the bias alone.

distance = torch.arange(TOKENS)
offsets = -distance.flip(0)[None]


def lookback(slopes):
    weights = attention.weights(alibi.bias(slopes, offsets))[:, 0].flip(-1)
    return weights, weights @ distance.double()


slopes = alibi.slopes(HEADS)
weights, mean = lookback(slopes)
within = weights.cumsum(-1)


def is_fraction(slope):
    return math.isclose(round(1 / slope) * slope, 1)


def name(slope):
    return f"1/{round(1 / slope)}" if is_fraction(slope) else f"{slope:.2g}"


# %%
# For 12 heads: the slopes of 8, then every second one of 16 until there are enough.


def borrowed(heads):
    return heads - (1 << (heads.bit_length() - 1))


rows = tuple(dict.fromkeys((HEADS, *OTHERS)))
found = {heads: lookback(alibi.slopes(heads))[1] for heads in rows}
evenly = {heads: lookback(2.0 ** (-8 * torch.arange(1, heads + 1).double() / heads))[1] for heads in rows}

# %%
# Both panels share their axis.

ground = {"facecolor": figures.colour("paper"), "edgecolor": "none", "pad": 1.2}
fig, (ax, below) = plt.subplots(2, figsize=(7.2, 7.4), sharex=True, height_ratios=(3, 2))
look = figures.look("alibi")
ring = {
    "color": figures.colour("accent"),
    "mfc": figures.colour("paper"),
    "markersize": 10,
    "mew": 2.2,
    "ls": "",
}
named = {"color": look.colour, "weight": "bold", "va": "center", "size": 11.5}
for head, (slope, share, at) in enumerate(zip(slopes.tolist(), within, mean.tolist(), strict=True)):
    ax.plot(distance[1:], share[1:], color=look.colour)
    if head < HEADS - borrowed(HEADS):
        ax.plot(at, np.interp(at, distance, share), look.marker, color=look.colour, markersize=11)
    else:
        ax.plot(at, np.interp(at, distance, share), "o", **ring)
    # The name stands on its curve; the steepest have begun above that height already. Slopes that are no
    # fraction lie between those that are, so that their names need a height of their own.
    height = 0.44 if is_fraction(slope) else 0.25
    x, side = np.interp(height, share, distance), "center"
    if share[1] >= height:
        x, height, side = 0.93, share[1] + 0.07 * (at < 1), "right"  # clear of its cross
    ax.text(x, height, name(slope), ha=side, bbox=ground if side == "center" else None, **named)
ax.set_xscale("log")
ax.set_xlim(0.6, 1300)
ax.set_ylim(0, 1.03)
ax.set_yticks([0, 0.5, 1])
ax.set_ylabel("weight within this distance")
beside = {"color": figures.colour("muted"), "ha": "right", "va": "bottom"}
marks = "+ or ○" if borrowed(HEADS) else "+"
ax.text(1200, 0.04, f"a curve for each slope,\n{marks} at its mean look-back", **beside)

tick = {"color": figures.colour("muted"), "markersize": 11, "mew": 2, "ls": ""}
for y, heads in enumerate(rows):
    own = heads - borrowed(heads)
    on_row, under = torch.full((heads,), y), torch.full((heads,), y + 0.32)
    below.plot(found[heads][:own], on_row[:own], look.marker, color=look.colour, markersize=11)
    below.plot(found[heads][own:], on_row[own:], "o", **ring)
    if heads != own:
        below.plot(evenly[heads], under, "|", **tick)
    outside = {"transform": below.get_yaxis_transform(), "ha": "right", "va": "center"}
    below.text(-0.02, y, f"{heads} head{'s' * (heads > 1)}", weight="bold", **outside)
for x, text, role in (
    (0.0, "+ power of two below", "alibi"),
    (0.34, "○ from the next one", "accent"),
    (0.66, "| paper’s formula", "muted"),
):
    below.text(x, 0.97, text, color=figures.colour(role), va="top", transform=below.transAxes)
below.set_ylim(len(rows) - 0.4, -1.15)
below.set_yticks([])
below.set_xticks([1, 10, 100, 1000], ["1", "10", "100", "1000"])
below.grid(axis="y", visible=False)
below.spines["left"].set_visible(False)
below.set_title("When the number of heads is no power of two")
below.set_xlabel("tokens back, with equal content")
doubling = "Each head looks back about twice as far as the one before"
fig.suptitle(doubling if HEADS == 8 else "How far each head looks back", x=0.02, ha="left")
figures.publish(
    fig,
    alt=f"Above, {HEADS} curves on a logarithmic axis, one for each slope from {name(slopes.max().item())} "
    f"to {name(slopes.min().item())}: the part of the weight within a distance. The flatter the slope, the "
    f"farther right its curve; a {'cross or circle' if borrowed(HEADS) else 'cross'} marks its mean "
    f"look-back, from {mean.min():.1f} to {mean.max():.0f} tokens. "
    f"Below, the mean look-backs of {', '.join(map(str, rows))} heads. Circles are the heads beyond a "
    "power of two: in a row the first lies left of all crosses, any others between those of the steeper "
    "heads; ticks, the paper's evenly spaced slopes, lie "
    "elsewhere.",
    numbers={f"lookback_{head}": value for head, value in enumerate(mean.tolist(), 1)}
    | {
        "window": WINDOW,
        "flattest_beyond_window": 1 - within[slopes.argmin(), WINDOW - 1].item(),
        "steepest_within_8": within[slopes.argmax(), 7].item(),
    },
)

r"""
The wedge stays
===============

Above: one pair of a query and of the same word's key, before and after both move on by as many tokens.
Below: the sum of all pairs, for three choices of query and key, at every offset up to 64.
"""

import math

import matplotlib.pyplot as plt
import torch
from matplotlib.patches import Circle, Wedge

from posbook import attention, figures, frequencies, rotary

plt.style.use("posbook.figures.posbook")
torch.set_num_threads(1)

DIM, PAIR, SHIFT = 64, 5, 8  # an even width, one of its DIM / 2 pairs, and any shift
BEFORE = (9, 5)  # the position of the query, and of the key
PEAK, SEED = -24, 0  # the peak between -26 and 26, so that its name fits beside it; any seed
TRAINED, FAR = 4096, -5000  # a length above 64, and an offset beyond it
theta = frequencies.geometric(DIM)

# %%
# A head turned to one position. Scores are divided by the two lengths, which no rotation changes: the most
# that a score can be is then 1, whatever the vectors.


def turned(x, at):
    angles = frequencies.angles(torch.as_tensor(at).reshape(-1), theta)
    return rotary.rotate(x.expand(len(angles), DIM), angles, layout="interleaved")


def score(q, k, m, n):
    return (attention.scores(turned(q, m), turned(k, n), scale=1.0) / (q.norm() * k.norm())).squeeze()


# %%
# One pair. All features are one, so both hands begin in the same direction; the angle from the query's hand
# to the key's is the wedge. With other vectors it would have their own angle in it as well.

ones = torch.ones(DIM, dtype=torch.float64)
after = tuple(at + SHIFT for at in BEFORE)


def hands(m, n):
    """The two hands of the pair as directions in radians."""
    q, k = (turned(ones, at).unflatten(-1, (-1, 2))[0, PAIR] for at in (m, n))
    return [math.atan2(y, x) for x, y in (q.tolist(), k.tolist())]


def wedge(m, n):
    q, k = hands(m, n)
    return (k - q + math.pi) % math.tau - math.pi


# %%
# All pairs. To put the highest score at an offset r, take as the key the query turned back by r tokens.
# For one more curve, give it a query and a key here, and further down a name, a colour and a place for it.

draw = torch.Generator().manual_seed(SEED)
random_q, random_k = torch.randn(2, DIM, generator=draw, dtype=torch.float64)
vectors = {
    "ones": (ones, ones),
    "random": (random_q, random_k),
    "peaked": (random_q, turned(random_q, -PEAK)[0]),
}
offsets = torch.arange(-64, 65)
curves = {name: score(q, k, 0, offsets) for name, (q, k) in vectors.items()}
moved = {name: score(q, k, 1000, 1000 + offsets) for name, (q, k) in vectors.items()}

fade = score(ones, ones, 0, torch.arange(TRAINED))  # even in the offset, so one side tells all
rises = (fade.diff() > 0).nonzero().flatten() + 1
negative = (fade < 0).nonzero().flatten().tolist()

# %%
# Which pairs stand, at an offset beyond the trained length, at an angle that training never showed.

never_round = frequencies.turns(theta, TRAINED) < 1
new = never_round & ((FAR * theta).abs() % math.tau > (TRAINED - 1) * theta)

# %%
# The two dials, and the sums below.

panels = [["before", "after"], ["sum", "sum"]]
fig, axes = plt.subplot_mosaic(panels, figsize=(7.2, 7.4), height_ratios=(5, 4))
for name, (m, n) in {"before": BEFORE, "after": after}.items():
    ax, (to_q, to_k) = axes[name], hands(m, n)
    ax.add_patch(Circle((0, 0), 1, facecolor=figures.colour("panel"), edgecolor=figures.colour("axis")))
    span = [math.degrees(edge) for edge in sorted((to_q, to_q + wedge(m, n)))]
    ax.add_patch(Wedge((0, 0), 0.46, *span, facecolor=figures.colour("position"), alpha=0.3))
    x, y = math.cos(math.pi / 4), math.sin(math.pi / 4)  # where (1, 1) points
    ax.plot([0.86 * x, x], [0.86 * y, y], color=figures.colour("muted"))
    ax.text(0.75 * x, 0.75 * y, "0", color=figures.colour("muted"), ha="center", va="center")
    for role, length, angle, letter in (("query", 0.88, to_q, "q"), ("key", 0.66, to_k, "k")):
        x, y = length * math.cos(angle), length * math.sin(angle)
        ax.plot([0, x], [0, y], color=figures.colour(role), linewidth=4)
        ax.plot(x, y, "o", color=figures.colour(role), markersize=21)
        ax.text(x, y, letter, color=figures.colour("paper"), weight="bold", ha="center", va="center")
    ax.plot(0, 0, "o", color=figures.colour("ink"), markersize=8)
    opposite = to_q + wedge(m, n) / 2 + math.pi
    label = f"{math.degrees(wedge(m, n)):.1f}°".replace("-", "−")
    ax.text(
        0.5 * math.cos(opposite),
        0.5 * math.sin(opposite),
        label,
        color=figures.colour("position"),
        weight="bold",
        ha="center",
        va="center",
    )
    ax.set_title(f"query at {m}, key at {n}", loc="center", size=12)
    ax.set(xlim=(-1.04, 1.04), ylim=(-1.04, 1.04), aspect="equal")
    ax.set_axis_off()

ax = axes["sum"]
ax.axhline(0, color=figures.colour("axis"), linewidth=0.9)
peak = int(offsets[curves["peaked"].argmax()])
outer, inner, sign = ("right", "left", -1) if peak < 0 else ("left", "right", 1)
low = min(curve.min().item() for curve in curves.values())
named = {
    "ones": ("all ones", "position", "-", -3 * sign, 0.95, inner),
    "random": (f"random (seed {SEED})", "content", "--", 63, low - 0.135, "right"),
    "peaked": (f"turned to peak at {peak}".replace("-", "−"), "accent", "-", peak + 2 * sign, 0.95, outer),
}
for name, (text, role, dash, x, y, side) in named.items():
    ax.plot(offsets, curves[name], dash, color=figures.colour(role), linewidth=1.8)
    ax.text(x, y, text, color=figures.colour(role), weight="bold", ha=side, va="center")
ax.set(xlim=(-65, 65), ylim=(low - 0.405, 1.08), yticks=[-0.5, 0, 0.5, 1], xticks=range(-64, 65, 32))
ax.set_xlabel("offset, key − query (tokens)")
ax.set_ylabel("score of all pairs\n(1 = the most there is)")
fig.suptitle(f"Both move by {SHIFT} tokens, and the wedge between them stays", x=0.02, ha="left")
figures.publish(
    fig,
    alt=f"Two dials with a long hand for the query and a short one for the key. With query and key at "
    f"{BEFORE[0]} and {BEFORE[1]}, and again at {after[0]} and {after[1]}, the hands point elsewhere and the "
    f"wedge between them is the same. Below, three curves of the summed score against the offset: all ones "
    f"falls from 1 in waves on both sides, a random pair stays near 0, and a turned key peaks at {peak}.",
    numbers={
        "step_degrees": math.degrees(theta[PAIR]),
        "wavelength": float(frequencies.wavelengths(theta)[PAIR]),
        "slowest": float(frequencies.wavelengths(theta)[-1]),
        "wedge_degrees": math.degrees(wedge(*BEFORE)),
        "pair_score": math.cos(wedge(*BEFORE)),
        "wedge_moved": abs(wedge(*BEFORE) - wedge(*after)),
        "sum_moved": float(max((curves[name] - moved[name]).abs().max() for name in vectors)),
        "ones_at_four": float(fade[4]),
        "ones_at_64": float(fade[64]),
        "ones_first_rise": int(rises[0]),
        "ones_rises": int((rises <= 100).sum()),
        "ones_first_negative": negative[0] if negative else "never",
        "random_peak": int(offsets[curves["random"].argmax()]),
        "random_largest": float(curves["random"].abs().max()),
        "peak": peak,
        "peak_score": float(curves["peaked"].max()),
        "peak_beside": float(curves["peaked"][offsets != peak].max()),
        "never_round": int(never_round.sum()),
        "never_seen": int(new.sum()),
        "trained": TRAINED,
    },
)

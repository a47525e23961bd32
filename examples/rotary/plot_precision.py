r"""
Three roundings, three kinds of error
=====================================

A rotary score as it comes out of four implementations, compared with float64.
What is rounded, position, frequency or angle, decides whether the error grows with position, with distance,
or not at all.
"""

import matplotlib.pyplot as plt
import torch

from posbook import figures, frequencies, rotary

plt.style.use("posbook.figures.posbook")
torch.set_num_threads(1)

DIM, PAIRS, SEEDS = 128, 64, 10  # an even width, 128 or more: the names stand where its errors lie
theta = frequencies.geometric(DIM)

# %%
# Each implementation makes its own angles. Then all turn the same vectors alike, with cosines and sines of
# these angles taken in float64 and rounded to float32.

makers = {
    "angles in float64": lambda at: at.double()[:, None] * theta,
    "angles in float32": lambda at: at.float()[:, None] * theta.float(),
    "frequencies in bfloat16": lambda at: at.double()[:, None] * theta.bfloat16().double(),
    "positions in bfloat16": lambda at: at.bfloat16().double()[:, None] * theta,
}


def errors(make, q, k, queries, keys):
    """How far scores are off, in units of |q| |k|: the root of the mean square over the pairs of vectors."""

    def score(make, dtype):
        a, b = (
            rotary.rotate(x.to(dtype)[:, None].expand(-1, len(at), -1), make(at), layout="halves")
            for x, at in ((q, queries), (k, keys))
        )
        return (a * b).sum(dim=-1).double()

    off = score(make, torch.float32) - score(makers["angles in float64"], torch.float64)
    return (off / (q.norm(dim=-1) * k.norm(dim=-1))[:, None]).square().mean(dim=0).sqrt()


# %%
# First the distance is fixed, then the query's place. Thirds of powers of two, since rounding spares what
# lies near a power of two; and each point stands for some places near by.

DISTANCE, PLACE, NEAR = 15, 60_001, 2  # any distance, and a place of the query above 43 690
positions = 2 ** torch.arange(7, 19) // 3
distances = 2 ** torch.arange(2, 18) // 3
by_position = {name: torch.zeros(SEEDS, len(positions)) for name in makers}
by_distance = {name: torch.zeros(SEEDS, len(distances)) for name in makers}
for seed in range(SEEDS):
    generator = torch.Generator().manual_seed(seed)
    q, k = torch.randn(2, PAIRS, DIM, generator=generator, dtype=torch.float64)
    for name, make in makers.items():
        for i in range(NEAR):
            at = positions + positions * i // (16 * NEAR)
            by_position[name][seed] += errors(make, q, k, at + DISTANCE, at).square() / NEAR
            at = torch.full_like(distances, PLACE + PLACE * i // (16 * NEAR))
            by_distance[name][seed] += errors(make, q, k, at, at - distances).square() / NEAR
by_position, by_distance = (
    {name: squares.sqrt() for name, squares in by.items()} for by in (by_position, by_distance)
)

# %%
# What the chapter counts: which whole numbers half precision can hold, and a phase far out.

whole, far = torch.arange(4096), torch.arange(100_000 - 1000, 100_001)
held = {
    "bfloat16": whole.bfloat16().long(),
    "float16": whole.half().long(),
}
phases = (makers["angles in float32"](far).double() - makers["angles in float64"](far)).abs()

soon = int((positions > 256).nonzero()[0])

# %%
# A random score itself is as large as one over the root of the width: an error of that size leaves nothing.

fig, panels = plt.subplots(2, 1, figsize=(7.2, 8.6), sharey=True)
roles = ("rope", "query", "future", "position")
for ax, x, off in ((panels[0], positions, by_position), (panels[1], distances, by_distance)):
    ax.set_xscale("log", base=2)
    ax.set_yscale("log")
    for values, role in zip(off.values(), roles, strict=True):
        figures.curves.curve(ax, x, values.median(dim=0).values, role, seeds=values)
    ax.axhline(DIM**-0.5, color=figures.colour("ink"), linewidth=1.2, linestyle=(0, (1, 1.2)))
    ax.set_ylim(1.5e-9, 2)
    ax.set_yticks([10.0**power for power in range(-8, 1, 2)])
    ax.set_ylabel("error of the score (1 = |q| |k|)")
    ax.text(x[0], 0.13, "a random score", color=figures.colour("ink"), va="bottom")
above, below = panels
for ax, places in (
    (above, ((1500, 2.7e-8), (2200, 2.5e-7), (1500, 8.5e-4), (2600, 7e-3))),
    (below, ((64, 2.7e-8), (64, 1.1e-5), (90, 2.6e-4), (1, 5e-3))),
):
    for (x, y), name, role in zip(places, makers, roles, strict=True):
        ax.text(x, y, name, color=figures.colour(role), weight="bold", va="center")
above.set_xlabel(f"position of the key (tokens), {DISTANCE} behind the query")
above.set_title("Rounded angles: the error grows with the position")
below.set_xlabel(f"distance to the key (tokens), query near {round(PLACE, -3):_}".replace("_", " "))
below.set_title("Rounded frequencies: it grows with the distance")
fig.align_ylabels()
figures.publish(
    fig,
    alt="Two panels with logarithmic axes: errors of scores over the position of the key, and over its "
    "distance. Angles in float64: about 1e-8 everywhere. Angles in float32: the error rises in proportion to "
    "the position and hardly depends on the distance. Frequencies rounded to bfloat16: the same at every "
    "position, rising with the distance to the size of a score. Positions rounded to bfloat16: right up to "
    "256, then off by a good part of a score at once, and by as much as a score from a few thousand on.",
    numbers={
        **{f"first_wrong_{name}": int((values != whole).nonzero()[0]) for name, values in held.items()},
        "distinct_bfloat16": len(held["bfloat16"][:2048].unique()),
        "phase_at_100000": phases[-1].max().item(),
        "phase_worst": phases.max().item(),
        "phase_float32_pair": int(phases.amax(dim=0).argmax()),
        "float64": max(x["angles in float64"].max().item() for x in (by_position, by_distance)),
        "float32_first": by_position["angles in float32"].median(dim=0).values[0].item(),
        "float32_last": by_position["angles in float32"].median(dim=0).values[-1].item(),
        "frequencies_near": by_position["frequencies in bfloat16"].max().item(),
        "frequencies_far": by_distance["frequencies in bfloat16"].median(dim=0).values[-1].item(),
        "positions_bfloat16_soon": by_position["positions in bfloat16"].median(dim=0).values[soon].item(),
        "positions_bfloat16": by_position["positions in bfloat16"].median(dim=0).values[-1].item(),
        "soon": int(positions[soon]),
        "score": DIM**-0.5,
        "distance": DISTANCE,
        "first_position": int(positions[0]),
        "last_position": int(positions[-1]),
    },
    seed=f"0 to {SEEDS - 1}",
    size=f"{PAIRS} random queries and keys of width {DIM} for each seed",
    spread=f"root mean square over pairs and {NEAR} places; median of {SEEDS} seeds, all drawn",
)

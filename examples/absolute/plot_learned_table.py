r"""
What a fresh table knows of its neighbours
==========================================

A learned table before training, beside the sinusoid: how alike two rows are, and whether a matrix fitted to
"one token later" on some rows also moves the others.
"""

import matplotlib.pyplot as plt
import torch

from posbook import figures, frequencies, sinusoidal

plt.style.use("posbook.figures.posbook")
torch.set_num_threads(1)

ROWS, WIDTH, SEEDS = 2048, 64, 5  # more than 1600 rows, an even width from 32 to 96

# %%
# The best matrix that moves rows one token on, fitted to some of the steps and measured on the rest, in units
# of the rows' length. The steps are drawn at random, so that the rest lies between them and not beyond.


def errors(table, steps, generator):
    chosen, rest = torch.randperm(len(table) - 1, generator=generator).split((steps, len(table) - 1 - steps))
    # Many rows of a sinusoid are almost dependent: take the smallest matrix that fits.
    matrix = torch.linalg.lstsq(table[chosen], table[chosen + 1], rcond=1e-14, driver="gelsd").solution

    def relative(p):
        return ((table[p] @ matrix - table[p + 1]).norm() / table[p + 1].norm()).item()

    return relative(chosen), relative(rest)


# %%
# As many fresh tables as seeds, and the sinusoid on the same draws of steps.

sinusoid = sinusoidal.encode(frequencies.angles(torch.arange(ROWS), frequencies.geometric(WIDTH)))
steps = sorted({16, 24, 32, 40, 48, 56, 64, 68, 80, 96, 128, 256, 512, 1024, 1536, WIDTH})
fresh, waves = [], []
for seed in range(SEEDS):
    generator = torch.Generator().manual_seed(seed)
    table = torch.randn(ROWS, WIDTH, generator=generator, dtype=torch.float64)
    fresh.append([errors(table, n, generator) for n in steps])
    waves.append([errors(sinusoid, n, generator) for n in steps])
fresh, waves = torch.tensor(fresh), torch.tensor(waves)
enough, few = [n >= 2 * WIDTH for n in steps], [n < WIDTH for n in steps]

# %%
# Above, the cosine of the angle between any two of the first rows; below, the errors of the fitted matrix.

SHOWN = 24
fig = plt.figure(figsize=(7.2, 8.8))
upper, lower = fig.subfigures(2, 1, height_ratios=(1, 1.35))
for ax, rows, title in zip(
    upper.subplots(1, 2), (table, sinusoid), ("a fresh table", "a sinusoid"), strict=True
):
    unit = rows[:SHOWN] / rows[:SHOWN].norm(dim=-1, keepdim=True)
    figures.heatmaps.cells(ax, unit @ unit.T, limits=(-1, 1), diverging=True)
    ax.set_title(title, loc="center")
    ax.set_xlabel("position")
    ax.set_xticks([0.5, 10.5, 20.5], [0, 10, 20])

ax = lower.subplots()
ax.set_xscale("log")
ax.set_yscale("log")
for errors_of, role, dash in (
    (fresh[..., 1], "learned", "-"),
    (fresh[..., 0], "learned", (0, (2, 2))),
    (waves[..., 1], "sinusoidal", "-"),
):
    colour = figures.colour(role)
    ax.plot(steps, errors_of.median(dim=0).values, color=colour, linestyle=dash)
    ax.plot(steps, errors_of.T, "o", color=colour, markersize=3.4, alpha=0.55)
bold = {"weight": "bold"}
ax.text(1700, 30, "fresh table, rows left out", color=figures.colour("learned"), ha="right", **bold)
ax.text(1.33 * WIDTH, 1e-4, "fresh table,\nrows it was fitted to", color=figures.colour("learned"), **bold)
ax.text(1700, 8e-13, "sinusoid, rows left out", color=figures.colour("sinusoidal"), ha="right", **bold)
ax.set_ylim(3e-16, 3e3)
ax.set_xticks([16, WIDTH, 256, 1024], ["16", f"{WIDTH}, the width", "256", "1024"])
ax.set_yticks([1e-15, 1e-10, 1e-5, 1])
ax.minorticks_off()
ax.set_xlabel(f"steps fitted, of {ROWS - 1}")
ax.set_ylabel("error (1: the rows’ length)")
ax.set_title("A matrix fitted to “one token later”", loc="center")
fig.suptitle("A fresh table has no neighbours, and keeps no shift", x=0.02, ha="left")
figures.publish(
    fig,
    alt="Above, how alike rows are: in a fresh table each is like itself only, in a sinusoid like its "
    "neighbours too. Below, the error of a matrix fitted to one token later. For a fresh table it stays "
    f"above the rows' length on rows left out, though up to {WIDTH} rows are fitted perfectly; for a "
    "sinusoid it falls to rounding before as many are fitted.",
    numbers={
        "fresh_left_out": fresh[..., 1].min().item(),
        "fresh_fitted_few": fresh[:, few, 0].max().item(),
        "waves_left_out": waves[:, enough, 1].max().item(),
    },
    seed=f"0 to {SEEDS - 1}",
    size=f"{ROWS} rows, {WIDTH} features",
    spread=f"smallest error on rows left out, largest where it is rounding, over all fits of {SEEDS} tables",
)

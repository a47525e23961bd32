r"""
Where the wavelengths of a sinusoidal table end
===============================================

A dot for each pair of features: the tokens that its clock takes for one turn. The paper's formula stops short
of ten thousand times the shortest wave at every width; the code released with the paper reaches it.
"""

import math

import matplotlib.pyplot as plt
import torch

from posbook import figures, frequencies

plt.style.use("posbook.figures.posbook")

# %%
# The formula at some widths. The last exponent is 1 − 2/d, so the end is never quite 10 000.

WIDTHS = (4, 8, 64, 512)  # even ones from 4 up, up to seven of them
CODE = 8  # the width for which the released code is shown: even, 4 or more
waves = {width: frequencies.wavelengths(frequencies.geometric(width)) for width in WIDTHS}
longest = {width: wave[-1].item() for width, wave in waves.items()}

# %%
# The released code spreads as many clocks from end to end: exponent i/(d/2 − 1).

released = 10_000.0 ** -(torch.arange(CODE // 2, dtype=torch.float64) / (CODE // 2 - 1))
code = frequencies.wavelengths(released)

# %%
# One row for each table, on a logarithmic axis.

fig, ax = plt.subplots(figsize=(7.2, 4.8))
ax.set_xscale("log")
rows = [(f"d = {width}", wave, "sinusoidal") for width, wave in waves.items()]
rows.append((f"d = {CODE}, code", code, "accent"))
for y, (_, wave, role) in enumerate(rows):
    colour = figures.colour(role)
    size = 4 if len(wave) > 64 else 9
    ax.plot(wave, torch.full_like(wave, y), "o", color=colour, markersize=size)
    ax.annotate(
        f"ends at 2π · {wave[-1] / (2 * math.pi):,.0f}",
        (wave[-1].item(), y),
        (-5, 9),
        textcoords="offset points",
        ha="right",
        color=colour,
        weight="bold",
    )
ax.axvline(2 * math.pi * 10_000, color=figures.colour("muted"), linestyle=(0, (4, 2)), linewidth=1.6)
ax.set_yticks(range(len(rows)), [name for name, _, _ in rows])
ax.tick_params(axis="y", labelcolor=figures.colour("ink"))
ax.set_ylim(len(rows) - 0.45, -0.7)
ax.set_xlim(4, 1.1e5)
ax.set_xticks([2 * math.pi, 100, 1_000, 10_000, 100_000], ["2π", "100", "1,000", "10,000", "100,000"])
ax.minorticks_off()
ax.grid(axis="y", visible=False)
ax.set_xlabel("wavelength (tokens for one turn)")
fig.suptitle("The formula stops short of 2π · 10,000 at every width", x=0.02, ha="left")
figures.publish(
    fig,
    alt=f"{len(rows)} rows of dots on a logarithmic axis of wavelengths, all beginning at 2 pi tokens: a dot "
    f"for every two of {', '.join(str(width) for width in WIDTHS)} features. The wider the table, the nearer "
    "the last dot comes to a dashed line at 2 pi times 10,000, which none reaches. "
    f"The {CODE // 2} dots of the released code end on the line.",
    numbers={
        **{f"longest_{width}": tokens / (2 * math.pi) for width, tokens in longest.items()},
        f"code_{CODE}": code[-1].item() / (2 * math.pi),
    },
)

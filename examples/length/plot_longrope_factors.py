r"""
A list of factors, and pairs that stand still
=============================================

Above, the factors by which Phi-4-mini slows its pairs for long texts, beside three rules.
Below, the wavelengths of the layers of Gemma 4 that see the whole text: a quarter of the pairs turn, and all
of these come round again within two hundred tokens.
"""

import json
from pathlib import Path

import matplotlib.pyplot as plt
import torch

import posbook.practice
from posbook import figures, frequencies, scaling
from posbook.practice import config

plt.style.use("posbook.figures.posbook")
torch.set_num_threads(1)

# %%
# Both are read from configurations of the models themselves.

stored = Path(posbook.practice.__file__).parent / "data" / "rope_configs.jsonl"
configs = {row["id"]: row["config"] for row in map(json.loads, stored.read_text().splitlines())}
(phi,) = config.read(configs["C055"]).groups
gemma = next(group for group in config.read(configs["C008"]).groups if group.rope_type == "proportional")

theta = frequencies.geometric(phi.rotary_dim, phi.base)
factors = torch.tensor(phi.long_factor, dtype=torch.float64)
factor = 131_072 // phi.trained_length
slower = {
    "listed": factors,
    "interpolation": torch.full_like(theta, factor),
    "ntk": theta / scaling.ntk(theta, factor),
    "yarn": theta / scaling.yarn(theta, factor, phi.trained_length),
}
never = frequencies.turns(theta, phi.trained_length) < 1
steps = factors[1:32] / factors[:31]

# %%
# The geometric rule that meets the listed factors at pairs 0 and 31.

rule = factors[31] ** (torch.arange(32) / 31)
off = (factors[:32] / rule - 1).abs().max().item()

turning = gemma.frequencies()
waves = frequencies.wavelengths(turning)
moves = turning > 0
all_waves = frequencies.wavelengths(frequencies.geometric(gemma.rotary_dim, gemma.base))

fig, (above, below) = plt.subplots(2, 1, figsize=(7.2, 8.8))
pairs = torch.arange(len(theta))
above.axvspan(int(never.nonzero()[0]) - 0.5, len(theta), color=figures.colour("panel"), zorder=0)
for name, role, dash in (
    ("interpolation", "past", "-"),
    ("ntk", "future", (0, (6, 2))),
    ("yarn", "position", (0, (1, 1.2))),
):
    above.plot(pairs, slower[name], color=figures.colour(role), linestyle=dash, zorder=2)
above.plot(pairs, factors, "o", color=figures.colour("accent"), markersize=6, zorder=3)
above.set_yscale("log", base=2)
above.set_yticks([1, 2, 4, 8, 16, 32], ["1", "2", "4", "8", "16", "32"])
above.set_ylim(0.6, 62)
above.set_xlim(-1, len(theta))
above.set_xticks([0, 8, 16, 24, 32, 40, 47])
for x, y, name, role, side in (
    (0, 34, "position interpolation", "past", "left"),
    (36.5, 6.6, "NTK-aware", "future", "left"),
    (13, 0.63, "YaRN, as released", "position", "left"),
    (17, 9, "the list of Phi-4-mini", "accent", "right"),
):
    above.text(x, y, name, color=figures.colour(role), weight="bold", ha=side, va="bottom")
above.text(
    40.7, 0.64, "less than one turn\nin training", color=figures.colour("muted"), ha="center", va="bottom"
)
above.set_xlabel("pair, from the fastest to the slowest")
above.set_ylabel("slowed by")
above.set_title(f"For {factor} times the length: three rules and a list")

numbers = torch.arange(len(turning))
below.plot(numbers, all_waves, color=figures.colour("rope"), linewidth=1.6, zorder=2)
below.plot(numbers[moves], waves[moves], "o", color=figures.colour("query"), markersize=4.5, zorder=3)
below.axvspan(int(moves.sum()) - 0.5, len(turning), color=figures.colour("panel"), zorder=0)
below.axhline(262_144, color=figures.colour("muted"), linewidth=1.2, linestyle=(0, (1, 1.2)))
below.set_yscale("log")
below.set_ylim(3, 2e7)
below.set_xlim(-3, len(turning))
below.set_xticks([0, 64, 128, 192, 255])
below.text(3, 3.2e5, "the longest text: 262 144 tokens", color=figures.colour("muted"), va="bottom")
below.text(2, 330, "pairs that turn", color=figures.colour("query"), weight="bold", va="bottom")
below.text(75, 5, "pairs that stand still", color=figures.colour("ink"), weight="bold", va="bottom")
below.text(131, 900, "if all of them turned", color=figures.colour("rope"), weight="bold", va="bottom")
below.set_xlabel("pair")
below.set_ylabel("wavelength (tokens)")
below.set_title("Gemma 4, layers that see everything")

figures.publish(
    fig,
    alt="Above, by how much each of 48 pairs is slowed for 32 times the length, on a logarithmic axis: the "
    "dots of Phi-4-mini rise in a straight line from 1 to 32 at pair 31, stay just above 32, and end "
    "at 44 and 48; the line of NTK-aware scaling runs below them, YaRN lower still up to its steep "
    "end. Below, wavelengths of 256 pairs: the first 64, up to 190 tokens, turn; the others, which "
    "would reach beyond the longest text, stand still.",
    numbers={
        "pairs": len(theta),
        "factor": factor,
        "last_geometric": 31,
        "step": factors[1].item(),
        "geometric_off": off,
        "step_worst": (steps / steps[0] - 1).abs().max().item(),
        "at_31": factors[31].item(),
        "smallest_slow": factors[never].min().item(),
        "last": factors[-1].item(),
        "last_but_one": factors[-2].item(),
        "never": int(never.sum()),
        "first_never": int(never.nonzero()[0]),
        "temperature": phi.attention_factor,
        "short_all_one": int((torch.tensor(phi.short_factor) == 1).sum()),
        "gemma_pairs": len(turning),
        "gemma_turning": int(moves.sum()),
        "gemma_slowest": waves[moves].max().item(),
        "gemma_context": 262_144,
        "gemma_never": int((all_waves > 262_144).sum()),
        "gemma_layers": len(gemma.layers),
    },
)

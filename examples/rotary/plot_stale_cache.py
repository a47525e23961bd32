r"""
Stored keys go stale when the frequencies change
================================================

A text grows token by token, and each key is turned once and stored.
The new token's output is compared with what it would be had all keys been turned afresh.
"""

import matplotlib.pyplot as plt
import torch

from posbook import attention, figures, frequencies, rotary, scaling

plt.style.use("posbook.figures.posbook")
torch.set_num_threads(1)

DIM, TRAINED, SEEDS = 64, 256, 10  # an even width from 34 up, a trained length from 32 up that 8 divides
LONGEST = 4 * TRAINED
theta = frequencies.geometric(DIM)

# %%
# Three rules that say which frequencies a text of some length has. The long list of factors is made up:
# it slows the pairs as NTK-aware scaling by four would.

long_list = theta / scaling.ntk(theta, factor=4)
rules = {
    "fixed": lambda length: theta,
    "dynamic": lambda length: scaling.dynamic_ntk(theta, length, trained_length=TRAINED, factor=2),
    "switch": lambda length: scaling.longrope(theta, long_list) if length > TRAINED else theta,
}

# %%
# A key at position n is stored when the text is n + 1 tokens long, with the angles of that moment.

at = torch.arange(LONGEST)
stored_angles = {
    name: torch.cat([frequencies.angles(at[n : n + 1], rule(n + 1)) for n in range(LONGEST)])
    for name, rule in rules.items()
}
parts = [0.125, 0.5, 1, 1 + 1 / TRAINED, 1.03125, 1.125, 1.25, 1.5, 2, 2.5, 3, 3.5, 4]
lengths = [round(part * TRAINED) for part in parts]
off = {name: torch.zeros(SEEDS, len(lengths)) for name in rules}
for seed in range(SEEDS):
    generator = torch.Generator().manual_seed(seed)
    q, k, v = torch.randn(3, LONGEST, DIM, generator=generator, dtype=torch.float64)
    for name, rule in rules.items():
        stored = rotary.rotate(k, stored_angles[name], layout="halves")
        for column, length in enumerate(lengths):
            now = frequencies.angles(at[:length], rule(length))
            query = rotary.rotate(q[length - 1 : length], now[-1:], layout="halves")
            fresh = rotary.rotate(k[:length], now, layout="halves")
            right, cached = (attention.attend(query, keys, v[:length]) for keys in (fresh, stored[:length]))
            off[name][seed, column] = (cached - right).norm() / right.norm()

# %%
# Above the damage, below its cause: the angle of each stored key less the angle it should have by now.

fig, (damage, cause) = plt.subplots(2, 1, figsize=(7.2, 7.6), sharex=True)
for name, label, role, place in (
    ("dynamic", "dynamic NTK", "future", (2.03 * TRAINED, 1.19)),
    ("switch", "a short list, then a long one", "position", (1.95 * TRAINED, 0.1)),
    ("fixed", "fixed frequencies", "rope", (0.04 * TRAINED, 0.06)),
):
    figures.curves.curve(damage, lengths, off[name].median(dim=0).values, role, seeds=off[name])
    damage.text(*place, label, color=figures.colour(role), weight="bold")
damage.axvline(TRAINED, color=figures.colour("axis"), linewidth=1.2, linestyle=(0, (2, 2)))
damage.text(0.953 * TRAINED, 1.19, "trained length", ha="right", color=figures.colour("muted"))
damage.set_ylim(-0.06, 1.4)
damage.set_title("The cached step parts from the full pass")
damage.set_ylabel("difference (1 = the output)")

wrong = stored_angles["dynamic"] - frequencies.angles(at, rules["dynamic"](LONGEST))
largest = wrong[:, [8, 16]].max().item()
for pair, role, dash in ((0, "rope", "-"), (8, "key", (0, (6, 2))), (16, "query", (0, (2, 1.5)))):
    cause.plot(at, wrong[:, pair], color=figures.colour(role), linestyle=dash)
    above = wrong[round(1.64 * TRAINED), pair].item()
    y, side = (above + 0.03 * largest, "bottom") if pair else (-0.04 * largest, "top")
    cause.text(1.68 * TRAINED, y, f"pair {pair}", color=figures.colour(role), weight="bold", va=side)
cause.set_ylim(-0.19 * largest, 1.14 * largest)
cause.set_title(f"Dynamic NTK at {LONGEST} tokens: how far stored keys are off")
cause.set_ylabel("stored − right angle (rad)")
cause.set_xlabel("length of the text, or position of the key (tokens)")
far = (TRAINED + 1, 2 * TRAINED, LONGEST)
figures.publish(
    fig,
    alt="Above, three curves over the length of the text. With fixed frequencies the cached step equals the "
    f"full pass at every length. With dynamic NTK it departs at the trained length of {TRAINED}, and is soon "
    "off by nearly as much as the output itself; with a switch of lists it jumps there, and falls slowly. "
    "Below, how far the angles of stored keys are off: not at all in pair 0, by up to "
    f"{wrong[:, 8].max():.1f} radians in pair 8.",
    numbers={
        "fixed": off["fixed"].max().item(),
        "dynamic_to_trained": off["dynamic"][:, : lengths.index(TRAINED) + 1].max().item(),
        **{f"dynamic_{n}": off["dynamic"][:, lengths.index(n)].median().item() for n in far},
        "off_pair_8": wrong[:, 8].max().item(),
        **{f"switch_{n}": off["switch"][:, lengths.index(n)].median().item() for n in far},
    },
    seed=f"0 to {SEEDS - 1}",
    size=f"one head of width {DIM}, random queries, keys and values, trained length {TRAINED}",
    spread=f"median of {SEEDS} seeds; all are drawn",
)

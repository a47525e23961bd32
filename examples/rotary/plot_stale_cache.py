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

DIM, TRAINED, LONGEST, SEEDS = 64, 256, 1024, 10
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
lengths = [32, 128, 256, 257, 264, 288, 320, 384, 512, 640, 768, 896, 1024]
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
    ("dynamic", "dynamic NTK", "future", (520, 1.19)),
    ("switch", "a short list, then a long one", "position", (500, 0.1)),
    ("fixed", "fixed frequencies", "rope", (10, 0.06)),
):
    figures.curves.curve(damage, lengths, off[name].median(dim=0).values, role, seeds=off[name])
    damage.text(*place, label, color=figures.colour(role), weight="bold")
damage.axvline(TRAINED, color=figures.colour("axis"), linewidth=1.2, linestyle=(0, (2, 2)))
damage.text(TRAINED - 12, 1.19, "trained length", ha="right", color=figures.colour("muted"))
damage.set_ylim(-0.06, 1.4)
damage.set_title("The cached step parts from the full pass")
damage.set_ylabel("difference (1 = the output)")

wrong = stored_angles["dynamic"] - frequencies.angles(at, rules["dynamic"](LONGEST))
for pair, role, dash in ((0, "rope", "-"), (8, "key", (0, (6, 2))), (16, "query", (0, (2, 1.5)))):
    cause.plot(at, wrong[:, pair], color=figures.colour(role), linestyle=dash)
    y, side = (wrong[420, pair] + 0.35, "bottom") if pair else (-0.4, "top")
    cause.text(430, y, f"pair {pair}", color=figures.colour(role), weight="bold", va=side)
cause.set_ylim(-1.9, 11.5)
cause.set_title(f"Dynamic NTK at {LONGEST} tokens: how far stored keys are off")
cause.set_ylabel("stored − right angle (rad)")
cause.set_xlabel("length of the text, or position of the key (tokens)")
figures.publish(
    fig,
    alt="Above, three curves over the length of the text. With fixed frequencies the cached step equals the "
    f"full pass at every length. With dynamic NTK it departs at the trained length of {TRAINED}, and is soon "
    "off by nearly as much as the output itself; with a switch of lists it jumps there, and falls slowly. "
    "Below, how far the angles of stored keys are off: not at all in pair 0, by many radians in pair 8.",
    numbers={
        "fixed": off["fixed"].max().item(),
        "dynamic_to_trained": off["dynamic"][:, : lengths.index(TRAINED) + 1].max().item(),
        **{f"dynamic_{n}": off["dynamic"][:, lengths.index(n)].median().item() for n in (257, 512, 1024)},
        "off_pair_8": wrong[:, 8].max().item(),
        **{f"switch_{n}": off["switch"][:, lengths.index(n)].median().item() for n in (257, 512, 1024)},
    },
    seed="0 to 9",
    size=f"one head of width {DIM}, random queries, keys and values, trained length {TRAINED}",
    spread="median of ten seeds; all are drawn",
)

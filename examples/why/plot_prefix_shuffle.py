r"""
What one causal layer cannot see
================================

Ten random decoders read sixteen tokens, then the same tokens with all but the last one shuffled.
Does the last row notice?
"""

from functools import partial

import matplotlib.pyplot as plt
import torch

from posbook import attention, figures, properties

plt.style.use("posbook.figures.posbook")
torch.set_num_threads(1)  # matrices this small are not worth a second thread's start

# At least 8 tokens, or a shuffle may leave all in their places; at least 2 layers, as the title has it.
TOKENS, FEATURES, DEPTH, SEEDS = 16, 32, 4, 10

# %%
# A decoder without positions: attention, then a feed-forward map of single rows, both with random weights.
# Its last row after the first layers is that of a shallower decoder, so one run answers for every depth.


def normed(x):
    return x / x.square().mean(dim=-1, keepdim=True).sqrt()


def last_rows(x, layers, mask):
    rows = []
    for to_q, to_k, to_v, to_out, up, down in layers:
        y = normed(x)
        x = x + attention.attend(y @ to_q, y @ to_k, y @ to_v, mask=mask) @ to_out
        x = x + torch.relu(normed(x) @ up) @ down
        rows.append(x[-1])
    return torch.stack(rows)


# %%
# How far one shuffle moves the last row, in units of the row's length.


def change(seed, mask):
    generator = torch.Generator().manual_seed(seed)
    draw = partial(torch.randn, generator=generator, dtype=torch.float64)
    shapes = 4 * [(FEATURES, FEATURES)] + [(FEATURES, 4 * FEATURES), (4 * FEATURES, FEATURES)]
    layers = [[draw(*shape) / shape[0] ** 0.5 for shape in shapes] for _ in range(DEPTH)]
    x = draw(TOKENS, FEATURES)
    order = [*torch.randperm(TOKENS - 1, generator=generator), TOKENS - 1]
    before, after = last_rows(x, layers, mask), last_rows(properties.permute(x, order), layers, mask)
    return (after - before).norm(dim=-1) / before.norm(dim=-1)


causal = torch.stack([change(seed, attention.causal(TOKENS)) for seed in range(SEEDS)])
unmasked = torch.stack([change(seed, None) for seed in range(SEEDS)])

# %%
# A dot for every decoder, and a bar at their median.

fig, ax = plt.subplots(figsize=(7.2, 5.6))
ax.set_yscale("log")
depths = torch.arange(1, DEPTH + 1)
nothing = 1e-17  # where a change of exactly 0 is drawn
for changes, marker, start, role, name in (
    (causal, "o", -0.36, "past", "causal mask"),
    (unmasked, "D", 0.06, "future", "no mask"),
):
    colour = figures.colour(role)
    medians = changes.quantile(0.5, dim=0).clamp(min=nothing)
    side_by_side = depths + start + torch.linspace(0, 0.3, SEEDS)[:, None]
    ax.plot(side_by_side, changes.clamp(min=nothing), marker, color=colour, ms=5, alpha=0.7)
    ax.plot(depths + start + 0.15, medians, color=colour, lw=1.2, alpha=0.7, zorder=1)
    ax.hlines(medians, depths + start - 0.04, depths + start + 0.34, color=colour, lw=1.8)
    named = min(3, DEPTH)  # the depth over which the name stands
    ax.text(
        named + 0.15 + start, 25 * medians[named - 1], name, color=colour, weight="bold", size=13, ha="center"
    )
ax.set_xticks(depths)
ax.set_yticks([1e-16, 1e-12, 1e-8, 1e-4, 1])
ax.set_ylim(5e-18, 60)
ax.grid(axis="x", visible=False)
ax.set_xlabel("depth (layers)")
ax.set_ylabel("change of the last row (1 = its length)")
ax.set_title("One causal layer cannot see the order of the prefix; two can")
medians = causal.quantile(0.5, dim=0).tolist()
figures.publish(
    fig,
    alt=f"Dots for {SEEDS} decoders at each depth from 1 to {DEPTH}, on a logarithmic axis. Under a causal "
    "mask the last row changes at depth 1 by rounding only, and at every greater depth by "
    f"{min(medians[1:]):.1g} to {max(medians[1:]):.1g} of its length in the median. Without a mask it "
    "changes by rounding only, at all depths.",
    numbers={
        "causal_depth_1": causal[:, 0].max().item(),
        **{f"causal_depth_{depth}": medians[depth - 1] for depth in range(2, DEPTH + 1)},
        f"unmasked_depth_{DEPTH}": unmasked[:, -1].max().item(),
    },
    seed=f"0 to {SEEDS - 1}",
    size=f"{TOKENS} tokens, {FEATURES} features",
    spread=f"median of {SEEDS} random decoders, the largest where it is rounding",
)

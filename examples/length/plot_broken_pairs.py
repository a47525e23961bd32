r"""
Which pairs break beyond the trained length
===========================================

A trained rotary model at four times its length, with one pair at a time kept to the offsets of training, or
one pair at a time let out of them. Nothing is trained anew.
"""

import matplotlib.pyplot as plt

from posbook import figures
from posbook.experiments import records

plt.style.use("posbook.figures.posbook")

# %%
# The records come with the package; ``python -m posbook.experiments broken_pairs`` makes them anew. Two head
# widths, since what one pair carries may depend on how many there are.

record = records.load("broken_pairs")
found = {width: records.runs(record, f"width-{width}") for width in (16, 32)}


def middle(width, what):
    return records.middle(found[width], what)


# %%
# The first pair that completed no turn in training is marked.

fig, panels = plt.subplots(2, 1, figsize=(7.2, 8.4))
numbers = {"narrow": 16, "wide": 32}
for ax, (width, runs) in zip(panels, found.items(), strict=True):
    turns = runs[0]["turns"]
    guilty = next(pair for pair, made in enumerate(turns) if made < 1)
    ax.axvspan(guilty - 0.45, guilty + 0.45, color=figures.colour("panel"), zorder=0)
    for what, role, marker in (("one_kept", "good", "o"), ("one_let_out", "warn", "s")):
        for run in runs:
            ax.plot(run[what], marker, color=figures.colour(role), markersize=5, alpha=0.55)
        ax.plot(middle(width, what), color=figures.colour(role), linewidth=1.4)
    for what, label, side, off in (
        ("none_kept", "as it is, at four times the length", "bottom", 0.14),
        ("at_length", "at the trained length", "top", -0.05),
    ):
        level = middle(width, what)
        ax.axhline(level, color=figures.colour("muted"), linewidth=1, linestyle=(0, (2, 2)))
        ax.text(len(turns) - 0.5, level + off, label, ha="right", va=side, color=figures.colour("muted"))
    # To the right of the band both lines are level, and there is room between them.
    right = {"ha": "right", "weight": "bold"}
    ax.text(
        len(turns) - 0.5,
        middle(width, "none_kept") - 0.2,
        "only this pair kept in range",
        va="top",
        color=figures.colour("good"),
        **right,
    )
    ax.text(
        len(turns) - 0.5,
        middle(width, "at_length") + 0.3,
        "only this pair let out of range",
        va="bottom",
        color=figures.colour("warn"),
        **right,
    )
    every = 1 if width == 16 else 3
    ax.set_xticks(range(0, len(turns), every), [f"{i}\n{turns[i]:.2g}" for i in range(0, len(turns), every)])
    ax.set_xlim(-0.5, len(turns) - 0.4)
    low, high = middle(width, "at_length"), middle(width, "none_kept")
    ax.set_ylim(low - 0.5, high + 0.6)
    ax.set_title(f"Heads of width {width}: {len(turns)} pairs")
    ax.set_ylabel("loss (nats a character)")
    key = f"width_{width}"
    kept, out = middle(width, "one_kept"), middle(width, "one_let_out")
    others = [pair for pair in range(len(turns)) if pair != guilty]
    numbers |= {
        f"{key}_guilty": guilty,
        f"{key}_turns": turns[guilty],
        f"{key}_at_length": low,
        f"{key}_beyond": high,
        f"{key}_all_kept": middle(width, "all_kept"),
        f"{key}_slow_kept": middle(width, "slow_kept"),
        f"{key}_fast_kept": middle(width, "fast_kept"),
        f"{key}_guilty_kept": kept[guilty],
        f"{key}_guilty_out": out[guilty],
        **{f"{key}_kept_{pair}": kept[pair] for pair in range(len(turns))},
        **{f"{key}_out_{pair}": out[pair] for pair in range(len(turns))},
        f"{key}_turns_1": turns[1],
        f"{key}_best_other_kept": min(kept[pair] for pair in others),
        f"{key}_worst_other_out": max(out[pair] for pair in others),
        f"{key}_guilty_cost": max(run["one_kept"][guilty] - run["at_length"] for run in runs),
        f"{key}_seeds": len(runs),
    }
panels[1].set_xlabel("pair, and its turns within the trained length")

figures.publish(
    fig,
    alt="Two panels: the loss at four times the trained length, pair by pair. With heads of width 16, "
    "keeping one pair in range leaves the loss high, except at the first pair that never came "
    "round, where it falls to nearly that at the trained length; letting one pair out leaves it "
    "low, except at that same pair. With heads of width 32 no single pair mends it, and letting out "
    "the first two that never came round, or pair 1, raises it by a part.",
    numbers=numbers,
    seed="0 to 2 at width 16, 0 and 1 at width 32",
    size="four layers of width 64, trained on 64 characters, asked at 256; loss on 512 characters",
    spread="median; every seed drawn",
)

r"""
The buckets of T5's bias
========================

Which offsets share a learned number: a step for each bucket, in T5's encoder and in its decoder.
Near offsets have a bucket of their own; the farther away, the wider the bucket.
"""

import matplotlib.pyplot as plt
import torch

from posbook import figures, t5_bias

plt.style.use("posbook.figures.posbook")

# BUCKETS is a multiple of four from 16 on, MAX_DISTANCE at least twice that; EDGE, where the axis ends, more.
BUCKETS, MAX_DISTANCE, EDGE = 32, 128, 150
farthest = max(1000, EDGE)
offsets = torch.arange(-farthest, farthest + 1)[None]

# %%
# Every offset's bucket, and the first and the last offset that each bucket holds.


def steps(bidirectional):
    of = t5_bias.buckets(
        offsets, bidirectional=bidirectional, buckets=BUCKETS, max_distance=MAX_DISTANCE
    ).squeeze()
    held = {int(bucket): offsets[0, of == bucket] for bucket in of.unique()}
    return {bucket: (int(within.min()), int(within.max())) for bucket, within in held.items()}


encoder, decoder = steps(bidirectional=True), steps(bidirectional=False)
(unused,) = set(range(BUCKETS)) - set(encoder)
last_past = BUCKETS // 2 - 1
encoder_last, decoder_last = -encoder[last_past][1], -decoder[BUCKETS - 1][1]

# %%
# Queries stand at offset 0, the past to the left of it. In the decoder everything to the right is masked.

fig, panels = plt.subplots(2, figsize=(7.2, 7.8), sharex=True)
for ax, held in zip(panels, (encoder, decoder), strict=True):
    for bucket, (first, last) in held.items():
        first, last = max(first, -EDGE), min(last, 0 if ax is panels[1] else EDGE)
        role = "future" if first > 0 else "past"
        ax.hlines(bucket, first - 0.5, last + 0.5, color=figures.colour(role), linewidth=4)
    ax.set_ylim(-BUCKETS / 16, BUCKETS * 35 / 32)
    ax.set_yticks([0, BUCKETS // 4, BUCKETS // 2, 3 * BUCKETS // 4, BUCKETS - 1])
    ax.set_xlim(-EDGE, EDGE)
    ax.set_ylabel("bucket")
    for side in (-MAX_DISTANCE, MAX_DISTANCE)[: 2 if ax is panels[0] else 1]:
        ax.axvline(side, color=figures.colour("muted"), linestyle=(0, (1, 2)), zorder=1)


def note(ax, x, y, text, role, **place):
    ground = {"facecolor": figures.colour("paper"), "edgecolor": "none", "pad": 1}
    ax.text(x, y, text, color=figures.colour(role), bbox=ground, va="top", **place)


encoder_ax, decoder_ax = panels
encoder_ax.set_title("Encoder: half of the buckets for each side")
encoder_ax.axhline(unused, color=figures.colour("accent"), linewidth=1.4, linestyle=(0, (5, 3)), zorder=1)
note(encoder_ax, -EDGE + 3, BUCKETS * 20 / 32, f"bucket {unused}: no offset at all", "accent")
note(
    encoder_ax,
    -EDGE + 3,
    last_past - BUCKETS / 20,
    f"{encoder_last} or more before:\nbucket {last_past}",
    "past",
)
note(
    encoder_ax,
    EDGE,
    BUCKETS * 29.4 / 32,
    f"{encoder_last} or more after:\nbucket {BUCKETS - 1}",
    "future",
    ha="right",
)
note(encoder_ax, -MAX_DISTANCE + 3, BUCKETS * 34.6 / 32, f"max_distance = {MAX_DISTANCE}", "muted")
decoder_ax.set_title("Decoder: all of the buckets for the past")
note(
    decoder_ax, -EDGE + 3, BUCKETS * 25 / 32, f"{decoder_last} or more before:\nbucket {BUCKETS - 1}", "past"
)
note(decoder_ax, EDGE * 8 / 150, BUCKETS * 4.5 / 32, "the future is masked", "muted")
decoder_ax.set_xlabel("offset of the key, in tokens (negative: before the query)")
fig.suptitle(f"The last bucket begins before {MAX_DISTANCE}", x=0.02, ha="left")
figures.publish(
    fig,
    alt="Two staircases of buckets against the offset of the key. In the encoder one staircase falls from "
    f"bucket {last_past}, which holds every offset {encoder_last} or more before the query, to 0; another "
    f"rises from {unused + 1} at offset 1 to {BUCKETS - 1} from offset {encoder_last} on; bucket {unused} is "
    f"empty. In the decoder one staircase falls from bucket {BUCKETS - 1}, which holds {decoder_last} and "
    "more, to 0. Steps grow wider with distance.",
    numbers={
        "encoder_last": encoder_last,
        "decoder_last": decoder_last,
        "unused": unused,
        "live": len(encoder),
        "encoder_alone": sum(first == last for first, last in encoder.values()),
        "decoder_alone": sum(first == last for first, last in decoder.values() if last < 0) + 1,
    },
)

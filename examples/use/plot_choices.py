r"""
Five questions, and what to take
================================

A decision tree. Each answer says why, and the script runs every such reason but the first before it draws it.
"""

import matplotlib.pyplot as plt
import torch
from matplotlib.patches import FancyBboxPatch

from posbook import alibi, attention, axial, figures, frequencies, learned, properties, rotary

plt.style.use("posbook.figures.posbook")
torch.set_num_threads(1)

DIM, TOKENS, FAR = 16, 6, 10**6  # DIM is a multiple of four; of up to 6 tokens all orders are tried
draw = torch.Generator().manual_seed(0)
x = torch.randn(TOKENS, DIM, generator=draw, dtype=torch.float64)
q, k = torch.randn(2, 16, 1, DIM, generator=draw, dtype=torch.float64)
theta = frequencies.geometric(DIM)
turn = {"layout": "halves"}


# %%
# The reasons, each as a function that is true.


def a_set_follows_every_shuffle():
    return properties.equivariance(lambda x: attention.attend(x, x, x), x) < 1e-12


def a_turned_grid_knows_only_both_offsets():
    def score(q, k, m, n):
        each = (axial.split(torch.tensor([[at, 2 * at]]), frequencies.geometric(DIM // 2)) for at in (m, n))
        q, k = (rotary.rotate(vector, angles, **turn) for vector, angles in zip((q, k), each, strict=True))
        return attention.scores(q, k)

    return properties.relativity(score, q, k, m=5, n=2, shifts=[1, 100]) < 1e-9


def alibi_reads_no_farther_than_before():
    def share(length, window=64):
        """What a query gives to keys beyond the window, if all contents are alike."""
        bias = alibi.bias(alibi.slopes(8)[:1], -torch.arange(length)[None])
        return attention.weights(bias)[..., window:].sum().item()

    return share(100_000) < 1e-9


def a_table_ends():
    try:
        learned.lookup(x, torch.tensor([TOKENS]))
    except ValueError:
        return True
    return False


def a_rotation_knows_only_the_offset_and_learns_nothing():
    def score(q, k, m, n):
        q, k = (
            rotary.rotate(vector, frequencies.angles(torch.tensor([at]), theta), **turn)
            for vector, at in ((q, m), (k, n))
        )
        return attention.scores(q, k)

    return properties.relativity(score, q, k, m=5, n=2, shifts=[1, FAR // 10]) < 1e-9


reasons = [
    a_set_follows_every_shuffle,
    a_turned_grid_knows_only_both_offsets,
    alibi_reads_no_farther_than_before,
    a_table_ends,
    a_rotation_knows_only_the_offset_and_learns_nothing,
]
true = sum(reason() for reason in reasons)
assert true == len(reasons)

# %%
# Read downwards; the first yes decides.

tree = [
    (
        "Are there trained\nweights already?",
        "what they had",
        "ink",
        "the file says what",
    ),
    ("Is the order\nof no meaning?", "nothing, no mask", "none", "follows every shuffle"),
    (
        "Has a token several\ncoordinates?",
        "axial rotation",
        "rope",
        "a part of the head\nfor each coordinate",
    ),
    (
        "Will texts be longer\nthan in training,\nwith no treatment?",
        "ALiBi, T5's bias",
        "alibi",
        "ALiBi reads no farther\nthan before",
    ),
    (
        "Is the length short\nand fixed for good?",
        "a learned table",
        "learned",
        "a row a position;\nit ends",
    ),
    ("Anything else", "rotary", "rope", "only the offset counts,\nnothing to learn"),
]
fig, ax = plt.subplots(figsize=(7.2, 8.6))
STEP, HEIGHT = 1.5, 1.02


def box(left, y, width, text, *, edge):
    style = "round,pad=0,rounding_size=0.12"
    face = figures.colour("panel")
    corner = (left, y - HEIGHT / 2)
    ax.add_patch(
        FancyBboxPatch(corner, width, HEIGHT, boxstyle=style, facecolor=face, edgecolor=edge, lw=1.6)
    )
    ax.text(left + width / 2, y, text, ha="center", va="center", color=figures.colour("ink"))


def arrow(start, end, word, place):
    look = {"arrowstyle": "-|>", "color": figures.colour("axis"), "lw": 1.6, "shrinkA": 0, "shrinkB": 0}
    ax.annotate("", end, start, arrowprops=look)
    ax.text(*place, word, color=figures.colour("muted"), ha="center", va="center")


for row, (question, answer, role, why) in enumerate(tree):
    y = -STEP * row
    colour = (
        figures.look(role).colour if role in ("none", "alibi", "rope", "learned") else figures.colour(role)
    )
    last = row == len(tree) - 1
    box(0, y, 3.0, question, edge=figures.colour("axis"))
    arrow((3.0, y), (4.0, y), "" if last else "yes", (3.45, y + 0.2))
    box(4.0, y, 3.2, "", edge=colour)
    ax.text(5.6, y + 0.25, answer, ha="center", va="center", weight="bold", color=colour)
    ax.text(5.6, y - 0.16, why, ha="center", va="center", color=figures.colour("muted"))
    if not last:
        arrow((1.5, y - HEIGHT / 2), (1.5, y - STEP + HEIGHT / 2), "no", (1.78, y - STEP / 2))
ax.set_xlim(-0.05, 7.25)
ax.set_ylim(-STEP * (len(tree) - 1) - 0.6, 0.6)
ax.set_axis_off()
fig.suptitle("The first yes decides", x=0.02, ha="left")
figures.publish(
    fig,
    alt="A decision tree, read downwards. Trained weights exist: what they had. Order without meaning: "
    "nothing and no mask. Several coordinates: axial rotation. Longer texts than in training without any "
    "treatment: ALiBi or T5's bias. Short and fixed length: a learned table. Anything else: rotary.",
    numbers={"questions": len(tree) - 1, "reasons": true},
)

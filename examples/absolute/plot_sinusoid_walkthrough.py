r"""
Seven steps from two equal rows to a row of clocks
==================================================

"The cat sat on the": one word stands at two positions. Seven pictures of the same five rows show what can be
added to tell the two apart, and what becomes of it.
"""

import math

import matplotlib.pyplot as plt
import torch
from matplotlib.patches import Circle, FancyBboxPatch, Rectangle, Wedge

from posbook import attention, figures, frequencies, properties, sinusoidal

plt.style.use("posbook.figures.posbook")

# %%
# Five rows of eight numbers. A word is a pattern of signs, and different words are orthogonal.

WIDTH = 8  # no setting: three doublings of signs make rows of eight, and four clocks fill the picture
sentence = ["the", "cat", "sat", "on", "the"]  # five words, the last like the first and the rest different
at = torch.arange(len(sentence))
signs = torch.ones(1, 1, dtype=torch.float64)
for _ in range(3):
    signs = torch.kron(signs, torch.tensor([[1, 1], [1, -1]], dtype=torch.float64))
x = signs[[["", "the", "cat", "sat", "on"].index(word) for word in sentence]]
blind = attention.attend(x, x, x)  # no positions, no mask

# %%
# What can be added: the index, the index over the length of the text, one clock, a row of clocks.
# The paper's clocks have base 10 000; with a base of 100 five words are enough to see four of them move.

LONGER = 10  # no setting either: in a text twice as long, the fraction of row 4 is that of row 2
PERIOD = 4  # 4, since the last word shall find the clock where the first did
BASE, SHIFT, FURTHER = 100, 3, 100  # a base above 1, a shift from 1 to 6, any distance
theta = frequencies.geometric(WIDTH, base=BASE)


def clocks(at, theta=theta):
    return sinusoidal.encode(frequencies.angles(at, theta))


def apart(rows):
    """How far the row of the last word is from the row of the first."""
    return (rows[-1] - rows[0]).norm().item()


index = at.double()[:, None].expand(-1, WIDTH)
one = clocks(at, torch.tensor([2 * math.pi / PERIOD], dtype=torch.float64))
row, later = clocks(at), clocks(at + SHIFT)
dots = row @ row[0]
dots_further = clocks(at + FURTHER) @ clocks(at + FURTHER)[0]

# %%
# A picture is drawn in inches from its upper left corner. The rows lie in the same place in all seven.

SIZE, TOP, HEIGHT, LEFT, CLOCK = (6.0, 5.4), 0.62, 0.85, 1.62, 0.95
middles = [TOP + HEIGHT * (p + 0.5) for p in range(len(sentence))]
ink, hand, muted, accent = (figures.colour(role) for role in ("ink", "position", "muted", "accent"))
shades = figures.style.MAPS["posbook.diverging"]
centred = {"ha": "center", "va": "center_baseline"}


def picture(title, between=None):
    """The sentence, one word a row, and in the margin how far its first row is from its last."""
    fig = plt.figure(figsize=SIZE, layout="none")
    ax = fig.add_axes((0, 0, 1, 1))
    ax.set(xlim=(0, SIZE[0]), ylim=(SIZE[1], 0))
    ax.set_axis_off()
    fig.suptitle(title, x=0.2 / SIZE[0], y=1 - 0.16 / SIZE[1], ha="left", va="top")
    for p, (word, y) in enumerate(zip(sentence, middles, strict=True)):
        ax.text(0.3, y, str(p), color=hand, weight="bold", **centred)
        edge = accent if word == sentence[0] else figures.colour("content")
        shape = {"boxstyle": "round,pad=0,rounding_size=0.08", "linewidth": 1.6}
        box = FancyBboxPatch((0.52, y - 0.23), 0.86, 0.46, fc=figures.colour("panel"), ec=edge, **shape)
        ax.add_patch(box)
        ax.text(0.95, y, word, fontsize=13, color=ink, **centred)
    if between is not None:
        ends = [middles[0], middles[0], middles[-1], middles[-1]]
        ax.plot([5.49, 5.6, 5.6, 5.49], ends, color=accent, linewidth=1.6)
        note = {"rotation": 90, "rotation_mode": "anchor", "weight": "bold", "color": accent}
        ax.text(5.8, sum(middles) / len(middles), f"{between} apart", **note, **centred)
    return fig, ax


def foot(ax, x, text, colour=muted):
    ax.text(x, TOP + 5 * HEIGHT + 0.2, text, color=colour, ha="center", va="center")


def cells(ax, rows, left=LEFT, limit=WIDTH - 3):
    for values, y in zip(rows, middles, strict=True):
        for i, value in enumerate(values.tolist()):
            colour = shades((value / limit + 1) / 2)
            written = figures.colour("on_high" if abs(value) > 0.75 * limit else "on_low")
            ax.add_patch(Rectangle((left + i * CLOCK / 2, y - 0.24), CLOCK / 2 - 0.03, 0.48, color=colour))
            text = f"{value:.0f}".replace("-0", "0").replace("-", "−")
            ax.text(left + (i + 0.5) * CLOCK / 2 - 0.015, y, text, color=written, **centred)


def face(ax, x, y):
    panel = {"facecolor": figures.colour("panel"), "edgecolor": figures.colour("axis")}
    ax.add_patch(Circle((x, y), 0.36, linewidth=1, **panel))


def point(ax, x, y, pair, width=2.8):
    """The hand of a clock points at (sine, cosine): it starts at twelve and runs clockwise."""
    sine, cosine = (0.3 * value for value in pair.tolist())
    ax.plot([x, x + sine], [y, y - cosine], color=hand, linewidth=width)


def bars(ax, upper, lower, scale, digits):
    for pair, y in zip(zip(upper.tolist(), lower.tolist(), strict=True), middles, strict=True):
        for value, up, colour in zip(pair, (-0.17, 0.17), (hand, muted), strict=True):
            ax.add_patch(Rectangle((LEFT, y + up - 0.11), value * scale, 0.22, color=colour))
            ax.text(LEFT + value * scale + 0.08, y + up, f"{value:.{digits}f}", color=colour, va="center")


# %%
# The seven pictures.

# 1 and 2: the words, without and with the index
first, ax = picture("No position: the first row and the last are equal", f"{apart(x):.0f}")
cells(ax, x)
foot(ax, LEFT + 2 * CLOCK, "eight numbers for each word")

second, ax = picture("The raw index: it drowns the words", f"{apart(x + index):.1f}")
cells(ax, x + index)
foot(ax, LEFT + 2 * CLOCK, "the same numbers, plus the index")

# 3: the index over the length, for two lengths
fraction, fraction_longer = at.double() / len(at), at.double() / LONGER
between = [apart(rows[:, None].expand(-1, WIDTH)) for rows in (fraction, fraction_longer)]
third, ax = picture("Index over length: one place, two numbers", "{:.2f} or {:.2f}".format(*between))
bars(ax, fraction, fraction_longer, 3.6, 1)
meet = LEFT + 3.6 * fraction[2].item()
ax.plot([meet, meet], [middles[2], middles[4]], ":", color=ink, linewidth=1.6, zorder=3)
foot(ax, LEFT + 0.9, f"upper: a text of {len(at)}", hand)
foot(ax, LEFT + 2.85, f"lower: a text of {LONGER}")

# 4: one clock, the two numbers it gives, and its sine as the words go by
fourth, ax = picture(f"One clock: at {PERIOD} it stands where it began", f"{apart(one):.0f}")
for y, pair in zip(middles, one, strict=True):
    face(ax, LEFT + CLOCK / 2, y)
    point(ax, LEFT + CLOCK / 2, y, pair)
cells(ax, one, left=LEFT + 1.3 * CLOCK, limit=2)
fine = torch.linspace(0, len(at) - 1, 200)
ax.plot(
    LEFT + 3.3 * CLOCK + 0.5 * torch.sin(2 * math.pi * fine / PERIOD), TOP + HEIGHT * (fine + 0.5), color=hand
)
ax.plot(LEFT + 3.3 * CLOCK + 0.5 * one[:, 0], middles, "o", color=hand)
foot(ax, 0.86, "tokens a turn")
for place, text in ((0.5, str(PERIOD)), (1.55, "sin"), (2.05, "cos"), (3.3, "sin")):
    foot(ax, LEFT + place * CLOCK, text)

# 5 and 6: four clocks, and the same four later
fifth, ax = picture("A row of clocks: no two rows are equal", f"{apart(row):.2f}")
sixth, ax_later = picture(f"{SHIFT} tokens later: the same turn in every row")
foot(ax, 0.86, "tokens a turn")
foot(ax_later, 0.86, "turned by", accent)
for i, wave in enumerate(frequencies.wavelengths(theta).tolist()):
    middle, turn = LEFT + (i + 0.5) * CLOCK, math.degrees(SHIFT * theta[i])
    foot(ax, middle, f"{wave:.0f}")
    foot(ax_later, middle, f"{turn:.0f}°", accent)
    for p, y in enumerate(middles):
        now, then = (rows[p, 2 * i : 2 * i + 2] for rows in (row, later))
        face(ax, middle, y)
        point(ax, middle, y, now)
        face(ax_later, middle, y)
        start = math.degrees(p * theta[i]) - 90  # where y points down, degrees run clockwise from three
        ax_later.add_patch(Wedge((middle, y), 0.3, start, start + turn, color=accent, alpha=0.3, linewidth=0))
        point(ax_later, middle, y, now, width=1.3)
        point(ax_later, middle, y, then)

# 7: what the product of two rows depends on
seventh, ax = picture("The dot product reads the offset, not the place")
bars(ax, dots, dots_further, 0.86, 2)
foot(ax, LEFT + 0.95, "upper: with row 0", hand)
foot(ax, LEFT + 2.85, f"lower: both {FURTHER} later")

figures.publish(
    [first, second, third, fourth, fifth, sixth, seventh],
    alt=[
        "Five rows, one for each word of “the cat sat on the”, with eight cells of plus or minus one. The "
        f"rows of the two “the”, at positions 0 and 4, have the same signs: {apart(x):.0f} apart.",
        "The same five rows with the position added to each cell. The cells grow darker row by row until "
        f"the signs are gone; the two rows of “the” are {apart(x + index):.1f} apart.",
        f"Two bars in each row: position over {len(at)} and position over {LONGER}. The upper bar of row 2 "
        "is as long as the lower bar of row 4, and a dotted line joins them.",
        "One clock in each row, its hand a quarter further each time, with its sine and cosine in two cells. "
        f"In row {PERIOD} hand and cells are those of row 0, and the wave beside them has come back.",
        "Four clocks in each row. The first turns far from row to row, the last hardly moves; the rows of "
        f"the two “the” differ: {apart(row):.2f} apart.",
        f"Four clocks in each row, each with a thin hand for now, a thick one for {SHIFT} tokens later and "
        "the wedge between them. Down each column the wedges are equally wide.",
        "Two bars in each row: the product of its clocks with those of row 0, and the same for positions "
        f"{FURTHER} later. In every row the two are equally long; from row 0 to row 4 they shrink from "
        f"{dots[0]:.0f} to {dots[-1]:.2f}.",
    ],
    numbers={
        "sentence": " ".join(sentence),
        "width": WIDTH,
        "base": BASE,
        "period": PERIOD,
        "longer": LONGER,
        "shift": SHIFT,
        "further": FURTHER,
        # the shape of each picture and where its rows begin and end, for what the page lays over it
        "aspect": SIZE[0] / SIZE[1],
        "rows_from": TOP / SIZE[1],
        "rows_to": (TOP + len(at) * HEIGHT) / SIZE[1],
        "blind_apart": apart(blind),
        "words_apart": (x[1] - x[0]).norm().item(),
        "index_apart": apart(x + index),
        "fraction_apart": between[0],
        "fraction_apart_longer": between[1],
        "fraction_of_sat": fraction[2].item(),
        "fraction_of_the_longer": fraction_longer[-1].item(),
        "clock_apart": apart(one),
        "row_apart": apart(row),
        "turn": math.degrees(SHIFT * theta[0]),
        "turn_error": properties.difference(row @ sinusoidal.shift(theta, SHIFT).T, later),
        "dot": dots[-1].item(),
        "dot_difference": properties.difference(dots, dots_further),
    },
)

r"""The equations of learned tables, several axes and xPos written again, with loops and ``math`` alone."""

import math

from tests import by_equation


def place(j, rows, length, align_corners):
    """Where new row j of so many reads the old table."""
    if align_corners:
        return 0.0 if length == 1 else j * (rows - 1) / (length - 1)
    return (j + 1 / 2) * rows / length - 1 / 2


def resample(column, length, align_corners):
    """Linear interpolation of one feature; beyond an end, the end."""
    new = []
    for j in range(length):
        x = min(max(place(j, len(column), length, align_corners), 0.0), len(column) - 1.0)
        below = min(math.floor(x), len(column) - 2) if len(column) > 1 else 0
        above = min(below + 1, len(column) - 1)
        new.append(column[below] + (x - below) * (column[above] - column[below]))
    return new


def resample_grid(grid, new, align_corners):
    """Rows first, then columns, each linearly."""
    wide = [resample(row, new[1], align_corners) for row in grid]
    columns = [resample(list(column), new[0], align_corners) for column in zip(*wide, strict=True)]
    return [list(row) for row in zip(*columns, strict=True)]


def axial_score(q, k, here, there, frequencies, axes):
    """Rotary's closed form with, in each pair, the offset along that pair's axis."""
    score = 0.0
    for i, (theta, axis) in enumerate(zip(frequencies, axes, strict=True)):
        pair = slice(2 * i, 2 * i + 2)
        score += by_equation.rotary_score(q[pair], k[pair], here[axis], there[axis], [theta])
    return score


def zeta(dim, gamma=0.4):
    return [(2 * i / dim + gamma) / (1 + gamma) for i in range(dim // 2)]


def xpos_score(q, k, m, n, frequencies, scale_base=512):
    """Rotary's closed form with each pair multiplied by ζ to the power (m − n)/scale_base."""
    score = 0.0
    for i, (theta, decay) in enumerate(zip(frequencies, zeta(len(q)), strict=True)):
        pair = slice(2 * i, 2 * i + 2)
        turned = by_equation.rotary_score(q[pair], k[pair], m, n, [theta])
        score += decay ** ((m - n) / scale_base) * turned
    return score

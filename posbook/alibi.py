r"""Subtract from each score a fixed slope times the distance.

.. math:: \text{bias}_{h,m,n} = -\text{slope}_h \cdot |n - m|, \qquad
          \text{slope}_h = 2^{-8h/H}, \quad h = 1 \dots H

Press et al. (2022, §3). They define it for a causal mask, where :math:`|n - m| = m - n`. Without a mask the
same formula is symmetric, and cannot tell a sentence from its reverse.
"""

import torch
from jaxtyping import Float, Float64, Real
from torch import Tensor


def slopes(heads: int) -> Float64[Tensor, " heads"]:
    r"""One slope for each of ``heads`` heads: :math:`2^{-8h/H}` when their number :math:`H` is a power of 2.

    Any other number follows the released code, as models do, and not the paper's formula: the slopes of the
    largest power of two below, then every second slope of twice that power until there are enough. Raises
    ValueError for fewer than one head.

    >>> slopes(8).tolist()
    [0.5, 0.25, 0.125, 0.0625, 0.03125, 0.015625, 0.0078125, 0.00390625]
    >>> slopes(6).tolist()
    [0.25, 0.0625, 0.015625, 0.00390625, 0.5, 0.125]
    """
    if heads < 1:
        raise ValueError(f"slopes need at least one head, not heads={heads}")
    power = 1 << (heads.bit_length() - 1)
    return torch.cat((_geometric(power), _geometric(2 * power)[0::2][: heads - power]))


def bias(
    slopes: Float[Tensor, " heads"], offsets: Real[Tensor, "*batch q k"]
) -> Float[Tensor, "*batch heads q k"]:
    r"""The penalty :math:`-\text{slope}_h\cdot|\text{offset}|`, added to scores that are already scaled.

    The slopes themselves are not divided by :math:`\sqrt{\text{dim}}` (the paper's footnote 10). Under a
    causal mask this is :math:`\text{slope}_h \cdot n` less a number for the whole row, which the softmax
    cancels, so code that adds only :math:`\text{slope}_h \cdot n` agrees. Raises ValueError for slopes with
    more than one axis.

    >>> from posbook import positions
    >>> at = torch.arange(3)
    >>> bias(slopes(8)[:1], positions.offsets(queries=at, keys=at)).tolist()
    [[[-0.0, -0.5, -1.0], [-0.5, -0.0, -0.5], [-1.0, -0.5, -0.0]]]
    """
    if slopes.ndim != 1:
        raise ValueError(f"slopes have one axis, (heads,), not shape {tuple(slopes.shape)}")
    return -slopes[:, None, None] * offsets[..., None, :, :].abs()


def _geometric(heads: int) -> Float64[Tensor, " heads"]:
    return 2.0 ** (-8 * torch.arange(1, heads + 1, dtype=torch.float64) / heads)

r"""Subtract from each score a learned power, or a logarithm, of the distance.

.. math:: \text{power}_{h,m,n} = -r_1 |n - m|^{r_2}, \qquad
          \text{logarithmic}_{h,m,n} = -r_1 \ln(1 + r_2 |n - m|)

Chi et al. (2022), with :math:`r_1, r_2 > 0` learned for each head, as in the code they released. Both are
kernels but for a constant, which the softmax cancels: :math:`\sum_{mn} c_m c_n\,\text{bias}_{mn} \ge 0` for
all numbers :math:`c` that sum to 0. For the power this needs :math:`r_2 \le 2`; at :math:`r_2 = 1` it is
ALiBi's bias with learned slopes.
"""

import math

import torch
from jaxtyping import Float, Real
from torch import Tensor

from posbook.positions import has_values


def power(
    r1: Float[Tensor, " heads"], r2: Float[Tensor, " heads"], offsets: Real[Tensor, "*batch q k"]
) -> Float[Tensor, "*batch heads q k"]:
    r"""The penalty :math:`-r_1 |\text{offset}|^{r_2}`, added to scores that are already scaled.

    Raises ValueError unless ``r1`` is positive and :math:`0 < r_2 \le 2`, one of each for each head.

    >>> power(torch.tensor([0.5]), torch.tensor([2.0]), torch.tensor([[-3, -2, -1, 0]])).tolist()
    [[[-4.5, -2.0, -0.5, -0.0]]]
    """
    _check(r1, r2, most=2)
    return -r1[:, None, None] * _distance(offsets) ** r2[:, None, None]


def logarithmic(
    r1: Float[Tensor, " heads"], r2: Float[Tensor, " heads"], offsets: Real[Tensor, "*batch q k"]
) -> Float[Tensor, "*batch heads q k"]:
    r"""The penalty :math:`-r_1 \ln(1 + r_2 |\text{offset}|)`, added to scores that are already scaled.

    Far keys are hardly told apart. Raises ValueError unless ``r1`` and ``r2`` are positive, one of each for
    each head.

    >>> bias = logarithmic(torch.tensor([1.0]), torch.tensor([1.0]), torch.tensor([[-8, -4, -1, 0]]))
    >>> [round(b, 4) for b in bias.flatten().tolist()]
    [-2.1972, -1.6094, -0.6931, -0.0]
    """
    _check(r1, r2, most=math.inf)
    return -r1[:, None, None] * torch.log1p(r2[:, None, None] * _distance(offsets))


def _distance(offsets: Real[Tensor, "*batch q k"]) -> Real[Tensor, "*batch 1 q k"]:
    return offsets[..., None, :, :].abs()


def _check(r1: Float[Tensor, "..."], r2: Float[Tensor, "..."], *, most: float | int) -> None:
    if r1.ndim != 1 or r1.shape != r2.shape:
        raise ValueError(
            f"r1 and r2 have one axis, (heads,), not shapes {tuple(r1.shape)} and {tuple(r2.shape)}"
        )
    for name, r, limit in (("r1", r1, math.inf), ("r2", r2, most)):
        if has_values(r) and (outside := r[~((r > 0) & (r <= limit))]).numel():
            bound = "" if limit == math.inf else f" and at most {limit}"
            raise ValueError(f"{name} must be positive{bound}, not {outside[0].item()}: clamp it")

r"""Add to each score a learned number that depends on the head and on the bucket of the offset.

.. math:: s_{h,m,n} = q_m \cdot k_n + b_{h,\,\text{bucket}(n - m)}

Raffel et al. (2020, §2.1). T5 does not divide by :math:`\sqrt{\text{dim}}`: use ``attention.scores(q, k,
scale=1.0)``.
"""

import bisect

import torch
from jaxtyping import Float, Int
from torch import Tensor

from posbook.positions import check_rows


def buckets(
    offsets: Int[Tensor, "*batch q k"], *, bidirectional: bool, buckets: int = 32, max_distance: int = 128
) -> Int[Tensor, "*batch q k"]:
    r"""The bucket of each offset: near ones have their own, far ones share.

    Of :math:`B` buckets on a side the first :math:`E = \lfloor B/2 \rfloor` hold one distance :math:`d` each,
    the others

    .. math:: E + \left\lfloor (B - E)\,\frac{\ln(d/E)}{\ln(D/E)} \right\rfloor \quad\text{up to } B - 1,
              \qquad D = \texttt{max\_distance}

    With ``bidirectional=True`` (T5's encoder) the past has the first half of the buckets and the future the
    second; with False (its decoder) the past has all, and the future shares bucket 0 with the query's own
    position.

    Raises ValueError if a side has fewer than two buckets, if two sides cannot share them evenly, or if
    ``max_distance`` does not exceed :math:`E`.

    >>> offsets = torch.tensor([[-200, -128, -16, -8, -1, 0, 1, 8, 16, 128]])
    >>> buckets(offsets, bidirectional=True).tolist()
    [[15, 15, 10, 8, 1, 0, 17, 24, 26, 31]]
    >>> buckets(offsets, bidirectional=False).tolist()
    [[31, 31, 16, 8, 1, 0, 0, 0, 0, 0]]
    """
    if bidirectional and buckets % 2:
        raise ValueError(f"two directions need an even number of buckets, not buckets={buckets}")
    side = buckets // 2 if bidirectional else buckets
    if side < 2:
        raise ValueError(f"each direction needs at least 2 buckets, not {side} (buckets={buckets})")
    exact = side // 2
    if max_distance <= exact:
        raise ValueError(f"max_distance must exceed the {exact} exact distances, not be {max_distance}")

    offsets = offsets.long()
    distance = offsets.abs() if bidirectional else (-offsets).clamp(min=0)
    starts = torch.tensor(_starts(exact, side - exact, max_distance), device=offsets.device, dtype=torch.long)
    far = exact + torch.bucketize(distance, starts, right=True)
    return torch.where(distance < exact, distance, far) + (side * (offsets > 0) if bidirectional else 0)


def bias(
    table: Float[Tensor, "buckets heads"], buckets: Int[Tensor, "*batch q k"]
) -> Float[Tensor, "*batch heads q k"]:
    r"""The learned numbers :math:`b_{h,\text{bucket}}` of these buckets, heads first, added to the scores.

    ``table`` is laid out as released: one row a bucket, one column a head. Raises ValueError for a bucket
    outside the table.

    >>> bias(torch.tensor([[0.0, 10.0], [1.0, 11.0]]), torch.tensor([[0, 1]])).tolist()
    [[[0.0, 1.0]], [[10.0, 11.0]]]
    """
    check_rows(buckets, "the bias table", table.shape[0])
    return table[buckets].movedim(-1, -3)


def _starts(exact: int, wide: int, max_distance: int) -> list[int]:
    # The first distance d of each wide bucket but the first: ⌊wide·ln(d/E)/ln(D/E)⌋ ≥ t is dʷ ≥ Dᵗ·Eʷ⁻ᵗ. In
    # integers, because a logarithm may land on either side of a bucket's edge.
    return [
        bisect.bisect_left(
            range(max_distance), max_distance**t * exact ** (wide - t), key=lambda distance: distance**wide
        )
        for t in range(1, wide)
    ]


# Python integers, which torch.compile need not trace. It is what torch.compiler.assume_constant_result does,
# but for its import of the whole compiler, which takes as long as that of torch.
_starts._dynamo_marked_constant = True

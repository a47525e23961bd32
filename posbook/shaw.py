r"""Add to each key and each value a learned vector that depends on the clipped offset.

.. math:: e_{mn} = \frac{q_m \cdot (k_n + a^K_{mn})}{\sqrt{\text{dim}}}, \qquad
          z_m = \sum_n \alpha_{mn} (v_n + a^V_{mn}), \qquad
          a_{mn} = w_{\mathrm{clip}(n - m,\, -c,\, c)}

Shaw et al. (2018, eq. 3 for the values, 4 for the keys). As in their eq. 5 the sums are split, so that
:mod:`~posbook.attention` keeps its own term and this module gives what is added:
``scores(q, k) + key_term(q, …)`` and ``output(weights, v) + value_term(weights, …)``.
Each table has :math:`2c + 1` rows; their :math:`k` is the clipping distance :math:`c` here.
"""

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor

from posbook.positions import check_rows


def indices(offsets: Int[Tensor, "*batch q k"], clip: int) -> Int[Tensor, "*batch q k"]:
    r"""The table's row for each offset: :math:`\mathrm{clip}(n - m, -c, c) + c`, so 0 is the distant past.

    Raises ValueError for a negative clipping distance.

    >>> indices(torch.tensor([[-9, -1, 0, 1, 9]]), clip=2).tolist()
    [[0, 1, 2, 3, 4]]
    """
    if clip < 0:
        raise ValueError(f"the clipping distance must not be negative, not clip={clip}")
    return offsets.clamp(-clip, clip) + clip


def key_term(
    q: Float[Tensor, "*batch q dim"],
    table: Float[Tensor, "*heads rows _dim"],
    indices: Int[Tensor, "*q_k"],
    *,
    scale: float | int | None = None,
) -> Float[Tensor, "*out q k"]:
    r"""What the vectors on the keys add to the scores: :math:`q_m \cdot a^K_{mn} / \sqrt{\text{dim}}`.

    It depends on the query's content, so it is not a bias. ``table`` is (rows, dim), or has heads in front as
    ``q`` has; ``scale`` replaces :math:`1/\sqrt{\text{dim}}`. Raises ValueError where shapes or rows do not
    fit.

    >>> key_term(torch.tensor([[1.0, 2.0]]), torch.eye(2), torch.tensor([[0, 1, 1]]), scale=1.0).tolist()
    [[1.0, 2.0, 2.0]]
    """
    if table.shape[-1] != q.shape[-1]:
        raise ValueError(f"vectors on keys must be as wide as queries, {q.shape[-1]}, not {table.shape[-1]}")
    if indices.ndim != 2 or indices.shape[0] != q.shape[-2]:
        raise ValueError(
            f"indices must be (q, k) with q={q.shape[-2]} as queries, not {tuple(indices.shape)}"
        )
    check_rows(indices, "the table of vectors on keys", table.shape[-2])
    scale = 1 / math.sqrt(q.shape[-1]) if scale is None else scale
    return torch.einsum("...qd,...qkd->...qk", q, table[..., indices, :]) * scale


def value_term(
    weights: Float[Tensor, "*batch q k"],
    table: Float[Tensor, "*heads rows dim"],
    indices: Int[Tensor, "*q_k"],
) -> Float[Tensor, "*out q dim"]:
    r"""What the vectors on the values add to the output: :math:`\sum_n \alpha_{mn}\, a^V_{mn}`.

    ``table`` is (rows, dim), or has heads in front as ``weights`` has. Raises ValueError where shapes or rows
    do not fit.

    >>> value_term(torch.tensor([[0.25, 0.5, 0.25]]), torch.eye(2), torch.tensor([[0, 1, 1]])).tolist()
    [[0.25, 0.75]]
    """
    if indices.shape != weights.shape[-2:]:
        raise ValueError(
            f"indices must be (q, k) = {tuple(weights.shape[-2:])} as weights are, not {tuple(indices.shape)}"
        )
    check_rows(indices, "the table of vectors on values", table.shape[-2])
    return torch.einsum("...qk,...qkd->...qd", weights.to(table.dtype), table[..., indices, :])

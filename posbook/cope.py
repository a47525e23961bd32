r"""Let each query count the tokens that matter to it, and use the count as the position.

.. math:: g_{mn} = \sigma(s_{mn}), \qquad p_{mn} = \sum_{j=n}^{m} g_{mj}, \qquad
          s'_{mn} = s_{mn} + \frac{q_m \cdot e[p_{mn}]}{\sqrt{\text{dim}}}

Golovneva et al. (2024). A gate near 1 counts its token, one near 0 skips it, and the count runs from the key
up to the query. It is rarely whole, so the vector between two rows of the table is interpolated:

.. math:: e[p] = (p - \lfloor p \rfloor)\, e[\lceil p \rceil]
                 + (1 - p + \lfloor p \rfloor)\, e[\lfloor p \rfloor]

If every gate is 1, :math:`p_{mn} = m - n + 1`, and this is a learned vector for each offset.
"""

import math

import torch
from jaxtyping import Float, Shaped
from torch import Tensor

from posbook.positions import check_rows


def gates(scores: Float[Tensor, "*batch q k"], mask: Shaped[Tensor, "..."]) -> Float[Tensor, "*out q k"]:
    r"""How much each key counts for each query: :math:`\sigma(s_{mn})`, and 0 where it may not attend.

    ``mask`` is boolean, True = may attend. It has no default, because without a causal mask the count would
    run on past the query. Raises ValueError for a mask of another type or shape.

    >>> gates(torch.zeros(2, 2), torch.tensor([[True, False], [True, True]])).tolist()
    [[0.5, 0.0], [0.5, 0.5]]
    """
    if mask.dtype != torch.bool or mask.shape[-2:] != scores.shape[-2:]:
        raise ValueError(
            f"the mask must be boolean and (q, k) = {tuple(scores.shape[-2:])} as the scores are, "
            f"not {mask.dtype} {tuple(mask.shape)}"
        )
    # Half precision counts no further than 2048 (bfloat16: 256) in ones.
    scores = scores.to(torch.promote_types(scores.dtype, torch.float32))
    return torch.where(mask, scores.sigmoid(), 0)


def positions(gates: Float[Tensor, "*batch q k"], rows: int) -> Float[Tensor, "*batch q k"]:
    r"""The count from each key up to the query, :math:`\sum_{j \ge n} g_{mj}`, at most ``rows`` − 1.

    A count may be 0, so a table that counts up to :math:`N` needs :math:`N + 1` rows; what counts further
    shares the last. Raises ValueError for a table without rows.

    >>> positions(torch.tensor([[1.0, 0.5, 0.0, 1.0]]), rows=3).tolist()
    [[2.0, 1.5, 1.0, 1.0]]
    """
    if rows < 1:
        raise ValueError(f"the table of positions needs at least one row, not rows={rows}")
    return gates.flip(-1).cumsum(-1).flip(-1).clamp(max=rows - 1)


def term(
    q: Float[Tensor, "*batch q dim"],
    table: Float[Tensor, "*heads rows _dim"],
    positions: Float[Tensor, "*counted q k"],
    *,
    scale: float | int | None = None,
) -> Float[Tensor, "*out q k"]:
    r"""What the counts add to the scores: :math:`q_m \cdot e[p_{mn}] / \sqrt{\text{dim}}`.

    ``table`` is (rows, dim), or has heads in front as ``q`` has. ``scale`` replaces
    :math:`1/\sqrt{\text{dim}}`, by which the authors' code divides this term too; other code adds it
    undivided, scale=1. Raises ValueError where shapes or rows do not fit.

    >>> term(torch.tensor([[1.0]]), torch.tensor([[0.0], [10.0], [30.0]]), torch.tensor([[1.5, 1.0, 0.1]]))
    tensor([[20., 10.,  1.]])
    """
    if table.shape[-1] != q.shape[-1]:
        raise ValueError(f"the table must be as wide as queries, {q.shape[-1]}, not {table.shape[-1]}")
    if positions.shape[-2] != q.shape[-2]:
        raise ValueError(
            f"positions must be (…, q, k) with q={q.shape[-2]} as queries, not {tuple(positions.shape)}"
        )
    below, above = positions.floor().long(), positions.ceil().long()
    check_rows(torch.stack((below, above)), "the table of positions", table.shape[-2])
    # The product with whole rows comes first: interpolating numbers costs less than interpolating vectors.
    products = q @ table.mT
    leading = torch.broadcast_shapes(products.shape[:-2], positions.shape[:-2])
    products = products.expand(*leading, -1, -1)
    at_below, at_above = (products.gather(-1, rows.expand(*leading, -1, -1)) for rows in (below, above))
    share = positions - below
    scale = 1 / math.sqrt(q.shape[-1]) if scale is None else scale
    return (share * at_above + (1 - share) * at_below) * scale

r"""Add to each score what the query makes of the distance, and two terms that no query enters.

.. math:: \sqrt{\text{dim}}\; s_{mn}
          = q_m \cdot k_n + q_m \cdot r_{m-n} + u \cdot k_n + v \cdot r_{m-n}, \qquad r_d = W_R R_d

Dai et al. (2019, §3.3); the factor is that of their code. :math:`R_d` is a sinusoid of the *distance*
:math:`d = m - n \ge 0`, minus the offset, so every key has one however long the memory. :math:`u` and
:math:`v` are learned, and so is :math:`W_R`, which is applied before: ``r = encode(…) @ W_R``.
:mod:`~posbook.attention` keeps the first term, ``scores(q, k) + terms(q, k, …)``.
"""

import math

import torch
from jaxtyping import Float, Float64, Int
from torch import Tensor

from posbook.positions import check_rows


def encode(angles: Float[Tensor, "*rows pairs"]) -> Float64[Tensor, "*rows dim"]:
    r"""The sinusoids :math:`R_d` of these distances' angles: all sines, then all cosines; dim = 2·pairs.

    The layout of the released code. It is the interleaved table of Vaswani et al. with its columns in another
    order, which :math:`W_R` absorbs.

    >>> from posbook import frequencies
    >>> encode(frequencies.angles(torch.arange(2), torch.tensor([0.0, 0.0]))).tolist()
    [[0.0, 0.0, 1.0, 1.0], [0.0, 0.0, 1.0, 1.0]]
    """
    angles = angles.to(torch.float64)
    return torch.cat((angles.sin(), angles.cos()), dim=-1)


def shift(
    products: Float[Tensor, "*batch q rows"], offsets: Int[Tensor, "*q_k"], *, lowest: int = 0
) -> Float[Tensor, "*batch q k"]:
    r"""Pick for each query and key the product with their distance's row: :math:`p_{m,\,m-n}`.

    Row 0 stands for the distance ``lowest``: 0, or negative for a model that looks ahead. Released code does
    this by padding and reshaping, and leaves the numbers of other rows where a key lies ahead of its query,
    for the mask to hide. Here such a key gets :math:`-\infty` if ``lowest`` is 0.

    Raises ValueError for a distance that has no row, and where shapes do not fit.

    >>> offsets = torch.tensor([[0, 1, 2], [-1, 0, 1], [-2, -1, 0]])
    >>> shift(torch.tensor([[0.0, 1.0, 2.0]] * 3), offsets).tolist()
    [[0.0, -inf, -inf], [1.0, 0.0, -inf], [2.0, 1.0, 0.0]]
    """
    if offsets.ndim != 2 or offsets.shape[0] != products.shape[-2]:
        raise ValueError(
            f"offsets must be (q, k) with q={products.shape[-2]} as queries, not {tuple(offsets.shape)}"
        )
    if lowest > 0:
        raise ValueError(f"a token's distance to itself, 0, needs a row: lowest <= 0, not lowest={lowest}")
    rows = -offsets.long() - lowest if lowest else (-offsets.long()).clamp(min=0)
    check_rows(rows, "the table of distances", products.shape[-1])
    picked = products.gather(-1, rows.expand(*products.shape[:-2], -1, -1))
    return picked if lowest else picked.masked_fill(offsets > 0, -torch.inf)


def terms(
    q: Float[Tensor, "*batch q dim"],
    k: Float[Tensor, "*keys k _dim"],
    r: Float[Tensor, "*heads rows _dim"],
    u: Float[Tensor, "*content _dim"],
    v: Float[Tensor, "*position _dim"],
    offsets: Int[Tensor, "*q_k"],
    *,
    lowest: int = 0,
    scale: float | int | None = None,
) -> Float[Tensor, "*out q k"]:
    r"""What is added to the scores: :math:`((q_m + v) \cdot r_{m-n} + u \cdot k_n) / \sqrt{\text{dim}}`.

    ``r`` has a row for each distance from ``lowest`` (see :func:`shift`); ``u`` and ``v`` are (dim,). All
    three may have heads in front. ``scale`` replaces :math:`1/\sqrt{\text{dim}}`. Raises ValueError where
    shapes or rows do not fit.

    >>> q, k, r = torch.tensor([[1.0, 0.0]]), torch.tensor([[0.5, 1.0]]), torch.tensor([[0.0, 1.0]])
    >>> u, v = torch.tensor([2.0, 0.0]), torch.tensor([0.0, 3.0])
    >>> terms(q, k, r, u, v, torch.tensor([[0]]), scale=1.0).tolist()
    [[4.0]]
    """
    widths = [x.shape[-1] for x in (q, k, r, u, v)]
    if len(set(widths)) > 1:
        raise ValueError(f"q, k, r, u and v must be equally wide, not {', '.join(map(str, widths))}")
    if offsets.shape[-1] != k.shape[-2]:
        raise ValueError(f"offsets must be (q, k) with k={k.shape[-2]} as keys, not {tuple(offsets.shape)}")
    scale = 1 / math.sqrt(q.shape[-1]) if scale is None else scale
    by_distance = shift((q + v[..., None, :]) @ r.mT, offsets, lowest=lowest)
    return (by_distance + u[..., None, :] @ k.mT) * scale

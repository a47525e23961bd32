r"""Let every query average the values, weighted by how well it matches their keys.

.. math:: s_{mn} = \frac{q_m \cdot k_n}{\sqrt{\text{dim}}}, \qquad
          \alpha_{mn} = \frac{e^{s_{mn}}}{\sum_j e^{s_{mj}}}, \qquad
          z_m = \sum_n \alpha_{mn} v_n

Vaswani et al. (2017, eq. 1). Nothing here knows about position: it comes in through ``q`` and ``k``, through
a ``bias`` added to the scores, or through a ``mask`` (True = may attend). Leading axes (batch, heads)
broadcast.
"""

import math

import torch
from jaxtyping import Bool, Float, Shaped
from torch import Tensor


def scores(
    q: Float[Tensor, "*batch q dim"], k: Float[Tensor, "*keys k _dim"], *, scale: float | int | None = None
) -> Float[Tensor, "*out q k"]:
    r"""How well each query matches each key: :math:`q_m \cdot k_n / \sqrt{\text{dim}}`.

    ``scale`` replaces :math:`1/\sqrt{\text{dim}}`; T5 uses 1. Raises ValueError where widths or leading axes
    differ.

    >>> scores(torch.tensor([[2.0, 0.0, 0.0, 0.0]]), torch.eye(4)).tolist()
    [[1.0, 0.0, 0.0, 0.0]]
    """
    if q.shape[-1] != k.shape[-1]:
        raise ValueError(f"queries and keys must be equally wide, not {q.shape[-1]} and {k.shape[-1]}")
    if not _broadcast(q.shape[:-2], k.shape[:-2]):
        raise ValueError(
            f"the leading axes of queries {tuple(q.shape)} and keys {tuple(k.shape)} do not match: "
            "where heads share a key, repeat it with k.repeat_interleave(queries_per_key, dim=-3)"
        )
    scale = 1 / math.sqrt(q.shape[-1]) if scale is None else scale
    return q @ k.mT * scale


def causal(
    queries: int, keys: int | None = None, *, device: torch.device | str | None = None
) -> Bool[Tensor, "q k"]:
    r"""The mask under which a query attends to itself and to what came before: :math:`n \le m`.

    With ``keys`` given, the queries are the last of so many tokens: a cached step is ``causal(1, length)``.
    Raises ValueError if there are more queries than keys, or none.

    >>> causal(3).int().tolist()
    [[1, 0, 0], [1, 1, 0], [1, 1, 1]]
    >>> causal(2, 4).int().tolist()
    [[1, 1, 1, 0], [1, 1, 1, 1]]
    """
    keys = queries if keys is None else keys
    if not 1 <= queries <= keys:
        raise ValueError(
            f"queries are the last of the keys, so 1 <= queries <= keys, not queries={queries}, keys={keys}"
        )
    return torch.ones(queries, keys, dtype=torch.bool, device=device).tril(keys - queries)


def weights(
    scores: Float[Tensor, "*batch q k"], mask: Shaped[Tensor, "..."] | None = None
) -> Float[Tensor, "*out q k"]:
    r"""The softmax of each row over the keys it may attend to: :math:`e^{s_{mn}} / \sum_j e^{s_{mj}}`.

    ``mask`` is boolean and broadcasts to the scores: True = may attend. A row that may attend to nothing
    gives zeros. Raises ValueError for a mask of another type or shape.

    >>> weights(torch.zeros(3, 3), causal(3))[1].tolist()
    [0.5, 0.5, 0.0]
    >>> weights(torch.zeros(1, 2), torch.tensor([[False, False]])).tolist()
    [[0.0, 0.0]]
    """
    if mask is not None:
        if mask.dtype != torch.bool:
            raise ValueError(
                f"a mask is boolean, True = may attend, not {mask.dtype}: add numbers to the scores"
            )
        _check_fit("mask", mask.shape, scores.shape)
        scores = torch.where(mask, scores, -torch.inf)
    dtype = scores.dtype
    # Half precision would round the sum, and overflow it at 65 536 equal scores.
    scores = scores.to(torch.promote_types(dtype, torch.float32))
    # A number taken off a whole row cancels in the fraction: the largest keeps every exponential in range. It
    # is kept finite because −∞ − (−∞), in a row that may attend to nothing, is no number.
    largest = scores.detach().amax(dim=-1, keepdim=True).clamp(min=torch.finfo(scores.dtype).min)
    exponentials = torch.exp(scores - largest)
    total = exponentials.sum(dim=-1, keepdim=True)
    return (exponentials / torch.where(total == 0, 1, total)).to(dtype)


def output(
    weights: Float[Tensor, "*batch q k"], values: Float[Tensor, "*keys _k dim"]
) -> Float[Tensor, "*out q dim"]:
    r"""The weighted mean of the values, :math:`\sum_n \alpha_{mn} v_n`, in their dtype.

    The weights are rounded to that dtype, since a float64 bias makes float64 weights. Raises ValueError
    where numbers of keys or leading axes differ.

    >>> output(torch.tensor([[0.25, 0.75]]), torch.tensor([[0.0, 4.0], [8.0, 4.0]])).tolist()
    [[6.0, 4.0]]
    """
    if weights.shape[-1] != values.shape[-2] or not _broadcast(weights.shape[:-2], values.shape[:-2]):
        raise ValueError(
            f"weights (..., q, k) and values (..., k, dim) must agree in keys and leading axes, "
            f"not {tuple(weights.shape)} and {tuple(values.shape)}"
        )
    return weights.to(values.dtype) @ values


def attend(
    q: Float[Tensor, "*batch q dim"],
    k: Float[Tensor, "*keys k _dim"],
    v: Float[Tensor, "*values _k width"],
    *,
    bias: Float[Tensor, "..."] | None = None,
    mask: Shaped[Tensor, "..."] | None = None,
    scale: float | int | None = None,
) -> Float[Tensor, "*out q width"]:
    r"""Attention in full: scores, plus a bias, under a mask, softmax, mean of the values.

    :math:`z = \mathrm{softmax}(q k^\top / \sqrt{\text{dim}} + \text{bias})\, v`. Raises ValueError as its
    parts do, and for a bias that does not broadcast to the scores.

    >>> attend(torch.zeros(2, 4), torch.ones(2, 4), torch.tensor([[0.0], [1.0]]), mask=causal(2)).tolist()
    [[0.0], [0.5]]
    """
    matches = scores(q, k, scale=scale)
    if bias is not None:
        _check_fit("bias", bias.shape, matches.shape)
        matches = matches + bias
    return output(weights(matches, mask), v)


def _check_fit(name: str, shape: tuple[int, ...], scores: tuple[int, ...]) -> None:
    # One cached query against the mask of a whole sequence would broadcast to as many queries in silence.
    enlarges = any(a not in (1, b) for a, b in zip(shape[-2:][::-1], scores[-2:][::-1], strict=False))
    if enlarges or not _broadcast(shape[:-2], scores[:-2]):
        raise ValueError(
            f"a {name} of shape {tuple(shape)} does not fit scores {tuple(scores)}: "
            "its last axes must be the scores' (q, k), or 1"
        )


def _broadcast(left: tuple[int, ...], right: tuple[int, ...]) -> bool:
    return all(a == b or 1 in (a, b) for a, b in zip(reversed(left), reversed(right), strict=False))

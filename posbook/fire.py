r"""Add to each score a learned function of the distance, as a share of the furthest that the query can look.

.. math:: \text{bias}_{h,m,n} = f_\theta\!\left(\frac{\psi(m - n)}{\psi(\max(L, m))}\right)_{\!h}, \qquad
          \psi(x) = \ln(c x + 1)

Li et al. (2024). :math:`f_\theta` is a small network with one input and one output for each head. Its input
stays between 0 and 1 at any length, and training on texts longer than the threshold :math:`L` covers that
range. Up to :math:`L` only the offset counts; beyond it the query's own position does too. :math:`c` and
:math:`L` are learned as well: code in circulation starts at 0.1 and 512, and adds :math:`10^{-6}` to the
denominator.

The formula is for keys at or before the query. For a key ahead, which a causal mask hides, some of that code
takes :math:`|m - n|` and some 0; here its bias is :math:`-\infty`, which forbids it.
"""

from collections.abc import Callable

import torch
from jaxtyping import Float, Float64, Real
from torch import Tensor

from posbook.positions import has_values, offsets


def distances(
    *,
    queries: Real[Tensor, "*#batch q"],
    keys: Real[Tensor, "*#batch k"],
    c: float | int | Float[Tensor, ""],
    threshold: float | int | Float[Tensor, ""],
) -> Float64[Tensor, "*batch q k"]:
    r"""The normalised distances :math:`\psi(m - n) / \psi(\max(L, m))`, from 0 to 1; ∞ for a key ahead.

    They need the positions themselves, counted from 0, not only their offsets. ``threshold`` is :math:`L`.
    Raises ValueError unless ``c`` and ``threshold`` are positive, and for negative positions.

    >>> row = distances(queries=torch.tensor([3]), keys=torch.arange(5), c=1.0, threshold=7)
    >>> [round(distance, 4) for distance in row.flatten().tolist()]
    [0.6667, 0.5283, 0.3333, 0.0, inf]
    """
    c, threshold = (torch.as_tensor(x, dtype=torch.float64, device=queries.device) for x in (c, threshold))
    for name, value in (("c", c), ("threshold", threshold)):
        if has_values(value) and not value > 0:
            raise ValueError(f"{name} must be positive, not {value.item()}")
    for name, at in (("queries", queries), ("keys", keys)):
        if has_values(at) and (at < 0).any():
            raise ValueError(f"{name} stand at positions counted from 0, not at {at.min().item()}")
    behind = (-offsets(queries=queries, keys=keys)).to(torch.float64)
    longest = torch.maximum(queries.to(torch.float64), threshold)
    # A key ahead has no logarithm, and in the unused branch of `where` it would turn the gradient into NaN.
    normalised = torch.log1p(c * behind.clamp(min=0)) / torch.log1p(c * longest)[..., None]
    return torch.where(behind < 0, torch.inf, normalised)


def bias(
    distances: Float[Tensor, "*batch q k"], f: Callable[[Tensor], Tensor]
) -> Float[Tensor, "*batch heads q k"]:
    r"""The learned numbers :math:`f_\theta(\text{distance})`, heads first, added to scores already scaled.

    ``f`` takes (…, 1) to (…, heads), as a ``torch.nn.Sequential`` does; give it the distances in the dtype of
    its weights. A distance of ∞ becomes a bias of :math:`-\infty`. Raises ValueError if ``f`` gives
    another shape.

    >>> bias(torch.tensor([[0.5, 0.0, torch.inf]]), lambda x: x @ torch.tensor([[2.0, 4.0]])).tolist()
    [[[1.0, 0.0, -inf]], [[2.0, 0.0, -inf]]]
    """
    ahead = distances.isinf()
    values = f(distances.masked_fill(ahead, 0)[..., None])
    if values.shape[:-1] != distances.shape:
        raise ValueError(
            f"f must take {(*distances.shape, 1)} to {(*distances.shape, 'heads')}, not {tuple(values.shape)}"
        )
    return values.masked_fill(ahead[..., None], -torch.inf).movedim(-1, -3)

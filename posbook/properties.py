r"""Measure what an encoding promises, on anyone's implementation.

.. math:: (P_\pi X)_i = X_{\pi(i)}, \qquad \text{in code } P_\pi X = \texttt{x[pi]}

A permutation is written :math:`\pi = (\pi(0), \dots, \pi(n-1))`: row :math:`i` of the result is row
:math:`\pi(i)` of the original. So :math:`P_\pi B P_\pi^\top` is ``B[pi][:, pi]``, and :math:`P_\sigma P_\rho
= P_{\rho \circ \sigma}`. Deep Sets (Zaheer et al. 2017) names invariance and equivariance for functions of
sets.

Every measure takes a callable and returns the worst violation it saw, relative to the size of what it
compared: about 1e-16 where the promise holds in float64, about 1 where it does not, NaN where a result is
NaN.
"""

import itertools
from collections.abc import Callable, Iterable, Sequence

import torch
from jaxtyping import Float, Float64, Shaped
from torch import Tensor

Permutation = Sequence[int] | Tensor


def permute(x: Shaped[Tensor, "*batch n dim"], pi: Permutation) -> Shaped[Tensor, "*batch n dim"]:
    r"""The rows of ``x`` in the order :math:`\pi`: :math:`(P_\pi X)_i = X_{\pi(i)}`.

    Raises ValueError unless ``pi`` has each row's number once.

    >>> permute(torch.tensor([[10], [20], [30]]), (2, 0, 1)).flatten().tolist()
    [30, 10, 20]
    """
    order = [int(i) for i in pi]
    if sorted(order) != list(range(x.shape[-2])):
        raise ValueError(
            f"a permutation of {x.shape[-2]} rows has each number from 0 once, not {tuple(order)}"
        )
    return x[..., order, :]


def permutation_matrix(pi: Permutation) -> Float64[Tensor, "n n"]:
    r"""The matrix :math:`P_\pi`: row :math:`i` is 1 in column :math:`\pi(i)`, and its transpose undoes it.

    >>> permutation_matrix((2, 0, 1)).int().tolist()
    [[0, 0, 1], [1, 0, 0], [0, 1, 0]]
    """
    return permute(torch.eye(len(pi), dtype=torch.float64), pi)


def difference(a: Float[Tensor, "..."], b: Float[Tensor, "..."]) -> float:
    r"""The largest difference between two results, relative to the largest number in either.

    Raises ValueError if their shapes differ.

    >>> difference(torch.tensor([1.0, 4.0]), torch.tensor([1.0, 3.0]))
    0.25
    """
    if a.shape != b.shape:
        raise ValueError(f"results to compare must have one shape, not {tuple(a.shape)} and {tuple(b.shape)}")
    a, b = a.detach().double(), b.detach().double()
    size = torch.maximum(a.abs(), b.abs()).max()
    return 0.0 if size == 0 else ((a - b).abs().max() / size).item()


def equivariance(
    f: Callable[[Tensor], Tensor],
    x: Float[Tensor, "*batch n dim"],
    *,
    permutations: Iterable[Permutation] | None = None,
) -> float:
    r"""Does :math:`f(PX) = P f(X)`? The worst :func:`difference` over these permutations of the rows.

    Without ``permutations`` all of them are tried, up to six rows; for more, pass a sample: ValueError.

    >>> x = torch.eye(3)
    >>> equivariance(lambda x: 2 * x, x)
    0.0
    >>> equivariance(lambda x: x.cumsum(dim=0), x)
    1.0
    """
    result = f(x)
    return _worst(
        difference(f(permute(x, pi)), permute(result, pi)) for pi in _chosen(permutations, x.shape[-2])
    )


def invariance(
    attend: Callable[[Tensor, Tensor, Tensor], Tensor],
    q: Float[Tensor, "*queries q dim"],
    k: Float[Tensor, "*keys n dim"],
    v: Float[Tensor, "*values n width"],
    *,
    permutations: Iterable[Permutation] | None = None,
) -> float:
    r"""Does :math:`f(Q, PK, PV) = f(Q, K, V)`? The worst :func:`difference` over these joint permutations.

    Without ``permutations`` all of them are tried, up to six keys; for more, pass a sample: ValueError.

    >>> invariance(lambda q, k, v: (q @ k.T) @ v, torch.ones(1, 3), torch.eye(3), torch.eye(3))
    0.0
    >>> invariance(lambda q, k, v: v[:1], torch.ones(1, 3), torch.eye(3), torch.eye(3))
    1.0
    """
    result = attend(q, k, v)
    return _worst(
        difference(attend(q, permute(k, pi), permute(v, pi)), result)
        for pi in _chosen(permutations, k.shape[-2])
    )


def reversal(f: Callable[[Tensor], Tensor], x: Float[Tensor, "*batch n dim"]) -> float:
    r"""Does :math:`f(JX) = J f(X)` for the reversal :math:`J`? The :func:`difference` between the two.

    Where it does, ``f`` cannot tell a sentence from its reverse.

    >>> reversal(lambda x: x + x.flip(0), torch.eye(3))
    0.0
    """
    return equivariance(f, x, permutations=[range(x.shape[-2])[::-1]])


def relativity(
    score: Callable[[Tensor, Tensor, int, int], Tensor],
    q: Float[Tensor, "*batch dim"],
    k: Float[Tensor, "*batch dim"],
    *,
    m: int,
    n: int,
    shifts: Iterable[int],
) -> float:
    r"""Does the score of :math:`q` at :math:`m` and :math:`k` at :math:`n` stay when both move alike?

    ``score(q, k, m, n)`` gives one number for each query and key. Returns the worst :func:`difference`
    between its values at :math:`(m + s, n + s)` and at :math:`(m, n)`. Raises ValueError for no shifts.

    >>> score = lambda q, k, m, n: (q * k).sum(-1) - abs(m - n)
    >>> relativity(score, torch.ones(4), torch.ones(4), m=3, n=1, shifts=[1, 10, 100])
    0.0
    """
    result = score(q, k, m, n)
    return _worst(difference(score(q, k, m + s, n + s), result) for s in shifts)


def norm(f: Callable[[Tensor], Tensor], x: Float[Tensor, "*rows dim"]) -> float:
    r"""Does every row keep its length, :math:`\lVert f(x) \rVert = \lVert x \rVert`? The worst change.

    >>> norm(lambda x: x.flip(-1), torch.tensor([[3.0, 4.0]]))
    0.0
    >>> norm(lambda x: x + torch.tensor([3.0, 4.0]), torch.tensor([[3.0, 4.0]]))
    1.0
    """
    before, after = (y.detach().double().norm(dim=-1) for y in (x, f(x)))
    if before.shape != after.shape:
        raise ValueError(f"f must keep the rows of x, {tuple(before.shape)}, not give {tuple(after.shape)}")
    change = (after - before).abs() / before.clamp(min=torch.finfo(torch.float64).tiny)
    return change.max().item()


def symmetries(matrix: Shaped[Tensor, "*heads n _n"]) -> list[tuple[int, ...]]:
    r"""All permutations with :math:`P B P^\top = B`, which a layer with this bias or mask must follow.

    A stack of matrices, one for each head, must be kept by all at once. Entries are compared exactly,
    infinities too. Raises ValueError for more than eight tokens (eight have 40 320 permutations), a matrix
    that is not square, and NaN.

    >>> at = torch.arange(3)
    >>> symmetries(at[:, None] >= at)
    [(0, 1, 2)]
    >>> symmetries(-(at[:, None] - at).abs())
    [(0, 1, 2), (2, 1, 0)]
    """
    if matrix.ndim < 2 or matrix.shape[-1] != matrix.shape[-2]:
        raise ValueError(f"a bias or mask to permute must be (..., n, n), not {tuple(matrix.shape)}")
    n = matrix.shape[-1]
    if n > 8:
        raise ValueError(f"{n} tokens have too many permutations to try: symmetries needs n <= 8")
    if (matrix != matrix).any():
        raise ValueError("a matrix with NaN has no symmetries: NaN differs even from itself")
    kept = torch.tensor(list(itertools.permutations(range(n))))
    for b in matrix.detach().cpu().reshape(-1, n, n):
        kept = kept[(b[kept[:, :, None], kept[:, None, :]] == b).all(dim=(-2, -1))]
    return [tuple(pi) for pi in kept.tolist()]


def _chosen(permutations: Iterable[Permutation] | None, n: int) -> Iterable[Permutation]:
    if permutations is None and n > 6:
        raise ValueError(
            f"{n} rows have too many permutations to try all: pass permutations=[...], a sample of them"
        )
    return itertools.permutations(range(n)) if permutations is None else permutations


def _worst(violations: Iterable[float]) -> float:
    # A tensor's max keeps NaN, which Python's max may lose.
    seen = torch.tensor(list(violations), dtype=torch.float64)
    if not seen.numel():
        raise ValueError("nothing to measure: give at least one permutation or shift")
    return seen.max().item()

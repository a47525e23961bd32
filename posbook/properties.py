r"""Measure what an encoding promises, on anyone's implementation.

.. math:: (P_\pi X)_i = X_{\pi(i)}, \qquad \text{in code } P_\pi X = \texttt{x[pi]}

A permutation is written :math:`\pi = (\pi(0), \dots, \pi(n-1))`: row :math:`i` of the result is row
:math:`\pi(i)` of the original. So :math:`P_\pi B P_\pi^\top` is ``B[pi][:, pi]``, and :math:`P_\sigma P_\rho
= P_{\rho \circ \sigma}`. Deep Sets (Zaheer et al. 2017) names invariance and equivariance for functions of
sets.

Every measure takes a callable and returns the worst violation it saw, relative to the size of what it
compared: about 1e-16 where the promise holds in float64, about 1 where it does not, NaN where a result is
NaN. A callable that has to know where its rows stand is ``f(x, at)``, with one integer in ``at`` for each row
of ``x``: a rotation, an encoding, a layer or a whole stack.
"""

import itertools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from jaxtyping import Float, Float64, Int, Shaped
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


def shift(
    f: Callable[[Tensor, Tensor], Tensor], x: Float[Tensor, "*batch n dim"], *, shifts: Iterable[int]
) -> float:
    r"""Does :math:`f` stay when all its positions move by the same :math:`c`? The worst :func:`difference`.

    Compares ``f(x, at + c)`` for each ``c`` in ``shifts`` with ``f(x, at)``, where ``at`` counts from 0. For
    the output of a layer or stack: a rotation alone is not invariant, the scores it makes are.
    Raises ValueError for no shifts.

    >>> shift(lambda x, at: x * (at - at[0])[:, None], torch.ones(3, 2), shifts=[1, 10])
    0.0
    >>> shift(lambda x, at: x * at[:, None], torch.ones(3, 2), shifts=[1])
    0.3333333333333333
    """
    at = torch.arange(x.shape[-2], device=x.device)
    result = f(x, at)
    return _worst(difference(f(x, at + c), result) for c in shifts)


def caching(
    step: Callable[[Tensor, Tensor, Any], tuple[Tensor, Any]], x: Float[Tensor, "*batch n dim"]
) -> float:
    r"""Do several calls with stored keys give what one call gives? The worst :func:`difference`.

    ``step(x, at, stored)`` gives the output rows of ``x``, whose positions are ``at``, and what the next call
    gets as ``stored``: keys and values as a rule, in any form. The first call gets None. Calls of 1, 2, …,
    n − 1 rows are compared with one call of all: what depends on a call's length may pass token by token and
    fail after a prompt. A model that counts for itself must be left to do so: a step that hands ``at`` on to
    it measures the count of this function. Raises ValueError for fewer than two rows.

    >>> def mean(x, at, stored):
    ...     seen = x if stored is None else torch.cat((stored, x))
    ...     return (seen.cumsum(0) / torch.arange(1, len(seen) + 1)[:, None])[-len(x):], seen
    >>> caching(mean, torch.eye(3))
    0.0
    >>> caching(lambda x, at, stored: (x.cumsum(0), None), torch.ones(4, 2))
    0.75
    """
    at = torch.arange(x.shape[-2], device=x.device)
    whole, _ = step(x, at, None)

    def in_calls_of(rows: int) -> Tensor:
        outputs, stored = [], None
        for part, where in zip(x.split(rows, dim=-2), at.split(rows), strict=True):
            output, stored = step(part, where, stored)
            outputs.append(output)
        return torch.cat(outputs, dim=-2)

    return _worst(difference(in_calls_of(rows), whole) for rows in range(1, len(at)))


def batching(
    step: Callable[[Tensor, Tensor, Any], tuple[Tensor, Any]],
    rows: Sequence[Float[Tensor, "_ dim"]],
    *,
    new: int = 2,
) -> float:
    r"""Does a text in a batch give what it gives alone? The worst :func:`difference`.

    ``step(x, real, stored)`` gets a batch of shape (batch, n, dim), booleans of shape (batch, all tokens so
    far) that say which tokens are real, and ``stored`` as in :func:`caching`; it gives outputs and what the
    next call gets. The texts in ``rows`` are padded on the left with tokens of the longest, and asked in one
    call, then in a prompt and ``new`` calls of one token; each text alone is asked in the same calls. The
    shortest comes first in one batch and last in another, since positions taken from a longer neighbour are
    only a shift. With ``new=0`` nothing need be stored. Raises ValueError for fewer than two texts, for texts
    of different widths, and where one has no token left for its prompt.

    >>> def mean(x, real, stored):
    ...     real = real[..., None].to(x.dtype)
    ...     return (x * real).cumsum(1) / real.cumsum(1).clamp(min=1), None
    >>> rows = [torch.tensor([[2.0], [2.0]]), torch.tensor([[1.0], [2.0], [3.0]])]
    >>> batching(mean, rows, new=0)
    0.0
    >>> batching(lambda x, real, stored: mean(x, real | True, stored), rows, new=0)
    0.25
    """
    if len(rows) < 2:
        raise ValueError(f"a batch needs two texts or more, not {len(rows)}")
    lengths, widths = [len(x) for x in rows], {x.shape[-1] for x in rows}
    if len(widths) > 1:
        raise ValueError(f"texts of one batch must be equally wide, not {sorted(widths)}")
    if not 0 <= new < min(lengths):
        raise ValueError(f"each text needs a prompt and {new} tokens more, and their lengths are {lengths}")
    order = sorted(range(len(rows)), key=lengths.__getitem__)
    longest = rows[order[-1]]
    at = torch.arange(len(longest), device=longest.device)

    def in_calls(x: Tensor, real: Tensor, calls: int) -> Tensor:
        outputs, stored, seen = [], None, 0
        for part in x.split([x.shape[1] - calls, *[1] * calls], dim=1):
            seen += part.shape[1]
            output, stored = step(part, real[:, :seen], stored)
            outputs.append(output)
        return torch.cat(outputs, dim=1)

    violations = []
    for calls in sorted({0, new}):
        alone = [
            in_calls(x[None], torch.ones_like(at[None, : len(x)], dtype=torch.bool), calls) for x in rows
        ]
        for texts in (order, order[::-1]):
            padding = [len(longest) - lengths[i] for i in texts]
            batch = torch.stack(
                [torch.cat((longest[:n], rows[i])) for n, i in zip(padding, texts, strict=True)]
            )
            together = in_calls(batch, torch.stack([at >= n for n in padding]), calls)
            for i, n, result in zip(texts, padding, together, strict=True):
                violations.append(difference(result[n:], alone[i][0]))
    return _worst(violations)


def precision(
    f: Callable[[Tensor, Tensor], Tensor],
    x: Float[Tensor, " dim"],
    *,
    length: int,
    reference: Callable[[Tensor, Tensor], Tensor] | None = None,
) -> float:
    r"""How far is :math:`f` in the dtype of ``x`` from float64, over the positions below ``length``?

    Both get ``x`` at every position, and ``reference`` gets it in float64; returns the :func:`difference` of
    what they give, such as rotated vectors, or scores against a fixed key. Without ``reference`` it is ``f``
    itself. An ``f`` that takes its angles in float32 whatever it is given is then compared with the same
    angles, and looks precise: pass a ``reference`` that does not.

    >>> cosine = lambda x, at: x * torch.cos(at[:, None].to(x.dtype))
    >>> precision(cosine, torch.ones(1), length=256) < 1e-6
    True
    >>> precision(cosine, torch.ones(1, dtype=torch.bfloat16), length=300) > 0.5
    True
    """
    rows, at = _everywhere(x, length)
    return difference(f(rows, at), (f if reference is None else reference)(rows.double(), at))


def collisions(f: Callable[[Tensor, Tensor], Tensor], x: Float[Tensor, " dim"], *, length: int) -> list[int]:
    r"""The positions whose result equals that of the next one, number for number, in the dtype of ``x``.

    ``f(x, at)`` gets ``x`` at every position below ``length`` and gives one result, of any shape, for each.
    So ``length - 1 - len(collisions(…))`` positions differ from the next, and the first collision is the
    smallest. Two NaN are equal here. Raises ValueError for another number of results.

    >>> add = lambda x, at: x + at[:, None].to(x.dtype)
    >>> collisions(add, torch.zeros(1, dtype=torch.bfloat16), length=261)
    [256, 259]
    """
    results = f(*_everywhere(x, length)).nan_to_num()
    if results.shape[:1] != (length,):
        raise ValueError(f"f must give {length} results, one for each position, not {tuple(results.shape)}")
    equal = (results[1:] == results[:-1]).reshape(length - 1, -1).all(dim=-1)
    return equal.nonzero().flatten().tolist()


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


def _everywhere(
    x: Float[Tensor, " dim"], length: int
) -> tuple[Float[Tensor, "length dim"], Int[Tensor, " length"]]:
    if length < 2:
        raise ValueError(f"neighbours and long ranges need a length of 2 or more, not length={length}")
    return x.repeat(length, 1), torch.arange(length, device=x.device)


def _worst(violations: Iterable[float]) -> float:
    # A tensor's max keeps NaN, which Python's max may lose.
    seen = torch.tensor(list(violations), dtype=torch.float64)
    if not seen.numel():
        raise ValueError("nothing to measure: give at least one permutation or shift, or two rows")
    return seen.max().item()

import itertools
import math

import pytest
import torch

from posbook import alibi, attention, frequencies, positions, properties, rotary, sinusoidal

ROUNDING = 1e-12
BROKEN = 1e-2


def randn(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


X = randn(4, 8)
WQ, WK, WV = randn(3, 8, 8, seed=1) / math.sqrt(8)
AT = torch.arange(4)
OFFSETS = positions.offsets(queries=AT, keys=AT)
SYMMETRIC = alibi.bias(alibi.slopes(8)[:1], OFFSETS)[0]


def attend(x, **options):
    return attention.attend(x @ WQ, x @ WK, x @ WV, **options)


def turn(x, at=AT):
    return rotary.rotate(x, frequencies.angles(at, frequencies.geometric(8)), layout="halves")


def test_permuting_is_indexing_and_is_the_matrix():
    x = torch.tensor([[10.0], [20.0], [30.0]], dtype=torch.float64)
    for pi in itertools.permutations(range(3)):
        moved = properties.permute(x, pi)
        assert torch.equal(moved, x[list(pi)])
        assert torch.equal(moved, properties.permutation_matrix(pi) @ x)
        assert all(moved[i] == x[pi[i]] for i in range(3))
    # π = (3, 1, 2), counted from one.
    assert properties.permute(x, (2, 0, 1)).flatten().tolist() == [30, 10, 20]
    assert torch.equal(properties.permute(x, torch.tensor([2, 0, 1])), properties.permute(x, (2, 0, 1)))


def test_matrices_multiply_in_the_opposite_order_of_permutations():
    sigma, rho = (1, 0, 2), (2, 0, 1)
    p, r = properties.permutation_matrix(sigma), properties.permutation_matrix(rho)
    rho_after_sigma = [rho[sigma[i]] for i in range(3)]
    sigma_after_rho = [sigma[rho[i]] for i in range(3)]
    assert torch.equal(p @ r, properties.permutation_matrix(rho_after_sigma))
    assert not torch.equal(p @ r, properties.permutation_matrix(sigma_after_rho))
    assert torch.equal(r.T @ r, torch.eye(3, dtype=torch.float64))


def test_a_difference_is_relative_and_never_hides_a_nan():
    a = torch.tensor([3.0, -4.0])
    assert properties.difference(a, a) == 0
    assert properties.difference(a, -a) == 2
    assert properties.difference(1e6 * a, 1e6 * a + 1) == pytest.approx(1 / 4e6, rel=0.1)
    assert properties.difference(torch.zeros(2), torch.zeros(2)) == 0
    assert math.isnan(properties.difference(a, torch.tensor([3.0, torch.nan])))


def test_attention_without_position_is_equivariant():
    assert properties.equivariance(attend, X) < ROUNDING


@pytest.mark.parametrize(
    "f",
    [
        lambda x: attend(x, mask=attention.causal(4)),
        lambda x: attend(x, bias=SYMMETRIC),
        lambda x: attend(x + sinusoidal.encode(frequencies.angles(AT, frequencies.geometric(8)))),
        lambda x: attention.attend(turn(x @ WQ), turn(x @ WK), x @ WV),
    ],
    ids=["causal", "alibi", "sinusoid", "rotary"],
)
def test_position_breaks_equivariance(f):
    assert properties.equivariance(f, X) > BROKEN


def test_equivariance_is_judged_by_the_worst_of_the_given_permutations():
    # A cyclic convolution commutes with the cyclic shifts alone.
    convolve = lambda x: x + 0.5 * x.roll(1, dims=-2)  # noqa: E731
    shifts = [[(i + s) % 4 for i in range(4)] for s in range(4)]
    assert properties.equivariance(convolve, X, permutations=shifts) < ROUNDING
    assert properties.equivariance(convolve, X, permutations=[*shifts, (1, 0, 2, 3)]) > BROKEN
    assert properties.equivariance(convolve, X, permutations=[(1, 0, 2, 3), *shifts]) > BROKEN


def test_equivariance_holds_in_every_row_of_a_batch():
    assert properties.equivariance(attend, randn(2, 3, 4, 8)) < ROUNDING


def test_equivariance_reports_nan():
    assert math.isnan(properties.equivariance(lambda x: x * torch.nan, X))
    for order in ([torch.nan, 1.0], [1.0, torch.nan]):
        factors = iter([1.0, *order])
        assert math.isnan(properties.equivariance(lambda x, f=factors: x * next(f), X, permutations=[AT, AT]))


def test_attention_is_invariant_under_joint_permutations_of_keys_and_values():
    q = randn(2, 8, seed=5)
    assert properties.invariance(attention.attend, q, X, X @ WV) < ROUNDING
    order = torch.tensor([1, 0, 3, 2])
    only_values = lambda q, k, v: attention.attend(q, X, v)  # noqa: E731
    assert properties.invariance(only_values, q, X, X @ WV, permutations=[order]) > BROKEN
    rotary_keys = lambda q, k, v: attention.attend(q, turn(k), v)  # noqa: E731
    assert properties.invariance(rotary_keys, q, X, X @ WV) > BROKEN


def test_rotary_scores_are_relative_and_sinusoidal_scores_are_not():
    q, k = randn(2, 16, 8, seed=6)

    def at(x, m):
        return turn(x, torch.full((16,), m))

    def table(m):
        return sinusoidal.encode(frequencies.angles(torch.tensor(m), frequencies.geometric(8)))

    def score(q, k, m, n):
        return (at(q, m) * at(k, n)).sum(-1)

    def added(q, k, m, n):
        return ((q + table(m)) * (k + table(n))).sum(-1)

    shifts = [-1, 1, 10, 1000]
    assert properties.relativity(score, q, k, m=5, n=2, shifts=shifts) < ROUNDING
    assert properties.relativity(added, q, k, m=5, n=2, shifts=shifts) > BROKEN
    assert properties.relativity(lambda q, k, m, n: at(q, m)[0] @ k[0], q, k, m=5, n=2, shifts=[1]) > BROKEN


def test_a_rotation_keeps_norms_and_an_addition_does_not():
    assert properties.norm(turn, X) < ROUNDING
    assert properties.norm(lambda x: x + 1, X) > BROKEN
    # A small row is judged by its own size.
    rows = torch.tensor([[1e6, 0.0], [1e-6, 0.0]])
    assert properties.norm(lambda x: x * torch.tensor([[1.0], [2.0]]), rows) == pytest.approx(1)
    assert properties.norm(lambda x: 2 * x, torch.zeros(1, 2)) == 0


def test_a_symmetric_bias_cannot_see_a_reversal():
    assert properties.reversal(lambda x: attend(x, bias=SYMMETRIC), X) < ROUNDING
    assert properties.reversal(lambda x: attend(x, bias=SYMMETRIC, mask=attention.causal(4)), X) > BROKEN
    assert properties.reversal(lambda x: attention.attend(turn(x @ WQ), turn(x @ WK), x @ WV), X) > BROKEN


def matrices(n=5):
    offsets = positions.offsets(queries=torch.arange(n), keys=torch.arange(n))
    return {
        "none": (torch.zeros(n, n), 120),
        "distance": (-offsets.abs(), 2),
        "signed": (offsets, 1),
        "causal": (attention.causal(n), 1),
        "circular": (offsets % n, 5),
        "circular distance": (torch.minimum(offsets % n, -offsets % n), 10),
        "minus infinity": (torch.zeros(n, n).masked_fill(~attention.causal(n), -torch.inf), 1),
        "stack of equals": (alibi.bias(alibi.slopes(8), offsets), 2),
        "stack of strangers": (torch.stack((offsets.abs(), torch.minimum(offsets % n, -offsets % n))), 2),
        "diagonal": (torch.eye(n, dtype=torch.bool), 120),
    }


@pytest.mark.parametrize("name", matrices())
def test_symmetries_are_the_permutations_that_keep_a_matrix(name):
    matrix, count = matrices()[name]
    found = properties.symmetries(matrix)
    expected = []
    for pi in itertools.permutations(range(5)):
        stack = matrix.reshape(-1, 5, 5).tolist()
        if all(b[pi[i]][pi[j]] == b[i][j] for b in stack for i in range(5) for j in range(5)):
            expected.append(pi)
    assert found == expected
    assert len(found) == count


def test_symmetries_of_a_distance_are_the_identity_and_the_reversal():
    assert properties.symmetries(SYMMETRIC) == [(0, 1, 2, 3), (3, 2, 1, 0)]


def test_eight_tokens_are_not_too_many():
    assert len(properties.symmetries(torch.zeros(8, 8))) == math.factorial(8)


def test_measuring_leaves_no_gradient_behind():
    x = X.clone().requires_grad_()
    assert properties.equivariance(attend, x) < ROUNDING
    assert properties.norm(turn, x) < ROUNDING


@pytest.mark.parametrize(
    "call, says",
    [
        (lambda: properties.permute(X, (0, 1, 2)), r"4 rows has each number from 0 once, not \(0, 1, 2\)"),
        (lambda: properties.permute(X, (0, 1, 2, 2)), r"once, not \(0, 1, 2, 2\)"),
        (lambda: properties.difference(X, X[:2]), r"one shape, not \(4, 8\) and \(2, 8\)"),
        (lambda: properties.equivariance(attend, randn(7, 8)), "7 rows have too many.*pass permutations"),
        (lambda: properties.equivariance(attend, X, permutations=[]), "nothing to measure"),
        (lambda: properties.equivariance(lambda x: x[:2], X), "2 rows"),
        (lambda: properties.relativity(lambda q, k, m, n: q @ k, X[0], X[1], m=0, n=0, shifts=[]), "nothing"),
        (lambda: properties.norm(lambda x: x[:2], X), r"keep the rows of x, \(4,\), not give \(2,\)"),
        (lambda: properties.symmetries(torch.zeros(9, 9)), "9 tokens.*n <= 8"),
        (lambda: properties.symmetries(torch.full((2, 2), torch.nan)), "NaN"),
        (lambda: properties.symmetries(torch.zeros(2, 3)), r"\(\.\.\., n, n\), not \(2, 3\)"),
    ],
)
def test_bad_input_is_refused_by_name(call, says):
    with pytest.raises(ValueError, match=says):
        call()

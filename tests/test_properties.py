import itertools
import math
from functools import partial

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


def test_scores_by_offset_do_not_move_and_added_positions_do():
    def layer(x, at):
        return attention.attend(turn(x @ WQ, at), turn(x @ WK, at), x @ WV)

    def added(x, at):
        return attend(x + sinusoidal.encode(frequencies.angles(at, frequencies.geometric(8))))

    def stack(x, at):
        return layer(x + layer(x, at), at)

    for f in (layer, stack):
        assert properties.shift(f, X, shifts=[-1, 1, 100, 5000]) < 1e-11
    assert properties.shift(added, X, shifts=[1]) > BROKEN
    # A turned query on its own does move; and a function may be blind to one shift and not to another.
    assert properties.shift(turn, X, shifts=[1]) > BROKEN
    even = lambda x, at: x * (at % 2)[:, None]  # noqa: E731
    assert properties.shift(even, X, shifts=[2, 4]) == 0
    for shifts in ([2, 3], [3, 2]):
        assert properties.shift(even, X, shifts=shifts) > BROKEN


def step(x, at, stored, *, turn=turn, masked=True):
    """One call of a model that stores turned keys, and values."""
    q, k, v = turn(x @ WQ, at), turn(x @ WK, at), x @ WV
    if stored is not None:
        k, v = torch.cat((stored[0], k), dim=-2), torch.cat((stored[1], v), dim=-2)
    mask = attention.causal(q.shape[-2], k.shape[-2]) if masked else None
    return attention.attend(q, k, v, mask=mask), (k, v)


def test_turned_keys_may_be_stored():
    assert properties.caching(step, X) < ROUNDING
    assert properties.caching(step, randn(2, 3, 4, 8)) < ROUNDING


def from_the_calls_start(x, at):
    return turn(x, at - at[0])


def from_the_calls_middle(x, at):
    # Releases of xPos centre positions on the call: harmless for offsets within it.
    return turn(x, at - len(at) // 2)


def by_the_length(x, at):
    theta = frequencies.geometric(8) / (1 + at.max())
    return rotary.rotate(x, frequencies.angles(at, theta), layout="halves")


@pytest.mark.parametrize("turn", [from_the_calls_start, from_the_calls_middle, by_the_length])
def test_a_turn_that_depends_on_the_call_is_not_safe_to_store(turn):
    assert properties.caching(lambda x, at, stored: step(x, at, stored, turn=turn), X) > 1e-3


def test_steps_that_forget_or_look_ahead_are_not_the_whole_pass():
    assert properties.caching(lambda x, at, stored: (step(x, at, None)[0], None), X) > BROKEN
    assert properties.caching(lambda x, at, stored: step(x, at, stored, masked=False), X) > BROKEN


def test_every_length_of_a_call_is_tried():
    seen = []

    def f(x, at, stored):
        seen.append((at.tolist(), stored))
        return x, "stored"

    assert properties.caching(f, X) == 0
    assert [at for at, _ in seen] == [[0, 1, 2, 3], [0], [1], [2], [3], [0, 1], [2, 3], [0, 1, 2], [3]]
    assert all((stored is None) == (at[0] == 0) for at, stored in seen)
    # A mask that lets the rows of one call see each other shows only where a later call has several.
    ahead = lambda x, at, stored: step(x, at, stored, masked=stored is None or len(at) == 1)  # noqa: E731
    assert properties.caching(ahead, X) > BROKEN


TEXTS = [randn(n, 8, seed=n) for n in (5, 3, 7)]


def padded_step(x, real, stored, *, layers=2, see=lambda real: real, place=positions.left_padded, by=None):
    """One call of a small decoder that counts for itself, over a batch that is padded on the left."""
    new, kept = x.shape[1], []
    at = place(real)
    theta = frequencies.geometric(8) if by is None else by(at)
    mask = attention.causal(new, real.shape[1]) & see(real)[:, None, :]
    for layer in range(layers):
        turned = rotary.rotate(x, frequencies.angles(at[:, -new:], theta), layout="halves")
        k, v = turned, x
        if stored is not None:
            k, v = (torch.cat(pair, dim=1) for pair in zip(stored[layer], (k, v), strict=True))
        kept.append((k, v))
        x = x + attention.attend(turned, k, v, mask=mask) @ WV
    return x, kept


def test_a_text_is_what_it_is_alone_where_padding_is_hidden_and_not_counted():
    assert properties.batching(padded_step, TEXTS) < ROUNDING
    assert properties.batching(padded_step, TEXTS, new=0) < ROUNDING
    # A shift of a whole text changes no score.
    by_columns = lambda real: torch.arange(real.shape[1]).expand(real.shape)  # noqa: E731
    assert properties.batching(partial(padded_step, place=by_columns), TEXTS) < ROUNDING


def counted_in_calls_of_one_only(real):
    return (
        positions.left_padded(real) if real.shape[1] > 5 else torch.arange(real.shape[1]).expand(real.shape)
    )


@pytest.mark.parametrize(
    "wrong, one_call",
    [
        ({"see": torch.ones_like}, True),  # padding takes part
        ({"place": counted_in_calls_of_one_only}, False),  # the prompt by columns, the next by real tokens
        ({"by": lambda at: frequencies.geometric(8) / (1 + at.max())}, True),  # the longest text decides
    ],
    ids=["padding is seen", "two counts", "the longest decides"],
)
def test_a_text_that_changes_with_its_neighbours_or_padding_is_found(wrong, one_call):
    assert properties.batching(partial(padded_step, **wrong), TEXTS) > BROKEN
    # A count that differs between calls needs several calls.
    assert (properties.batching(partial(padded_step, **wrong), TEXTS, new=0) > BROKEN) == one_call


def test_a_batch_is_asked_in_one_call_and_in_several_and_each_text_likewise():
    seen = []

    def f(x, real, stored):
        seen.append((*x.shape[:2], real.int().tolist(), stored))
        return x, "stored"

    first, second = X[:2], X[1:]
    assert properties.batching(f, [first, second], new=1) == 0
    padded, turned = [[0, 1, 1], [1, 1, 1]], [[1, 1, 1], [0, 1, 1]]
    one = [
        (1, 2, [[1, 1]], None),
        (1, 3, [[1, 1, 1]], None),
        (2, 3, padded, None),
        (2, 3, turned, None),
    ]
    together = [
        (2, 2, [[0, 1], [1, 1]], None),
        (2, 1, padded, "stored"),
        (2, 2, [[1, 1], [0, 1]], None),
        (2, 1, turned, "stored"),
    ]
    alone = [
        (1, 1, [[1]], None),
        (1, 1, [[1, 1]], "stored"),
        (1, 2, [[1, 1]], None),
        (1, 1, [[1, 1, 1]], "stored"),
    ]
    assert seen == [*one, *alone, *together]


def of_one_row(row):
    """Each text gets the positions of the text in this row; of a longer one they are only shifted."""
    return lambda real: positions.left_padded(real)[row % len(real)].expand(real.shape)


@pytest.mark.parametrize("lengths", [*itertools.permutations((3, 5, 7))], ids=str)
@pytest.mark.parametrize(
    "place",
    [
        *map(of_one_row, (0, 1, -1)),
        *(lambda real, by=by: positions.left_padded(real).roll(by, 0) for by in (1, -1)),
    ],
    ids=["first", "second", "last", "the one before", "the one after"],
)
def test_no_order_of_the_texts_hides_whose_positions_are_taken(lengths, place):
    texts = [randn(n, 8, seed=n) for n in lengths]
    assert properties.batching(partial(padded_step, place=place), texts) > 1e-3


def test_what_a_batch_gives_is_judged_by_its_worst_text_and_keeps_nan():
    for wrong in range(3):
        neighbours = lambda x, wrong=wrong: (torch.arange(len(x)) == wrong)[:, None, None] & (len(x) > 1)  # noqa: E731
        f = lambda x, real, stored, n=neighbours: (torch.where(n(x), 2 * x, x), stored)  # noqa: E731
        assert properties.batching(f, TEXTS) == 0.5
    assert math.isnan(properties.batching(lambda x, real, stored: (x * torch.nan, None), TEXTS))


def cosines(angles):
    """f(x, at): the features times the cosine of their angle at each position."""
    return lambda x, at: x * angles(x, at).cos().to(x.dtype)


THETA = 0.3
FLOAT64 = cosines(lambda x, at: THETA * at.double()[:, None])
FLOAT32 = cosines(lambda x, at: torch.tensor(THETA) * at.float()[:, None])
OWN_DTYPE = cosines(lambda x, at: THETA * at.to(x.dtype)[:, None])


def test_precision_finds_the_dtype_of_the_angles():
    one = torch.ones(1)
    assert properties.precision(FLOAT64, one, length=5000) < 1e-7
    # A float32 phase of 1500 radians is off by up to 6e-5, its half unit in the last place, and by 0.3's own.
    assert 1e-5 < properties.precision(OWN_DTYPE, one, length=5000) < 2e-4
    assert properties.precision(OWN_DTYPE, one.bfloat16(), length=5000) > 1
    assert properties.precision(OWN_DTYPE, one.double(), length=5000) == 0


def test_precision_against_itself_is_blind_to_angles_that_are_always_float32():
    one = torch.ones(1, dtype=torch.float64)
    assert properties.precision(FLOAT32, one, length=5000) == 0
    assert properties.precision(FLOAT32, one, length=5000, reference=FLOAT64) > 1e-5


def test_precision_looks_at_every_position_below_the_length():
    for wrong in (0, 17, 99):
        f = lambda x, at, wrong=wrong: x + (at == wrong)[:, None]  # noqa: E731
        same = lambda x, at: x  # noqa: E731
        assert properties.precision(f, torch.ones(1), length=100, reference=same) == 0.5
    assert properties.precision(f, torch.ones(1), length=99, reference=same) == 0
    assert math.isnan(properties.precision(lambda x, at: x * torch.nan, torch.ones(1), length=2))


def test_the_precision_of_a_score_is_relative_to_its_terms():
    key = randn(8, seed=3)

    def score(x, at):
        return turn(x, at) @ key.to(x.dtype)

    assert properties.precision(score, randn(8, seed=4).float(), length=3000) < 1e-6
    assert 1e-4 < properties.precision(score, randn(8, seed=4).bfloat16(), length=3000) < 2e-2


def test_collisions_are_where_the_dtype_runs_out_of_numbers():
    add = lambda x, at: x + at[:, None].to(x.dtype)  # noqa: E731
    # Whole numbers up to 256 = 2**8 are bfloat16, then every second one; ties go to a multiple of 4.
    found = properties.collisions(add, torch.zeros(3, dtype=torch.bfloat16), length=265)
    assert found == [m for m in range(264) if m >= 256 and m % 4 in (0, 3)]
    assert properties.collisions(add, torch.zeros(3, dtype=torch.float16), length=2049) == []
    assert properties.collisions(add, torch.zeros(3, dtype=torch.float16), length=2050) == [2048]
    assert properties.collisions(turn, torch.ones(8, dtype=torch.bfloat16), length=5000) == []


def test_results_collide_only_where_all_their_numbers_do():
    staircases = lambda x, at: torch.stack((at // 2, at // 3), dim=-1).to(x.dtype)[:, None]  # noqa: E731
    assert properties.collisions(staircases, torch.zeros(1), length=7) == [0, 4]
    assert properties.collisions(lambda x, at: x[:, 0], torch.zeros(1), length=3) == [0, 1]
    assert properties.collisions(lambda x, at: x * torch.nan, torch.zeros(1), length=3) == [0, 1]
    assert properties.collisions(lambda x, at: x[:, :0], torch.zeros(1), length=2) == [0]


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
        (lambda: properties.shift(turn, X, shifts=[]), "nothing to measure"),
        (lambda: properties.shift(lambda x, at: x[: 4 - at[0]], X, shifts=[1]), "one shape"),
        (lambda: properties.caching(step, X[:1]), "nothing to measure.*two rows"),
        (lambda: properties.caching(lambda x, at, stored: (x[:1], None), X), "one shape"),
        (lambda: properties.batching(padded_step, [X]), "two texts or more, not 1"),
        (lambda: properties.batching(padded_step, [X, X[:2]]), r"prompt and 2 tokens more.* \[4, 2\]"),
        (lambda: properties.batching(padded_step, [X, X], new=-1), "prompt and -1 tokens"),
        (lambda: properties.batching(padded_step, [X, X[:, :6]]), r"equally wide, not \[6, 8\]"),
        (lambda: properties.batching(lambda x, real, stored: (x[:, :1], None), TEXTS), "one shape"),
        (lambda: properties.precision(turn, X[0], length=1), "2 or more, not length=1"),
        (lambda: properties.collisions(turn, X[0], length=0), "2 or more, not length=0"),
        (lambda: properties.collisions(lambda x, at: x[1:], X[0], length=5), r"5 results.*not \(4, 8\)"),
        (lambda: properties.collisions(lambda x, at: x.sum(), X[0], length=5), r"5 results.*not \(\)"),
        (lambda: properties.norm(lambda x: x[:2], X), r"keep the rows of x, \(4,\), not give \(2,\)"),
        (lambda: properties.symmetries(torch.zeros(9, 9)), "9 tokens.*n <= 8"),
        (lambda: properties.symmetries(torch.full((2, 2), torch.nan)), "NaN"),
        (lambda: properties.symmetries(torch.zeros(2, 3)), r"\(\.\.\., n, n\), not \(2, 3\)"),
    ],
)
def test_bad_input_is_refused_by_name(call, says):
    with pytest.raises(ValueError, match=says):
        call()

import math

import jaxtyping
import pytest
import torch

from posbook import attention, frequencies, positions, properties, sinusoidal, transformer_xl
from tests import EPSILON, assert_close, by_equation_scores


def randn(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def offsets(n, keys=None):
    at = torch.arange(keys or n)
    return positions.offsets(queries=at[-n:], keys=at)


OFFSETS = offsets(3)


def at(*places):
    return torch.tensor(places)


def encodings(rows, dim):
    return transformer_xl.encode(frequencies.angles(torch.arange(rows), frequencies.geometric(dim)))


def test_the_score_agrees_with_the_worked_example():
    # One query, one key two tokens back, W = I; r is the first pair of the sinusoid at 2.
    q, k, u, v = torch.tensor([[1, 0], [0.5, 1], [0.1, 0.2], [0.3, -0.1]], dtype=torch.float64)[:, None]
    added = transformer_xl.terms(
        q, k, encodings(3, 2), u[0], v[0], positions.offsets(queries=at(2), keys=at(0)), scale=1.0
    )
    assert_close(attention.scores(q, k, scale=1.0) + added, [[1.97370134]], tolerance=1e-8)
    assert_close(added, [[0.90929743 + 0.25 + 0.31440391]], tolerance=1e-8)


def test_the_terms_are_the_papers_equation():
    q, k, (u, v), r = randn(5, 4), randn(5, 4, seed=1), randn(2, 4, seed=2), randn(5, 4, seed=3)
    expected = by_equation_scores.transformer_xl(
        q.tolist(), k.tolist(), lambda distance: r[distance].tolist(), u.tolist(), v.tolist()
    )
    added = transformer_xl.terms(q, k, r, u, v, offsets(5))
    assert_close(attention.scores(q, k) + added, torch.tensor(expected, dtype=torch.float64) / math.sqrt(4))


@pytest.mark.parametrize("scale", [1, 0.3])
def test_they_are_scaled_as_the_scores_are(scale):
    x, u, r = randn(5, 4), randn(4, seed=1), randn(5, 4, seed=2)
    added = transformer_xl.terms(x, x, r, u, u, offsets(5), scale=scale).tril()
    assert_close(added, scale * 2 * transformer_xl.terms(x, x, r, u, u, offsets(5)).tril())


def test_all_four_terms_are_one_product_of_shifted_queries_when_r_does_not_depend_on_the_distance():
    q, k, u, v, r = randn(4, 6), randn(4, 6, seed=1), randn(6, seed=2), randn(6, seed=3), randn(6, seed=4)
    added = transformer_xl.terms(q, k, r.expand(4, 6), u, v, offsets(4), scale=1)
    expected = (q + u) @ k.T + ((q + v) @ r)[:, None]
    mask = attention.causal(4)
    assert_close((q @ k.T + added)[mask], expected[mask])


def test_shifting_is_reading_each_row_from_its_distance():
    # Row by row the distances 0, 1, 2; the query is the tens.
    products = torch.tensor([[0.0, 1, 2], [10, 11, 12], [20, 21, 22]])
    inf = math.inf
    assert transformer_xl.shift(products, offsets(3)).tolist() == [
        [0, -inf, -inf],
        [11, 10, -inf],
        [22, 21, 20],
    ]
    assert transformer_xl.shift(products[1:], offsets(2, keys=3)).tolist() == [[11, 10, -inf], [22, 21, 20]]


def test_a_table_that_looks_ahead_begins_at_a_negative_distance():
    products = torch.arange(-2.0, 3).expand(3, 5)
    shifted = transformer_xl.shift(products, offsets(3), lowest=-2)
    assert torch.equal(shifted, -offsets(3).float())


def test_tables_and_vectors_may_differ_between_heads():
    q, k = randn(2, 3, 5, 4), randn(2, 3, 5, 4, seed=1)
    r, u, v = randn(3, 5, 4, seed=2), randn(3, 4, seed=3), randn(3, 4, seed=4)
    together = transformer_xl.terms(q, k, r, u, v, offsets(5))
    assert together.shape == (2, 3, 5, 5)
    for batch in range(2):
        for head in range(3):
            one = transformer_xl.terms(q[batch, head], k[batch, head], r[head], u[head], v[head], offsets(5))
            assert_close(together[batch, head], one)


def test_a_segment_with_memory_is_the_last_rows_of_the_whole():
    q, k, r, u, v = randn(6, 4), randn(6, 4, seed=1), randn(6, 4, seed=2), *randn(2, 4, seed=3)
    whole = transformer_xl.terms(q, k, r, u, v, offsets(6))
    assert_close(transformer_xl.terms(q[4:], k, r, u, v, offsets(2, keys=6)), whole[4:])


def test_a_score_depends_only_on_the_offset():
    r, u, v = encodings(200, 8), *randn(2, 8, seed=3)

    def score(q, k, m, n):
        added = transformer_xl.terms(q, k, r, u, v, positions.offsets(queries=at(m), keys=at(n)))
        return attention.scores(q, k) + added

    q, k = randn(1, 8), randn(1, 8, seed=1)
    assert properties.relativity(score, q, k, m=120, n=3, shifts=[1, 10, 10_000]) == 0
    assert properties.difference(score(q, k, 5, 3), score(q, k, 5, 4)) > 1e-2


@pytest.mark.parametrize("dim", [2, 8, 64])
def test_the_layout_is_the_interleaved_one_with_its_columns_reordered(dim):
    interleaved = sinusoidal.encode(frequencies.angles(torch.arange(50), frequencies.geometric(dim)))
    columns = [*range(0, dim, 2), *range(1, dim, 2)]
    assert torch.equal(encodings(50, dim), interleaved[:, columns])


def test_a_key_ahead_is_forbidden_with_or_without_a_mask_and_gradients_stay_finite():
    q, k, r, u, v = (x.requires_grad_() for x in (randn(4, 6), randn(4, 6), randn(4, 6), *randn(2, 6)))
    scores = attention.scores(q, k) + transformer_xl.terms(q, k, r, u, v, offsets(4))
    weights = attention.weights(scores)
    assert_close(weights, attention.weights(scores, attention.causal(4)).detach())
    for gradient in torch.autograd.grad(weights.square().sum(), (q, k, r, u, v)):
        assert gradient.isfinite().all()
        assert gradient.any()


@pytest.mark.parametrize("dtype", EPSILON)
def test_every_dtype_is_kept(dtype):
    q, k, r, u, v = (x.to(dtype) for x in (randn(4, 6), randn(4, 6), randn(4, 6), *randn(2, 6)))
    added = transformer_xl.terms(q, k, r, u, v, offsets(4)).tril()
    assert added.dtype == dtype
    exact = transformer_xl.terms(*(x.double() for x in (q, k, r, u, v)), offsets(4)).tril()
    assert_close(added, exact, tolerance=4 * EPSILON[dtype])


def test_it_runs_without_values_and_compiles_whole(monkeypatch):
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    of = lambda q, k, r, u, v: transformer_xl.terms(q, k, r, u, v, offsets(4).to(q.device))  # noqa: E731
    inputs = randn(4, 6), randn(4, 6), randn(4, 6), *randn(2, 6)
    assert torch.equal(torch.compile(of, backend="eager", fullgraph=True)(*inputs), of(*inputs))
    assert of(*(x.to("meta") for x in inputs)).shape == (4, 4)


def call(q=(3, 4), k=(3, 4), r=(3, 4), u=(4,), v=(4,), at=OFFSETS, **options):
    return transformer_xl.terms(*(torch.ones(shape) for shape in (q, k, r, u, v)), at, **options)


@pytest.mark.parametrize(
    "options, says",
    [
        ({"k": (3, 6)}, "equally wide, not 4, 6, 4, 4, 4"),
        ({"u": (1,)}, "equally wide, not 4, 4, 4, 1, 4"),
        ({"q": (2, 4)}, r"\(q, k\) with q=2 as queries, not \(3, 3\)"),
        ({"k": (5, 4)}, r"\(q, k\) with k=5 as keys, not \(3, 3\)"),
        ({"at": OFFSETS[None]}, r"q=3 as queries, not \(1, 3, 3\)"),
        ({"r": (2, 4)}, "table of distances has rows 0 to 1, not 2"),
        ({"lowest": -1}, "table of distances has rows 0 to 2, not"),
        ({"lowest": 1}, "lowest <= 0, not lowest=1"),
    ],
)
def test_bad_input_is_refused_by_name(options, says, monkeypatch):
    # Without the shape checks of the tests, as a user would run it.
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    with pytest.raises(ValueError, match=says):
        call(**options)

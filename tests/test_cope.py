import math

import jaxtyping
import pytest
import torch

from posbook import attention, cope, positions, shaw
from tests import EPSILON, assert_close, by_equation_scores


def randn(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def counts(scores, rows, mask=None):
    mask = attention.causal(*scores.shape[-2:]) if mask is None else mask
    return cope.positions(cope.gates(scores, mask), rows)


def attend(q, k, table, scale=None):
    scores = attention.scores(q, k, scale=scale)
    return scores + cope.term(q, table, counts(scores, table.shape[-2]), scale=scale)


def test_gates_and_counts_agree_with_the_worked_example():
    q = torch.tensor([[1, 0]], dtype=torch.float64)
    k = torch.tensor([[2, 0], [-2, 0], [0, 1]], dtype=torch.float64)
    gates = cope.gates(attention.scores(q, k, scale=1), attention.causal(1, 3))
    assert_close(gates, [[0.88079708, 0.11920292, 0.5]], tolerance=1e-8)
    assert_close(cope.positions(gates, rows=4), [[1.5, 0.61920292, 0.5]], tolerance=1e-8)


@pytest.mark.parametrize("rows", [1, 2, 3, 8])
def test_the_scores_are_the_papers_equations(rows):
    q, k, table = randn(6, 4), randn(6, 4, seed=1), randn(rows, 4, seed=2)
    expected_counts, expected = by_equation_scores.cope(q.tolist(), k.tolist(), table.tolist())
    assert_close(counts(q @ k.T, rows), expected_counts)
    assert_close(attend(q, k, table, scale=1), expected)


def test_when_every_token_counts_the_position_is_the_distance_and_the_query_itself():
    ones = torch.ones(5, 5, dtype=torch.float64).tril()
    offsets = positions.offsets(queries=torch.arange(5), keys=torch.arange(5))
    assert torch.equal(cope.positions(ones, rows=6).tril(), (1 - offsets).tril().double())
    # So a learned vector for each offset, as on the keys of Shaw et al., nearest last.
    q, table = randn(5, 4), randn(6, 4, seed=1)
    by_offset = torch.cat((table.flip(0)[:-1], torch.zeros(4, 4)))
    expected = shaw.key_term(q, by_offset, shaw.indices(offsets, clip=4))
    assert_close(cope.term(q, table, cope.positions(ones, rows=6)).tril(), expected.tril())


def test_what_is_not_counted_stands_where_the_next_token_stands():
    scores = torch.tensor([[9.0, -torch.inf, -torch.inf, 9.0]], dtype=torch.float64)
    first, *skipped, last = counts(scores, 8)[0].tolist()
    assert skipped == [last, last]
    assert first == pytest.approx(2 * last)


def test_counts_beyond_the_table_share_its_last_row():
    gates = torch.ones(1, 9, dtype=torch.float64)
    assert cope.positions(gates, rows=4).tolist() == [[3, 3, 3, 3, 3, 3, 3, 2, 1]]
    assert cope.positions(gates, rows=10).tolist() == [[9, 8, 7, 6, 5, 4, 3, 2, 1]]


def test_nothing_of_the_future_is_counted():
    q, k, table = randn(6, 4), randn(6, 4, seed=1), randn(9, 4, seed=2)
    changed = k.clone()
    changed[4:] += 100
    before, after = (attend(q, keys, table)[:4].tril() for keys in (k, changed))
    assert torch.equal(before, after)


def test_padding_is_not_counted():
    scores, mask = randn(4, 4), attention.causal(4) & torch.tensor([False, True, True, True])
    gates = cope.gates(scores, mask)
    assert torch.equal(gates == 0, ~mask)
    assert torch.equal(cope.positions(gates, 9)[1:, 1:], counts(scores[1:, 1:], 9))


def test_scores_that_are_already_masked_give_the_same_gates():
    scores, mask = randn(4, 4), attention.causal(4)
    assert torch.equal(cope.gates(scores.masked_fill(~mask, -torch.inf), mask), cope.gates(scores, mask))


def test_a_cached_step_is_the_last_row():
    q, k, table = randn(6, 4), randn(6, 4, seed=1), randn(5, 4, seed=2)
    assert_close(attend(q[5:], k, table), attend(q, k, table)[5:])


def test_heads_count_for_themselves_and_may_have_their_own_table():
    q, k, table = randn(2, 3, 5, 4), randn(2, 3, 5, 4, seed=1), randn(3, 6, 4, seed=2)
    own, shared = attend(q, k, table), attend(q, k, table[0])
    assert own.shape == (2, 3, 5, 5)
    for head in range(3):
        assert_close(own[1, head], attend(q[1, head], k[1, head], table[head]))
        assert_close(shared[1, head], attend(q[1, head], k[1, head], table[0]))
    assert cope.term(q[0, 0], table, counts(randn(5, 5), 6)).shape == (3, 5, 5)


def test_the_term_is_scaled_as_the_scores():
    q, table, at = randn(5, 4), randn(6, 4, seed=1), counts(randn(5, 5, seed=2), 6)
    assert_close(cope.term(q, table, at, scale=1) / math.sqrt(4), cope.term(q, table, at))


def test_gradients_are_those_of_the_equation():
    inputs = tuple(x.requires_grad_() for x in (randn(4, 3), randn(4, 3, seed=1), randn(6, 3, seed=2)))
    assert torch.autograd.gradcheck(lambda q, k, table: attend(q, k, table).tril(), inputs)


@pytest.mark.parametrize("dtype", EPSILON)
def test_a_long_count_is_exact_in_every_dtype(dtype):
    gates = cope.gates(torch.full((1, 5000), 100, dtype=dtype), torch.ones(1, 5000, dtype=torch.bool))
    assert cope.positions(gates, rows=6000).tolist() == [[*range(5000, 0, -1)]]
    q, table = randn(3, 4).to(dtype), randn(6, 4, seed=1).to(dtype)
    at = counts(randn(3, 3).to(dtype), 6)
    assert_close(
        cope.term(q, table, at).double(), cope.term(q.double(), table.double(), at.double()), tolerance=2e-2
    )


def test_it_runs_without_values_and_compiles_whole(monkeypatch):
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)

    def of(q, k, table):
        return attend(q, k, table) + counts(q @ k.mT, 5, attention.causal(4, device=q.device))

    q, k, table = randn(2, 4, 3), randn(2, 4, 3, seed=1), randn(6, 3, seed=2)
    assert_close(torch.compile(attend, backend="eager", fullgraph=True)(q, k, table), attend(q, k, table))
    at = cope.positions(cope.gates(q.to("meta") @ k.to("meta").mT, attention.causal(4, device="meta")), 6)
    assert cope.term(q.to("meta"), table.to("meta"), at).shape == (2, 4, 4)


@pytest.mark.parametrize(
    "call, says",
    [
        (lambda x: cope.gates(x(3, 3), x(3, 3)), r"boolean and \(q, k\) = \(3, 3\).*float32"),
        (lambda x: cope.gates(x(1, 3), attention.causal(3)), r"\(1, 3\) as the scores are.*\(3, 3\)"),
        (lambda x: cope.positions(x(3, 3), rows=0), "at least one row, not rows=0"),
        (lambda x: cope.term(x(3, 4), x(6, 5), x(3, 3)), "as wide as queries, 4, not 5"),
        (lambda x: cope.term(x(3, 4), x(6, 4), x(2, 3)), r"q=3 as queries, not \(2, 3\)"),
        (lambda x: cope.term(x(3, 4), x(6, 4), 5.5 * x(3, 3)), "table of positions has rows 0 to 5, not 6"),
        (lambda x: cope.term(x(3, 4), x(6, 4), -0.5 * x(3, 3)), "table of positions has rows 0 to 5, not -1"),
    ],
)
def test_bad_input_is_refused_by_name(call, says, monkeypatch):
    # Without the shape checks of the tests, as a user would run it.
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    with pytest.raises(ValueError, match=says):
        call(lambda *shape: torch.ones(shape))

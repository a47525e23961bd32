import math

import pytest
import torch

from posbook import attention, positions, shaw
from tests import assert_close, by_equation


def offsets(n):
    return positions.offsets(queries=torch.arange(n), keys=torch.arange(n))


def attend(q, k, v, key_table, value_table, clip):
    indices = shaw.indices(offsets(q.shape[-2]), clip)
    scores = attention.scores(q, k) + shaw.key_term(q, key_table, indices)
    weights = attention.weights(scores)
    return scores, attention.output(weights, v) + shaw.value_term(weights, value_table, indices)


def test_the_layer_agrees_with_the_worked_example():
    x = torch.tensor([[1, 0], [0, 1], [1, 1]], dtype=torch.float64)
    keys = torch.tensor([[0.1, 0], [0, 0], [0, 0.1]], dtype=torch.float64)
    values = torch.tensor([[1, 0], [0, 0], [0, 1]], dtype=torch.float64)
    e, z = attend(x, x, x, keys, values, clip=1)
    assert_close(
        e,
        [[0.70710678, 0, 0.70710678], [0, 0.70710678, 0.77781746], [0.77781746, 0.77781746, 1.41421356]],
        tolerance=1e-8,
    )
    assert_close(
        z, [[0.80222419, 1.19777581], [0.80246911, 1.22608155], [1.25709198, 0.74290802]], tolerance=1e-8
    )


@pytest.mark.parametrize("clip", [0, 1, 3, 9])
def test_the_layer_is_the_papers_equations(clip):
    q, k, v = torch.randn(3, 5, 4, dtype=torch.float64)
    keys, values = torch.randn(2, 2 * clip + 1, 4, dtype=torch.float64)
    by_offset = [dict(zip(range(-clip, clip + 1), table.tolist(), strict=True)) for table in (keys, values)]
    expected_scores, expected = by_equation.shaw(q.tolist(), k.tolist(), v.tolist(), *by_offset, clip)
    e, z = attend(q, k, v, keys, values, clip)
    assert_close(e, expected_scores)
    assert_close(z, expected)


def test_offsets_beyond_the_clip_share_the_outer_rows():
    assert shaw.indices(offsets(4), clip=2).tolist() == [
        [2, 3, 4, 4],
        [1, 2, 3, 4],
        [0, 1, 2, 3],
        [0, 0, 1, 2],
    ]


def test_tables_may_differ_between_heads():
    q, indices = torch.randn(2, 3, 5, 4), shaw.indices(offsets(5), clip=1)
    table = torch.randn(3, 3, 4)
    scores, means = shaw.key_term(q, table, indices), shaw.value_term(q.new_ones(2, 3, 5, 5), table, indices)
    for head in range(3):
        assert_close(scores[:, head], shaw.key_term(q[:, head], table[head], indices))
        assert_close(means[:, head], shaw.value_term(q.new_ones(2, 5, 5), table[head], indices))


def test_the_key_term_depends_on_the_query_and_is_scaled_as_the_scores():
    q, table, indices = torch.randn(5, 4), torch.randn(3, 4), shaw.indices(offsets(5), clip=1)
    term = shaw.key_term(q, table, indices)
    assert_close(shaw.key_term(2 * q, table, indices), 2 * term)
    assert_close(shaw.key_term(q, table, indices, scale=1) / math.sqrt(4), term)


@pytest.mark.parametrize(
    "call, says",
    [
        (lambda i: shaw.indices(i, clip=-1), "negative, not clip=-1"),
        (lambda i: shaw.key_term(torch.ones(3, 4), torch.ones(3, 5), i), "as wide as queries, 4, not 5"),
        (lambda i: shaw.key_term(torch.ones(2, 4), torch.ones(5, 4), i), r"q=2 as queries, not \(3, 3\)"),
        (lambda i: shaw.key_term(torch.ones(3, 4), torch.ones(5, 4), i[None]), r"q=3 .* not \(1, 3, 3\)"),
        (lambda i: shaw.key_term(torch.ones(3, 4), torch.ones(4, 4), i), "on keys has rows 0 to 3, not 4"),
        (lambda i: shaw.value_term(torch.ones(3, 2), torch.ones(5, 4), i), r"\(3, 2\) as weights are"),
        (lambda i: shaw.value_term(torch.ones(3, 3), torch.ones(3, 4), i), "on values has rows 0 to 2, not"),
    ],
)
def test_bad_input_is_refused_by_name(call, says):
    with pytest.raises(ValueError, match=says):
        call(shaw.indices(offsets(3), clip=2))

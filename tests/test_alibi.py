import math

import jaxtyping
import pytest
import torch

from posbook import alibi, attention, positions
from tests import WORKED, assert_close, by_equation


def offsets(n):
    return positions.offsets(queries=torch.arange(n), keys=torch.arange(n))


@pytest.mark.parametrize("heads", [*range(1, 18), 40, 64, 100])
def test_slopes_follow_the_released_rule(heads):
    slopes = alibi.slopes(heads)
    assert slopes.dtype == torch.float64
    assert_close(slopes, by_equation.alibi_slopes(heads))


@pytest.mark.parametrize("heads", WORKED["alibi_slopes"])
def test_slopes_agree_with_the_worked_examples(heads):
    assert_close(alibi.slopes(int(heads)), WORKED["alibi_slopes"][heads])


def test_the_bias_is_minus_slope_times_distance():
    expected = [
        [[-slope * abs(n - m) for n in range(5)] for m in range(5)] for slope in by_equation.alibi_slopes(3)
    ]
    assert_close(alibi.bias(alibi.slopes(3), offsets(5)), expected)


def test_heads_stand_before_queries_in_a_batch():
    at = torch.tensor([[0, 1, 2], [0, 5, 9]])
    bias = alibi.bias(alibi.slopes(4), positions.offsets(queries=at, keys=at))
    assert bias.shape == (2, 4, 3, 3)
    assert_close(bias[0], alibi.bias(alibi.slopes(4), offsets(3)))
    assert bias[1, 2, 2].tolist() == [-9 * 2**-6, -4 * 2**-6, 0]


def test_equal_content_is_weighed_by_distance():
    bias = alibi.bias(alibi.slopes(8), offsets(4))[0]
    weights = attention.weights(bias, attention.causal(4))
    assert_close(weights[-1], [0.10153632, 0.1674051, 0.27600434, 0.45505423], tolerance=1e-8)


def test_equal_content_is_looked_back_at_by_one_over_e_to_the_slope_minus_one_on_average():
    slopes, n = alibi.slopes(8), 16_000
    row = positions.offsets(queries=torch.tensor([n - 1]), keys=torch.arange(n))
    weights = attention.weights(alibi.bias(slopes, row))[:, 0]
    assert_close(-(weights * row[0]).sum(-1), [1 / math.expm1(slope) for slope in slopes.tolist()])
    assert 1 / math.expm1(1 / 2) == pytest.approx(1.541, abs=5e-4)


def test_counting_from_the_start_gives_the_same_weights_under_a_causal_mask():
    slopes, mask = alibi.slopes(4), attention.causal(6)
    from_start = slopes[:, None, None] * torch.arange(6)
    weights = attention.weights(alibi.bias(slopes, offsets(6)), mask)
    assert_close(attention.weights(from_start.expand(4, 6, 6), mask), weights)


@pytest.mark.parametrize(
    "call, says",
    [
        (lambda: alibi.slopes(0), "at least one head, not heads=0"),
        (lambda: alibi.slopes(-4), "at least one head, not heads=-4"),
        (lambda: alibi.bias(torch.ones(4, 1), offsets(3)), r"one axis, \(heads,\), not shape \(4, 1\)"),
    ],
)
def test_bad_input_is_refused_by_name(call, says, monkeypatch):
    # Without the shape checks of the tests, as a user would run it.
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    with pytest.raises(ValueError, match=says):
        call()

import math

import jaxtyping
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from posbook import alibi, attention, positions
from tests import EPSILON, assert_close, by_equation


def randn(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@settings(max_examples=25, deadline=None, derandomize=True)
@given(
    n=st.integers(1, 4),
    past=st.integers(0, 3),
    dim=st.integers(1, 5),
    scale=st.sampled_from([None, 1.0, 0.3]),
    masked=st.booleans(),
    seed=st.integers(0, 99),
)
def test_attention_is_the_equation(n, past, dim, scale, masked, seed):
    q, k, v = randn(n, dim, seed=seed), randn(n + past, dim, seed=seed + 1), randn(n + past, 2, seed=seed + 2)
    bias = randn(n, n + past, seed=seed + 3)
    mask = attention.causal(n, n + past) if masked else None
    may = [[j <= i + past for j in range(n + past)] for i in range(n)] if masked else None
    scores, weights, output = by_equation.attend(
        q.tolist(), k.tolist(), v.tolist(), bias=bias.tolist(), may=may, scale=scale
    )
    assert_close(attention.scores(q, k, scale=scale) + bias, scores)
    assert_close(attention.weights(attention.scores(q, k, scale=scale) + bias, mask), weights)
    assert_close(attention.attend(q, k, v, bias=bias, mask=mask, scale=scale), output)


def test_the_steps_agree_with_the_worked_example():
    q = torch.tensor([[1.0, 0.0]], dtype=torch.float64)
    k = torch.tensor([[1, 0], [0, 1], [2, 0]], dtype=torch.float64)
    v = torch.tensor([[1, 0], [0, 1], [2, 1]], dtype=torch.float64)
    scores = attention.scores(q, k)
    assert_close(scores, [[1 / math.sqrt(2), 0, math.sqrt(2)]])
    weights = attention.weights(scores)
    assert_close(weights, [[0.2839954097, 0.1400292450, 0.5759753452]], tolerance=1e-9)
    assert_close(attention.output(weights, v), [[1.4359461002, 0.7160045903]], tolerance=1e-9)


def test_batches_and_heads_are_attended_one_by_one():
    q, k, v = randn(2, 3, 4, 8), randn(2, 3, 5, 8, seed=1), randn(2, 3, 5, 6, seed=2)
    together = attention.attend(q, k, v)
    assert together.shape == (2, 3, 4, 6)
    for batch in range(2):
        for head in range(3):
            assert_close(
                together[batch, head], attention.attend(q[batch, head], k[batch, head], v[batch, head])
            )
    shared = attention.attend(q, k[:, :1], v[:, :1])
    assert_close(shared[1, 2], attention.attend(q[1, 2], k[1, 0], v[1, 0]))


def test_a_cached_step_is_the_last_row_of_the_whole():
    q, k, v = randn(3, 6, 8)
    whole = attention.attend(q, k, v, mask=attention.causal(6))
    assert_close(attention.attend(q[5:], k, v, mask=attention.causal(1, 6)), whole[5:])
    assert torch.equal(attention.causal(2, 6), attention.causal(6)[4:])


def test_nothing_of_the_future_is_read():
    q, k, v = randn(3, 6, 8)
    changed = v.clone()
    changed[4:] += 100
    before, after = (attention.attend(q, k, values, mask=attention.causal(6)) for values in (v, changed))
    assert torch.equal(before[:4], after[:4])


def test_a_row_that_may_attend_to_nothing_gives_zeros_and_no_gradient():
    scores = randn(3, 4).requires_grad_()
    mask = torch.tensor([[True, False, True, True], [False] * 4, [True] * 4])
    weights = attention.weights(scores, mask)
    assert weights[1].tolist() == [0.0] * 4
    assert_close(weights.detach().sum(-1), [1.0, 0.0, 1.0])
    (gradient,) = torch.autograd.grad(weights.square().sum(), scores)
    assert gradient.isfinite().all()
    assert gradient[1].tolist() == [0.0] * 4
    shut = attention.weights(torch.full((1, 3), -torch.inf, dtype=torch.float64))
    assert shut.tolist() == [[0.0] * 3]


def test_a_broken_score_is_not_hidden():
    assert attention.weights(torch.tensor([[0.0, torch.nan]])).isnan().all()


def test_minus_infinity_in_the_scores_is_a_mask():
    scores, mask = randn(4, 4), attention.causal(4)
    assert_close(attention.weights(scores.masked_fill(~mask, -torch.inf)), attention.weights(scores, mask))


@pytest.mark.parametrize("dtype", EPSILON)
def test_weights_are_shares_in_every_dtype(dtype):
    scores = (100 * randn(3, 50)).to(dtype)
    weights = attention.weights(scores)
    assert weights.dtype == dtype
    assert_close(weights, attention.weights(scores.double()))
    # 70 000 equal scores overflow a sum in float16.
    even = attention.weights(torch.zeros(1, 70_000, dtype=dtype))
    assert even[0, 0].item() == pytest.approx(1 / 70_000, rel=1e-2)


def test_scores_of_any_size_stay_in_range():
    weights = attention.weights(torch.tensor([[1e5, 1e5, -1e5]]))
    assert weights.tolist() == [[0.5, 0.5, 0.0]]


def test_a_number_added_to_a_whole_row_changes_nothing():
    scores = randn(3, 4)
    assert_close(attention.weights(scores + randn(3, 1, seed=1)), attention.weights(scores))


def test_a_float64_bias_leaves_the_dtype_of_the_values():
    q, k, v = randn(3, 2, 5, 8).float()
    at = torch.arange(5)
    bias = alibi.bias(alibi.slopes(2), positions.offsets(queries=at, keys=at))
    output = attention.attend(q, k, v, bias=bias)
    assert output.dtype == torch.float32
    assert_close(output, attention.attend(q.double(), k.double(), v.double(), bias=bias))


def test_gradients_are_those_of_the_equation():
    q, k, v = (randn(3, 4, seed=seed).requires_grad_() for seed in range(3))
    attend = lambda q, k, v: attention.attend(q, k, v, mask=attention.causal(3))  # noqa: E731
    assert torch.autograd.gradcheck(attend, (q, k, v))


def test_it_runs_without_values_and_compiles_whole(monkeypatch):
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    attend = lambda q, k, v: attention.attend(q, k, v, mask=attention.causal(4, device=q.device))  # noqa: E731
    q, k, v = randn(3, 2, 4, 8)
    assert_close(torch.compile(attend, backend="eager", fullgraph=True)(q, k, v), attend(q, k, v))
    assert_close(torch.vmap(attend)(q, k, v), attend(q, k, v))
    assert attend(*(x.to("meta") for x in (q, k, v))).shape == (2, 4, 8)


@pytest.mark.parametrize(
    "call, says",
    [
        (lambda x: attention.scores(x(3, 4), x(3, 6)), "equally wide, not 4 and 6"),
        (lambda x: attention.scores(x(8, 3, 4), x(2, 3, 4)), r"\(8, 3, 4\).*repeat_interleave"),
        (lambda x: attention.causal(4, 3), "queries=4, keys=3"),
        (lambda x: attention.causal(0), "queries=0, keys=0"),
        (lambda x: attention.weights(x(3, 3), x(3, 3)), "boolean, True = may attend, not torch.float32"),
        (lambda x: attention.weights(x(3, 3), attention.causal(3).int()), "boolean.*not torch.int32"),
        (lambda x: attention.weights(x(3, 3), attention.causal(4)), r"mask of shape \(4, 4\).*\(3, 3\)"),
        (lambda x: attention.weights(x(1, 3), attention.causal(3)), r"mask of shape \(3, 3\).*\(1, 3\)"),
        (lambda x: attention.weights(x(2, 3, 3), attention.causal(3).expand(4, 3, 3)), r"\(4, 3, 3\)"),
        (lambda x: attention.output(x(3, 4), x(5, 2)), r"agree in keys.*\(3, 4\) and \(5, 2\)"),
        (lambda x: attention.output(x(2, 3, 4), x(3, 4, 2)), r"leading axes.*\(2, 3, 4\) and \(3, 4, 2\)"),
        (lambda x: attention.attend(x(3, 4), x(3, 4), x(3, 4), bias=x(3, 2)), r"bias of shape \(3, 2\)"),
        (
            lambda x: attention.attend(x(1, 4), x(3, 4), x(3, 4), bias=x(2, 3, 3)),
            r"bias of shape \(2, 3, 3\)",
        ),
    ],
)
def test_bad_input_is_refused_by_name(call, says):
    with pytest.raises(ValueError, match=says):
        call(lambda *shape: torch.ones(shape))

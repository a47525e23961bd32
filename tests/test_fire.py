import math

import jaxtyping
import pytest
import torch

from posbook import attention, fire, properties
from tests import assert_close, by_equation_scores

AT = torch.arange(7)


def network(heads=3, width=5, seed=0):
    torch.manual_seed(seed)
    layers = torch.nn.Linear(1, width), torch.nn.ReLU(), torch.nn.Linear(width, heads)
    return torch.nn.Sequential(*layers).double()


def distances(queries=AT, keys=AT, c=0.1, threshold=4.0):
    return fire.distances(queries=queries, keys=keys, c=c, threshold=threshold)


@pytest.mark.parametrize("c", [0.1, 1, 30.0])
@pytest.mark.parametrize("threshold", [0.5, 4, 512.0])
def test_distances_are_the_equation(c, threshold):
    expected = [[by_equation_scores.fire_distance(m, n, c, threshold) for n in range(7)] for m in range(7)]
    assert_close_where_finite(distances(c=c, threshold=threshold), expected)


def assert_close_where_finite(actual, expected):
    expected = torch.tensor(expected, dtype=torch.float64)
    assert torch.equal(actual.isinf(), expected.isinf())
    assert torch.equal(actual[actual.isinf()], expected[expected.isinf()])
    assert_close(actual[actual.isfinite()], expected[expected.isfinite()])


@pytest.mark.parametrize(
    "m, n, expected", [(3, 0, 0.861353), (3, 2, 0.430677), (7, 0, 1), (7, 4, 2 / 3), (15, 8, 0.75)]
)
def test_distances_agree_with_the_worked_examples(m, n, expected):
    one = distances(queries=torch.tensor([m]), keys=torch.tensor([n]), c=1, threshold=4)
    assert one.item() == pytest.approx(expected, abs=1e-6)


def test_the_bias_is_the_network_of_the_distance():
    f = network()
    weights = [parameter.tolist() for parameter in f.parameters()]
    expected = [
        [
            [
                by_equation_scores.network(by_equation_scores.fire_distance(m, n, 0.1, 4), *weights)[head]
                if n <= m
                else -math.inf
                for n in range(7)
            ]
            for m in range(7)
        ]
        for head in range(3)
    ]
    assert_close_where_finite(fire.bias(distances(), f).detach(), expected)


def test_distances_stay_between_0_and_1_at_any_length():
    far = distances(queries=torch.tensor([3, 100, 1_000_000]), keys=torch.tensor([0, 3]))
    assert (far >= 0).all()
    assert (far <= 1).all()
    assert far[:, 0].tolist() == [pytest.approx(math.log(1.3) / math.log(1.4)), 1, 1]


def test_the_bias_depends_only_on_the_offset_until_the_threshold():
    f = network()

    def score(q, k, m, n):
        at = distances(queries=torch.tensor([m]), keys=torch.tensor([n]), threshold=64)
        return fire.bias(at, f)

    q = k = torch.zeros(1, 1)
    assert properties.relativity(score, q, k, m=9, n=2, shifts=[1, 55]) == 0
    assert properties.relativity(score, q, k, m=9, n=2, shifts=[1000]) > 1e-2


def test_a_key_ahead_is_forbidden_with_or_without_a_mask():
    bias = fire.bias(distances(), network()).detach()
    weights = attention.weights(bias)
    assert_close(weights, attention.weights(bias, attention.causal(7)))
    assert (weights.triu(1) == 0).all()


def test_heads_stand_before_queries_in_a_batch():
    at, f = torch.tensor([[0, 0, 0, 1, 2], [0, 1, 2, 3, 4]]), network()
    bias = fire.bias(distances(queries=at, keys=at), f)
    assert bias.shape == (2, 3, 5, 5)
    alone = fire.bias(distances(queries=AT[:5], keys=AT[:5]), f).detach()
    assert torch.equal(bias[1], alone)
    assert torch.equal(bias[0, :, 2:, 2:], alone[:, :3, :3])


def test_a_cached_step_is_the_last_row():
    f = network()
    step = fire.bias(distances(queries=AT[6:]), f)
    assert_close(step.detach(), fire.bias(distances(), f)[:, 6:].detach())


@pytest.mark.parametrize("c", [0.1, 2.0])
@pytest.mark.parametrize("threshold", [3.5, 5.5])
def test_gradients_reach_all_that_is_learned_and_stay_finite(c, threshold):
    f, c = network(), torch.tensor(c, dtype=torch.float64, requires_grad=True)
    threshold = torch.tensor(threshold, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(
        lambda c, threshold: distances(c=c, threshold=threshold).tril(), (c, threshold)
    )
    weights = attention.weights(fire.bias(distances(c=c, threshold=threshold), f))
    learned = [c, threshold, *f.parameters()]
    gradients = torch.autograd.grad(weights.square().sum(), learned)
    assert all(gradient.isfinite().all() for gradient in gradients)
    # A constant added to every score moves no weight, so only the last layer's bias has nothing to learn.
    assert all(gradient.abs().max() > 1e-6 for gradient in gradients[:-1])


def test_a_network_in_single_precision_takes_distances_in_single_precision():
    f, c = network(), torch.nn.Parameter(torch.tensor(0.1))
    exact = fire.bias(distances(c=c.double()), f).detach().tril()
    assert distances(c=c).dtype == torch.float64
    assert_close(fire.bias(distances(c=c).float(), f.float()).detach().tril(), exact)


def test_it_runs_without_values_and_compiles_whole(monkeypatch):
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    of = lambda at, c: fire.bias(distances(queries=at, keys=at, c=c), lambda x: -x * torch.ones(2).to(x))  # noqa: E731
    at, c = torch.arange(5), torch.tensor(0.1)
    assert_close_where_finite(torch.compile(of, backend="eager", fullgraph=True)(at, c), of(at, c).tolist())
    assert of(at.to("meta"), c.to("meta")).shape == (2, 5, 5)


@pytest.mark.parametrize(
    "call, says",
    [
        (lambda: distances(c=0), "c must be positive, not 0.0"),
        (lambda: distances(c=torch.tensor(-0.1)), "c must be positive, not -0.1"),
        (lambda: distances(c=math.nan), "c must be positive, not nan"),
        (lambda: distances(threshold=0), "threshold must be positive, not 0.0"),
        (lambda: distances(threshold=-4.0), "threshold must be positive, not -4.0"),
        (lambda: distances(keys=AT - 1), "keys stand at positions counted from 0, not at -1"),
        (lambda: distances(queries=AT - 2), "queries stand at positions counted from 0, not at -2"),
        (lambda: fire.bias(distances(), lambda x: x[..., 0]), r"\(7, 7, 'heads'\), not \(7, 7\)"),
        (lambda: fire.bias(distances(), lambda x: x[0]), r"to \(7, 7, 'heads'\), not \(7, 1\)"),
    ],
)
def test_bad_input_is_refused_by_name(call, says):
    with pytest.raises(ValueError, match=says):
        call()

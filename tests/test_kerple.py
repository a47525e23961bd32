import jaxtyping
import pytest
import torch

from posbook import alibi, attention, kerple, positions
from tests import EPSILON, assert_close, by_equation_scores

FORMS = {
    kerple.power: by_equation_scores.kerple_power,
    kerple.logarithmic: by_equation_scores.kerple_logarithmic,
}
R1 = torch.tensor([0.01, 0.5, 1.3, 2.0], dtype=torch.float64)
R2 = torch.tensor([0.01, 0.7, 1.0, 2.0], dtype=torch.float64)


def offsets(n):
    return positions.offsets(queries=torch.arange(n), keys=torch.arange(n))


@pytest.mark.parametrize("form", FORMS)
def test_the_bias_is_the_equation(form):
    expected = [
        [[FORMS[form](r1, r2, m, n) for n in range(6)] for m in range(6)]
        for r1, r2 in zip(R1.tolist(), R2.tolist(), strict=True)
    ]
    assert_close(form(R1, R2, offsets(6)), expected)


def test_the_logarithm_agrees_with_the_worked_example():
    one = torch.ones(1, dtype=torch.float64)
    bias = kerple.logarithmic(one, one, torch.tensor([[0, -1, -2, -4, -8]]))
    assert_close(bias, [[[0, -0.69314718, -1.09861229, -1.60943791, -2.19722458]]], tolerance=1e-8)


def test_the_first_power_is_alibi():
    slopes = alibi.slopes(12)
    assert torch.equal(
        kerple.power(slopes, torch.ones_like(slopes), offsets(9)), alibi.bias(slopes, offsets(9))
    )


@pytest.mark.parametrize("form", FORMS)
def test_heads_stand_before_queries_in_a_batch(form):
    at = torch.tensor([[0, 1, 2], [0, 5, 9]])
    bias = form(R1, R2, positions.offsets(queries=at, keys=at))
    assert bias.shape == (2, 4, 3, 3)
    assert_close(bias[0], form(R1, R2, offsets(3)))
    assert bias[1, 3, 2, 0].item() == pytest.approx(FORMS[form](2.0, 2.0, 9, 0))


@pytest.mark.parametrize("form", FORMS)
def test_every_key_further_away_gets_less(form):
    bias = form(R1, R2, -torch.arange(5000)[None])
    assert (bias.diff() < 0).all()
    assert torch.equal(bias, form(R1, R2, torch.arange(5000)[None]))


@pytest.mark.parametrize("form", FORMS)
def test_the_bias_is_a_kernel_but_for_a_constant(form):
    bias = form(R1, R2, offsets(40))
    away = torch.eye(40, dtype=torch.float64) - 1 / 40  # leaves numbers that sum to 0
    lowest = torch.linalg.eigvalsh(away @ bias @ away).amin(-1)
    assert (lowest > -1e-12 * bias.abs().amax((-1, -2))).all()
    # And the constant makes it one for all numbers, without moving a weight.
    shifted = bias - bias.amin((-1, -2), keepdim=True)
    assert_close(attention.weights(shifted), attention.weights(bias))


def test_a_power_above_two_would_be_no_kernel():
    cubes = -(offsets(40).double().abs() ** 3)
    away = torch.eye(40, dtype=torch.float64) - 1 / 40
    assert torch.linalg.eigvalsh(away @ cubes @ away).min() < -1


@pytest.mark.parametrize("form", FORMS)
def test_gradients_are_those_of_the_equation_and_finite_at_distance_0(form):
    r1, r2 = R1[1:3].clone().requires_grad_(), R2[1:3].clone().requires_grad_()
    assert torch.autograd.gradcheck(lambda r1, r2: form(r1, r2, offsets(4)), (r1, r2))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("dtype", EPSILON)
def test_the_parameters_decide_the_dtype(form, dtype):
    bias = form(R1.to(dtype), R2.to(dtype), offsets(6))
    assert bias.dtype == dtype
    assert_close(bias, form(R1.to(dtype).double(), R2.to(dtype).double(), offsets(6)))


@pytest.mark.parametrize("form", FORMS)
def test_it_runs_without_values_and_compiles_whole(form, monkeypatch):
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    inputs = torch.nn.Parameter(R1), torch.nn.Parameter(R2), offsets(5)
    assert_close(torch.compile(form, backend="eager", fullgraph=True)(*inputs), form(*inputs).detach())
    assert form(*(x.to("meta") for x in inputs)).shape == (4, 5, 5)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    "r1, r2, says",
    [
        ([0.0], [1.0], "r1 must be positive, not 0.0"),
        ([1.0, -0.5], [1.0, 1.0], "r1 must be positive, not -0.5"),
        ([1.0], [0.0], "r2 must be positive.*, not 0.0"),
        ([1.0], [torch.nan], "r2 must be positive.*, not nan"),
        ([1.0, 1.0], [1.0], r"\(heads,\), not shapes \(2,\) and \(1,\)"),
        ([[1.0]], [[1.0]], r"\(heads,\), not shapes \(1, 1\) and \(1, 1\)"),
    ],
)
def test_bad_parameters_are_refused_by_name(form, r1, r2, says, monkeypatch):
    # Without the shape checks of the tests, as a user would run it.
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    with pytest.raises(ValueError, match=says):
        form(torch.tensor(r1), torch.tensor(r2), offsets(3))


def test_a_power_above_two_is_refused_and_a_steeper_logarithm_is_not():
    one, three = torch.tensor([1.0]), torch.tensor([3.0])
    with pytest.raises(ValueError, match="r2 must be positive and at most 2, not 3"):
        kerple.power(one, three, offsets(3))
    assert kerple.logarithmic(one, three, offsets(3)).isfinite().all()

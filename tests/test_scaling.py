import json
import math
from pathlib import Path

import jaxtyping
import mpmath
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from posbook import frequencies, scaling
from tests import by_equation_scaling as equation

WORKED = json.loads((Path(__file__).parent / "data" / "scaling.json").read_text())
MODELS = [(8, 10_000, 128), (64, 150_000, 4096), (96, 10_000, 4096), (128, 500_000, 8192), (256, 1e6, 32_768)]


def assert_alike(actual, expected, tolerance=1e-12):
    """Equal frequency by frequency, relative to each: the slow ones matter as much as the fast."""
    assert actual.dtype == torch.float64
    expected = torch.tensor([float(f) for f in expected], dtype=torch.float64)
    torch.testing.assert_close(actual, expected, rtol=tolerance, atol=0)


def kept(scaled, theta, factor):
    """The share of each frequency that was kept: 1 where nothing changed, 0 where it is θ/factor."""
    return ((scaled / theta) - 1 / factor) / (1 - 1 / factor)


def scalings(dim, base, length, m=math):
    """For one model, every scaling as it is called, and what its equation says."""
    theta, factors = frequencies.geometric(dim, base), [1 + i / 8 for i in range(dim // 2)]
    model, trained = (dim, base), (dim, base, length)
    yield scaling.linear(theta, 8), equation.linear(*model, 8, m)
    yield scaling.ntk(theta, 8), equation.ntk(*model, 8, m)
    yield scaling.longrope(theta, factors), equation.longrope(*model, factors, m)
    yield scaling.llama3(theta, 8, length), equation.llama3(*model, 8, length, m=m)
    yield scaling.llama3(theta, 32, length, 2, 9), equation.llama3(*model, 32, length, 2, 9, m)
    for now in (1, length, length + 1, 4 * length):
        expected = equation.dynamic_ntk(*model, now, length, 2.5, m)
        yield scaling.dynamic_ntk(theta, now, length, 2.5), expected
    for fast, slow in ((32, 1), (4, 0.5)):
        share = equation.yarn_kept_over_turns(*trained, fast, slow, m)
        scaled = scaling.yarn(theta, 40, length, fast, slow, ramp="turns")
        yield scaled, equation.mixed(*model, 40, share, m)
        share = equation.yarn_kept_over_index(*trained, fast, slow, m=m)
        yield scaling.yarn(theta, 40, length, fast, slow), equation.mixed(*model, 40, share, m)


@pytest.mark.parametrize("dim, base, length", MODELS)
def test_every_scaling_follows_its_equation(dim, base, length):
    for scaled, expected in scalings(dim, base, length):
        assert_alike(scaled, expected)


@pytest.mark.parametrize("dim, base, length", MODELS)
def test_every_scaling_agrees_with_fifty_digits(dim, base, length):
    with mpmath.workdps(50):
        assert_alike(frequencies.geometric(dim, base), equation.geometric(dim, base, mpmath), 4e-15)
        assert_alike(
            frequencies.proportional(dim, 0.25, base), equation.proportional(dim, 0.25, base, mpmath), 4e-15
        )
        for scaled, expected in scalings(dim, base, length, mpmath):
            assert_alike(scaled, expected, 4e-15)


@pytest.mark.parametrize("dim, base, length", MODELS)
def test_an_index_ramp_with_fractions_for_ends_agrees_with_fifty_digits(dim, base, length):
    with mpmath.workdps(50):
        share = equation.yarn_kept_over_index(dim, base, length, truncate=False, m=mpmath)
        scaled = scaling.yarn(frequencies.geometric(dim, base), 40, length, truncate=False)
        # The ends are rounded to float64, and where little is kept the factor enlarges that.
        assert_alike(scaled, equation.mixed(dim, base, 40, share, mpmath), 40 * 5e-16)


@settings(max_examples=50, deadline=None, derandomize=True)
@given(
    st.integers(2, 64),
    st.floats(2.0, 1e8),
    st.floats(1.0, 100.0),
    st.integers(1, 200_000),
    st.booleans(),
)
def test_the_index_ramp_is_the_released_one(pairs, base, factor, length, truncate):
    a, b = equation.yarn_range(2 * pairs, base, length, truncate=truncate)
    theta = frequencies.geometric(2 * pairs, base)
    if a > b:
        with pytest.raises(ValueError, match="backwards"):
            scaling.yarn(theta, factor, length, truncate=truncate)
        return
    share = equation.yarn_kept_over_index(2 * pairs, base, length, truncate=truncate)
    # Ends that almost meet make the ramp a step, whose middle rounding decides.
    if b - a > 1e-3 or a == b:
        expected = equation.mixed(2 * pairs, base, factor, share)
        assert_alike(scaling.yarn(theta, factor, length, truncate=truncate), expected, 1e-9)


@settings(max_examples=50, deadline=None, derandomize=True)
@given(st.integers(2, 64), st.floats(2.0, 1e8), st.floats(1.0, 100.0), st.integers(16, 200_000))
def test_every_pair_ends_between_its_own_speed_and_that_of_interpolation(pairs, base, factor, length):
    theta = frequencies.geometric(2 * pairs, base)
    for scaled in (
        scaling.linear(theta, factor),
        scaling.ntk(theta, factor),
        scaling.llama3(theta, factor, length),
        scaling.yarn(theta, factor, length, ramp="turns"),
    ):
        assert (scaled <= theta * (1 + 1e-15)).all()
        assert (scaled >= theta / factor * (1 - 1e-15)).all()
        assert (scaled.diff() < 0).all()


def test_a_factor_of_one_changes_nothing():
    theta = frequencies.geometric(64)
    for scaled in (
        scaling.linear(theta, 1),
        scaling.ntk(theta, 1),
        scaling.dynamic_ntk(theta, 4096, 4096, 1),
        scaling.yarn(theta, 1, 4096),
        scaling.yarn(theta, 1, 4096, ramp="turns"),
        scaling.llama3(theta, 1, 4096),
        scaling.longrope(theta, [1] * 32),
    ):
        assert_alike(scaled, theta.tolist(), 4e-16)


def test_interpolated_angles_are_those_of_interpolated_positions():
    theta, at = frequencies.geometric(64), torch.arange(0, 32_768, 1001)
    angles = frequencies.angles(at, scaling.linear(theta, 8))
    torch.testing.assert_close(angles, frequencies.angles(at / 8, theta), rtol=1e-15, atol=0)


def test_ntk_is_a_change_of_base():
    for factor, base in WORKED["ntk_base"].items():
        theta = frequencies.geometric(128)
        assert_alike(scaling.ntk(theta, float(factor)), equation.geometric(128, base))
        assert base == pytest.approx(equation.ntk_base(128, 10_000, float(factor)), rel=1e-14)


def test_ntk_slows_the_first_pair_not_at_all_and_the_last_by_the_whole_factor():
    ratio = frequencies.geometric(128) / scaling.ntk(frequencies.geometric(128), 8)
    expected = {0: 1, 1: 1.03356, 8: 1.3022, 16: 1.6957, 32: 2.8755, 48: 4.8761, 62: 7.7403, 63: 8}
    for pair, slower in expected.items():
        assert ratio[pair].item() == pytest.approx(slower, abs=5e-5)


@pytest.mark.parametrize(
    "length, factor, base",
    [
        (8192, 1, 20221.2617),
        (8192, 2, 30527.7367),
        (16_384, 1, 40889.9424),
        (4096, 2, 10_000),
        (7, 2, 10_000),
    ],
)
def test_dynamic_ntk_takes_its_base_from_the_length(length, factor, base):
    scaled = scaling.dynamic_ntk(frequencies.geometric(128), length, 4096, factor)
    assert_alike(scaled, equation.geometric(128, base), 2e-9)


@pytest.mark.parametrize("ramp, tolerance", [("index", 1e-14), ("turns", 1e-10)])
def test_yarn_keeps_the_share_of_the_worked_example(ramp, tolerance):
    theta = frequencies.geometric(128)
    share = kept(scaling.yarn(theta, 8, 4096, ramp=ramp), theta, 8)
    expected = torch.tensor(WORKED[f"yarn_kept_{ramp}"], dtype=torch.float64)
    torch.testing.assert_close(share, expected, rtol=0, atol=tolerance)


def test_the_index_ramp_runs_between_the_pairs_of_the_worked_example():
    theta, (first, last) = frequencies.geometric(128), WORKED["yarn_index_range"]
    share = kept(scaling.yarn(theta, 8, 4096), theta, 8)
    falling = ((share > 1e-12) & (share < 1 - 1e-12)).nonzero().flatten()
    assert (falling[0].item(), falling[-1].item()) == (first + 1, last - 1)


def test_paper_and_released_ramp_differ_by_up_to_more_than_two():
    theta = frequencies.geometric(128)
    ratio = scaling.yarn(theta, 8, 4096) / scaling.yarn(theta, 8, 4096, ramp="turns")
    assert (ratio.argmax().item(), ratio.max().item()) == (36, pytest.approx(2.30, abs=5e-3))
    ratio = scaling.yarn(theta, 16, 2048) / scaling.yarn(theta, 16, 2048, ramp="turns")
    assert (ratio.argmax().item(), ratio.max().item()) == (33, pytest.approx(3.08, abs=5e-3))


def test_the_small_worked_examples_come_out():
    theta = frequencies.geometric(8)
    assert_alike(scaling.ntk(theta, 4), [1, 0.06299605, 0.00396850, 0.00025], 1e-6)
    assert_alike(scaling.yarn(theta, 4, 128), [1, 0.0625, 0.0025, 0.00025])
    assert_alike(scaling.yarn(theta, 4, 128, ramp="turns"), [0.718673, 0.027509, 0.0025, 0.00025], 2e-5)
    assert_alike(scaling.llama3(theta, 4, 128), [1, 0.05093, 0.0025, 0.00025], 1e-4)


def test_equal_ends_of_the_index_ramp_make_a_step():
    # 16·ln(64/2πβ)/(2·ln 10 000) is −0.03 for β = 10.5 and −0.59 for β = 20: rounded and clamped, both are 0.
    theta = frequencies.geometric(16)
    step = scaling.yarn(theta, 4, 64, beta_fast=20, beta_slow=10.5)
    assert_alike(step / theta, [1] + [1 / 4] * 7)
    share = equation.yarn_kept_over_index(16, 10_000, 64, fast=20, slow=10.5)
    assert_alike(step, equation.mixed(16, 10_000, 4, share))


def test_llama3_agrees_with_the_worked_example():
    theta = frequencies.geometric(128, base=500_000)
    scaled = scaling.llama3(theta, factor=8, trained_length=8192)
    assert_alike(scaled / theta, WORKED["llama3_ratio"])
    assert scaled[31].item() == pytest.approx(8.567514e-4, rel=1e-6)


@settings(max_examples=25, deadline=None, derandomize=True)
@given(st.floats(1.0, 64.0), st.integers(128, 200_000), st.floats(0.5, 2.0), st.floats(2.5, 64.0))
def test_llama3_is_yarns_ramp_over_turns(factor, length, low, high):
    theta = frequencies.geometric(64, base=500_000)
    assert_alike(
        scaling.llama3(theta, factor, length, low, high),
        scaling.yarn(theta, factor, length, high, low, ramp="turns").tolist(),
    )


def test_longrope_takes_a_list_or_a_tensor():
    theta, factors = frequencies.geometric(8), [1, 1.5, 2, 30]
    assert_alike(scaling.longrope(theta, factors), equation.longrope(8, 10_000, factors))
    assert_alike(scaling.longrope(theta, torch.tensor(factors)), equation.longrope(8, 10_000, factors))


def test_the_four_pairs_of_a_small_head_are_slowed_by_powers_of_the_cube_root_of_four():
    theta = frequencies.geometric(8)
    assert_alike(theta / scaling.ntk(theta, 4), [4 ** (i / 3) for i in range(4)])
    assert_alike(scaling.ntk(theta, 4), [1, 0.06299605, 0.00396850, 0.00025], 1e-6)


@pytest.mark.parametrize("factor", WORKED["yarn_temperature"])
def test_the_yarn_temperature_agrees_with_the_worked_example(factor):
    assert scaling.yarn_temperature(float(factor)) == pytest.approx(
        WORKED["yarn_temperature"][factor], rel=1e-15
    )


def test_temperatures_agree_with_fifty_digits():
    with mpmath.workdps(50):
        for factor in (0.5, 1, 1.25, 8, 40, 128.0):
            for mscale in (0, 0.707, 1.0):
                expected = float(equation.yarn_temperature(factor, mscale, mpmath))
                assert scaling.yarn_temperature(factor, mscale) == pytest.approx(expected, rel=4e-15)
            expected = float(equation.longrope_temperature(factor, 4096, mpmath))
            assert scaling.longrope_temperature(factor, 4096) == pytest.approx(expected, rel=4e-15)


def test_the_longrope_temperature_of_phi_3():
    # √(1 + ln 32/ln 4096) = √(17/12).
    assert scaling.longrope_temperature(131_072 / 4096, 4096) == pytest.approx(math.sqrt(17 / 12), rel=1e-15)


def test_deepseeks_two_factors_multiply_to_one_temperature_where_features_turn():
    for mscale, everywhere in ((1.0, 0.0), (0.707, 0.707), (1.0, 0.707)):
        rotated, scores = scaling.deepseek_temperatures(40, mscale, everywhere)
        assert rotated**2 * scores == pytest.approx(scaling.yarn_temperature(40, mscale) ** 2, rel=1e-14)
        assert scores == pytest.approx((0.1 * everywhere * math.log(40) + 1) ** 2, rel=1e-14)
    assert scaling.deepseek_temperatures(40) == (scaling.yarn_temperature(40), 1.0)


@pytest.mark.parametrize(
    "base, position",
    [(4300, 1077), (10_000, 1707), (12_000, 1554), (16_000, 2724), (27_000, 4079), (500_000, 18_438)],
)
def test_a_base_reaches_until_its_mean_cosine_turns_negative(base, position):
    # Men et al. (2024). Found with NumPy; a larger base does not always reach further: 12 000 against 10 000.
    cosines = frequencies.angles(torch.arange(position + 1), frequencies.geometric(128, base)).cos().sum(-1)
    assert (cosines < 0).nonzero()[0].item() == position


def test_frequencies_rounded_to_float32_are_taken():
    theta = frequencies.geometric(128, base=1e6)
    for scaled in (lambda t: scaling.yarn(t, 4, 32_768), lambda t: scaling.ntk(t, 4)):
        assert_alike(scaled(theta.float()), scaled(theta).tolist(), 2e-6)


def test_the_index_ramp_finds_the_turns_of_frequencies_that_do_not_begin_at_one():
    # Slowing every pair by 8 is training on an eighth of the length: the same turns, so the same ramp.
    theta = frequencies.geometric(128)
    slower = scaling.linear(theta, 8)
    assert_alike(
        scaling.yarn(slower, 4, 8 * 4096) / slower, (scaling.yarn(theta, 4, 4096) / theta).tolist(), 1e-11
    )


def test_it_runs_without_values_and_compiles_whole(monkeypatch):
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    theta = frequencies.geometric(64)
    for scale in (
        lambda t: scaling.dynamic_ntk(t, 8192, 4096, 2),
        lambda t: scaling.yarn(t, 8, 4096),
        lambda t: scaling.yarn(t, 8, 4096, ramp="turns"),
        lambda t: scaling.llama3(t, 8, 4096),
        lambda t: scaling.longrope(t, [2.0] * 32),
    ):
        torch.testing.assert_close(
            torch.compile(scale, backend="eager", fullgraph=True)(theta), scale(theta), rtol=1e-15, atol=0
        )
        assert scale(theta.to("meta")).shape == theta.shape
        learned = theta.clone().requires_grad_()
        scale(learned).sum().backward()
        assert learned.grad.isfinite().all()


THETA, ONE = frequencies.geometric(8), frequencies.geometric(2)


@pytest.mark.parametrize(
    "call, says",
    [
        (lambda: scaling.linear(THETA, 0.5), "at least 1, not factor=0.5"),
        (lambda: scaling.linear(THETA, math.nan), "finite .* not factor=nan"),
        (lambda: scaling.ntk(THETA, math.inf), "finite .* not factor=inf"),
        (lambda: scaling.dynamic_ntk(THETA, 2, 1, 0.5), "not factor=0.5"),
        (lambda: scaling.yarn(THETA, 0, 4096), "not factor=0"),
        (lambda: scaling.llama3(THETA, -8, 4096), "not factor=-8"),
        (lambda: scaling.dynamic_ntk(THETA, 2, 0, 2), "positive number of tokens, not trained_length=0"),
        (lambda: scaling.yarn(THETA, 8, -1), "positive number of tokens, not trained_length=-1"),
        (lambda: scaling.llama3(THETA, 8, math.nan), "positive number of tokens, not trained_length=nan"),
        (lambda: scaling.dynamic_ntk(THETA, 0, 4096, 2), "positive number of tokens, not length=0"),
        (lambda: scaling.ntk(ONE, 8), "ntk .* needs two pairs or more, not 1: use linear"),
        (lambda: scaling.dynamic_ntk(ONE, 2, 1, 2), "dynamic_ntk .* two pairs or more, not 1"),
        (lambda: scaling.yarn(ONE, 8, 4096), "yarn .* two pairs or more, not 1"),
        (lambda: scaling.yarn(ONE, 8, 4096, ramp="turns"), "yarn .* two pairs or more, not 1"),
        (lambda: scaling.yarn(THETA, 8, 4096, ramp="dim"), "'index' .* or 'turns' .*, not 'dim'"),
        (lambda: scaling.yarn(THETA, 8, 4096, 1, 1), "must exceed .* beta_fast=1 and beta_slow=1"),
        (lambda: scaling.yarn(THETA, 8, 4096, 1, 32), "must exceed .* beta_fast=1 and beta_slow=32"),
        (lambda: scaling.yarn(THETA, 8, 4096, 32, 0), "must be positive, .* beta_slow=0"),
        (lambda: scaling.llama3(THETA, 8, 8192, 4, 4), "must exceed low, .* low=4 and high=4"),
        (lambda: scaling.llama3(THETA, 8, 8192, 4, 1), "must exceed low, .* low=4 and high=1"),
        (lambda: scaling.llama3(THETA, 8, 8192, 0), "must be positive, not low=0"),
        (
            lambda: scaling.yarn(scaling.llama3(THETA, 4, 128), 8, 4096),
            "geometrically, which .* ramp='turns'",
        ),
        (lambda: scaling.yarn(THETA.flip(0), 8, 4096), r"geometrically, which \[0.001, 0.01, .* do not"),
        (lambda: scaling.yarn(torch.ones(4), 8, 4096), "fall geometrically"),
        (lambda: scaling.yarn(frequencies.proportional(8, 0.5), 8, 4096), "fall geometrically"),
        (lambda: scaling.yarn(frequencies.geometric(64), 8, 4), "backwards, from pair 0 to pair -1.*'turns'"),
        (
            lambda: scaling.yarn(frequencies.geometric(128, 4), 8, 4096),
            "backwards, from pair 139 to pair 127",
        ),
        (lambda: scaling.longrope(THETA, [1.0] * 8), r"each of the 4 pairs, not shape \(8,\)"),
        (lambda: scaling.longrope(THETA, torch.ones(4, 1)), r"each of the 4 pairs, not shape \(4, 1\)"),
        (lambda: scaling.longrope(THETA, [1, 1, 0, 1]), "finite and positive, not 0.0"),
        (lambda: scaling.longrope(THETA, [1, 1, math.nan, 1]), "finite and positive, not nan"),
        (lambda: scaling.linear(THETA[None], 8), r"one axis, \(pairs,\), not shape \(1, 4\)"),
        (lambda: scaling.ntk(THETA[None], 8), r"one axis, \(pairs,\), not shape \(1, 4\)"),
        (lambda: scaling.dynamic_ntk(THETA[None], 2, 1, 2), r"one axis, \(pairs,\), not shape \(1, 4\)"),
        (lambda: scaling.yarn(THETA[0], 8, 4096), r"one axis, \(pairs,\), not shape \(\)"),
        (lambda: scaling.llama3(THETA[None], 8, 4096), r"one axis, \(pairs,\), not shape \(1, 4\)"),
        (lambda: scaling.longrope(THETA[None], [1] * 4), r"one axis, \(pairs,\), not shape \(1, 4\)"),
        (lambda: scaling.yarn_temperature(0), "positive, not factor=0"),
        (lambda: scaling.yarn_temperature(8, -1), "not negative, not mscale=-1"),
        (lambda: scaling.deepseek_temperatures(math.nan), "positive, not factor=nan"),
        (lambda: scaling.longrope_temperature(-1, 4096), "positive, not factor=-1"),
        (lambda: scaling.longrope_temperature(32, 1), "more than 1 token, not trained_length=1"),
    ],
)
def test_bad_input_is_refused_by_name(call, says, monkeypatch):
    # Without the shape checks of the tests, as a user would run it.
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    with pytest.raises(ValueError, match=says):
        call()

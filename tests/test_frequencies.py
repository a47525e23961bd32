import math

import jaxtyping
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from posbook import frequencies
from tests import WORKED, assert_close, by_equation


@settings(max_examples=25, deadline=None, derandomize=True)
@given(st.integers(1, 64).map(lambda pairs: 2 * pairs), st.floats(1.0, 1e8))
def test_frequencies_fall_geometrically(dim, base):
    theta = frequencies.geometric(dim, base=base)
    torch.testing.assert_close(
        theta, torch.tensor(by_equation.geometric(dim, base), dtype=torch.float64), rtol=1e-12, atol=0
    )


def test_the_default_base_is_ten_thousand():
    assert_close(frequencies.geometric(8), [1, 0.1, 0.01, 0.001])
    assert_close(frequencies.geometric(8, base=10_000), frequencies.geometric(8))


@settings(max_examples=25, deadline=None, derandomize=True)
@given(st.integers(1, 64).map(lambda pairs: 2 * pairs), st.floats(0.0, 1.0), st.floats(1.0, 1e8))
def test_proportional_keeps_the_fastest_pairs_and_stops_the_rest(dim, fraction, base):
    theta, turning = frequencies.proportional(dim, fraction, base=base), int(fraction * dim // 2)
    expected = by_equation.geometric(dim, base)[:turning] + [0.0] * (dim // 2 - turning)
    assert theta.dtype == torch.float64
    torch.testing.assert_close(theta, torch.tensor(expected, dtype=torch.float64), rtol=1e-12, atol=0)


def test_proportional_three_quarters_of_eight_features_turn_three_pairs():
    # The exponent spans all eight features: 10 000^(−2/8) is 0.1, and the fourth pair would be 0.001.
    assert_close(frequencies.proportional(8, 0.75), [1, 0.1, 0.01, 0])
    assert frequencies.proportional(8, 0.75)[3] == 0


def test_proportional_runs_from_no_rotation_to_all_of_it():
    assert frequencies.proportional(64, 0).tolist() == [0.0] * 32
    assert torch.equal(frequencies.proportional(64, 1, base=500), frequencies.geometric(64, base=500))


def test_angles_are_position_times_frequency_to_float64():
    at, theta = [0, 1, 2, 100_000, 1_000_000], by_equation.geometric(64)
    expected = [[m * f for f in theta] for m in at]
    for positions in (torch.tensor(at), torch.tensor(at, dtype=torch.float32)):
        angles = frequencies.angles(positions, frequencies.geometric(64))
        assert angles.dtype == torch.float64
        assert_close(angles, expected)


def test_angles_follow_the_shape_and_device_of_the_positions():
    theta = frequencies.geometric(6)
    assert frequencies.angles(torch.zeros(2, 5), theta).shape == (2, 5, 3)
    assert frequencies.angles(torch.tensor(7), theta).shape == (3,)
    assert frequencies.angles(torch.arange(4, device="meta"), theta).device.type == "meta"


def test_the_longest_wavelength_is_not_base_times_two_pi():
    assert_close(frequencies.wavelengths(frequencies.geometric(4))[-1:], [2 * math.pi * 100])
    longest = frequencies.wavelengths(frequencies.geometric(512))[-1]
    assert longest.item() == pytest.approx(60611.48, abs=0.005)


def test_a_pair_that_stands_still_has_an_infinite_wavelength_and_no_turns():
    still = torch.zeros(1)
    assert frequencies.wavelengths(still).item() == math.inf
    assert frequencies.turns(still, length=10).item() == 0


@pytest.mark.parametrize("case", WORKED["pairs_without_a_full_turn_and_first_of_them"].items())
def test_the_slow_pairs_never_come_round(case):
    name, (count, first) = case
    base, dim, length = map(int, name.split(","))
    turns = frequencies.turns(frequencies.geometric(dim, base=base), length=length)
    assert (turns < 1).nonzero().flatten().tolist() == list(range(first, first + count))


def test_turns_times_wavelength_is_the_length():
    theta = frequencies.geometric(10)
    assert_close(frequencies.turns(theta, 4096) * frequencies.wavelengths(theta), [4096.0] * 5)


@pytest.mark.parametrize(
    "call, says",
    [
        (lambda: frequencies.geometric(7), "even number of features.*dim=7"),
        (lambda: frequencies.geometric(0), "2 or more.*dim=0"),
        (lambda: frequencies.geometric(8, base=0.5), "at least 1.*base=0.5"),
        (lambda: frequencies.geometric(8, base=math.nan), "finite.*base=nan"),
        (lambda: frequencies.geometric(8, base=math.inf), "finite.*base=inf"),
        (lambda: frequencies.proportional(8, 1.5), "from 0 to 1, .* not fraction=1.5"),
        (lambda: frequencies.proportional(8, -0.1), "from 0 to 1, .* not fraction=-0.1"),
        (lambda: frequencies.proportional(8, math.nan), "from 0 to 1, .* not fraction=nan"),
        (lambda: frequencies.proportional(7, 0.5), "even number of features.*dim=7"),
        (lambda: frequencies.proportional(8, 0.5, base=0), "at least 1.*base=0"),
        (lambda: frequencies.angles(torch.arange(3), torch.ones(3, 2)), r"one axis.*\(3, 2\)"),
        (lambda: frequencies.angles(torch.arange(3).bfloat16(), torch.ones(2)), "bfloat16.*as integers"),
        (lambda: frequencies.turns(torch.ones(2), length=0), "positive number of tokens.*length=0"),
    ],
)
def test_bad_input_is_refused_by_name(call, says, monkeypatch):
    # Without the shape checks of the tests, as a user would run it.
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    with pytest.raises(ValueError, match=says):
        call()

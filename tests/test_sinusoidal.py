import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from posbook import frequencies, sinusoidal
from tests import WORKED, assert_close, by_equation


def table(positions, dim, base=10_000.0):
    angles = frequencies.angles(torch.as_tensor(positions), frequencies.geometric(dim, base=base))
    return sinusoidal.encode(angles)


@settings(max_examples=25, deadline=None, derandomize=True)
@given(st.lists(st.integers(0, 10_000), min_size=1, max_size=5), st.integers(1, 9))
def test_the_table_is_the_papers_equation(at, pairs):
    assert_close(table(at, 2 * pairs), [by_equation.sinusoid(p, 2 * pairs) for p in at])


def test_the_table_agrees_with_the_worked_example():
    assert_close(table(range(4), 4), WORKED["sinusoid_dim_4"])


def test_a_float32_angle_is_read_in_float64():
    assert sinusoidal.encode(torch.zeros(2, 3)).dtype == torch.float64


def test_dot_products_depend_only_on_the_offset():
    by_offset = {int(k): value for k, value in WORKED["sinusoid_dot_dim_512_over_256"].items()}
    for start in (0, 1000):
        here, there = table([start], 512), table([start + k for k in by_offset], 512)
        assert_close((there @ here.T).flatten() / 256, list(by_offset.values()))


def test_every_row_has_the_same_length_and_every_step_too():
    rows = table(range(100), 512)
    assert_close(rows.square().sum(-1), [256.0] * 100)
    # Two points k radians apart on a circle are 2·sin(k/2) apart.
    step = math.sqrt(sum((2 * math.sin(theta / 2)) ** 2 for theta in by_equation.geometric(512)))
    assert_close(rows.diff(dim=0).norm(dim=-1), [step] * 99)


def test_the_shift_agrees_with_the_worked_example():
    c0, s0, c1, s1 = -0.4161468365, 0.9092974268, 0.9998000067, 0.0199986667  # cosine, sine of 2 and of 0.02
    expected = [[c0, s0, 0, 0], [-s0, c0, 0, 0], [0, 0, c1, s1], [0, 0, -s1, c1]]
    assert_close(sinusoidal.shift(frequencies.geometric(4), 2), expected, tolerance=1e-9)


@pytest.mark.parametrize("k", [-3, 0, 1, 100, 0.5])
def test_one_matrix_shifts_every_position(k):
    theta, at = frequencies.geometric(8), torch.arange(50, dtype=torch.float64)
    assert_close(table(at, 8) @ sinusoidal.shift(theta, k).T, table(at + k, 8))


def test_shifts_compose_and_undo():
    theta = frequencies.geometric(6)
    three, four = sinusoidal.shift(theta, 3), sinusoidal.shift(theta, 4)
    assert_close(three @ four, sinusoidal.shift(theta, 7))
    assert_close(three @ three.T, torch.eye(6))
    assert_close(three.T, sinusoidal.shift(theta, -3))

import jaxtyping
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from posbook import attention, frequencies, properties, rotary, xpos
from tests import EPSILON, assert_close, by_equation, by_equation_tables

LAYOUTS = pytest.mark.parametrize("layout", ["interleaved", "halves"])


def randn(*shape, seed=0, dtype=torch.float64):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)


def angles_at(at, dim):
    return frequencies.angles(torch.as_tensor(at), frequencies.geometric(dim))


def turned(x, at, *, key=False, layout="interleaved", scale_base=512, centre=0):
    at = torch.as_tensor(at)
    scales = xpos.scales(at - centre, x.shape[-1], scale_base=scale_base)
    return xpos.rotate(x, angles_at(at, x.shape[-1]), 1 / scales if key else scales, layout=layout)


def score(q, k, m, n, **options):
    return (turned(q[None], [m], **options) * turned(k[None], [n], key=True, **options)).sum()


@pytest.mark.parametrize("dim", [2, 4, 64])
def test_the_scales_are_the_equation(dim):
    at = [-700, 0, 1, 511, 512, 5000]
    expected = [[zeta ** (m / 512) for zeta in by_equation_tables.zeta(dim)] for m in at]
    for row, row_expected in zip(xpos.scales(torch.tensor(at), dim), expected, strict=True):
        assert_close(row, row_expected)


def test_the_scales_agree_with_the_worked_example():
    # Computed in float64 from the equation, independently: dim 4, after one scale_base.
    assert_close(xpos.scales(torch.tensor([512]), 4), [[0.28571429, 0.64285714]], tolerance=1e-8)


@pytest.mark.parametrize(
    "offset, expected", [(0, 4.0), (1, 1.59439418), (2, 0.75842297), (4, 0.33259158), (-2, -5.35705919)]
)
def test_ones_fade_in_the_past_and_grow_in_the_future(offset, expected):
    # Computed in float64 from the equation, independently: dim 4, scale_base 1, query minus key.
    ones = torch.ones(4, dtype=torch.float64)
    assert_close(score(ones, ones, 5 + offset, 5, scale_base=1), expected, tolerance=1e-8)


@settings(max_examples=20, deadline=None, derandomize=True)
@given(m=st.integers(0, 3000), n=st.integers(0, 3000), seed=st.integers(0, 99))
def test_the_score_is_the_closed_form_in_the_offset(m, n, seed):
    q, k = randn(2, 8, seed=seed)
    expected = by_equation_tables.xpos_score(q.tolist(), k.tolist(), m, n, by_equation.geometric(8))
    # The factors of the fastest pair are the largest term, and cancel in the product.
    assert_close(score(q, k, m, n), expected, tolerance=1e-10)


@LAYOUTS
def test_scores_depend_only_on_the_offset(layout):
    q, k = randn(2, 16)
    for m, n in ((5, 3), (600, 20)):
        worst = properties.relativity(
            lambda q, k, m, n: score(q, k, m, n, layout=layout), q, k, m=m, n=n, shifts=[1, 100, 5000]
        )
        assert worst < 1e-11


@LAYOUTS
@pytest.mark.parametrize("centre", [1, 32, -100])
def test_a_common_centre_cancels_in_the_scores(layout, centre):
    q, k, at = *randn(2, 64, 16), torch.arange(64)
    scores, moved = (
        attention.scores(
            turned(q, at, layout=layout, centre=c), turned(k, at, key=True, layout=layout, centre=c)
        )
        for c in (0, centre)
    )
    assert_close(moved, scores)


def test_two_centres_leave_a_factor_in_every_pair():
    q, k, at = *randn(2, 5, 8), torch.arange(5)
    apart = turned(q, at, centre=100) * turned(k, at, key=True, centre=20)
    pairs = (turned(q, at) * turned(k, at, key=True)).unflatten(-1, (4, 2))
    factors = torch.tensor(by_equation_tables.zeta(8), dtype=torch.float64) ** (-80 / 512)
    assert_close(apart, (pairs * factors[:, None]).flatten(-2))


@LAYOUTS
def test_without_scales_it_is_rotary(layout):
    x, angles = randn(3, 8), angles_at([0, 4, 9], 8)
    ones = torch.ones_like(angles)
    assert_close(xpos.rotate(x, angles, ones, layout=layout), rotary.rotate(x, angles, layout=layout))


def test_lengths_change_with_position():
    x = torch.ones(2, 8, dtype=torch.float64)
    query, key = turned(x, [0, 512]).norm(dim=-1), turned(x, [0, 512], key=True).norm(dim=-1)
    assert query[1] < query[0]
    assert key[1] > key[0]


def test_the_permutation_carries_interleaved_to_halves():
    x, perm = randn(3, 8), rotary.permutation(8)
    halves = turned(x[:, perm], [0, 7, 600], layout="halves")
    assert_close(halves, turned(x, [0, 7, 600])[:, perm])


@LAYOUTS
def test_a_width_leaves_the_other_features_as_they_are(layout):
    x, angles = randn(2, 3, 10, dtype=torch.float16), angles_at([0, 4, 9], 6)
    scales = xpos.scales(torch.tensor([0, 4, 9]), 6)
    y = xpos.rotate(x, angles, scales, layout=layout, width=6)
    assert torch.equal(y[..., 6:], x[..., 6:])
    assert torch.equal(y[..., :6], xpos.rotate(x[..., :6], angles, scales, layout=layout))


@LAYOUTS
@pytest.mark.parametrize("dtype", EPSILON)
def test_every_dtype_comes_back_rounded_once(layout, dtype):
    at, x = [0, 257, 4000], randn(3, 8, dtype=dtype)
    y, exact = turned(x, at, layout=layout), turned(x.double(), at, layout=layout)
    assert y.dtype == dtype
    once = torch.finfo(dtype).eps / 2 * exact.abs()
    rotation = (1e-15 if dtype == torch.float64 else 4e-7) * x.double().norm(dim=-1, keepdim=True)
    # Below the smallest normal number of half precision, steps no longer shrink.
    assert ((y.double() - exact).abs() <= once + rotation + torch.finfo(dtype).tiny * 1e-3).all()


@pytest.mark.parametrize("dtype, last", [(torch.float16, 4500), (torch.float32, 36_000)])
def test_factors_of_far_keys_overflow_unless_centred(dtype, last):
    at = torch.tensor([last, last + 300])
    fits, overflows = (1 / xpos.scales(at, 8)).to(dtype)
    assert fits.isfinite().all()
    assert not overflows.isfinite().all()
    assert (1 / xpos.scales(at - last, 8)).to(dtype).isfinite().all()


@LAYOUTS
def test_angles_of_their_own_turn_each_row_of_a_batch(layout):
    x, at = randn(2, 3, 4, 8), torch.tensor([[0, 1, 2, 3], [5, 600, 9, 1]])
    scales = xpos.scales(at, 8)
    y = xpos.rotate(x, angles_at(at, 8)[:, None], scales[:, None], layout=layout)
    for batch in range(2):
        assert_close(y[batch], xpos.rotate(x[batch], angles_at(at[batch], 8), scales[batch], layout=layout))


@LAYOUTS
def test_gradients_reach_features_angles_and_scales(layout):
    x, angles, scales = (randn(*shape).requires_grad_() for shape in ((2, 3, 8), (3, 3), (3, 3)))
    assert torch.autograd.gradcheck(
        lambda x, angles, scales: xpos.rotate(x, angles, scales, layout=layout, width=6), (x, angles, scales)
    )


def test_it_compiles_whole_and_flows_without_values(monkeypatch):
    # Dynamo cannot see through the shape checks of the tests.
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    x, at = randn(2, 4, 8), torch.arange(4)
    whole = torch.compile(lambda x: turned(x, at, layout="halves"), backend="eager", fullgraph=True)
    assert_close(whole(x), turned(x, at, layout="halves"))
    ghost = turned(torch.empty(2, 4, 8, device="meta", dtype=torch.bfloat16), at)
    assert (ghost.shape, ghost.dtype, ghost.device.type) == ((2, 4, 8), torch.bfloat16, "meta")


AT, ANGLES, ONES = torch.arange(3), torch.zeros(3, 4), torch.ones(3, 4)


@pytest.mark.parametrize(
    "call, says",
    [
        (lambda: xpos.scales(AT, 7), "even number of features.*dim=7"),
        (lambda: xpos.scales(AT, 0), "even number of features.*dim=0"),
        (lambda: xpos.scales(AT, 8, scale_base=0), "must be positive, not scale_base=0"),
        (lambda: xpos.scales(AT, 8, gamma=0), "must be positive.*gamma=0"),
        (lambda: xpos.scales(AT.half(), 8), "positions in torch.float16"),
        (
            lambda: xpos.rotate(torch.ones(3, 8), ANGLES, ONES[:1], layout="halves"),
            r"\(3, 4\) and scales \(1, 4\)",
        ),
        (lambda: xpos.rotate(torch.ones(3, 8), ANGLES, ONES[:, :1], layout="halves"), r"scales \(3, 1\)"),
        (lambda: xpos.rotate(torch.ones(3, 8), ANGLES, ONES, layout="half"), "not 'half'"),
        (lambda: xpos.rotate(torch.ones(3, 6), ANGLES, ONES, layout="halves"), "3 pairs, not 4"),
        (lambda: xpos.rotate(torch.ones(3, 8).int(), ANGLES, ONES, layout="halves"), "not torch.int32"),
        (lambda: xpos.rotate(torch.ones(3, 8), ANGLES, ONES.int(), layout="halves"), "and torch.int32"),
        (lambda: xpos.rotate(torch.ones(3, 8), ANGLES.int(), ONES, layout="halves"), "and torch.int32"),
    ],
)
def test_bad_input_is_refused_by_name(call, says, monkeypatch):
    # Without the shape checks of the tests, as a user would run it.
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    with pytest.raises(ValueError, match=says):
        call()


def test_the_layout_has_no_default():
    with pytest.raises(TypeError, match="layout"):
        xpos.rotate(torch.ones(3, 8), ANGLES, ONES)

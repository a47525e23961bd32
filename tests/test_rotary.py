import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from posbook import frequencies, rotary
from tests import EPSILON, WORKED, assert_close, by_equation

LAYOUTS = pytest.mark.parametrize("layout", ["interleaved", "halves"])


def randn(*shape, seed=0, dtype=torch.float64):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)


def angles_at(at, dim):
    return frequencies.angles(torch.as_tensor(at), frequencies.geometric(dim))


def turned(x, m, layout):
    x = torch.tensor([x], dtype=torch.float64)
    return rotary.rotate(x, angles_at([m], x.shape[-1]), layout=layout)[0]


@LAYOUTS
@settings(max_examples=20, deadline=None, derandomize=True)
@given(
    at=st.lists(st.integers(0, 1_000_000), min_size=1, max_size=4),
    pairs=st.integers(1, 6),
    seed=st.integers(0, 99),
)
def test_the_rotation_is_the_equation(layout, at, pairs, seed):
    x = randn(len(at), 2 * pairs, seed=seed)
    theta = by_equation.geometric(2 * pairs)
    expected = [by_equation.rotate(row, m, theta, layout) for row, m in zip(x.tolist(), at, strict=True)]
    assert_close(rotary.rotate(x, angles_at(at, 2 * pairs), layout=layout), expected)


@pytest.mark.parametrize(
    "x, m, layout, expected",
    [
        ([1, 0, 1, 0], 1, "interleaved", [0.54030231, 0.84147098, 0.99995, 0.00999983]),
        ([1, 2, 3, 4], 3, "interleaved", [-1.27223251, -1.83886499, 2.8786681, 4.08818664]),
        ([1, 0, 1, 0], 1, "halves", [-0.30116868, 0, 1.38177329, 0]),
        ([1, 2, 3, 4], 3, "halves", [-1.41335252, 1.87911807, -2.82885748, 4.05819114]),
        (
            range(1, 9),
            3,
            "interleaved",
            [-1.272233, -1.838865, 1.683929, 4.707907, 4.817777, 6.147278, 6.975969, 8.020964],
        ),
        (
            range(1, 9),
            3,
            "halves",
            [-1.695593, 0.137552, 2.788682, 3.975982, -4.808842, 6.323059, 7.086837, 8.011964],
        ),
    ],
)
def test_the_rotation_agrees_with_the_worked_examples(x, m, layout, expected):
    digits = 1e-8 if len(x) == 4 else 1e-6
    assert_close(turned(list(x), m, layout), expected, tolerance=digits)


@pytest.mark.parametrize(
    "m, n, layout, expected",
    [
        (1, 3, "interleaved", 0.6846636630),
        (0, 2, "interleaved", 0.6846636630),
        (100, 102, "interleaved", 0.6846636630),
        (3, 1, "interleaved", 4.4818427039),
        (1, 3, "halves", -3.4831822),
    ],
)
def test_the_score_agrees_with_the_worked_examples(m, n, layout, expected):
    score = turned([1, 0, 1, 0], m, layout) @ turned([1, 2, 3, 4], n, layout)
    assert score.item() == pytest.approx(expected, abs=1e-8)


@settings(max_examples=20, deadline=None, derandomize=True)
@given(m=st.integers(0, 5000), n=st.integers(0, 5000), seed=st.integers(0, 99))
def test_the_score_is_the_closed_form_in_the_offset(m, n, seed):
    q, k = randn(2, 8, seed=seed).tolist()
    score = turned(q, m, "interleaved") @ turned(k, n, "interleaved")
    assert_close(score, by_equation.rotary_score(q, k, m, n, by_equation.geometric(8)), tolerance=1e-11)


@LAYOUTS
def test_scores_depend_only_on_the_offset(layout):
    q, k = randn(2, 5, 16)
    at = torch.arange(5)
    scores = [
        rotary.rotate(q, angles_at(at + s, 16), layout=layout)
        @ rotary.rotate(k, angles_at(at + s, 16), layout=layout).T
        for s in (0, 1, 777)
    ]
    assert_close(scores[1], scores[0], tolerance=1e-11)
    assert_close(scores[2], scores[0], tolerance=1e-11)


def test_a_vector_of_ones_meets_itself_as_the_mean_cosine():
    ones = torch.ones(1, 128, dtype=torch.float64)
    for offset, expected in WORKED["rotary_mean_cosine_dim_128"].items():
        score = rotary.rotate(ones, angles_at([int(offset)], 128), layout="halves") @ ones.T
        assert_close(score.flatten() / 128, [expected])


@LAYOUTS
def test_position_zero_stays_and_lengths_are_kept(layout):
    x = randn(3, 8)
    y = rotary.rotate(x, angles_at([0, 5, 100_000], 8), layout=layout)
    assert_close(y[0], x[0])
    assert_close(y.norm(dim=-1), x.norm(dim=-1))


@LAYOUTS
def test_the_opposite_angles_undo_a_rotation(layout):
    x, angles = randn(3, 8), angles_at([1, 2, 3], 8)
    assert_close(rotary.rotate(rotary.rotate(x, angles, layout=layout), -angles, layout=layout), x)


@pytest.mark.parametrize("dim", [2, 4, 8, 64])
def test_the_permutation_carries_interleaved_to_halves(dim):
    x, angles, perm = randn(3, dim), angles_at([0, 1, 7], dim), rotary.permutation(dim)
    assert perm.tolist() == [*range(0, dim, 2), *range(1, dim, 2)]
    interleaved = rotary.rotate(x, angles, layout="interleaved")
    assert_close(rotary.rotate(x[..., perm], angles, layout="halves"), interleaved[..., perm])
    assert torch.equal(x[..., perm][..., perm.argsort()], x)


@LAYOUTS
def test_a_width_leaves_the_other_features_as_they_are(layout):
    x, angles = randn(2, 3, 10, dtype=torch.float16), angles_at([0, 4, 9], 6)
    y = rotary.rotate(x, angles, layout=layout, width=6)
    assert torch.equal(y[..., 6:], x[..., 6:])
    assert torch.equal(y[..., :6], rotary.rotate(x[..., :6], angles, layout=layout))


def test_a_partial_rotation_agrees_with_the_worked_example():
    x = torch.tensor([[1.0, 2.0, 3.0, 4.0]], dtype=torch.float64)
    y = rotary.rotate(x, angles_at([3], 2), layout="interleaved", width=2)
    assert_close(y, [[-1.27223251, -1.83886499, 3, 4]], tolerance=1e-8)


@LAYOUTS
def test_shared_angles_turn_every_batch_and_head_alike(layout):
    x, angles = randn(2, 3, 4, 8), angles_at(range(4), 8)
    y = rotary.rotate(x, angles, layout=layout)
    for batch in range(2):
        for head in range(3):
            assert_close(y[batch, head], rotary.rotate(x[batch, head], angles, layout=layout))


@LAYOUTS
def test_angles_of_their_own_turn_each_row_of_a_batch(layout):
    x = randn(2, 3, 4, 8)
    angles = torch.stack((angles_at(range(4), 8), angles_at([5, 6, 9, 1], 8)))
    y = rotary.rotate(x, angles[:, None], layout=layout)
    for batch in range(2):
        assert_close(y[batch], rotary.rotate(x[batch], angles[batch], layout=layout))


@LAYOUTS
@pytest.mark.parametrize("dtype", EPSILON)
def test_every_dtype_comes_back_rounded_once(layout, dtype):
    at = [0, 257, 100_000, 131_071]
    x = randn(4, 8, dtype=dtype)
    y = rotary.rotate(x, angles_at(at, 8), layout=layout)
    assert y.dtype == dtype
    exact = rotary.rotate(x.double(), angles_at(at, 8), layout=layout)
    # Rounded once, to the nearest: half a unit in the last place, besides the rounding of the rotation.
    once = torch.finfo(dtype).eps / 2 * exact.abs()
    rotation = (1e-15 if dtype == torch.float64 else 2e-7) * x.double().norm(dim=-1, keepdim=True)
    assert ((y.double() - exact).abs() <= once + rotation).all()


def test_neighbours_beyond_256_stay_apart_in_bfloat16():
    x = torch.ones(2, 2, dtype=torch.bfloat16)
    y = rotary.rotate(x, angles_at([256, 257], 2), layout="halves")
    assert not torch.equal(y[0], y[1])


@LAYOUTS
def test_gradients_reach_features_and_angles(layout):
    x, angles = randn(2, 3, 8).requires_grad_(), randn(3, 3, seed=1).requires_grad_()
    assert torch.autograd.gradcheck(
        lambda x, angles: rotary.rotate(x, angles, layout=layout, width=6), (x, angles)
    )


@LAYOUTS
def test_shapes_flow_without_values(layout):
    x = torch.empty(2, 3, 4, 8, device="meta", dtype=torch.bfloat16)
    y = rotary.rotate(x, angles_at(range(4), 8), layout=layout)
    assert (y.shape, y.dtype, y.device.type) == (x.shape, x.dtype, "meta")
    assert rotary.rotate(torch.empty(2, 0, 8), torch.empty(0, 4), layout=layout).shape == (2, 0, 8)


@LAYOUTS
def test_it_compiles_whole_and_maps_over_batches(layout, monkeypatch):
    import jaxtyping

    # Dynamo cannot see through the shape checks of the tests.
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    x, angles = randn(2, 3, 4, 8), angles_at(range(4), 8)
    expected = rotary.rotate(x, angles, layout=layout)
    turn = torch.compile(lambda x: rotary.rotate(x, angles, layout=layout), backend="eager", fullgraph=True)
    assert_close(turn(x), expected)
    assert_close(torch.vmap(lambda x: rotary.rotate(x, angles, layout=layout))(x), expected)


@pytest.mark.parametrize(
    "x, angles, options, says",
    [
        ((3, 7), (3, 3), {}, "even number of features.*dim=7.*width=7"),
        ((3, 8), (3, 4), {"layout": "half"}, "'interleaved' or 'halves', not 'half'"),
        ((3, 8), (3, 3), {}, "8 features are 4 pairs, not 3"),
        ((3, 8), (3, 4), {"width": 6}, "6 features are 3 pairs, not 4"),
        ((3, 8), (3, 2), {"width": 5}, "even.*width=5"),
        ((3, 8), (3, 5), {"width": 10}, "between 2 and dim=8.*width=10"),
        ((3, 8), (3, 0), {"width": 0}, "between 2 and dim=8.*width=0"),
        ((2, 5, 3, 8), (2, 3, 4), {}, r"rank of x.*\(2, 5, 3, 8\).*\(2, 3, 4\)"),
        ((3, 3, 3, 8), (3, 3, 4), {}, "rank of x"),
        ((2, 3, 8), (4,), {}, "rank of x"),
        ((3, 8), (2, 3, 4), {}, "rank of x"),
        ((2, 3, 8), (5, 4), {}, "one row of angles for each position"),
        ((2, 3, 8), (1, 4), {}, "one row of angles for each position"),
        ((2, 5, 3, 8), (3, 1, 3, 4), {}, "leading axis.*1 or equal"),
        ((8,), (4,), {}, r"x must be \(\.\.\., seq, dim\)"),
    ],
)
def test_a_bad_shape_is_refused_by_name(x, angles, options, says):
    with pytest.raises(ValueError, match=says):
        rotary.rotate(torch.ones(x), torch.ones(angles), **{"layout": "halves", **options})


@pytest.mark.parametrize("dtype", [torch.int64, torch.complex64])
def test_only_real_numbers_turn(dtype):
    with pytest.raises(ValueError, match=f"floating point, not {dtype}"):
        rotary.rotate(torch.ones(3, 8, dtype=dtype), torch.ones(3, 4), layout="halves")


def test_the_layout_has_no_default():
    with pytest.raises(TypeError, match="layout"):
        rotary.rotate(torch.ones(3, 8), torch.ones(3, 4))


def test_an_odd_number_of_features_has_no_permutation():
    with pytest.raises(ValueError, match="dim=5"):
        rotary.permutation(5)


# More rows than a block takes, so that a plain tensor is turned in several.
ROWS, WIDE = 6000, 104


@LAYOUTS
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("width", [WIDE, 26])
def test_a_large_tensor_is_turned_in_blocks_as_by_the_formula(layout, dtype, width):
    x, angles = randn(2, ROWS, WIDE, dtype=dtype), angles_at(range(ROWS), width)
    in_blocks = rotary.rotate(x, angles, layout=layout, width=width)
    # What needs a gradient is left to the formula.
    by_formula = rotary.rotate(x.clone().requires_grad_(), angles, layout=layout, width=width)
    assert in_blocks.dtype == dtype
    assert torch.equal(in_blocks[..., width:], x[..., width:])
    assert_close(in_blocks, by_formula.detach().double())


@LAYOUTS
def test_blocks_follow_strides_and_angles_of_their_own(layout):
    x = randn(2, ROWS, 3, WIDE).transpose(1, 2)
    angles = angles_at(torch.tensor([[0], [500]]) + torch.arange(ROWS), WIDE)[:, None]
    in_blocks, some = rotary.rotate(x, angles, layout=layout), slice(5000, 5100)
    rows = [rotary.rotate(x[row, :, some], angles[row, :, some], layout=layout) for row in range(2)]
    assert_close(in_blocks[:, :, some], torch.stack(rows))


def test_a_large_tensor_that_needs_a_gradient_gets_one():
    x = randn(2, ROWS, WIDE).requires_grad_()
    rotary.rotate(x, angles_at(range(ROWS), WIDE), layout="halves").square().sum().backward()
    assert_close(x.grad, 2 * x.detach())  # a rotation keeps lengths

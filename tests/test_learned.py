import jaxtyping
import pytest
import torch
from torch.nn.functional import interpolate

from posbook import learned
from tests import EPSILON, assert_close, by_equation_tables

SIZES = pytest.mark.parametrize(
    "rows, length", [(4, 7), (7, 4), (1, 5), (5, 1), (1, 1), (6, 6), (2, 64), (16, 3)]
)
ALIGNED = pytest.mark.parametrize("align_corners", [False, True])


def randn(*shape, dtype=torch.float64):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64).to(dtype)


def test_a_position_is_a_row():
    table = randn(6, 3)
    at = torch.tensor([[0, 5], [3, 3]])
    expected = [[table[0].tolist(), table[5].tolist()], [table[3].tolist()] * 2]
    assert_close(learned.lookup(table, at), expected)


@pytest.mark.parametrize("offset", [0, 1, 2])
def test_a_table_may_begin_later(offset):
    table = randn(6, 3)
    usable = 6 - offset
    assert torch.equal(learned.lookup(table, torch.arange(usable), offset=offset), table[offset:])
    with pytest.raises(ValueError, match=f"row {offset}, .* has rows 0 to {usable - 1}, not {usable}"):
        learned.lookup(table, torch.tensor([usable]), offset=offset)


def test_no_offset_makes_a_negative_position_a_row():
    with pytest.raises(ValueError, match="rows 0 to 3, not -1"):
        learned.lookup(randn(6, 3), torch.tensor([0, -1]), offset=2)


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.int32, torch.int64])
def test_integers_of_every_kind_are_positions(dtype):
    table = randn(260, 2)
    at = torch.tensor([1, 0, 1, 127], dtype=dtype)
    assert torch.equal(learned.lookup(table, at, offset=130), table[[131, 130, 131, 257]])


def test_only_rows_that_were_looked_up_learn():
    table = randn(5, 2).requires_grad_()
    learned.lookup(table, torch.tensor([1, 1, 3])).sum().backward()
    assert table.grad[:, 0].tolist() == [0, 2, 0, 1, 0]


@SIZES
@ALIGNED
def test_a_resampled_table_is_the_equation(rows, length, align_corners):
    table = randn(rows, 3)
    expected = [by_equation_tables.resample(column, length, align_corners) for column in table.T.tolist()]
    assert_close(learned.resample(table, length, align_corners=align_corners).T, expected)


@SIZES
@ALIGNED
def test_a_resampled_table_is_torchs(rows, length, align_corners):
    table = randn(rows, 3)
    expected = interpolate(table.T[None], size=length, mode="linear", align_corners=align_corners)[0].T
    assert_close(learned.resample(table, length, align_corners=align_corners), expected)


@pytest.mark.parametrize("old, new", [((3, 4), (6, 5)), ((5, 3), (2, 9)), ((1, 4), (3, 4)), ((4, 4), (1, 1))])
@pytest.mark.parametrize("mode", ["bicubic", "bilinear"])
@ALIGNED
def test_a_resampled_grid_is_torchs_behind_its_extra_rows(old, new, mode, align_corners):
    table = randn(2 + old[0] * old[1], 3)
    image = table[2:].T.unflatten(-1, old)[None]
    expected = interpolate(image, size=new, mode=mode, align_corners=align_corners)[0].flatten(1).T
    resampled = learned.resample_grid(
        table, old=old, new=new, extra=2, mode=mode, align_corners=align_corners
    )
    assert torch.equal(resampled[:2], table[:2])
    assert_close(resampled[2:], expected)


def test_a_grid_is_resampled_as_by_vit_unless_told_otherwise():
    table, sizes = randn(12, 3), {"old": (3, 4), "new": (5, 5)}
    as_vit = learned.resample_grid(table, **sizes, extra=0, mode="bicubic", align_corners=False)
    assert torch.equal(learned.resample_grid(table, **sizes), as_vit)


@ALIGNED
def test_a_bilinear_grid_is_the_equation(align_corners):
    table = randn(12, 1)
    expected = by_equation_tables.resample_grid(table.view(3, 4).tolist(), (5, 7), align_corners)
    resampled = learned.resample_grid(
        table, old=(3, 4), new=(5, 7), mode="bilinear", align_corners=align_corners
    )
    assert_close(resampled.view(5, 7), expected)


@pytest.mark.parametrize("mode", ["bicubic", "bilinear"])
@ALIGNED
def test_the_same_size_changes_nothing(mode, align_corners):
    table = randn(13, 3)
    same = learned.resample_grid(
        table, old=(3, 4), new=(3, 4), extra=1, mode=mode, align_corners=align_corners
    )
    assert_close(same, table)
    assert_close(learned.resample(table, 13, align_corners=align_corners), table)


def test_aligned_corners_keep_the_end_rows_and_cells_do_not():
    table = torch.tensor([[0.0], [1.0], [4.0]])
    assert learned.resample(table, 5, align_corners=True).flatten().tolist() == [0, 0.5, 1, 2.5, 4]
    # Halved in cells, the first new row is midway between the first two old ones.
    assert learned.resample(table[:2], 1).item() == 0.5


@pytest.mark.parametrize("dtype", EPSILON)
def test_every_dtype_comes_back_rounded_once(dtype):
    table = randn(9, 3, dtype=dtype)
    for call in (
        lambda table: learned.resample(table, 14),
        lambda table: learned.resample_grid(table, old=(3, 3), new=(4, 5)),
    ):
        assert call(table).dtype == dtype
        assert torch.equal(call(table), call(table.double()).to(dtype))


def test_gradients_reach_every_row():
    table = randn(5, 2).requires_grad_()
    assert torch.autograd.gradcheck(lambda table: learned.resample(table, 7), table)
    assert torch.autograd.gradcheck(
        lambda table: learned.resample_grid(table, old=(2, 2), new=(3, 3), extra=1), table
    )


def test_shapes_flow_without_values_and_compile_whole(monkeypatch):
    table = torch.empty(5, 2, device="meta")
    assert learned.lookup(table, torch.tensor([4, 9]).to("meta")).shape == (2, 2)
    # Dynamo cannot see through the shape checks of the tests.
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    table, at = randn(5, 2), torch.tensor([0, 2])
    look = torch.compile(lambda at: learned.lookup(table, at, offset=1), backend="eager", fullgraph=True)
    assert_close(look(at), table[[1, 3]])
    stretch = torch.compile(lambda t: learned.resample(t, 8), backend="eager", fullgraph=True)
    assert_close(stretch(table), learned.resample(table, 8))


@pytest.mark.parametrize(
    "call, says",
    [
        (lambda t: learned.lookup(t, torch.tensor([5])), "the table of positions has rows 0 to 4, not 5"),
        (lambda t: learned.lookup(t, torch.tensor([0]), offset=5), "rows, 0 to 4, not 5"),
        (lambda t: learned.lookup(t, torch.tensor([0]), offset=-1), "rows, 0 to 4, not -1"),
        (lambda t: learned.lookup(t, torch.tensor([0.0])), "integers, not torch.float32"),
        (lambda t: learned.lookup(t, torch.tensor([True, False])), "integers, not torch.bool"),
        (lambda t: learned.lookup(t[None], torch.tensor([0])), r"\(rows, dim\), not \(1, 5, 2\)"),
        (lambda t: learned.resample(t, 0), "at least one row, not length=0"),
        (lambda t: learned.resample(t[:, 0], 3), r"\(rows, dim\), not \(5,\)"),
        (lambda t: learned.resample(t[:0], 3), r"\(rows, dim\), not \(0, 2\)"),
        (lambda t: learned.resample_grid(t, old=(2, 2), new=(3, 3)), "2 × 2 patches are 4 rows, .* has 5"),
        (lambda t: learned.resample_grid(t, old=(2, 2), new=(3, 3), extra=2), "2 extra .* 6 rows, .* has 5"),
        (lambda t: learned.resample_grid(t, old=(2, 2), new=(0, 3), extra=1), r"new=\(0, 3\)"),
        (lambda t: learned.resample_grid(t, old=(2, 3), new=(3, 3), extra=-1), "extra=-1"),
        (
            lambda t: learned.resample_grid(t, old=(5, 1), new=(3, 3), mode="linear"),
            "'bicubic' or 'bilinear', not 'linear'",
        ),
    ],
)
def test_bad_input_is_refused_by_name(call, says, monkeypatch):
    # Without the shape checks of the tests, as a user would run it.
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    with pytest.raises(ValueError, match=says):
        call(randn(5, 2))

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from posbook import positions
from tests import by_equation

few = settings(max_examples=25, deadline=None, derandomize=True)
places = st.lists(st.integers(-(10**6), 10**6), min_size=1, max_size=6)


@few
@given(places, places)
def test_an_offset_is_the_key_minus_the_query(queries, keys):
    offsets = positions.offsets(queries=torch.tensor(queries), keys=torch.tensor(keys))
    assert offsets.tolist() == [[n - m for n in keys] for m in queries]


def test_the_past_is_negative_for_unsigned_positions_too():
    at = torch.arange(3, dtype=torch.uint8)
    assert positions.offsets(queries=at, keys=at)[2].tolist() == [-2, -1, 0]


def test_offsets_of_narrow_integers_do_not_wrap_round():
    at = torch.tensor([-100, 100], dtype=torch.int8)
    assert positions.offsets(queries=at, keys=at).tolist() == [[0, 200], [-200, 0]]


def test_a_cached_step_is_the_last_row():
    at = torch.arange(6)
    step = positions.offsets(queries=at[5:], keys=at)
    assert torch.equal(step, positions.offsets(queries=at, keys=at)[5:])


def test_each_row_of_a_batch_has_its_own_offsets():
    at = torch.tensor([[0, 1, 2], [5, 7, 9]])
    offsets = positions.offsets(queries=at, keys=at)
    assert offsets[1].tolist() == [[0, 2, 4], [-2, 0, 2], [-4, -2, 0]]
    assert torch.equal(positions.offsets(queries=at, keys=at[0])[0], offsets[0])


@few
@given(st.lists(st.integers(0, 2), min_size=1, max_size=10))
def test_each_packed_document_starts_again_at_zero(documents):
    assert positions.packed(torch.tensor(documents)).tolist() == by_equation.packed(documents)


def test_packing_is_done_row_by_row():
    rows = torch.tensor([[0, 0, 0, 1, 1], [0, 1, 1, 1, 0]])
    assert positions.packed(rows).tolist() == [[0, 1, 2, 0, 1], [0, 0, 1, 2, 0]]


@pytest.mark.parametrize("dtype", [torch.bool, torch.int64, torch.float32])
def test_left_padding_takes_no_positions(dtype):
    real = torch.tensor([[0, 0, 1, 1, 1], [1, 1, 1, 1, 1], [0, 0, 0, 0, 0]]).to(dtype)
    assert positions.left_padded(real).tolist() == [[0, 0, 0, 1, 2], [0, 1, 2, 3, 4], [0, 0, 0, 0, 0]]


@pytest.mark.parametrize(
    "call, says",
    [
        (lambda: positions.left_padded(torch.tensor([1, 1, 0])), "padding must come before"),
        (
            lambda: positions.offsets(queries=torch.arange(3), keys=torch.arange(3).bfloat16()),
            "positions in torch.bfloat16 are rounded",
        ),
        (lambda: positions.left_padded(torch.tensor([True, False])), "padding must come before"),
        (lambda: positions.left_padded(torch.tensor([0, 1, 2])), "True or 1 .* not .*2"),
        (lambda: positions.left_padded(torch.tensor([-torch.inf, 0.0])), "True or 1 .* not .*inf"),
        (lambda: positions.check_rows(torch.tensor([3]), "the table", 3), "the table has rows 0 to 2, not 3"),
        (lambda: positions.check_rows(torch.tensor([[0, -1]]), "the table", 3), "rows 0 to 2, not -1"),
    ],
)
def test_a_bad_row_is_refused_by_name(call, says):
    with pytest.raises(ValueError, match=says):
        call()


def test_values_are_checked_only_where_there_are_values():
    real = torch.tensor([[1, 0], [0, 1]])
    assert positions.left_padded(real.to("meta")).shape == (2, 2)
    assert torch.vmap(positions.left_padded)(real).shape == (2, 2)
    positions.check_rows(torch.tensor([9]).to("meta"), "the table", 3)


def test_a_table_may_have_more_rows_than_a_narrow_index_can_count():
    positions.check_rows(torch.tensor([1, 100], dtype=torch.int8), "a table", 130)

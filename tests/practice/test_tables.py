r"""What is added, to the input or to the scores, is named, and so is the mistake in it."""

import math

import pytest
import torch

from posbook import alibi, axial, frequencies, positions, rotary, shaw, sinusoidal, t5_bias
from posbook.practice import tables

AT = torch.arange(48)


def told(answer, code, severity):
    return "\n".join(f.message for f in answer.findings if (f.code, f.severity) == (code, severity))


def columns(theta, order="interleaved", first=0, scale=1.0):
    """A sinusoid written again, with its columns in some order."""
    angles = (AT + first)[:, None] * theta
    parts = {"sines first": (angles.sin(), angles.cos()), "cosines first": (angles.cos(), angles.sin())}
    if order in parts:
        return scale * torch.cat(parts[order], dim=-1)
    pair = (angles.sin(), angles.cos())
    return scale * torch.stack(pair if order == "interleaved" else pair[::-1], dim=-1).flatten(-2)


def paper(dim):
    return 10_000.0 ** (-torch.arange(0, dim, 2, dtype=torch.float64) / dim)


def to_the_end(dim):
    pairs = dim // 2
    return 10_000.0 ** (-torch.arange(pairs, dtype=torch.float64) / (pairs - 1))


# --- A1, A2 ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dim", [2, 4, 32, 33])
def test_the_papers_table_has_no_finding(dim):
    table = columns(paper(dim))[:, :dim]
    answer = tables.added(lambda x: x + table, dim=dim)
    assert answer.name == "sinusoid, interleaved"
    assert (answer.measured["input_scale"], answer.measured["first"], answer.measured["scale"]) == (1, 0, 1)
    assert answer.findings == ()


ORDERS = ["interleaved", "sines first", "cosines first", "interleaved, cosine before sine"]


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("first, scale", [(0, 1.0), (2, 0.25)])
@pytest.mark.parametrize("theta", [paper(32), to_the_end(32), frequencies.geometric(32, 500.0)])
def test_the_order_of_columns_the_frequencies_the_first_position_and_the_scale_are_found(
    order, first, scale, theta
):
    answer = tables.sinusoid(columns(theta, order, first, scale).float())
    assert answer.name == f"sinusoid, {order}"
    assert (answer.measured["first"], answer.measured["scale"]) == pytest.approx((first, scale), abs=1e-3)
    torch.testing.assert_close(answer.measured["frequencies"], theta, rtol=1e-3, atol=1e-6)


@pytest.mark.parametrize(
    "table, severity, words",
    [
        (columns(to_the_end(32), "sines first"), "note", "tensor2tensor"),
        (columns(paper(32), "sines first"), "note", "sines first: the paper's table interleaves"),
        (columns(frequencies.geometric(32, 500.0)), "warning", "the paper's end at 0.000177828"),
        (columns(paper(32), first=2), "note", "row 0 is position 2"),
        (columns(paper(32), scale=0.5), "note", "multiplied by 0.5"),
        (torch.randn(48, 32, generator=torch.Generator().manual_seed(0)), "note", "no sinusoid"),
    ],
)
def test_what_departs_from_the_paper_is_said(table, severity, words):
    assert words in told(tables.added(lambda x: x + table, dim=32), "A1", severity)


@pytest.mark.parametrize("dim", [2, 3])
def test_a_division_by_no_pairs_is_named(dim):
    answer = tables.added(lambda x: x + math.nan, dim=dim)
    assert "pairs - 1 divides by zero" in told(answer, "A1", "error")


def test_the_scale_of_the_input_is_measured():
    table = columns(paper(16)).float()
    assert tables.added(lambda x: 4 * x + table, dim=16).measured["input_scale"] == 4
    assert tables.added(lambda x: table, dim=16).measured["input_scale"] == 0
    assert "not x plus a table" in told(
        tables.added(lambda x: x.abs().sqrt() * table, dim=16), "A1", "warning"
    )


ROWS = columns(paper(16)).float()


@pytest.mark.parametrize(
    "fn, words",
    [
        (lambda x: x + ROWS[: len(x), None], "their tokens do not: the table is added along the batch"),
        (lambda x: x + ROWS[: len(x), None] + ROWS, "so do their tokens"),
        (lambda x: x + ROWS[x.shape[1] - 1], "every token gets the same vector"),
    ],
)
def test_a_table_along_the_wrong_axis_is_found_out(fn, words):
    assert words in told(tables.added(fn, dim=16), "A2", "error")


@pytest.mark.parametrize("fn, words", [(lambda x: x[..., :2], "shape of x"), (torch.rand_like, "dropout")])
def test_what_adds_no_table_is_refused(fn, words):
    with pytest.raises(ValueError, match=words):
        tables.added(fn, dim=16)


def test_a_table_too_small_to_be_named_is_refused():
    with pytest.raises(ValueError, match=r"3 rows and 2 columns or more, not shape \(2, 8\)"):
        tables.sinusoid(torch.zeros(2, 8))


# --- A3 ----------------------------------------------------------------------------------------------------

LEARNED = torch.randn(514, 4, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("offset, usable", [(0, 514), (2, 512), (4, 510)])
def test_the_first_row_of_a_learned_table_is_found(offset, usable):
    answer = tables.looked_up(lambda at: LEARNED[at + offset], LEARNED)
    assert answer.measured == {"offset": offset, "usable": usable}
    said = f"position 0 reads row {offset}: {usable} of 514 rows are usable"
    assert told(answer, "A3", "note") == (said if offset else "")
    assert told(answer, "A3", "error") == ""


@pytest.mark.parametrize(
    "fn, words",
    [
        (lambda at: LEARNED[at % 514], "position 514 has no row and reads row 0"),
        (lambda at: LEARNED[at.clamp(max=513)], "position 514 has no row and reads row 513"),
        (
            lambda at: LEARNED[at] if at.max() < 513 else LEARNED[600],
            "position 513, of the last row, is refused",
        ),
        (lambda at: LEARNED[2 * at], "not three rows of the table, one after another"),
    ],
)
def test_a_position_without_a_row_must_be_refused(fn, words):
    assert words in told(tables.looked_up(fn, LEARNED), "A3", "error")


# --- A4 ----------------------------------------------------------------------------------------------------


def offsets(queries, keys):
    return positions.offsets(queries=queries, keys=keys)


def linear(slopes):
    return lambda queries, keys: -slopes[:, None, None] * offsets(queries, keys).abs()


@pytest.mark.parametrize("heads", [1, 2, 3, 6, 8, 12, 40])
def test_alibi_is_named_with_and_without_a_mask_and_counted_from_one_end(heads):
    slopes = alibi.slopes(heads)
    assert tables.bias(linear(slopes), heads=heads).findings == ()

    def masked(queries, keys):
        return linear(slopes)(queries, keys).masked_fill(offsets(queries, keys) > 0, -torch.inf)

    answer = tables.bias(masked, heads=heads)
    assert (answer.name, answer.measured["masked"], answer.findings) == ("ALiBi", True, ())
    for end in (0, 159):
        answer = tables.bias(lambda queries, keys, end=end: slopes[:, None, None] * (keys - end), heads=heads)
        assert answer.name == "ALiBi, row-constant"
        assert "only under a causal mask" in told(answer, "A4", "warning")
        assert told(answer, "A4", "error") == ""


EIGHT = 2.0 ** -torch.arange(1, 9, dtype=torch.float64)


@pytest.mark.parametrize(
    "slopes, words",
    [
        (-EIGHT, "sign is reversed"),
        (2 * EIGHT, "the first slope is 1"),
        (EIGHT.flip(0), "another order of heads"),
        (EIGHT * torch.tensor([1, 1, 1, 2, 1, 1, 1, 1]), "head 3 has slope 0.125, ALiBi's is 0.0625"),
        (2.0 ** (-8 * torch.arange(1, 7, dtype=torch.float64) / 6), "by the paper's formula"),
    ],
)
def test_a_mistake_in_the_slopes_is_named(slopes, words):
    assert words in told(tables.bias(linear(slopes), heads=len(slopes)), "A4", "error")


def test_a_bias_that_is_no_distance_ahead_is_said_to_need_a_mask():
    def signed(queries, keys):
        return EIGHT[:, None, None] * offsets(queries, keys)

    assert "only under a causal mask" in told(tables.bias(signed, heads=8), "A4", "note")


def test_a_cached_step_that_forgets_its_position_is_found_out():
    def forgets(queries, keys):
        return linear(EIGHT)(torch.arange(len(queries)), keys)

    assert "gets row 0 of the matrix" in told(tables.bias(forgets, heads=8), "A4", "error")

    def other(queries, keys):
        return linear(EIGHT)(queries - int(len(queries) == 1), keys)

    assert "gets another row" in told(tables.bias(other, heads=8), "A4", "error")


TABLE = torch.randn(32, 3, generator=torch.Generator().manual_seed(0))


def by_bucket(turned=lambda offset: offset, table=TABLE, **options):
    def fn(queries, keys):
        return t5_bias.bias(table, t5_bias.buckets(turned(offsets(queries, keys)), **options))

    return fn


@pytest.mark.parametrize("bidirectional, name", [(True, "T5, bidirectional"), (False, "T5, causal")])
@pytest.mark.parametrize("buckets, far", [(32, 128), (16, 64)])
def test_t5s_buckets_are_named(bidirectional, name, buckets, far):
    fn = by_bucket(bidirectional=bidirectional, buckets=buckets, max_distance=far)
    answer = tables.bias(fn, heads=3, buckets=buckets, max_distance=far, table=TABLE[:buckets])
    assert (answer.name, answer.findings) == (name, ())
    # Of the two halves, the second's bucket of distance 0 is never used.
    assert answer.measured["numbers"] == buckets - bidirectional


def test_t5s_buckets_under_a_mask_are_those_of_the_decoder():
    def masked(queries, keys):
        fn = by_bucket(bidirectional=False)
        return fn(queries, keys).masked_fill(offsets(queries, keys) > 0, -torch.inf)

    answer = tables.bias(masked, heads=3, table=TABLE)
    assert (answer.name, answer.measured["masked"], answer.findings) == ("T5, causal", True, ())


@pytest.mark.parametrize(
    "fn, table, words",
    [
        (by_bucket(torch.neg, bidirectional=False), None, "keys ahead have buckets and the past has one"),
        (by_bucket(torch.neg, bidirectional=True), TABLE, "past and future have each other's buckets"),
        (by_bucket(bidirectional=True), TABLE.flip(0), "their numbers are not those of the table"),
        (by_bucket(lambda o: -o.abs(), bidirectional=False), None, "both directions share"),
        (by_bucket(lambda o: -o.abs(), bidirectional=True), None, "both directions share"),
        (
            by_bucket(table=torch.cat((TABLE, TABLE + 9)), bidirectional=True, buckets=64),
            None,
            "32 buckets: their number is not halved",
        ),
    ],
)
def test_a_mistake_in_t5s_buckets_is_named(fn, table, words):
    assert words in told(tables.bias(fn, heads=3, table=table), "A4", "error")


@pytest.mark.parametrize("clip", [1, 4, 16])
def test_clipped_offsets_are_named(clip):
    table = torch.randn(2 * clip + 1, 2, generator=torch.Generator().manual_seed(0))
    answer = tables.bias(lambda q, k: table[shaw.indices(offsets(q, k), clip)].movedim(-1, 0), heads=2)
    assert (answer.name, answer.measured["clip"]) == ("clipped", clip)


@pytest.mark.parametrize(
    "fn, name, severity, words",
    [
        (lambda q, k: torch.ones(1, len(q), len(k)), "none", "warning", "the same for every offset"),
        (lambda q, k: -(1 + offsets(q, k).abs()).log()[None], "by offset", None, ""),
        (lambda q, k: (q[:, None] * k).double()[None].sin(), "unknown", "note", "more than the offset"),
        (lambda q, k: torch.full((1, len(q), len(k)), math.nan), "unknown", "error", "the past get NaN"),
    ],
)
def test_another_bias_is_told_apart(fn, name, severity, words):
    answer = tables.bias(fn, heads=1)
    assert answer.name == name
    assert words in told(answer, "A4", severity)


def test_a_bias_of_another_shape_is_refused():
    with pytest.raises(ValueError, match=r"\(3, 160, 160\), not \(2, 160, 160\)"):
        tables.bias(lambda q, k: torch.zeros(2, len(q), len(k)), heads=3)


# --- A5, A6 ------------------------------------------------------------------------------------------------


def padded(x):
    return torch.nn.functional.pad(x, (1, 0)).view(x.shape[1] + 1, x.shape[0])


def test_the_relative_shift_is_named_and_needs_a_mask():
    answer = tables.shift(lambda x: padded(x)[1:])
    assert answer.name == "relative shift"
    assert "only under a causal mask" in told(answer, "A5", "note")
    assert tables.shift(lambda x: padded(x)[1:].tril()).findings == ()


@pytest.mark.parametrize(
    "fn, words",
    [
        (lambda x: padded(x)[:-1], "the end of the padded products is dropped"),
        (lambda x: x, "nothing is shifted"),
        (lambda x: x.flip(1), "query 1 gets [12.0, 11.0, 10.0], [11.0, 12.0] are due"),
        (lambda x: x.flip(0), "query 0 gets [20.0, 21.0, 22.0], [2.0] are due"),
    ],
)
def test_another_shift_is_found_out(fn, words):
    assert words in told(tables.shift(fn), "A5", "error")


def test_a_shift_of_another_shape_is_refused():
    with pytest.raises(ValueError, match=r"\(3, 3\), not \(3, 2\)"):
        tables.shift(lambda x: x[:, 1:])


def reading(order, layout="halves"):
    def fn(x, coordinates):
        theta = frequencies.geometric(2 * len(order))
        angles = (coordinates.T.double() @ torch.eye(len(coordinates)).double())[:, order] * theta
        return rotary.rotate(x, angles, layout=layout)

    return fn


@pytest.mark.parametrize("layout", ["halves", "interleaved"])
@pytest.mark.parametrize("sections", [[16, 24, 24], [24, 20, 20], [11, 11, 10]])
def test_the_axis_of_every_pair_is_found(sections, layout):
    for name in ("chunked", "interleaved"):
        if name == "interleaved" and sections == [16, 24, 24]:
            continue
        order = getattr(axial, name)(sections)
        asked = {"sections": sections, "interleaved": name == "interleaved"}
        answer = tables.axes(reading(order, layout), dim=2 * sum(sections), **asked)
        assert (answer.name, answer.measured["axes"], answer.findings) == (name, order, ())


def with_turns_dropped(sections):
    """As transformers interleaves sections that do not fit."""
    order = [0] * sum(sections)
    for axis, section in enumerate(sections[1:], start=1):
        order[axis : 3 * section : 3] = [axis] * len(order[axis : 3 * section : 3])
    return order


@pytest.mark.parametrize(
    "fn, options, words",
    [
        (
            reading(with_turns_dropped([16, 24, 24])),
            {},
            "[16, 24, 24] cannot be interleaved: [22, 21, 21] pairs",
        ),
        (
            reading(axial.chunked([16, 24, 24])),
            {"interleaved": True},
            "chunked, and interleaved is asked for",
        ),
        (reading(axial.chunked([16, 24, 24])[::-1]), {}, "neither one axis after"),
        (reading(axial.chunked([24, 20, 20])), {"sections": [20, 24, 20]}, "read by [24, 20, 20] pairs"),
        (
            lambda x, c: reading([0] * 64)(x, c.sum(0, keepdim=True)),
            {},
            "some pairs turn with several coordinates",
        ),
        (reading(axial.chunked([16, 24, 20])), {"dim": 120}, "60 pairs turn, 64 are in sections"),
    ],
)
def test_an_axis_read_by_the_wrong_pairs_is_named(fn, options, words):
    options = {"dim": 128, "sections": [16, 24, 24], **options}
    assert words in told(tables.axes(fn, **options), "A6", "error")


def test_the_papers_table_of_the_package_is_the_papers():
    table = sinusoidal.encode(frequencies.angles(AT, frequencies.geometric(64)))
    assert tables.sinusoid(table).findings == ()

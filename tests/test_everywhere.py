r"""Every formula of the package, on every size, dtype, memory layout and transformation of torch."""

from functools import partial
from unittest import mock

import jaxtyping
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st

from posbook import (
    alibi,
    attention,
    axial,
    cope,
    fire,
    frequencies,
    kerple,
    learned,
    positions,
    rotary,
    scaling,
    shaw,
    sinusoidal,
    t5_bias,
    transformer_xl,
    xpos,
)
from tests import EPSILON, assert_close, by_equation

WHOLE_NUMBERS = [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64]


def randn(*shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


def rand(*shape):
    return torch.rand(*shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64) + 0.1


def at(*shape):
    return torch.randint(0, 6, shape, generator=torch.Generator().manual_seed(sum(shape)))


def away(*batch, n):
    return positions.offsets(queries=at(*batch, n), keys=at(*batch, n).flip(-1))


def theta(pairs):
    return frequencies.geometric(2 * pairs)


def in_blocks(x, angles, layout):
    with mock.patch.object(rotary, "_BLOCK", 1):
        return rotary.rotate(x, angles, layout=layout)


def network(distances):
    return torch.cat((distances.sin(), distances**2), dim=-1)


def gated(scores):
    return cope.gates(scores, torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device).tril())


def grid(table):
    return learned.resample_grid(table, old=(2, table.shape[0] // 2), new=(3, 2))


# What is called, and its arguments for leading axes b, n tokens and p pairs.
CALLS = {
    "positions.offsets": (
        lambda q, k: positions.offsets(queries=q, keys=k),
        lambda b, n, p: (at(*b, n), at(*b, n).flip(-1)),
    ),
    "positions.packed": (positions.packed, lambda b, n, p: (at(*b, n) // 2,)),
    "positions.left_padded": (
        positions.left_padded,
        lambda b, n, p: ((randn(*b, n) > 0).long().cummax(-1).values,),
    ),
    "frequencies.angles": (frequencies.angles, lambda b, n, p: (at(*b, n), theta(p))),
    "frequencies.wavelengths": (frequencies.wavelengths, lambda b, n, p: (theta(p),)),
    "frequencies.turns": (partial(frequencies.turns, length=99), lambda b, n, p: (theta(p),)),
    "scaling.linear": (partial(scaling.linear, factor=2), lambda b, n, p: (theta(p),)),
    "scaling.ntk": (partial(scaling.ntk, factor=2), lambda b, n, p: (theta(p + 1),)),
    "scaling.llama3": (
        partial(scaling.llama3, factor=2, trained_length=99),
        lambda b, n, p: (theta(p),),
    ),
    "scaling.yarn": (
        partial(scaling.yarn, factor=2, trained_length=99, ramp="turns"),
        lambda b, n, p: (theta(p + 1),),
    ),
    "scaling.longrope": (scaling.longrope, lambda b, n, p: (theta(p), rand(p))),
    "sinusoidal.encode": (sinusoidal.encode, lambda b, n, p: (randn(*b, n, p),)),
    "sinusoidal.shift": (partial(sinusoidal.shift, k=3), lambda b, n, p: (theta(p),)),
    "learned.lookup": (learned.lookup, lambda b, n, p: (randn(6, p), at(*b, n))),
    "learned.resample": (partial(learned.resample, length=4), lambda b, n, p: (randn(n + 1, p),)),
    "learned.resample_grid": (grid, lambda b, n, p: (randn(2 * n + 2, p),)),
    "rotary.rotate interleaved": (
        partial(rotary.rotate, layout="interleaved"),
        lambda b, n, p: (randn(*b, n, 2 * p), randn(n, p)),
    ),
    "rotary.rotate halves": (
        partial(rotary.rotate, layout="halves", width=2),
        lambda b, n, p: (randn(*b, n, p + 1), randn(*b, n, 1)),
    ),
    "rotary.rotate interleaved, in blocks": (
        partial(in_blocks, layout="interleaved"),
        lambda b, n, p: (randn(*b, n, 2 * p), randn(*b, n, p)),
    ),
    "rotary.rotate halves, in blocks": (
        partial(in_blocks, layout="halves"),
        lambda b, n, p: (randn(*b, n, 2 * p), randn(n, p)),
    ),
    "axial.split": (axial.split, lambda b, n, p: (at(*b, n)[..., None] * torch.tensor([1, 2]), theta(p))),
    "xpos.scales": (partial(xpos.scales, dim=6), lambda b, n, p: (at(*b, n),)),
    "xpos.rotate": (
        partial(xpos.rotate, layout="halves"),
        lambda b, n, p: (randn(*b, n, 2 * p), randn(n, p), rand(n, p)),
    ),
    "shaw.indices": (partial(shaw.indices, clip=2), lambda b, n, p: (away(*b, n=n),)),
    "shaw.key_term": (
        lambda q, table, offsets: shaw.key_term(q, table, shaw.indices(offsets, clip=2)),
        lambda b, n, p: (randn(*b, n, p), randn(5, p), away(n=n)),
    ),
    "shaw.value_term": (
        lambda weights, table, offsets: shaw.value_term(weights, table, shaw.indices(offsets, clip=2)),
        lambda b, n, p: (rand(*b, n, n), randn(5, p), away(n=n)),
    ),
    "transformer_xl.encode": (transformer_xl.encode, lambda b, n, p: (randn(*b, n, p),)),
    "transformer_xl.shift": (
        partial(transformer_xl.shift, lowest=-9),
        lambda b, n, p: (randn(*b, n, 20), away(n=n)),
    ),
    "transformer_xl.terms": (
        partial(transformer_xl.terms, lowest=-9),
        lambda b, n, p: (randn(*b, n, p), randn(*b, n, p), randn(20, p), randn(p), randn(p), away(n=n)),
    ),
    "t5_bias.buckets": (partial(t5_bias.buckets, bidirectional=True), lambda b, n, p: (away(*b, n=n),)),
    "t5_bias.bias": (t5_bias.bias, lambda b, n, p: (randn(19, p), away(*b, n=n) + 9)),
    "alibi.bias": (alibi.bias, lambda b, n, p: (rand(p), away(*b, n=n))),
    "kerple.power": (kerple.power, lambda b, n, p: (rand(p), rand(p), away(*b, n=n))),
    "kerple.logarithmic": (kerple.logarithmic, lambda b, n, p: (rand(p), rand(p), away(*b, n=n))),
    "fire.distances": (
        lambda q, k: fire.distances(queries=q, keys=k, c=0.5, threshold=4),
        lambda b, n, p: (at(*b, n), at(*b, n).flip(-1)),
    ),
    "fire.bias": (partial(fire.bias, f=network), lambda b, n, p: (rand(*b, n, n),)),
    "cope.gates": (gated, lambda b, n, p: (randn(*b, n, n),)),
    "cope.positions": (partial(cope.positions, rows=3), lambda b, n, p: (rand(*b, n, n),)),
    "cope.term": (cope.term, lambda b, n, p: (randn(*b, n, p), randn(9, p), rand(*b, n, n))),
    "attention.scores": (attention.scores, lambda b, n, p: (randn(*b, n, p), randn(*b, n, p))),
    "attention.weights": (attention.weights, lambda b, n, p: (randn(*b, n, n + 1),)),
    "attention.output": (attention.output, lambda b, n, p: (rand(*b, n, n), randn(*b, n, p))),
    "attention.attend": (
        lambda q, k, v, bias: attention.attend(q, k, v, bias=bias),
        lambda b, n, p: (randn(*b, n, p), randn(*b, n + 1, p), randn(*b, n + 1, 2), randn(n, n + 1)),
    ),
}
MODULES = sorted({name.split(".")[0] for name in CALLS})
# Phases and what is computed from them are float64, whatever comes in; a count is never less than float32.
IN_FLOAT64 = {"frequencies", "scaling", "sinusoidal"} | {
    "axial",
    "transformer_xl.encode",
    "xpos.scales",
    "fire.distances",
}
IN_FLOAT32 = {"cope.gates"}

SIZES = {
    "b": st.lists(st.integers(1, 3), max_size=2),
    "n": st.integers(0, 4),
    "p": st.integers(1, 3),
}


def batched(inputs, single):
    """Which inputs have the leading axis that those of a single row of the batch lack."""
    return [0 if x.ndim > y.ndim else None for x, y in zip(inputs, single, strict=True)]


def some_calls(which):
    return pytest.mark.parametrize("name", [name for name, (_, make) in CALLS.items() if which(make)])


every_call = some_calls(lambda make: True)
calls_with_floats = some_calls(lambda make: any(x.is_floating_point() for x in make((), 2, 2)))
calls_with_rows = some_calls(lambda make: 0 in batched(make((3,), 2, 2), make((), 2, 2)))
few = settings(max_examples=6, deadline=None, derandomize=True)


@pytest.fixture
def without_shape_checks(monkeypatch):
    # Dynamo and vmap cannot see through the shape checks of the tests.
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)


def assert_same(actual, expected, tolerance=1e-12):
    assert (actual.shape, actual.dtype) == (expected.shape, expected.dtype)
    if actual.is_floating_point():
        finite = expected.isfinite()
        assert torch.equal(actual[~finite], expected[~finite])
        assert_close(actual[finite], expected[finite], tolerance=tolerance)
    else:
        assert torch.equal(actual, expected)


@calls_with_rows
@few
@given(**SIZES)
@example(b=[], n=0, p=1)
@example(b=[2], n=1, p=1)
def test_a_batch_is_its_rows_one_by_one(name, b, n, p):
    f, make = CALLS[name]
    inputs, single = make((3, *b), n, p), make(b, n, p)
    axes = batched(inputs, single)
    rows = [
        f(*(x if axis is None else x[row] for x, axis in zip(inputs, axes, strict=True))) for row in range(3)
    ]
    assert_same(f(*inputs), torch.stack(rows))


def scattered(x):
    """The same numbers, each with a stranger behind it and the last two axes swapped in memory."""
    if x.ndim > 1:
        x = x.mT.contiguous().mT
    return torch.stack((x, torch.full_like(x, 77)), dim=-1)[..., 0]


@every_call
@few
@given(**SIZES)
@example(b=[], n=0, p=1)
@example(b=[2], n=1, p=1)
def test_memory_does_not_matter_and_inputs_stay(name, b, n, p):
    f, make = CALLS[name]
    inputs = make((2, *b), n, p)
    before = [x.clone() for x in inputs]
    expected = f(*inputs)
    assert all(torch.equal(x, y) for x, y in zip(inputs, before, strict=True))
    assert_same(f(*map(scattered, inputs)), expected)
    shared = [
        x[:1].expand(x.shape) if axis == 0 else x
        for x, axis in zip(inputs, batched(inputs, make(b, n, p)), strict=True)
    ]
    assert_same(f(*shared), f(*(x.clone() for x in shared)))


@calls_with_floats
@pytest.mark.parametrize("dtype", EPSILON)
def test_every_dtype_is_computed_to_its_own_precision(name, dtype):
    f, make = CALLS[name]
    inputs = make((2,), 3, 2)
    inputs = [x.to(dtype) if x.is_floating_point() else x for x in inputs]
    exact = f(*(x.double() if x.is_floating_point() else x for x in inputs))
    result = f(*inputs)
    if {name, name.split(".")[0]} & IN_FLOAT64:
        assert result.dtype == torch.float64
    else:
        assert result.dtype == (torch.promote_types(dtype, torch.float32) if name in IN_FLOAT32 else dtype)
    assert_close(result, exact, tolerance=4 * EPSILON[dtype])


@calls_with_floats
def test_gradients_are_those_of_the_formula(name):
    f, make = CALLS[name]
    inputs = [x.requires_grad_() if x.is_floating_point() else x for x in make((2,), 2, 2)]
    assert torch.autograd.gradcheck(f, inputs)


@every_call
def test_shapes_flow_without_values(name):
    f, make = CALLS[name]
    inputs = make((2,), 3, 2)
    result = f(*(x.to("meta") for x in inputs))
    expected = f(*inputs)
    assert (result.shape, result.dtype, result.device.type) == (expected.shape, expected.dtype, "meta")


@calls_with_rows
def test_rows_of_a_batch_can_be_mapped(name, without_shape_checks):
    f, make = CALLS[name]
    inputs = make((3,), 4, 2)
    axes = batched(inputs, make((), 4, 2))
    assert_same(torch.vmap(f, in_dims=tuple(axes))(*inputs), f(*inputs))


@pytest.mark.parametrize("module", MODULES)
def test_it_compiles_whole(module, without_shape_checks):
    calls = [call for name, call in CALLS.items() if name.split(".")[0] == module and "blocks" not in name]
    inputs = [make((2,), 3, 2) for _, make in calls]

    def all_of_them(inputs):
        return [f(*given) for (f, _), given in zip(calls, inputs, strict=True)]

    torch.compiler.reset()
    compiled = torch.compile(all_of_them, backend="eager", fullgraph=True)
    for result, expected in zip(compiled(inputs), all_of_them(inputs), strict=True):
        assert_same(result, expected)


HUGE = st.integers(-(2**53), 2**53)


@few
@given(
    m=st.lists(HUGE, min_size=1, max_size=3),
    pairs=st.integers(1, 3),
    layout=st.sampled_from(["halves", "interleaved"]),
)
def test_positions_may_be_negative_and_huge_for_rotations_and_waves(m, pairs, layout):
    angles = frequencies.angles(torch.tensor(m), theta(pairs))
    waves = [by_equation.sinusoid(p, 2 * pairs) for p in m]
    assert_close(sinusoidal.encode(angles), waves)
    x = randn(len(m), 2 * pairs)
    turned = [
        by_equation.rotate(row, p, by_equation.geometric(2 * pairs), layout)
        for row, p in zip(x.tolist(), m, strict=True)
    ]
    assert_close(rotary.rotate(x, angles, layout=layout), turned)


@few
@given(m=HUGE, n=HUGE)
def test_positions_may_be_negative_and_huge_for_biases(m, n):
    offset = positions.offsets(queries=torch.tensor([m]), keys=torch.tensor([n]))
    assert offset.tolist() == [[n - m]]
    assert alibi.bias(alibi.slopes(8), offset).flatten().tolist() == [
        -(2.0**-h) * abs(n - m) for h in range(1, 9)
    ]
    clipped = max(-4, min(4, n - m))
    assert shaw.indices(offset, clip=4).tolist() == [[clipped + 4]]
    for both in (True, False):
        bucket = by_equation.t5_bucket(n - m, bidirectional=both, buckets=32, max_distance=128)
        assert t5_bias.buckets(offset, bidirectional=both).tolist() == [[bucket]]
    one = torch.ones(1, dtype=torch.float64)
    assert_close(kerple.power(one, one, offset), [[[-abs(n - m)]]])


@pytest.mark.parametrize("dtype", WHOLE_NUMBERS)
def test_positions_may_be_whole_numbers_of_any_kind(dtype):
    long, short = torch.tensor([0, 5, 127]), torch.tensor([0, 5, 127], dtype=dtype)
    offsets = positions.offsets(queries=short, keys=short)
    expected = positions.offsets(queries=long, keys=long)
    assert torch.equal(offsets.long(), expected)
    one = torch.ones(1, dtype=torch.float64)
    for encode in (
        partial(alibi.bias, alibi.slopes(8)),
        partial(kerple.power, one, one),
        partial(kerple.logarithmic, one, one),
        partial(shaw.indices, clip=3),
        partial(t5_bias.buckets, bidirectional=True),
    ):
        assert torch.equal(encode(offsets).double(), encode(expected).double())
    assert torch.equal(frequencies.angles(short, theta(2)), frequencies.angles(long, theta(2)))
    assert torch.equal(xpos.scales(short, 4), xpos.scales(long, 4))
    assert torch.equal(learned.lookup(randn(128, 2), short), learned.lookup(randn(128, 2), long))
    far = partial(fire.distances, c=1.0, threshold=9)
    assert torch.equal(far(queries=short, keys=short), far(queries=long, keys=long))


@few
@given(dim=st.integers(-2, 9))
def test_features_that_make_no_pairs_are_refused(dim):
    calls = [
        lambda: frequencies.geometric(dim),
        lambda: rotary.permutation(dim),
        lambda: xpos.scales(torch.arange(2), dim),
        lambda: rotary.rotate(randn(2, max(dim, 0)), randn(2, max(dim, 0) // 2), layout="halves"),
    ]
    for call in calls:
        if dim >= 2 and dim % 2 == 0:
            call()
        else:
            with pytest.raises(ValueError, match="even"):
                call()

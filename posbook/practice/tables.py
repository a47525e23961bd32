r"""Look at what is added, to the input or to the scores, and say which encoding it is.

What a rotation shows to one-hot vectors, a table shows to zeros: the phase of each pair of columns,
:math:`\operatorname{atan2}(s_p, c_p) = (p + o)\,\theta_i`, gives frequencies, the first position and the
order of columns. A bias on scores is a function of the offset, or of the key's place alone. ``A1`` to ``A6``
of the checklist::

    added      what is added to the input: which sinusoid, along which axis           A1, A2
    looked_up  which row of a learned table each position reads                        A3
    bias       what is added to the scores: ALiBi, T5's buckets, clipped offsets       A4
    shift      Transformer-XL's relative shift                                         A5
    axes       which coordinate each pair reads in M-RoPE                              A6
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from posbook import alibi, axial, positions, t5_bias
from posbook.practice.findings import Finding
from posbook.practice.probe import REFUSALS, SAME, SEEN

TOKENS = 160  # more than the 128 from which T5's last bucket holds every distance
NEAR = 1e-4  # a phase in radians, of a float32 table


@dataclass(frozen=True)
class Answer:
    r"""Which encoding it is, what was measured of it, and what a reader should know.

    >>> Answer("ALiBi", {"masked": False}).name
    'ALiBi'
    """

    name: str
    measured: Mapping[str, Any]
    findings: tuple[Finding, ...] = ()


# --- added to the input ------------------------------------------------------------------------------------


@torch.no_grad()
def added(fn: Callable[[Tensor], Tensor], *, dim: int, length: int = 48) -> Answer:
    r"""What ``fn(x)`` adds to x of shape (batch, length, dim), and along which axis.

    ``measured`` has ``input_scale``, by which x itself is multiplied (0 where only the table comes back), and
    what :func:`sinusoid` measures. Raises ValueError for another shape, and where two calls differ.

    >>> from posbook import frequencies, sinusoidal
    >>> at = torch.arange(48)
    >>> table = sinusoidal.encode(frequencies.angles(at, frequencies.geometric(8)))
    >>> added(lambda x: x + table[: x.shape[1]], dim=8).name
    'sinusoid, interleaved'
    >>> print(*added(lambda x: x + table[: x.shape[0], None], dim=8).findings)
    A2 error: sentences of a batch differ and their tokens do not: the table is added along the batch
    """
    zeros = torch.zeros(2, length, dim)
    y, again, ones = fn(zeros), fn(zeros), fn(zeros + 1)
    if y.shape not in (zeros.shape, zeros[:1].shape, zeros[0].shape):
        raise ValueError(f"fn(x) must return the shape of x, {tuple(zeros.shape)}, not {tuple(y.shape)}")
    if not torch.equal(y.nan_to_num(), again.nan_to_num()):
        raise ValueError("two calls of fn(x) differ: is there dropout? Say module.eval()")
    if not torch.isfinite(y).all():
        why = ": pairs - 1 divides by zero" if dim < 4 else ""
        return Answer("unknown", {}, (Finding("A1", "error", f"NaN or infinity at width {dim}{why}"),))
    y, ones = y.double().expand(zeros.shape), ones.double().expand(zeros.shape)
    scale = (ones - y).mean().item()
    measured = {"input_scale": round(scale, 6)}
    if not torch.allclose(ones - y, torch.tensor(scale, dtype=y.dtype), rtol=0, atol=1e-5):
        return Answer("unknown", {}, (Finding("A1", "warning", "what comes back is not x plus a table"),))
    across, along = (torch.allclose(*pair, rtol=0, atol=1e-6) for pair in ((y[0], y[1]), (y[:, 0], y[:, 1])))
    if not across:
        which = "their tokens do not: the table is added along the batch" if along else "so do their tokens"
        return Answer(
            "unknown", measured, (Finding("A2", "error", f"sentences of a batch differ and {which}"),)
        )
    if torch.allclose(y[0], y[0, :1], rtol=0, atol=1e-6):
        return Answer("none", measured, (Finding("A2", "error", "every token gets the same vector"),))
    answer = sinusoid(y[0])
    return Answer(answer.name, {**measured, **answer.measured}, answer.findings)


def sinusoid(table: Float[Tensor, "rows dim"]) -> Answer:
    r"""Which sinusoid a table is, if any: the order of its columns, its frequencies, its first position.

    ``measured`` has ``frequencies``, ``first`` (the position in row 0) and ``scale``. Only the paper's own
    table, from position 0 and not scaled, has no finding.

    >>> from posbook import frequencies
    >>> table = torch.arange(9.0)[:, None] * frequencies.geometric(8)
    >>> answer = sinusoid(torch.cat((table.sin(), table.cos()), dim=-1))
    >>> answer.name, answer.measured["first"]
    ('sinusoid, sines first', 0.0)
    """
    table = table.double()
    rows, dim = table.shape
    pairs = dim // 2
    if rows < 3 or not pairs:
        raise ValueError(f"a table needs 3 rows and 2 columns or more, not shape {tuple(table.shape)}")
    even, odd = table[:, 0 : 2 * pairs : 2], table[:, 1::2]
    early, late = table[:, :pairs], table[:, pairs : 2 * pairs]
    for order, sines, cosines in (
        ("interleaved", even, odd),
        ("sines first", early, late),
        ("cosines first", late, early),
        ("interleaved, cosine before sine", odd, even),
    ):
        found = _clocks(sines, cosines)
        if found is None:
            continue
        theta, first, scale = found
        measured = {"frequencies": theta, "first": first, "scale": scale}
        return Answer(f"sinusoid, {order}", measured, tuple(_not_the_papers(order, theta, first, scale, dim)))
    said = "no sinusoid in a known order of columns: learned, or made otherwise"
    return Answer("unknown", {}, (Finding("A1", "note", said),))


def _clocks(sines: Tensor, cosines: Tensor) -> tuple[Tensor, float, float] | None:
    """Frequencies, first position and length, if every pair of columns turns evenly with one length."""
    length = torch.hypot(sines, cosines)
    scale = length.mean()
    if scale < SEEN or (length - scale).abs().max() > NEAR * scale:
        return None
    phase = torch.atan2(sines, cosines)
    theta = (phase[1] - phase[0]) % (2 * math.pi)
    turned = torch.arange(len(phase))[:, None] * theta
    even = (phase - phase[0] - turned + math.pi) % (2 * math.pi) - math.pi
    if theta.max() > 3 or even.abs().max() > NEAR + 1e-6 * len(phase):
        return None
    first = (phase[0, 0] / theta[0]).item()
    if (phase[0] - first * theta).abs().max() > NEAR:
        return None
    return theta, round(first, 3) + 0.0, round(scale.item(), 6)


def _not_the_papers(order: str, theta: Tensor, first: float, scale: float, dim: int) -> Iterator[Finding]:
    exponents = torch.arange(len(theta), dtype=torch.float64)
    paper = 10_000.0 ** (-2 * exponents / dim)
    to_the_end = 10_000.0 ** (-exponents / max(len(theta) - 1, 1))

    def same(expected: Tensor) -> bool:
        return torch.allclose(theta, expected, rtol=1e-4, atol=1e-7)

    if not same(paper):
        if same(to_the_end):
            yield Finding(
                "A1",
                "note",
                "frequencies over pairs - 1, as in tensor2tensor and fairseq, not the paper's: no order of "
                "columns makes up for it",
            )
        else:
            yield Finding(
                "A1",
                "warning",
                f"frequencies from {theta[0]:.6g} to {theta[-1]:.6g}; the paper's end at {paper[-1]:.6g}",
            )
    if order != "interleaved" and len(theta) > 1:
        yield Finding("A1", "note", f"{order}: the paper's table interleaves, sine before cosine")
    if first:
        yield Finding("A1", "note", f"row 0 is position {first:g}, not 0")
    if abs(scale - 1) > SAME:
        yield Finding("A1", "note", f"the table is multiplied by {scale:g}")


@torch.no_grad()
def looked_up(fn: Callable[[Tensor], Tensor], table: Float[Tensor, "rows dim"]) -> Answer:
    r"""Which row of a learned table ``fn(positions)`` reads, of positions (seq,).

    ``measured`` has ``offset``, the row of position 0, and ``usable``, the number of positions with a row.

    >>> table = torch.randn(514, 4)
    >>> answer = looked_up(lambda at: table[at + 2], table)
    >>> answer.measured
    {'offset': 2, 'usable': 512}
    >>> print(*answer.findings)
    A3 note: position 0 reads row 2: 512 of 514 rows are usable
    """
    rows = len(table)
    read = fn(torch.arange(3))
    fits = [o for o in range(rows - 2) if torch.equal(read, table[o : o + 3])]
    if not fits:
        said = "positions 0, 1 and 2 are not three rows of the table, one after another"
        return Answer("unknown", {}, (Finding("A3", "error", said),))
    offset, found = fits[0], []
    usable = rows - offset
    if offset:
        found.append(
            Finding("A3", "note", f"position 0 reads row {offset}: {usable} of {rows} rows are usable")
        )
    try:
        fn(torch.tensor([usable - 1]))
    except REFUSALS:
        found.append(Finding("A3", "error", f"position {usable - 1}, of the last row, is refused"))
    try:
        past = fn(torch.tensor([usable]))
        same = [row for row in range(rows) if torch.equal(past[0], table[row])]
        reads = f"reads row {same[0]}" if same else "gives something else"
        found.append(Finding("A3", "error", f"position {usable} has no row and {reads}: it must be refused"))
    except REFUSALS:
        pass
    return Answer("learned", {"offset": offset, "usable": usable}, tuple(found))


# --- added to the scores -----------------------------------------------------------------------------------


@torch.no_grad()
def bias(
    fn: Callable[[Tensor, Tensor], Tensor],
    *,
    heads: int,
    buckets: int = 32,
    max_distance: int = 128,
    table: Float[Tensor, "buckets heads"] | None = None,
) -> Answer:
    r"""What ``fn(queries, keys)`` adds to scores, (heads, q, k), for positions (q,) and (k,).

    ``name`` is ``"ALiBi"``, ``"ALiBi, row-constant"``, ``"T5, bidirectional"``, ``"T5, causal"``,
    ``"clipped"``, ``"none"``, ``"by offset"`` or ``"unknown"``. T5's table must be random: offsets in one
    bucket are those with one number, and ``buckets`` and ``max_distance`` say which are expected. That past
    and future have each other's half of them is seen only where the table is given too. A function of two
    lengths is ``lambda q, k: fn(len(q), len(k))``. Raises ValueError for another shape.

    >>> from posbook import alibi, positions
    >>> def fn(queries, keys):
    ...     offsets = positions.offsets(queries=queries, keys=keys)
    ...     return alibi.bias(alibi.slopes(8), offsets)
    >>> bias(fn, heads=8).name
    'ALiBi'
    >>> def by_key(queries, keys):
    ...     return alibi.slopes(8)[:, None, None] * keys
    >>> print(*bias(by_key, heads=8).findings)
    A4 warning: counted from one end, the same for every query: ALiBi only under a causal mask
    """
    at = torch.arange(TOKENS)
    full, step = (_matrix(fn, queries, at, heads) for queries in (at, at[-1:]))
    seen = torch.isfinite(full)
    masked = not seen.all()
    if not seen[:, positions.offsets(queries=at, keys=at) <= 0].all():
        return Answer("unknown", {}, (Finding("A4", "error", "keys of the past get NaN or infinity"),))
    found = list(_cached(full, step))
    along = (full[:, 1:, 1:] - full[:, :-1, :-1])[seen[:, 1:, 1:]]
    if along.abs().max() > _rounding(full):
        answer = _by_key(full, heads)
    else:
        past, future = full[:, -1].flip(-1), full[:, 0]  # by distance, from 0
        answer = _by_offset(past, None if masked else future, heads, buckets, max_distance)
        if table is not None and answer.name.startswith("T5"):
            found += _by_table(answer, past, future, masked, max_distance, table)
    return Answer(answer.name, {"masked": masked, **answer.measured}, (*found, *answer.findings))


def _matrix(fn: Callable, queries: Tensor, keys: Tensor, heads: int) -> Tensor:
    y = fn(queries, keys)
    y = y[0] if y.ndim == 4 and len(y) == 1 else y
    wanted = (heads, len(queries), len(keys))
    if y.ndim != 3 or len(y) != heads or any(n not in (1, m) for n, m in zip(y.shape, wanted, strict=True)):
        raise ValueError(f"fn(queries, keys) must return {wanted}, not {tuple(y.shape)}")
    return y.double().expand(wanted)


def _rounding(full: Tensor) -> float:
    """By how much two float32 numbers of this size may differ and be the same."""
    return 1e-5 + 4e-7 * full[torch.isfinite(full)].abs().max().item()


def _cached(full: Tensor, step: Tensor) -> Iterator[Finding]:
    """Whether one query at the end gets the last row."""
    allowed = _rounding(full)
    difference = step[:, 0] - full[:, -1]
    if (difference - difference[:, :1]).abs().max() <= allowed:  # a number for the whole row is none
        return
    first = torch.allclose(step[:, 0].nan_to_num(), full[:, 0].nan_to_num(), rtol=0, atol=allowed)
    which = "row 0 of the matrix" if first else "another row"
    yield Finding("A4", "error", f"a cached step gets {which}, not the last: the query's position is lost")


def _by_key(full: Tensor, heads: int) -> Answer:
    slopes = (full[:, -1, -1] - full[:, -1, 0]) / (TOKENS - 1)
    straight = full - full[..., :1] - slopes[:, None, None] * torch.arange(TOKENS)
    if not straight.abs().max() <= _rounding(full):
        return Answer("unknown", {}, (Finding("A4", "note", "it depends on more than the offset"),))
    said = "counted from one end, the same for every query: ALiBi only under a causal mask"
    found = (Finding("A4", "warning", said), *_slopes(slopes, heads))
    return Answer("ALiBi, row-constant", {"slopes": slopes}, found)


def _by_offset(past: Tensor, future: Tensor | None, heads: int, buckets: int, max_distance: int) -> Answer:
    distance = torch.arange(TOKENS)
    slopes = -past[:, -1] / (TOKENS - 1)
    both = past if future is None else torch.cat((past.flip(-1), future[:, 1:]), dim=-1)
    allowed = _rounding(both)
    if (both == both[:, :1]).all():
        return Answer("none", {}, (Finding("A4", "warning", "the same for every offset"),))
    if (past + slopes[:, None] * distance).abs().max() <= allowed:
        found = list(_slopes(slopes, heads))
        if future is not None and (future - past).abs().max() > allowed:
            found.append(Finding("A4", "note", "not the distance for keys ahead: only under a causal mask"))
        return Answer("ALiBi", {"slopes": slopes}, tuple(found))
    both = past.flip(-1) if future is None else both
    offsets = torch.arange(both.shape[-1]) - (TOKENS - 1)
    names = _names(both)
    for name, mistake, other in _partitions(offsets, buckets, max_distance):
        if torch.equal(_names(other[None]), names):
            return Answer(name, {"numbers": len(names.unique())}, mistake)
    for clip in range(1, 128):
        if torch.equal(_names(offsets.clamp(-clip, clip)[None]), names):
            return Answer("clipped", {"clip": clip}, ())
    return Answer("by offset", {"values": both}, ())


def _by_table(
    answer: Answer, past: Tensor, future: Tensor, masked: bool, max_distance: int, table: Tensor
) -> Iterator[Finding]:
    """Whether each offset has the number of its own bucket, given that the buckets are the right ones."""
    if answer.findings:
        return
    measured = past.flip(-1) if masked else torch.cat((past.flip(-1), future[:, 1:]), dim=-1)
    offsets = torch.arange(measured.shape[-1]) - (TOKENS - 1)

    def by(offsets: Tensor) -> Tensor:
        which = t5_bias.buckets(
            offsets[None],
            bidirectional=answer.name == "T5, bidirectional",
            buckets=len(table),
            max_distance=max_distance,
        )
        return t5_bias.bias(table.double(), which)[:, 0]

    if torch.allclose(measured, by(offsets), rtol=0, atol=1e-5):
        return
    exchanged = torch.allclose(measured, by(-offsets), rtol=0, atol=1e-5)
    said = (
        "the sign is reversed: past and future have each other's buckets"
        if exchanged
        else ("the buckets are right, their numbers are not those of the table")
    )
    yield Finding("A4", "error", said)


def _names(columns: Tensor) -> Tensor:
    """Equal columns get one number, in the order in which they come."""
    _, inverse = columns.unique(dim=-1, return_inverse=True)
    first = torch.full((int(inverse.max()) + 1,), len(inverse)).scatter_reduce(
        0, inverse, torch.arange(len(inverse)), "amin"
    )
    return first[inverse]


def _partitions(offsets: Tensor, buckets: int, max_distance: int) -> Iterator[tuple[str, tuple, Tensor]]:
    """T5's buckets as they should be, then as they come out by mistake."""

    def cut(offsets: Tensor, bidirectional: bool, buckets: int) -> Tensor:
        return t5_bias.buckets(
            offsets[None], bidirectional=bidirectional, buckets=buckets, max_distance=max_distance
        )[0]

    def wrong(message: str) -> tuple[Finding, ...]:
        return (Finding("A4", "error", message),)

    if buckets % 2 == 0:
        yield "T5, bidirectional", (), cut(offsets, True, buckets)
    yield "T5, causal", (), cut(offsets, False, buckets)
    reversed_ = "the sign is reversed: keys ahead have buckets and the past has one"
    yield "T5, causal", wrong(reversed_), cut(-offsets, False, buckets)
    doubled = f"each direction has {buckets} buckets: their number is not halved"
    yield "T5, bidirectional", wrong(doubled), cut(offsets, True, 2 * buckets)
    blind = "both directions share their buckets: the sign of the offset is lost"
    yield "T5, bidirectional", wrong(blind), cut(-offsets.abs(), False, buckets)
    if buckets % 2 == 0:
        yield "T5, bidirectional", wrong(blind), cut(-offsets.abs(), True, buckets)


def _slopes(slopes: Tensor, heads: int) -> Iterator[Finding]:
    expected = alibi.slopes(heads)
    h = torch.arange(heads, dtype=torch.float64)

    def same(other: Tensor) -> bool:
        return torch.allclose(slopes, other, rtol=SAME, atol=0)

    if same(expected):
        return
    if (slopes < 0).all():
        yield Finding("A4", "error", "the sign is reversed: far keys gain")
    elif same(2.0 ** (-8 * h / heads)):
        yield Finding("A4", "error", "the first slope is 1: heads are counted from 0, not from 1")
    elif same(2.0 ** (-8 * (h + 1) / heads)):
        yield Finding(
            "A4", "error", f"slopes by the paper's formula, from which released code departs at {heads} heads"
        )
    elif same(expected.flip(0)) or same(expected.sort(descending=True).values):
        yield Finding("A4", "error", "the right slopes in another order of heads")
    else:
        worst = int((slopes / expected).log().abs().nan_to_num(math.inf).argmax())
        yield Finding(
            "A4",
            "error",
            f"head {worst} has slope {slopes[worst]:.6g}, ALiBi's is {expected[worst]:.6g}",
        )


# --- Transformer-XL and several coordinates ----------------------------------------------------------------


@torch.no_grad()
def shift(fn: Callable[[Tensor], Tensor]) -> Answer:
    r"""Whether ``fn(products)`` is Transformer-XL's relative shift, of (q, rows) with the farthest row first.

    Query :math:`m` and key :math:`n` must get column :math:`n + T - 1 - m` where :math:`n \le m`. What stands
    above the diagonal belongs to other queries in released code, and is for the mask to hide.

    >>> def fn(x):
    ...     rows = len(x)
    ...     return torch.nn.functional.pad(x, (1, 0)).view(rows + 1, rows)[1:]
    >>> shift(fn).name
    'relative shift'
    """
    x = torch.tensor([[0.0, 1.0, 2.0], [10.0, 11.0, 12.0], [20.0, 21.0, 22.0]])
    right = torch.tensor([[2.0, 0.0, 0.0], [11.0, 12.0, 0.0], [20.0, 21.0, 22.0]])
    y = fn(x)
    if y.shape != x.shape:
        raise ValueError(f"fn(products) must return {tuple(x.shape)}, not {tuple(y.shape)}")
    if torch.equal(y.tril().double(), right.double()):
        above = y[0, 1:]
        blank = bool(((above == 0) | (above == -math.inf)).all()) and y[1, 2] in (0, -math.inf)
        said = "numbers above the diagonal belong to other queries: only under a causal mask"
        return Answer("relative shift", {}, () if blank else (Finding("A5", "note", said),))
    padded = torch.nn.functional.pad(x, (1, 0)).view(4, 3)
    if torch.equal(y.tril(), padded[:-1].tril()):
        said = "the end of the padded products is dropped, not the beginning: queries read each other's"
    elif torch.equal(y, x):
        said = "nothing is shifted: every query reads the columns of the last"
    else:
        query = int((y.tril() != right).any(dim=1).nonzero()[0])
        said = f"query {query} gets {y[query].tolist()}, {right[query, : query + 1].tolist()} are due"
    return Answer("unknown", {}, (Finding("A5", "error", said),))


@torch.no_grad()
def axes(
    fn: Callable[[Tensor, Tensor], Tensor],
    *,
    dim: int,
    sections: Sequence[int],
    interleaved: bool | None = None,
) -> Answer:
    r"""Which coordinate each pair reads in ``fn(x, coordinates)``: (batch, heads, seq, dim) and (axes, seq).

    ``sections`` is the configuration's ``mrope_section``, and ``interleaved`` what it asks for, if it does.
    ``name`` is ``"chunked"``, ``"interleaved"`` or ``"unknown"``; ``measured`` has the axis of each pair.

    >>> from posbook import axial, frequencies, rotary
    >>> def fn(x, coordinates):
    ...     theta = frequencies.geometric(16)
    ...     angles = axial.angles(coordinates.T, theta, axial.chunked([2, 3, 3]))
    ...     return rotary.rotate(x, angles, layout="halves")
    >>> answer = axes(fn, dim=16, sections=[2, 3, 3])
    >>> answer.name, answer.measured["axes"]
    ('chunked', [0, 0, 1, 1, 1, 2, 2, 2])
    """
    x = torch.eye(dim)[:, None, None].expand(dim, 1, 1, dim).contiguous()
    reads: dict[tuple[int, int], list[int]] = {}
    for axis in range(len(sections)):
        coordinates = torch.zeros(len(sections), 1, dtype=torch.long)
        coordinates[axis] = 1
        y = fn(x, coordinates).double().reshape(dim, dim)
        away = (y - torch.diag(y.diagonal())).abs()
        for a, b in enumerate(away.argmax(dim=1).tolist()):
            if a < b and away[a, b] > SEEN:
                reads.setdefault((a, b), []).append(axis)
    found = [reads[pair] for pair in sorted(reads)]
    if any(len(several) > 1 for several in found) or len(found) != sum(sections):
        said = f"{len(found)} pairs turn, {sum(sections)} are in sections {list(sections)}"
        if len(found) == sum(sections):
            said = "some pairs turn with several coordinates"
        return Answer("unknown", {"axes": found}, (Finding("A6", "error", said),))
    order = [axis for (axis,) in found]
    asked = "" if interleaved is None else "interleaved" if interleaved else "chunked"
    return Answer(*_order(order, list(sections), asked))


def _order(order: list[int], sections: list[int], asked: str) -> tuple[str, dict, tuple[Finding, ...]]:
    counts = [order.count(axis) for axis in range(len(sections))]
    names = {"chunked": axial.chunked(sections), "interleaved": _in_turns(sections)}
    name = next((name for name, expected in names.items() if order == expected), "unknown")
    said = ""
    if name == "interleaved" and counts != sections:
        said = f"sections {sections} cannot be interleaved: {counts} pairs read the axes"
    elif counts != sections:
        said = f"the axes are read by {counts} pairs, {sections} are declared"
    elif name == "unknown":
        said = f"pairs read the axes {order}: neither one axis after another nor in turns"
    elif asked and name != asked:
        said = f"the axes are {name}, and {asked} is asked for"
    return name, {"axes": order}, (Finding("A6", "error", said),) if said else ()


def _in_turns(sections: list[int]) -> list[int]:
    """Axes that take turns; those that do not fit are dropped, as in Hugging Face's code."""
    order = [0] * sum(sections)
    for axis, section in enumerate(sections[1:], start=1):
        for pair in range(axis, min(section * len(sections), len(order)), len(sections)):
            order[pair] = axis
    return order

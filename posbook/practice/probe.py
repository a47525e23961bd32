r"""Look at a function that turns queries or keys, and say which encoding it is.

A rotation is linear, so a one-hot vector for each channel, at positions 0 and 1, shows all of it:

.. math:: f(e_a, 1) = \varrho\,(\cos\theta_i\, e_a + \sin\theta_i\, e_b), \qquad f(e_a, 0) = \varrho\, e_a

The two channels that answer are a pair, which is the layout; the sign of the sine is the direction; the angle
is the frequency, unambiguous since :math:`\theta_i \le 1 < \pi`; the length :math:`\varrho` is the amplitude.
At position 0 an output that is not its input says that channels are permuted, or that counting is off by one.

:func:`identify` measures, :meth:`Report.explain` compares with what a configuration asks for and tries the
mistakes that people make, :func:`assert_matches` is for test suites.
"""

import copy
import inspect
import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float
from torch import Tensor, nn

from posbook import frequencies, scaling
from posbook.practice import adapters
from posbook.practice.config import Group
from posbook.practice.findings import Finding, ranges

Rotation = Callable[[Tensor, Tensor], Tensor]

SAME = 1e-5  # relative: a float32 function against float64
SEEN = 1e-9  # a sine below this, at position 1, is none: no pair is that slow
REFUSALS = (ValueError, IndexError, RuntimeError, TypeError, AssertionError)  # how functions say no
BFLOAT16 = 2**-6  # relative: more than rounding cosines and sines can do to an amplitude
HALF = {torch.bfloat16: "bfloat16", torch.float16: "float16"}
CAST = "every frequency has eight significant bits: cast to bfloat16?"  # a configuration knows better
UNEVEN = "steps are uneven"  # from one token to the next, in float32
NEAR = 1e-4  # of angles; below it two are taken for one
NAMES = {"halves": "pairs (i, i + width/2)", "interleaved": "pairs of neighbours"}
OTHER = {"halves": "interleaved", "interleaved": "halves"}
LENGTH_COUNTS = ("dynamic", "longrope")  # scalings in which a row may turn otherwise in a longer text


class Raised(ValueError):
    r"""The function raised something where it should have turned x; that is the cause of this error.

    ``told`` is what happened, without the name of the function, and ``hint`` what may help.

    >>> identify(lambda x: x, dim=4)
    Traceback (most recent call last):
    ...
    posbook.practice.probe.Raised: fn raised TypeError when called as fn(x (4, 1, 2, 4), positions (2,)): ...
    """

    def __init__(self, error: Exception, x: Tensor, at: Tensor, hint: str):
        form = f"fn(x {tuple(x.shape)}, positions {tuple(at.shape)})"
        self.told = f"raised {type(error).__name__} when called as {form}: {_said(error)}"
        self.hint = hint or "is dim right? for other forms see posbook.practice.adapters"
        super().__init__(f"fn {self.told}; {self.hint}")


@dataclass(frozen=True)
class Report:
    r"""What a function does with position, as measured.

    ``frequencies`` are (pairs,), in the order of the layout's pairs, in radians per token, never negative;
    ``features`` are the channels that turn; ``direction`` is 1 for anticlockwise and -1 for clockwise.
    ``permutation`` says where each channel goes at position 0; None where it stays. ``layout`` is
    ``"halves"``, ``"interleaved"``, ``"none"`` where nothing turns, or ``"unknown"``.

    >>> report = identify(lambda x, at: x, dim=4)
    >>> report.layout, report.rotary_dim, report.features
    ('none', 0, ())
    >>> print(*report.findings)
    R7 warning: nothing varies with the position
    """

    dim: int
    layout: str
    direction: int
    rotary_dim: int
    features: tuple[int, ...]
    frequencies: Float[Tensor, " pairs"]
    amplitude: float
    offset: float
    permutation: tuple[int, ...] | None
    findings: tuple[Finding, ...]

    @property
    def begins(self) -> int:
        r"""The first channel of the part that turns, which is ``rotary_dim`` wide.

        >>> from posbook import rotary
        >>> def last(x, at):
        ...     angles = frequencies.angles(at, frequencies.geometric(4))
        ...     return torch.cat((x[..., :4], rotary.rotate(x[..., 4:], angles, layout="halves")), dim=-1)
        >>> report = identify(last, dim=8)
        >>> report.begins, report.features
        (4, (4, 5, 6, 7))
        """
        # Where the fastest pairs stand still, halves begin before the first channel that turns.
        return min(self.features[0], self.dim - self.rotary_dim) if self.features else 0

    def told(self, code: str) -> bool:
        r"""Whether an error of this code was found.

        >>> identify(lambda x, at: x, dim=4).told("R7")
        False
        """
        return any(f.code == code and f.severity == "error" for f in self.findings)

    def explain(self, against: Group, length: int | None = None) -> tuple[Finding, ...]:
        r"""What differs from what a configuration asks for, and the mistake that would make it so.

        No error is among them where all agrees: layout, direction, place, width, amplitude and every
        frequency to 1e-5. What the function does besides is repeated, its warnings and notes too; that rows
        of a batch share one length is no error where the configuration's frequencies depend on the length.

        >>> from posbook import rotary
        >>> from posbook.practice import config
        >>> llama = {"model_type": "llama", "head_dim": 8, "rope_theta": 500.0}
        >>> (group,) = config.read(llama).groups
        >>> theta = frequencies.geometric(8)
        >>> def fn(x, at):
        ...     return rotary.rotate(x, frequencies.angles(at, theta), layout="halves")
        >>> print(*identify(fn, dim=8).explain(group))
        R4 error: base 10000, and 500 is asked for
        """
        declared = {("R7", "warning")}  # that nothing turns is right here, or an error of its own
        if against.rope_type in LENGTH_COUNTS:
            declared.add(("R14", "error"))
        found = _compare(self, against, length)
        own = (f for f in self.findings if (f.code, f.severity) not in declared and f.message != CAST)
        if any(f.code == "R10" for f in found):  # the rounding has been named
            own = (f for f in own if f.severity != "error" or UNEVEN not in f.message)
        return (*found, *own)


def identify(fn: Rotation, *, dim: int, longest: int = 8192) -> Report:
    r"""Measure ``fn(x, positions)``, which turns x of shape (batch, heads, seq, dim) at positions (seq,).

    Functions of another form have an adapter in :mod:`~posbook.practice.adapters`. ``longest`` is the number
    of tokens of the longest call: what a function does from a trained length on is seen if it is twice as
    much. A function that also takes positions of (batch, seq) is tried with rows of different positions, and
    the module behind an adapter is copied, cast and loaded anew.

    Raises ValueError where the function returns another shape, or is no linear map of single rows, and
    :class:`Raised`, a ValueError too, where the function itself raises.

    >>> from posbook import rotary
    >>> theta = frequencies.geometric(8, base=500.0)
    >>> def fn(x, at):
    ...     return rotary.rotate(x, frequencies.angles(at, theta), layout="interleaved")
    >>> report = identify(fn, dim=8)
    >>> report.layout, report.direction, report.rotary_dim, report.amplitude
    ('interleaved', 1, 8, 1.0)
    """
    if dim < 2:
        raise ValueError(f"a head has at least 2 features, not dim={dim}")
    if longest < 32:
        raise ValueError(f"the longest call needs 32 tokens or more, not longest={longest}")
    found: list[Finding] = []
    faint: list[Finding] = []  # what rounding does too: told only where it is not the cause
    unused = copy.deepcopy(adapters.module_of(fn)[0])  # as it was built: calls may fill what it caches
    first, second = _one_hot(fn, dim)
    first, second, permutation, offset = _start(first, second, found)
    pairs, turns, lengths = _pairs(first, second)
    layout, width = _layout(pairs, dim)
    if mixed := _mixed(second, pairs, layout, width):
        turns, lengths = mixed
        told = f"cosines and sines lie as for {NAMES[OTHER[layout]]}, and {NAMES[layout]} are swapped"
        found.append(Finding("R2", "error", told))
    direction = 1
    angles = [turns[pair] for pair in sorted(turns)]
    moving = [angle for angle in angles if abs(angle) > SEEN]
    if moving and sum(angle < 0 for angle in moving) * 2 > len(moving):
        direction = -1
    angles = [direction * angle for angle in angles]
    if any(angle < -SEEN for angle in angles):
        found.append(Finding("R3", "error", "some pairs turn one way and some the other"))
    amplitudes = sorted(lengths.values()) or [1.0]
    if (spread := amplitudes[-1] - amplitudes[0]) > SAME * amplitudes[-1]:
        told = f"amplitudes from {amplitudes[0]:.6g} to {amplitudes[-1]:.6g}: one for all is due"
        (faint if spread < BFLOAT16 * amplitudes[-1] else found).append(Finding("R5", "error", told))
    report = Report(
        dim,
        layout,
        direction,
        width,
        tuple(sorted(feature for pair in pairs for feature in pair)),
        torch.tensor([abs(angle) for angle in angles], dtype=torch.float64),
        round(amplitudes[len(amplitudes) // 2], 7),
        offset,
        permutation,
        tuple(found),
    )
    if layout in ("halves", "interleaved"):
        begins = report.begins
        rest = [i for i in range(dim) if not begins <= i < begins + width]
        if (first.diagonal()[rest] != 1).any():
            found.append(Finding("R6", "error", f"features {ranges(rest)} do not turn, and come out changed"))
    found += _behaviour(fn, report, longest, unused, faint)
    if not any(f.severity == "error" and UNEVEN in f.message for f in found):
        found += faint
        if _eight_bits(report.frequencies):
            found.append(Finding("R11", "warning", CAST))
    return replace(report, findings=tuple(found))


def assert_matches(fn: Rotation, group: Group, *, length: int | None = None) -> None:
    r"""Raise AssertionError, naming each mistake, unless ``fn`` does what the configuration's group asks for.

    For other people's test suites::

        from posbook.practice import assert_matches, config

        def test_our_rotation_is_that_of_the_model():
            (group,) = config.read("config.json").groups
            assert_matches(ours, group)

    >>> from posbook.practice import config
    >>> (group,) = config.read({"model_type": "llama", "head_dim": 8, "rope_theta": 500.0}).groups
    >>> assert_matches(lambda x, at: x, group)
    Traceback (most recent call last):
    ...
    AssertionError: R6 error: nothing turns; 8 of 8 features should
    """
    # Of a scaling that depends on the length, the trained length and twice as much are of interest.
    trained = group.trained_length if group.rope_type in LENGTH_COUNTS else None
    longest = min(max(2 * (trained or 0), 8192), 1 << 16)
    found = identify(fn, dim=group.head_dim, longest=longest).explain(group, length)
    if wrong := [f for f in found if f.severity == "error"]:
        raise AssertionError("\n".join(map(str, wrong)))


# --- the measurement ---------------------------------------------------------------------------------------


def _call(fn: Rotation, x: Tensor, at: Tensor) -> Tensor:
    try:
        y = fn(x, at)
    except Exception as error:
        raise Raised(error, x, at, _heads_last(fn, x, at)) from error
    if not isinstance(y, Tensor) or y.shape != x.shape:
        came = tuple(y.shape) if isinstance(y, Tensor) else type(y).__name__
        hint = _heads_last(fn, x, at)
        told = f"fn(x, positions) must return the shape of x, {tuple(x.shape)}, not {came}"
        raise ValueError(told + (f"; {hint}" if hint else ""))
    if not y.is_floating_point():
        raise ValueError(f"fn(x, positions) must return real numbers, as {x.dtype}, not {y.dtype}")
    return y


def _heads_last(fn: Rotation, x: Tensor, at: Tensor) -> str:
    """What to do with a function that wants heads after positions; empty where that is not it."""
    try:
        y = fn(x.transpose(1, 2).contiguous(), at)
    except Exception:  # whatever it raises, it is not this
        return ""
    if (
        not isinstance(y, Tensor)
        or y.shape != x.transpose(1, 2).shape
        or not _near(y, y[:, :, :1].expand_as(y))
    ):
        return ""
    return "it runs where x is (batch, seq, heads, dim): wrap it in posbook.practice.adapters.heads_last"


@torch.no_grad()
def _one_hot(fn: Rotation, dim: int) -> tuple[Tensor, Tensor]:
    """What each channel becomes at positions 0 and 1: two matrices, rows in, columns out."""
    x = torch.eye(dim)[:, None, None, :].expand(dim, 1, 2, dim).contiguous()
    y = _call(fn, x, torch.arange(2)).double()[:, 0]
    if not torch.isfinite(y).all():
        raise ValueError("fn returns NaN or infinity for a one-hot vector")
    twice = _call(fn, 2 * x, torch.arange(2)).double()[:, 0]
    if not torch.allclose(twice, 2 * y, rtol=1e-4, atol=1e-5):
        raise ValueError("fn is not linear: twice the input is not twice the output, so it adds something")
    return y[:, 0], y[:, 1]


def _start(first: Tensor, second: Tensor, found: list[Finding]):
    """Position 0: identity, a permutation of channels, or a turn that should not be there yet."""
    size = first.abs().max(dim=1).values
    hits = first.abs() > 1e-4 * size[:, None]
    if (hits.sum(dim=1) == 1).all() and (hits.sum(dim=0) == 1).all():
        goes = hits.int().argmax(dim=1)
        if torch.equal(goes, torch.arange(len(goes))):
            return first, second, None, 0.0
        found.append(
            Finding(
                "R2", "note", "channels come out in another order: permute both queries and keys, or neither"
            )
        )
        return first[:, goes], second[:, goes], tuple(goes.tolist()), 0.0
    # Turned already: by how many positions, read from the fastest pair.
    step = torch.linalg.lstsq(first, second).solution  # first · step = second
    turn, already = (_fastest(matrix) for matrix in (step, first))
    offset = round(already / turn, 3) if turn else math.nan
    found.append(
        Finding("R1", "error", f"position 0 is turned already, by {offset:g} positions: off by one?")
    )
    scale = first.norm(dim=1).mean()
    return scale * torch.eye(len(first), dtype=first.dtype), scale * step, None, offset


def _fastest(matrix: Tensor) -> float:
    """The largest angle of a matrix that turns pairs."""
    angles = torch.linalg.eigvals(matrix).angle()
    return angles.max().item()


def _pairs(first: Tensor, second: Tensor):
    """Which channels turn together, by which angle, with which length; and which stay."""
    amplitude = first.diagonal()
    relative = second / amplitude[:, None]
    away = relative - torch.diag(relative.diagonal())
    partner = away.abs().argmax(dim=1)
    turned = away.abs().max(dim=1).values > SEEN
    pairs, angles, lengths = [], {}, {}
    for a in range(len(first)):
        b = int(partner[a])
        if not turned[a] or int(partner[b]) != a:
            continue
        if a < b:
            pairs.append((a, b))
            angles[a, b] = math.atan2(relative[a, b], relative[a, a])
            lengths[a, b] = math.hypot(second[a, a], second[a, b])
    return pairs, angles, lengths


def _layout(pairs: list[tuple[int, int]], dim: int) -> tuple[str, int]:
    """The layout, and the width it is laid out over."""
    if not pairs:
        return "none", 0
    gaps = {b - a for a, b in pairs}
    if gaps == {1} and all(a % 2 == 0 for a, _ in pairs) and dim > 2:
        return "interleaved", 2 * len(pairs)
    if len(gaps) == 1:
        return "halves", 2 * gaps.pop()
    return "unknown", 2 * len(pairs)


def _mixed(second: Tensor, pairs: list[tuple[int, int]], layout: str, width: int):
    """Angles and lengths of a table of the other layout; None where both features of a pair turn alike.

    Each feature that comes out has a cosine, of itself, and a sine, of its partner: an angle of its own.
    """
    if layout not in OTHER or 2 * len(pairs) != width:
        return None
    cos, sin = {}, {}
    for a, b in pairs:
        cos[a], sin[a] = second[a, a].item(), -second[b, a].item()
        cos[b], sin[b] = second[b, b].item(), second[a, b].item()
    angles = {i: math.atan2(sin[i], cos[i]) for i in cos}
    lengths = [math.hypot(sin[i], cos[i]) for i in cos]
    if max(abs(angles[a] - angles[b]) for a, b in pairs) < NEAR:
        return None
    features, half = sorted(angles), width // 2
    if layout == "interleaved":
        table = list(zip(features[:half], features[half:], strict=True))
    else:
        table = list(zip(features[::2], features[1::2], strict=True))
    if max(abs(angles[a] - angles[b]) for a, b in table) > SAME:
        return None
    return {(a, b): angles[a] for a, b in table}, dict(zip(pairs, lengths[::2], strict=True))


@torch.no_grad()
def _behaviour(
    fn: Rotation, report: Report, longest: int, unused: nn.Module | None, faint: list[Finding]
) -> list[Finding]:
    """What a function does besides turning: along which axis, by which positions, from which past."""
    rows = torch.randn(report.dim, generator=torch.Generator().manual_seed(0))
    x = rows.expand(1, 3, 5, report.dim).contiguous()
    y = _call(fn, x, torch.arange(5))
    if report.layout == "none":
        still = torch.allclose(y, x)
        return [Finding("R7", "warning", "nothing varies with the position")] if still else [*_axis(fn, x, y)]
    checks = (_axis(fn, x, y), _steps(fn, x, y), _relativity(fn, report, faint), _precision(fn, report))
    found = [finding for check in checks for finding in check]
    past = list(_past(fn, report, longest))
    if any(f.code == "R10" and "coincide" in f.message for f in past):  # in float32, so in less too
        found = [f for f in found if (f.code, f.severity) != ("R10", "error")]
    found += past
    found += _rows(fn, x, longest)
    return [*found, *(_unseen(fn) if unused is None else _copies(fn, report, unused))]


def _near(a: Tensor, b: Tensor) -> bool:
    return torch.allclose(a, b, rtol=0, atol=1e-5)


def _said(error: BaseException) -> str:
    if isinstance(error, Raised) and error.__cause__:
        error = error.__cause__
    return " ".join(str(error).split())[:160] or type(error).__name__


def _axis(fn: Rotation, x: Tensor, y: Tensor) -> Iterator[Finding]:
    if not _near(y[:, :1].expand_as(y), y):
        hint = _heads_last(fn, x, torch.arange(x.shape[2]))
        told = "the result depends on the head: the position is read from the wrong axis"
        yield Finding("R7", "error", told + (f"; {hint}" if hint else ""))


def _steps(fn: Rotation, x: Tensor, y: Tensor) -> Iterator[Finding]:
    """Single rows, as in cached decoding, and positions that begin again, as in packed texts."""
    try:
        step = _call(fn, x[:, :, :1], torch.tensor([3]))[:, :, 0]
        if not _near(step, y[:, :, 3]):
            same = [row for row in range(5) if _near(step, y[:, :, row])]
            like = f"is row {same[0]}" if same else "is none"
            why = "positions are ignored" if same == [0] else "the step is counted wrongly"
            yield Finding("R8", "error", f"one row at position 3 {like} of a sequence: {why}")
        mixed = _call(fn, x, torch.tensor([0, 1, 2, 0, 1]))
        if not _near(mixed[:, :, 3:], y[:, :, :2]):
            yield Finding(
                "R9", "error", "packed positions 0 1 2 0 1 are not followed: documents see each other's"
            )
    except REFUSALS as error:
        yield Finding("R9", "warning", f"positions other than 0, 1, 2 … are refused: {_said(error)}")


def _relativity(fn: Rotation, report: Report, faint: list[Finding]) -> Iterator[Finding]:
    """Scores of one offset at two places."""
    of_keys = fn.keys if isinstance(fn, adapters.Adapted) else fn
    at = torch.arange(13)
    q, k = torch.randn(2, 1, 1, 1, report.dim, generator=torch.Generator().manual_seed(1))
    queries, keys, like = (
        _call(turn, x.expand(1, 1, 13, -1).contiguous(), at)[0, 0].double()
        for turn, x in ((fn, q), (of_keys, k), (fn, k))
    )
    size = queries.norm(dim=1).max() * keys.norm(dim=1).max()
    off = (queries[5] @ keys[3] - queries[12] @ keys[10]).abs()
    if off > SAME * size:
        found = Finding(
            "R12",
            "error",
            "the score of a query at 5 and a key at 3 changes when both move on by 7: it depends on "
            f"absolute positions ({off / size:.2g} of their lengths)",
        )
        if off < BFLOAT16 * size:
            faint.append(found)
        else:
            yield found
    elif not torch.allclose(keys, like, rtol=0, atol=1e-5):
        yield Finding("R12", "warning", "keys are not turned as queries at the same position are")


def _precision(fn: Rotation, report: Report) -> Iterator[Finding]:
    x = torch.ones(1, 1, 6, report.dim)
    length = math.sqrt(2) * report.amplitude  # of every pair of ones
    others: list[str] = []
    for dtype, start, limit in ((torch.bfloat16, 255, 2**-5), (torch.float16, 2047, 2**-8)):
        at = torch.arange(start, start + 6)
        try:
            came, exact = (_call(fn, ones, at) for ones in (x.to(dtype), x))
        except REFUSALS as error:
            yield Finding("R10", "note", f"{dtype} at positions from {start} is refused: {_said(error)}")
            continue
        if came.dtype != dtype:
            others.append(f"{came.dtype} for {dtype}")
        y, exact = came.double()[0, 0], exact.double()[0, 0]
        alike, exactly = ((rows.diff(dim=0) == 0).all(dim=1) for rows in (y, exact))
        ended = exactly.flip(0).cumprod(0).flip(0).bool()  # a table's last row, from there to the end
        same = (alike & ~ended).nonzero().flatten().tolist()
        off = (y - exact).abs().max().item() / length
        if same and report.frequencies.max() > 0.1:
            where = int(at[same[0]])
            yield Finding(
                "R10", "error", f"in {dtype} positions {where} and {where + 1} coincide: they are rounded"
            )
        elif off > limit:  # its own rounding, of cosines, products and sums, is an eighth of this
            yield Finding(
                "R10", "error", f"in {dtype} rows near position {start} are off by {off:.2g} of their length"
            )
    if others:
        told = f"what comes back has another dtype than x: {', '.join(others)}"
        yield Finding("R10", "note", told)


def _past(fn: Rotation, report: Report, longest: int) -> Iterator[Finding]:
    """A long call: what it holds, and what it leaves behind."""
    half = longest // 2
    x = torch.ones(1, 1, longest, report.dim)
    try:
        early = _call(fn, x[:, :, :half].contiguous(), torch.arange(half))
        long = _call(fn, x, torch.arange(longest))
    except REFUSALS as error:
        yield Finding("R15", "note", f"{longest} positions are refused: {_said(error)}")
        return
    again = _call(fn, x[:, :, :half].contiguous(), torch.arange(half))
    if not _near(early, again):
        yield Finding(
            "R13",
            "error",
            f"after a call with {longest} positions one with {half} gives another result: the past is kept",
        )
    if not _near(early, long[:, :, :half]):
        yield Finding(
            "R13",
            "note",
            f"rows turn otherwise in a text of {longest} tokens than in one of {half}: cached keys must be "
            "computed again when it grows",
        )
    yield from _evenness(long[0, 0].double(), report)


def _evenness(y: Tensor, report: Report) -> Iterator[Finding]:
    """Whether each token turns every pair by as much as the first, given rows that were ones."""
    if report.layout not in ("halves", "interleaved"):
        return
    if report.permutation:
        y = y[:, list(report.permutation)]
    cut = (2, -1) if report.layout == "halves" else (-1, 2)
    begins = report.begins
    part = y[:, begins : begins + report.rotary_dim].unflatten(1, cut)
    a, b = part.unbind(1 if report.layout == "halves" else 2)
    phase = torch.atan2(b, a)
    turns = (phase.diff(dim=0) - (phase[1] - phase[0]) + math.pi) % (2 * math.pi) - math.pi
    # Twice what float32 rounds of an angle, and of a cosine.
    allowed = 1e-5 + 4e-7 * torch.arange(1, len(y), dtype=y.dtype)
    uneven = (turns.abs() > allowed[:, None]).any(dim=1).nonzero().flatten()
    if not len(uneven):
        worst = turns.abs().max().item()
        if worst > SAME:
            yield Finding(
                "R10",
                "note",
                f"{UNEVEN} by up to {worst:.2g} rad before position {len(y)}, as where angles are "
                "taken in float32: right to about 1e-7 of the position",
            )
        return
    first = int(uneven[0]) + 1
    before = (y[:first] - y[first]).abs().amax(dim=1)
    if (
        before.argmin() == first - 1
        and before[-1] < 1e-5
        and not _near(y[first:], y[first].expand_as(y[first:]))
    ):
        by = {256: ", as by bfloat16", 2048: ", as by float16 or TF32"}.get(first - 1, "")
        told = f"positions {first - 1} and {first} coincide, whatever x has: they are rounded{by}"
        yield Finding("R10", "error", told)
        return
    if before.min() < 1e-5:
        yield Finding(
            "R15",
            "error",
            f"position {first} turns like position {int(before.argmin())}: a table wraps round or ends there",
        )
        return
    lengths = torch.hypot(a, b)[1]
    if report.told("R2") or lengths.max() - lengths.min() > BFLOAT16 * lengths.max():
        return  # no pair has one phase
    worst = turns.abs().max().item()
    what = "angles" if worst > BFLOAT16 else "cosines and sines"  # four phases, off by 2**-8 each
    told = f"from position {first} on {UNEVEN}, by up to {worst:.2g} rad: {what} are rounded"
    yield Finding("R10", "error", told)


def _rows(fn: Rotation, x: Tensor, longest: int) -> Iterator[Finding]:
    """Rows of a batch with positions of their own, if a function takes any."""
    two = x[:, :1].expand(2, 1, 5, -1).contiguous()
    near, padded, far = torch.arange(5), torch.tensor([0, 0, 0, 1, 2]), torch.arange(longest - 5, longest)
    try:
        beside = _call(fn, two, torch.stack((padded, near)))
    except REFUSALS:
        return  # positions are (seq,): rows cannot differ
    if not _near(beside, torch.cat([_call(fn, two[:1], at) for at in (padded, near)])):
        yield Finding("R9", "error", "positions of (batch, seq), as with left padding, are mixed up")
        return
    try:
        beside = _call(fn, two, torch.stack((near, far)))[0]
    except REFUSALS:
        return  # the long call has told it
    if not _near(beside, _call(fn, two[:1], near)[0]):
        yield Finding(
            "R14",
            "error",
            f"a row changes when one at position {longest - 1} stands beside it: one length counts for all",
        )


def _copies(fn: Rotation, report: Report, unused: nn.Module) -> Iterator[Finding]:
    """What becomes of a module's frequencies when it is copied, cast, saved, or built without memory."""
    module, made_of = adapters.module_of(fn)
    x, at = torch.ones(1, 1, 1, report.dim), torch.tensor([1000])

    def off(one: Rotation, other: Rotation) -> float:
        difference = _call(one, x, at) - _call(other, x, at)
        return difference.abs().max().item() / (math.sqrt(2) * report.amplitude)

    def built() -> Rotation:
        return made_of(copy.deepcopy(unused))

    try:
        if off(made_of(copy.deepcopy(module)), fn) > SAME:
            yield Finding("R11", "error", "a deep copy of the module gives another result")
        cast = off(made_of(copy.deepcopy(unused).to(torch.bfloat16)), built())
        if not cast < 1e-2:
            yield Finding(
                "R11",
                "warning",
                f"module.to(torch.bfloat16) rounds the frequencies: at position 1000 off by {cast:.2g} of a "
                "row's length; cast the weights, not this module",
            )
        saved = [name for name, value in unused.state_dict().items() if _is_theta(value, report)]
        if saved:
            yield Finding(
                "R11",
                "note",
                f"state_dict holds {', '.join(saved)}: a checkpoint brings its frequencies along",
            )
        if math.isnan(off(made_of(_without_memory(unused)), built())):
            yield Finding(
                "R11",
                "note",
                "built on the meta device and loaded, the module has no frequencies: they must be made anew",
            )
    except REFUSALS as error:
        yield Finding("R11", "note", f"the module could not be tried as a copy: {_said(error)}")


def _eight_bits(theta: Tensor) -> bool:
    """Whether several frequencies fit bfloat16, and not since they are powers of two or the like."""
    theta = theta[theta > 0]
    fits = torch.allclose(theta.bfloat16().double(), theta, rtol=1e-6, atol=0)
    mantissas = torch.frexp(theta.bfloat16().float()).mantissa
    return fits and len(mantissas.unique()) >= 4 and len(theta) >= 8


def _unseen(fn: Rotation) -> Iterator[Finding]:
    """A module that a plain function, or the object of a method, uses without being one."""
    fn = fn.embed if isinstance(fn, adapters.Adapted) else fn
    plain = getattr(fn, "__func__", fn)
    used = dict(getattr(getattr(fn, "__self__", fn), "__dict__", {}))
    if inspect.isfunction(plain):
        seen = inspect.getclosurevars(plain)
        used |= {**seen.globals, **seen.nonlocals}
    for name, value in used.items():
        if isinstance(value, nn.Module):
            told = f"{name} is a module inside of a function: casting, saving and loading it were not asked"
            yield Finding("R11", "note", f"{told}; posbook.practice.adapters has forms that show it")


def _is_theta(value: Tensor, report: Report) -> bool:
    theta = report.frequencies
    return value.shape == theta.shape and torch.allclose(value.double().cpu(), theta, rtol=1e-3)


def _without_memory(module: nn.Module) -> nn.Module:
    """The module as it is after the meta device and a checkpoint; what neither of them fills is NaN."""
    empty = copy.deepcopy(module).to("meta").to_empty(device="cpu")
    for value in (*empty.parameters(), *empty.buffers()):
        if value.is_floating_point():
            value.fill_(math.nan)
    empty.load_state_dict(module.state_dict())
    return empty


# --- the comparison ----------------------------------------------------------------------------------------


def _compare(report: Report, group: Group, length: int | None) -> list[Finding]:
    if group.scheme != "rotary":
        turns = report.layout != "none"
        return [Finding("R6", "error", "these layers do not rotate, and the function does")] if turns else []
    if report.layout == "none":
        return [
            Finding("R6", "error", f"nothing turns; {group.rotary_dim} of {group.head_dim} features should")
        ]
    found = []
    if report.layout == "unknown":
        found.append(Finding("R2", "error", "the pairs are neither neighbours nor (i, i + width/2)"))
    elif report.told("R2"):
        pass  # it has parts of both layouts
    elif group.layout != "unknown" and group.layout != report.layout and report.dim > 2:
        found.append(
            Finding(
                "R2",
                "error",
                f"turns {NAMES[report.layout]}, and this family stores {NAMES[group.layout]}: permute the "
                "rows of the query and key projections, or pair the other way",
            )
        )
    if report.direction < 0:
        found.append(
            Finding("R3", "error", "turns clockwise: harmless in training, wrong with published weights")
        )
    expected = group.frequencies(length)
    measured = report.frequencies
    if len(expected) > len(measured) and (expected[len(measured) :] == 0).all():
        expected = expected[: len(measured)]  # pairs that stand still cannot be seen
    width = (
        group.rotary_dim if group.rope_type != "proportional" else 2 * int((group.frequencies() > 0).sum())
    )
    turning = 2 * len(measured)
    if turning != width:
        found.append(Finding("R6", "error", f"{turning} features turn, {width} of {group.head_dim} should"))
    else:
        found += _place(report, group)
    if turning == width and not _same(measured, expected):
        found.append(_mistake(report, expected, group, length))
    if abs(report.amplitude / group.attention_factor - 1) > SAME:
        found.append(Finding("R5", "error", _amplitude(report.amplitude, group)))
    return found


def _place(report: Report, group: Group) -> Iterator[Finding]:
    """Whether those features turn that should, where their number is right."""
    if report.layout == "unknown":
        return
    begins = report.dim - group.rotary_dim if group.part == "last" else 0
    pairs = torch.arange(len(report.frequencies))
    if report.layout == "halves":
        a, apart = pairs, group.rotary_dim // 2
    else:
        a, apart = 2 * pairs, 1
    due = sorted((begins + torch.cat((a, a + apart))).tolist())
    if due == list(report.features):
        return
    turned, due = ranges(report.features), ranges(due)
    if group.layout == "unknown":
        yield Finding("R6", "warning", f"features {turned} turn; in most models {due} would")
    else:
        yield Finding("R6", "error", f"features {turned} turn, {due} should")


def _same(measured: Tensor, expected: Tensor) -> bool:
    return measured.shape == expected.shape and torch.allclose(measured, expected, rtol=SAME, atol=0)


def _amplitude(amplitude: float, group: Group) -> str:
    due = group.attention_factor
    why = {
        1.0: "the factor is forgotten",
        due**2: "the factor is applied twice",
        math.sqrt(due): "the root of the factor is applied",
        1 / due: "the factor divides",
        due * math.sqrt(group.softmax_factor): "the softmax factor is applied to cosines and sines too",
    }
    named = next((text for value, text in why.items() if abs(amplitude / value - 1) < SAME), "")
    return f"amplitude {amplitude:.6g}, {due:.6g} is asked for" + (f": {named}" if named else "")


def _mistake(report: Report, expected: Tensor, group: Group, length: int | None) -> Finding:
    measured = report.frequencies
    # At position 1 a rounded angle is a rounded frequency; at others it is not.
    uneven = any(UNEVEN in f.message and f.message.endswith("angles are rounded") for f in report.findings)
    rounded = (("R10", _angles),) if uneven else (("R11", _casts), ("R10", _tables))
    for code, known in (("R4", _mistakes), ("R6", _widths), *rounded):
        for name, theta in known(group, length):
            if _same(measured, theta):
                return Finding(code, "error", name)
    more = _scaling(expected / measured)
    if more and group.rope_type == "default":
        more = f"the function applies a scaling that the configuration lacks: {more}"
        return Finding("R4", "error", more)
    base = _base(measured)
    if base is not None and abs(base / group.base - 1) > 1e-4:
        return Finding("R4", "error", f"base {base:.6g}, and {group.base:.10g} is asked for")
    off = (measured / expected).log().abs()
    worst = int(off.argmax())
    agree = int((off < SAME).sum())
    return Finding(
        "R4",
        "error",
        f"pair {worst} turns by {measured[worst]:.6g} a token, {expected[worst]:.6g} is asked for; "
        f"{agree} of {len(expected)} pairs agree",
    )


def _scaling(slower: Tensor) -> str:
    """The scaling that makes pairs so many times slower; empty if none does.

    The fast ones are kept, two slow ones at least are divided by one factor, those between by less.
    """
    factor = slower[-1].item()
    divided, kept = (slower / factor - 1).abs() < SAME, (slower - 1).abs() < SAME
    slow, fast = int(divided.sum()), int(kept.sum())
    if slow < 2 or factor < 1 + 1e-3:
        return ""
    if slow == len(slower):
        return f"all {slow} pairs are divided by {factor:.6g}, as in interpolation"
    between = slower[fast:-slow]
    if not fast or not kept[:fast].all() or not divided[-slow:].all() or (between > factor).any():
        return ""
    blended = f", {len(between)} blended" if len(between) else ""
    return (
        f"{fast} of {len(slower)} pairs are kept{blended} and the {slow} slowest divided by {factor:.6g}, as "
        "by llama3 or yarn"
    )


def _base(theta: Tensor) -> float | None:
    """The base of a geometric row that begins at 1; None for another."""
    if len(theta) < 2 or abs(theta[0] - 1) > SAME:
        return None
    ratios = theta[:-1].log() - theta[1:].log()
    if ratios.max() - ratios.min() > 1e-4 * ratios.mean():
        return None
    return math.exp(ratios.mean().item() * len(theta))


def _mistakes(group: Group, length: int | None):
    """Name and frequencies of every known mistake; those that cannot be made here are left out."""
    pairs = group.rotary_dim // 2
    plain = frequencies.geometric(group.rotary_dim, group.base)
    factor, trained = group.factor, group.trained_length
    if group.rope_type not in ("default", "proportional", "dynamic"):
        yield f"the scaling {group.rope_type!r} is not applied", plain
    if group.base != 10_000:
        yield (
            f"base 10000, and {group.base:.10g} is asked for",
            replace(group, base=10_000.0).frequencies(length),
        )
        yield "base 10000 and no scaling", frequencies.geometric(group.rotary_dim, 10_000.0)
    if pairs > 1:
        exponents = torch.arange(pairs, dtype=torch.float64) / (pairs - 1)
        yield "exponents over pairs - 1, as in tensor2tensor's sinusoids", group.base**-exponents
    if group.head_dim != 2 * group.rotary_dim:  # there they are the exponents over the head
        half = group.base ** (-torch.arange(pairs, dtype=torch.float64) / (2 * pairs))
        yield "exponents i/width instead of 2i/width", half
    yield "the slowest pair first", group.frequencies(length).flip(0)
    if factor > 1:
        yield f"all pairs are divided by {factor:g}, as in interpolation", plain / factor
        yield f"frequencies are divided by {factor:g} once more", group.frequencies(length) / factor
        yield f"frequencies are multiplied by {factor:g}, not divided", plain * factor
        if pairs > 1 and group.rope_type != "dynamic":
            yield "NTK-aware scaling instead", scaling.ntk(plain, factor)
    if group.rope_type == "yarn":
        yield from _yarn_mistakes(group, plain)
    if group.rope_type == "llama3":
        low, high = group.low, group.high
        yield "low and high frequency factors exchanged", _llama3(plain, factor, trained, high, low)
        yield (
            "the blend of the middle pairs is the wrong way round",
            _llama3(plain, factor, trained, low, high, True),
        )
    if group.rope_type == "longrope":
        yield (
            "the short factors, past the trained length",
            plain / torch.tensor(group.short_factor, dtype=plain.dtype),
        )
        yield (
            "the long factors, within the trained length",
            plain / torch.tensor(group.long_factor, dtype=plain.dtype),
        )
    if group.rope_type == "dynamic":
        yield "the base of the trained length, whatever the length", plain
        yield f"static: NTK-aware by {factor:g} at every length", scaling.ntk(plain, factor)


def _widths(group: Group, length: int | None):
    """Exponents over a width that is not that of the part which turns."""
    for whose, width in (("head", group.head_dim), ("model", group.hidden_size)):
        if width > group.rotary_dim:
            over = replace(group, base=group.base ** (group.rotary_dim / width)).frequencies(length)
            yield f"exponents over the {whose}'s {width} features, where {group.rotary_dim} turn", over


def _casts(group: Group, length: int | None):
    """Frequencies that were kept in half precision, whatever is computed from them."""
    for dtype, name in HALF.items():
        rounded = group.frequencies(length).to(dtype).double()
        yield f"the frequencies are those asked for, rounded to {name}", rounded


def _tables(group: Group, length: int | None):
    """Cosines and sines in half precision, of right frequencies or of such that were cast as well."""
    theta, factors = group.frequencies(length), {1.0, group.attention_factor}
    for (dtype, name), factor in itertools.product(HALF.items(), factors):
        for angles in (theta, theta.to(dtype).double()):
            cos, sin = ((factor * of(angles)).to(dtype).double() for of in (torch.cos, torch.sin))
            yield f"cosines and sines are those asked for, rounded to {name}", torch.atan2(sin, cos)


def _angles(group: Group, length: int | None):
    """Angles in half precision, alone or with their cosines and sines."""
    for known in (_casts, _tables):
        for named, theta in known(group, length):
            yield f"the angles are rounded to {named.rpartition(' ')[2]}, whatever x has", theta


def _yarn_mistakes(group: Group, plain: Tensor):
    factor, trained = group.factor, group.trained_length
    right = scaling.yarn(plain, factor, trained, group.beta_fast, group.beta_slow, truncate=group.truncate)
    yield "YaRN's ramp is inverted: fast pairs are divided and slow ones kept", plain + plain / factor - right
    for truncate in (True, False):
        if truncate != group.truncate:
            flipped = scaling.yarn(
                plain, factor, trained, group.beta_fast, group.beta_slow, truncate=truncate
            )
            yield f"truncate is {truncate}, and {group.truncate} is asked for", flipped
    turns = scaling.yarn(plain, factor, trained, group.beta_fast, group.beta_slow, ramp="turns")
    yield "YaRN's ramp by turns, as in the paper; files mean the ramp by index", turns
    wide = scaling.yarn(
        plain, factor, round(trained * factor), group.beta_fast, group.beta_slow, truncate=group.truncate
    )
    yield "the ramp is taken at the extended length instead of the original", wide
    if (group.beta_fast, group.beta_slow) != (32, 1):
        yield "beta_fast 32 and beta_slow 1, and others are asked for", scaling.yarn(plain, factor, trained)


def _llama3(
    theta: Tensor, factor: float, trained: int, low: float, high: float, inverted: bool = False
) -> Tensor:
    """Llama 3's bands, written so that mistakes can be made in it."""
    turns = trained * theta / (2 * math.pi)
    share = ((turns - low) / (high - low)).clamp(0, 1)
    if inverted:
        middle = (share > 0) & (share < 1)
        share = torch.where(middle, 1 - share, share)
    return share * theta + (1 - share) * theta / factor

r"""A function nobody has documented is named: layout, direction, frequencies, amplitude, and its mistake."""

import copy
import json
import math
import re
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from posbook import frequencies, rotary, scaling
from posbook.practice import adapters, assert_matches, config, probe

DIM = 64
PLAIN = frequencies.geometric(DIM)


def turning(theta=PLAIN, layout="halves", sign=1, amplitude=1.0, offset=0, width=DIM):
    """A rotation with a fault, or without; features beyond the width are left alone."""

    def fn(x, at):
        angles = frequencies.angles(sign * (at + offset), theta)
        turned = rotary.rotate(x, angles, layout=layout, width=width)
        return torch.cat((amplitude * turned[..., :width], turned[..., width:]), dim=-1)

    return fn


def group(**rope):
    changes = {key: rope.pop(key) for key in ("model_type", "max_position_embeddings") if key in rope}
    values = {"model_type": "llama", "head_dim": DIM, "max_position_embeddings": 8192, **changes}
    (only,) = config.read({**values, "rope_parameters": {"rope_theta": 1e4, **rope}}).groups
    return only


YARN = {"rope_type": "yarn", "factor": 8.0, "original_max_position_embeddings": 1024}
LLAMA3 = {
    "rope_type": "llama3",
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 1024,
}


@pytest.mark.parametrize("layout", ["halves", "interleaved"])
@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("width", [DIM, 16])
def test_layout_direction_width_and_every_frequency_are_found(layout, sign, width):
    theta = frequencies.geometric(width, base=500_000.0)
    report = probe.identify(turning(theta, layout, sign, 1.25, width=width), dim=DIM)
    assert (report.layout, report.direction, report.rotary_dim) == (layout, sign, width)
    assert report.amplitude == pytest.approx(1.25, rel=1e-6)
    torch.testing.assert_close(report.frequencies, theta, rtol=1e-5, atol=0)
    assert report.findings == ()


def test_pairs_that_stand_still_are_none():
    report = probe.identify(turning(frequencies.proportional(DIM, 0.25)), dim=DIM)
    assert (report.layout, report.rotary_dim, len(report.frequencies)) == ("halves", DIM, 8)
    assert report.features == (*range(8), *range(32, 40))
    assert report.findings == ()


def test_no_encoding_is_called_none():
    report = probe.identify(lambda x, at: x, dim=DIM)
    assert report.layout == "none"
    assert [f.code for f in report.findings] == ["R7"]


def test_channels_that_come_out_in_another_order_are_a_permutation():
    order = rotary.permutation(DIM)

    def fn(x, at):  # as DeepSeek's code: neighbours are sorted into halves first
        return turning()(x[..., order], at)

    report = probe.identify(fn, dim=DIM)
    assert report.layout == "interleaved"
    assert report.permutation == tuple(order.argsort().tolist())
    torch.testing.assert_close(report.frequencies, PLAIN, rtol=1e-5, atol=0)


# --- which features ----------------------------------------------------------------------------------------


def of_the_last(fn, width):
    """Turns the last features as fn turns the first."""
    return lambda x, at: fn(x.roll(width, -1), at).roll(-width, -1)


@pytest.mark.parametrize("layout", ["halves", "interleaved"])
@pytest.mark.parametrize("width", [16, 32])
def test_the_features_that_turn_are_found_where_they_lie(layout, width):
    plain = turning(frequencies.geometric(width), layout, amplitude=1.25, width=width)
    for fn, features in ((plain, range(width)), (of_the_last(plain, width), range(DIM - width, DIM))):
        report = probe.identify(fn, dim=DIM)
        assert (report.features, report.begins) == (tuple(features), features[0])
        assert (report.layout, report.rotary_dim, report.findings) == (layout, width, ())


@pytest.mark.parametrize("layout", ["halves", "interleaved"])
def test_the_last_features_turn_where_the_first_should(layout):
    kind = {"halves": "gpt_neox", "interleaved": "glm"}[layout]
    against = group(model_type=kind, partial_rotary_factor=0.5)
    assert (against.layout, against.part) == (layout, "first")
    right = turning(frequencies.geometric(32), layout, width=32)
    assert probe.identify(right, dim=DIM).explain(against) == ()
    assert_matches(right, against)
    (found,) = probe.identify(of_the_last(right, 32), dim=DIM).explain(against)
    assert str(found) == "R6 error: features 32–63 turn, 0–31 should"
    with pytest.raises(AssertionError, match="features 32–63 turn"):
        assert_matches(of_the_last(right, 32), against)


def test_in_latent_attention_the_last_features_should_turn():
    values = {"model_type": "deepseek_v3", "qk_rope_head_dim": 32, "rope_theta": 1e4}
    (against,) = config.read(values | {"hidden_size": 256, "num_attention_heads": 2}).groups
    first = turning(frequencies.geometric(32), "interleaved", width=32)
    assert probe.identify(first, dim=32).explain(against) == ()  # the part alone
    assert probe.identify(of_the_last(first, 32), dim=DIM).explain(against) == ()
    (found,) = probe.identify(first, dim=DIM).explain(against)
    assert str(found) == "R6 error: features 0–31 turn, 32–63 should"


def test_of_a_family_nobody_knows_the_place_is_only_pointed_at():
    against = group(model_type="ours", partial_rotary_factor=0.5)
    last = of_the_last(turning(frequencies.geometric(32), width=32), 32)
    (found,) = probe.identify(last, dim=DIM).explain(against)
    assert found.severity == "warning"
    assert "features 32–63 turn; in most models 0–31 would" in found.message


def test_a_proportional_head_turns_the_first_of_each_half():
    against = group(model_type="gemma4_text", rope_type="proportional", partial_rotary_factor=0.25)
    assert probe.identify(turning(frequencies.proportional(DIM, 0.25)), dim=DIM).explain(against) == ()
    late = turning(torch.cat((torch.zeros(24), PLAIN[:8])))
    (found,) = probe.identify(late, dim=DIM).explain(against)
    assert "features 24–31, 56–63 turn, 0–7, 32–39 should" in found.message


def test_rounded_angles_are_seen_in_the_last_features_too():
    def rounds(x, at):
        turned = rotary.rotate(x[..., 32:], (at[:, None] * PLAIN[::2]).bfloat16().double(), layout="halves")
        return torch.cat((x[..., :32], turned), dim=-1)

    assert "steps are uneven" in mistaken(probe.identify(rounds, dim=DIM).findings, "R10")


# --- planted faults ----------------------------------------------------------------------------------------


def mistaken(found, code):
    return "\n".join(f.message for f in found if f.code == code)


def by_yarn(**options):
    return scaling.yarn(PLAIN, 8, 1024, **options)


@pytest.mark.parametrize(
    "theta, against, words",
    [
        (PLAIN, group(**YARN), "'yarn' is not applied"),
        (PLAIN, group(**LLAMA3), "'llama3' is not applied"),
        (PLAIN / 8, group(**YARN), "all pairs are divided by 8"),
        (PLAIN + PLAIN / 8 - by_yarn(), group(**YARN), "ramp is inverted"),
        (by_yarn(truncate=False), group(**YARN), "truncate is False"),
        (by_yarn(ramp="turns"), group(**YARN), "by turns, as in the paper"),
        (scaling.yarn(PLAIN, 8, 8192), group(**YARN), "at the extended length"),
        (by_yarn() / 8, group(**YARN), "divided by 8 once more"),
        (scaling.ntk(PLAIN, 8), group(**YARN), "NTK-aware scaling instead"),
        (scaling.yarn(PLAIN, 8, 1024, 32, 1), group(**YARN, beta_fast=16), "beta_fast 32 and beta_slow 1"),
        (PLAIN * 2, group(rope_type="linear", factor=2.0), "multiplied by 2"),
        (frequencies.geometric(DIM), group(rope_theta=5e5), "base 10000, and 500000 is asked for"),
        (frequencies.geometric(DIM, 2e4), group(), "base 20000, and 10000 is asked for"),
        (PLAIN.flip(0), group(), "slowest pair first"),
        (1e4 ** (-torch.arange(32, dtype=torch.float64) / 31), group(), "over pairs - 1"),
        (PLAIN.sqrt(), group(), "i/width instead of 2i/width"),
    ],
)
def test_a_mistake_in_the_frequencies_is_named(theta, against, words):
    found = probe.identify(turning(theta), dim=DIM).explain(against)
    assert words in mistaken(found, "R4"), "\n".join(map(str, found))


@pytest.mark.parametrize(
    "theta, words",
    [
        (PLAIN / 4, "all 32 pairs are divided by 4, as in interpolation"),
        (
            scaling.llama3(PLAIN, 8, 1024),
            "13 of 32 pairs are kept, 5 blended and the 14 slowest divided by 8",
        ),
        (by_yarn(), "slowest divided by 8, as by llama3 or yarn"),
        (torch.cat((PLAIN[:20], PLAIN[20:] / 8)), "20 of 32 pairs are kept and the 12 slowest divided by 8"),
    ],
)
def test_a_scaling_that_the_configuration_lost_is_named(theta, words):
    found = mistaken(probe.identify(turning(theta), dim=DIM).explain(group()), "R4")
    assert "the function applies a scaling that the configuration lacks: " in found
    assert words in found


@pytest.mark.parametrize("theta", [torch.cat((PLAIN[:20], PLAIN[20:] * 8)), PLAIN**1.1, PLAIN / 8 + PLAIN**2])
def test_what_slows_no_pairs_by_one_factor_is_no_scaling(theta):
    found = mistaken(probe.identify(turning(theta), dim=DIM).explain(group()), "R4")
    assert found
    assert "lacks" not in found


def banded(low, high, inverted=False):
    """Llama 3's bands, written again so that mistakes can be made in them."""
    turns = 1024 * PLAIN / (2 * math.pi)
    share = ((turns - low) / (high - low)).clamp(0, 1)
    if inverted:
        share = torch.where((share > 0) & (share < 1), 1 - share, share)
    return share * PLAIN + (1 - share) * PLAIN / 8


LISTS = {"short_factor": [1.5] * 32, "long_factor": [1.0 + i / 8 for i in range(32)]}
LONGROPE = {"rope_type": "longrope", "original_max_position_embeddings": 1024, **LISTS}
DYNAMIC = {"rope_type": "dynamic", "factor": 2.0}
SHORT = PLAIN / 1.5
LONG = PLAIN / torch.tensor(LISTS["long_factor"], dtype=torch.float64)


@pytest.mark.parametrize(
    "theta, against, length, words",
    [
        (banded(4, 1), group(**LLAMA3), None, "low and high frequency factors exchanged"),
        (banded(1, 4, True), group(**LLAMA3), None, "blend of the middle pairs is the wrong way round"),
        (PLAIN, group(**LLAMA3 | {"rope_theta": 5e5}), None, "base 10000 and no scaling"),
        (banded(1, 4), group(**LLAMA3 | {"rope_theta": 5e5}), None, "base 10000, and 500000 is asked for"),
        (SHORT, group(**LONGROPE), 2048, "the short factors, past the trained length"),
        (LONG, group(**LONGROPE), 512, "the long factors, within the trained length"),
        (PLAIN, group(**DYNAMIC), 16_384, "the base of the trained length, whatever the length"),
        (scaling.ntk(PLAIN, 2), group(**DYNAMIC), 8192, "static: NTK-aware by 2 at every length"),
    ],
)
def test_a_mistake_in_a_scaling_is_named_at_its_length(theta, against, length, words):
    found = probe.identify(turning(theta), dim=DIM).explain(against, length)
    assert words in mistaken(found, "R4"), "\n".join(map(str, found))


def test_exponents_over_the_whole_head_are_named():
    against = group(partial_rotary_factor=0.5)
    wrong = 1e4 ** (-2 * torch.arange(16, dtype=torch.float64) / DIM)
    found = probe.identify(turning(wrong, width=32), dim=DIM).explain(against)
    (only,) = found
    assert str(only) == "R6 error: exponents over the head's 64 features, where 32 turn"
    assert only.section == "use/porting.html#partial-rotation"


@pytest.mark.parametrize("width", [32, DIM])
@pytest.mark.parametrize("rope", [{}, LLAMA3])
def test_exponents_over_the_whole_model_are_named_and_no_base_that_nobody_has(width, rope):
    values = {"model_type": "llama", "hidden_size": 4096, "num_attention_heads": 64, "head_dim": DIM}
    rope = {"rope_theta": 1e4, "partial_rotary_factor": width / DIM, **rope}
    (against,) = config.read({**values, "rope_parameters": rope, "max_position_embeddings": 8192}).groups
    wrong = 1e4 ** (-2 * torch.arange(width // 2, dtype=torch.float64) / 4096)
    if rope.get("factor"):
        wrong = scaling.llama3(wrong, 8, 1024)
    (found,) = probe.identify(turning(wrong, width=width), dim=DIM).explain(against)
    assert str(found) == f"R6 error: exponents over the model's 4096 features, where {width} turn"


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("against", [group(), group(**LLAMA3)])
def test_frequencies_that_were_cast_are_named(dtype, against):
    theta = against.frequencies()
    (found,) = probe.identify(turning(theta.to(dtype).double()), dim=DIM).explain(against)
    name = {torch.bfloat16: "bfloat16", torch.float16: "float16"}[dtype]
    assert str(found) == f"R11 error: the frequencies are those asked for, rounded to {name}"
    assert probe.identify(turning(theta.float().double()), dim=DIM).explain(against) == ()


def test_frequencies_that_were_cast_are_suspected_without_a_configuration():
    (found,) = probe.identify(turning(PLAIN.bfloat16().double()), dim=DIM).findings
    told = "R11 warning: every frequency has eight significant bits: cast to bfloat16?"
    assert str(found) == told
    for theta in (PLAIN, PLAIN.half().double(), 2.0 ** -torch.arange(32).double(), by_yarn()):
        assert probe.identify(turning(theta), dim=DIM).findings == ()


def half_tables(dtype, angles_too=False, positions_too=False):
    """Cosines and sines of a lower precision, whatever x has."""

    def fn(x, at):
        angles = at[:, None] * (PLAIN.to(dtype).double() if angles_too else PLAIN)
        if positions_too:
            angles = (at[:, None].to(dtype) * PLAIN.to(dtype)).double()
        cos, sin = ((of(angles)).to(dtype).to(x.dtype).repeat(1, 2) for of in (torch.cos, torch.sin))
        a, b = x.chunk(2, dim=-1)
        return x * cos + torch.cat((-b, a), dim=-1) * sin

    return fn


@pytest.mark.parametrize("dtype, name", [(torch.bfloat16, "bfloat16"), (torch.float16, "float16")])
@pytest.mark.parametrize("angles_too", [False, True])
def test_cosines_and_sines_that_were_cast_are_named(dtype, name, angles_too):
    report = probe.identify(half_tables(dtype, angles_too), dim=DIM)
    found = report.explain(group())
    assert [str(f) for f in found] == [f"R10 error: cosines and sines are those asked for, rounded to {name}"]
    assert "cosines and sines are rounded" in mistaken(report.findings, "R10")


@pytest.mark.parametrize("dtype, name", [(torch.bfloat16, "bfloat16"), (torch.float16, "float16")])
@pytest.mark.parametrize("tables_too", [False, True])
def test_angles_that_were_cast_are_named_and_nothing_that_follows(dtype, name, tables_too):
    def fn(x, at):
        angles = (at[:, None] * PLAIN).to(dtype).to(dtype if tables_too else torch.float64)
        cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
        a, b = x.chunk(2, dim=-1)
        return torch.cat((a * cos - b * sin, a * sin + b * cos), dim=-1)

    (found,) = probe.identify(fn, dim=DIM).explain(group())
    assert str(found) == f"R10 error: the angles are rounded to {name}, whatever x has"


@pytest.mark.parametrize("dtype, last, by", [
    (torch.bfloat16, 256, "bfloat16"),
    (torch.float16, 2048, "float16 or TF32"),
])  # fmt: skip
def test_positions_that_were_cast_are_no_end_of_a_table(dtype, last, by):
    (found,) = probe.identify(lambda x, at: turning()(x, at.to(dtype).long()), dim=DIM).explain(group())
    told = f"positions {last} and {last + 1} coincide, whatever x has: they are rounded, as by {by}"
    assert str(found) == f"R10 error: {told}"


def test_rounded_positions_are_told_whatever_the_dtype_of_x():
    found = mistaken(probe.identify(half_tables(torch.bfloat16, positions_too=True), dim=DIM).findings, "R10")
    assert "in torch.bfloat16 positions 256 and 257 coincide: they are rounded" in found
    assert "steps are uneven" in found


def test_a_module_that_was_cast_whole_is_named():
    class Casts(Module):
        def forward(self, x, at):
            angles = (at[..., None] * self.theta.float()).repeat(1, 1, 2)
            return angles.cos().to(x.dtype), angles.sin().to(x.dtype)

    found = probe.identify(adapters.tables(apply, Casts().to(torch.bfloat16)), dim=DIM).explain(group())
    assert "the frequencies are those asked for, rounded to bfloat16" in mistaken(found, "R11")


def test_an_unknown_mistake_names_the_pair_that_is_farthest_off():
    theta = PLAIN.clone()
    theta[7] *= 1.5
    assert "pair 7 turns by" in mistaken(probe.identify(turning(theta), dim=DIM).explain(group()), "R4")


@pytest.mark.parametrize(
    "amplitude, words",
    [
        (1.0, "forgotten"),
        (scaling.yarn_temperature(8) ** 2, "applied twice"),
        (scaling.yarn_temperature(8) ** 0.5, "the root of the factor"),
        (1 / scaling.yarn_temperature(8), "the factor divides"),
        (3.0, "amplitude 3,"),
    ],
)
def test_a_mistake_in_the_amplitude_is_named(amplitude, words):
    found = probe.identify(turning(by_yarn(), amplitude=amplitude), dim=DIM).explain(group(**YARN))
    assert words in mistaken(found, "R5")


@pytest.mark.parametrize(
    "fn, against, code, words",
    [
        (turning(layout="interleaved"), group(), "R2", "turns pairs of neighbours, and this family stores"),
        (turning(sign=-1), group(), "R3", "clockwise"),
        (turning(offset=1), group(), "R1", "turned already, by 1 positions"),
        (turning(), group(partial_rotary_factor=0.5), "R6", "64 features turn, 32 of 64 should"),
        (lambda x, at: x, group(), "R6", "nothing turns"),
        (turning(), replace(group(), scheme="none"), "R6", "do not rotate, and the function does"),
    ],
)
def test_a_mistake_of_another_kind_is_named(fn, against, code, words):
    assert words in mistaken(probe.identify(fn, dim=DIM).explain(against), code)


def ignores_positions(x, at):
    return turning()(x, torch.arange(len(at)))


def along_the_heads(x, at):
    return turning()(x.transpose(1, 2), torch.arange(x.shape[1])).transpose(1, 2)


def positions_in_its_dtype(x, at):
    return turning()(x, at.to(x.dtype).long())


class Remembers:
    """Dynamic scaling that does not go back."""

    def __init__(self):
        self.longest = 4096

    def __call__(self, x, at):
        self.longest = max(self.longest, int(at.max()) + 1)
        return turning(scaling.dynamic_ntk(PLAIN, self.longest, 4096, 4))(x, at)


def with_a_table(x, at):
    table = frequencies.angles(torch.arange(4096), PLAIN)
    return rotary.rotate(x, table[at], layout="halves")


@pytest.mark.parametrize(
    "fn, code, severity",
    [
        (ignores_positions, "R8", "error"),
        (positions_in_its_dtype, "R10", "error"),
        (Remembers(), "R13", "error"),
        (with_a_table, "R15", "note"),
    ],
)
def test_a_function_that_reads_positions_wrongly_is_found_out(fn, code, severity):
    found = probe.identify(fn, dim=DIM).findings
    assert (code, severity) in [(f.code, f.severity) for f in found], "\n".join(map(str, found))


def one_late(x, at):
    return turning()(x, at + (len(at) == 1))


def one_and_a_half(x, at):
    return turning()(x, 1.5 * at if len(at) == 1 else at)


def consecutive(x, at):
    if (at.diff() != 1).any():
        raise ValueError("one after\nanother")
    return turning()(x, at)


def by_rows(x, at, mixed=lambda at: at):
    """Takes positions of (batch, seq) too."""
    at = mixed(at)
    angles = frequencies.angles(at, PLAIN)
    return rotary.rotate(x, angles if at.ndim == 1 else angles[:, None], layout="halves")


def first_row_for_all(x, at):
    return by_rows(x, at, lambda at: at if at.ndim == 1 else at[:1].expand(at.shape))


def one_length(x, at):
    theta = scaling.dynamic_ntk(PLAIN, int(at.max()) + 1, 4096, 4)
    angles = frequencies.angles(at, theta)
    return rotary.rotate(x, angles if at.ndim == 1 else angles[:, None], layout="halves")


def never_in_half(x, at):
    if x.dtype != torch.float32:
        raise TypeError("float32 only")
    return turning()(x, at)


def angles_in_its_dtype(x, at):
    angles = (at[:, None] * PLAIN.to(x.dtype)).to(x.dtype).double()
    return rotary.rotate(x, angles, layout="halves")


def mixing(swap, table, theta=PLAIN, width=DIM, amplitude=1.0, sign=1):
    """Swaps the partners of one layout, with cosines and sines that lie as for another."""

    def fn(x, at):
        angles = sign * at[:, None] * theta
        angles = angles.repeat(1, 2) if table == "halves" else angles.repeat_interleave(2, dim=-1)
        part, rest = x[..., :width], x[..., width:]
        if swap == "halves":
            a, b = part.chunk(2, dim=-1)
            swapped = torch.cat((-b, a), dim=-1)
        else:
            swapped = torch.stack((-part[..., 1::2], part[..., ::2]), dim=-1).flatten(-2)
        turned = amplitude * (part * angles.cos() + swapped * angles.sin())
        return torch.cat((turned, rest), dim=-1).to(x.dtype)

    return fn


def angles_in_bfloat16(x, at):
    return rotary.rotate(x, (at[:, None] * PLAIN).bfloat16().double(), layout="halves")


def wraps_round(x, at):
    return turning()(x, at % 4096)


def ends(x, at):
    return turning()(x, at.clamp(max=4095))


def turned_less_with_each_position(x, at):
    return turning()(x, at) * (1 + at[:, None] / 100)


def of_some_amplitudes(x, at):
    return turning()(x, at) * (1 + torch.arange(DIM) % 32 / 100)


def some_the_other_way(x, at):
    return turning(PLAIN * torch.tensor([1.0] * 20 + [-1.0] * 12))(x, at)


def stretched_beyond(x, at):
    return 2 * turning(frequencies.geometric(16), width=16)(x, at)


def across(x, at):
    order = torch.tensor([0, 32, 2, 34, *(i for i in range(DIM) if i not in (0, 32, 2, 34))])
    return turning(layout="interleaved")(x[..., order], at)[..., order.argsort()]


@pytest.mark.parametrize(
    "fn, code, severity, words",
    [
        (some_the_other_way, "R3", "error", "some pairs turn one way and some the other"),
        (of_some_amplitudes, "R5", "error", "amplitudes from 1 to 1.31: one for all is due"),
        (stretched_beyond, "R6", "error", "features 16–63 do not turn, and come out changed"),
        (lambda x, at: x, "R7", "warning", "nothing varies with the position"),
        (ignores_positions, "R8", "error", "row at position 3 is row 0 of a sequence: positions are ignored"),
        (one_late, "R8", "error", "row at position 3 is row 4 of a sequence: the step is counted wrongly"),
        (one_and_a_half, "R8", "error", "row at position 3 is none of a sequence"),
        (ignores_positions, "R9", "error", "packed positions 0 1 2 0 1 are not followed"),
        (consecutive, "R9", "warning", "are refused: one after another"),
        (first_row_for_all, "R9", "error", "positions of (batch, seq), as with left padding, are mixed up"),
        (positions_in_its_dtype, "R10", "error", "in torch.bfloat16 positions 256 and 257 coincide"),
        (positions_in_its_dtype, "R10", "error", "in torch.float16 positions 2048 and 2049 coincide"),
        (angles_in_its_dtype, "R10", "error", "in torch.bfloat16"),
        (never_in_half, "R10", "note", "torch.bfloat16 at positions from 255 is refused: float32 only"),
        (angles_in_bfloat16, "R10", "error", "steps are uneven"),
        (turned_less_with_each_position, "R12", "error", "it depends on absolute positions"),
        (Remembers(), "R13", "error", "after a call with 8192 positions one with 4096 gives another result"),
        (one_length, "R13", "note", "rows turn otherwise in a text of 8192 tokens than in one of 4096"),
        (one_length, "R14", "error", "a row changes when one at position 8191 stands beside it"),
        (with_a_table, "R15", "note", "8192 positions are refused: index"),
        (wraps_round, "R15", "error", "position 4096 turns like position 0"),
        (ends, "R15", "error", "position 4096 turns like position 4095"),
    ],
)
def test_every_message_has_a_fault_that_brings_it(fn, code, severity, words):
    found = probe.identify(fn, dim=DIM).findings
    assert any((f.code, f.severity) == (code, severity) and words in f.message for f in found), found


def test_a_function_without_fault_that_takes_rows_has_no_finding():
    assert probe.identify(by_rows, dim=DIM).findings == ()


def test_pairs_in_no_known_order_are_told():
    report = probe.identify(across, dim=DIM)
    assert report.layout == "unknown"
    assert "neither neighbours nor" in mistaken(report.explain(group()), "R2")


def test_one_length_for_all_rows_is_declared_where_frequencies_depend_on_it():
    report = probe.identify(one_length, dim=DIM)
    codes = [f.code for f in report.explain(group(**DYNAMIC | {"factor": 4.0}))]
    assert "R14" in [f.code for f in report.findings]
    assert "R14" not in codes


def test_what_a_function_does_besides_is_told_with_a_configuration_too():
    fn = adapters.tables(apply, Module())
    report = probe.identify(fn, dim=DIM)
    assert [f.severity for f in report.findings if f.code == "R11"] == ["warning", "note"]
    assert report.explain(group()) == report.findings
    assert_matches(fn, group())  # an error alone is a failure
    (first, *besides) = report.explain(group(rope_theta=5e5))
    assert str(first) == "R4 error: base 10000, and 500000 is asked for"
    assert tuple(besides) == report.findings
    with pytest.raises(AssertionError) as raised:
        assert_matches(fn, group(rope_theta=5e5))
    assert str(raised.value) == str(first)


@pytest.mark.parametrize("kind", ["gpt_neox", "glm"])
@pytest.mark.parametrize("swap", ["halves", "interleaved"])
@pytest.mark.parametrize("sign, amplitude", [(1, 1.0), (-1, 1.25)])
@pytest.mark.parametrize("width", [DIM, 32])
def test_a_table_of_one_layout_with_the_swap_of_the_other_is_named(kind, swap, sign, amplitude, width):
    """And nothing follows from it but that scores depend on the place."""
    table = {"halves": "interleaved", "interleaved": "halves"}[swap]
    theta = frequencies.geometric(width, 5e5)
    report = probe.identify(mixing(swap, table, theta, width, amplitude, sign), dim=DIM)
    names = {"halves": "pairs (i, i + width/2)", "interleaved": "pairs of neighbours"}
    told = f"cosines and sines lie as for {names[table]}, and {names[swap]} are swapped"
    assert [f.code for f in report.findings if f.severity == "error"] == ["R2", "R12"]
    assert mistaken(report.findings, "R2") == told
    assert (report.layout, report.direction, report.rotary_dim) == (swap, sign, width)
    assert report.amplitude == pytest.approx(amplitude, rel=1e-6)
    torch.testing.assert_close(report.frequencies, theta, rtol=1e-5, atol=0)
    against = group(model_type=kind, rope_theta=5e5, partial_rotary_factor=width / DIM)
    against = replace(against, attention_factor=amplitude)
    expected = ["R2", "R12"] if sign == 1 else ["R3", "R2", "R12"]
    assert [f.code for f in report.explain(against) if f.severity == "error"] == expected


@pytest.mark.parametrize("layout", ["halves", "interleaved"])
def test_a_table_and_a_swap_of_one_layout_are_right(layout):
    kind = {"halves": "gpt_neox", "interleaved": "glm"}[layout]
    fn = mixing(layout, layout)
    assert [f for f in probe.identify(fn, dim=DIM).findings if f.severity != "note"] == []
    assert_matches(fn, group(model_type=kind, partial_rotary_factor=1.0))


def test_steps_are_not_called_uneven_where_amplitudes_vary():
    def fn(x, at):  # the two features of a pair are stretched differently
        return turning()(x, at) * (1 + torch.arange(DIM) / 100)

    found = [f.code for f in probe.identify(fn, dim=DIM).findings if f.severity == "error"]
    assert "R5" in found
    assert "R10" not in found


@pytest.mark.parametrize("theta", [torch.ones(1), torch.full((32,), 0.5)])
def test_where_all_angles_are_one_the_layouts_are_not_mixed(theta):
    """Though the angles of neighbours are then those of halves."""
    theta = theta.double()
    report = probe.identify(turning(theta, width=2 * len(theta)), dim=DIM)
    assert report.findings == ()


def test_that_nothing_turns_is_told_once():
    report = probe.identify(lambda x, at: x, dim=DIM)
    assert [str(f) for f in report.explain(group())] == ["R6 error: nothing turns; 64 of 64 features should"]
    assert report.explain(replace(group(), scheme="none")) == ()


# --- modules -----------------------------------------------------------------------------------------------


class Module(torch.nn.Module):
    """Holds its frequencies as asked for, and gives cosines and sines."""

    def __init__(self, persistent=False, dtype=torch.float32):
        super().__init__()
        self.register_buffer("theta", PLAIN.to(dtype), persistent=persistent)

    def forward(self, x, at):
        angles = (at[..., None] * self.theta).float().repeat(1, 1, 2)
        return angles.cos().to(x.dtype), angles.sin().to(x.dtype)

    def turn(self, x, offset=0):
        cos, sin = self(x, torch.arange(offset, offset + x.shape[-2])[None])
        return apply(x, x, cos, sin)[0]


class Constant(Module):
    """Makes its frequencies anew in each call, so that nothing can happen to them."""

    def __init__(self):
        torch.nn.Module.__init__(self)

    theta = property(lambda self: PLAIN.float())


class Forgets(Constant):
    def __deepcopy__(self, memo):
        other = Constant()
        other.forward = lambda x, at: Constant.forward(other, x, at + 1)
        return other


def apply(q, k, cos, sin, sign=1):
    def turn(x):
        a, b = x.chunk(2, dim=-1)
        return x * cos[:, None] + sign * torch.cat((-b, a), dim=-1) * sin[:, None]

    return turn(q), turn(k)


@pytest.mark.parametrize(
    "module, severity, words",
    [
        (Module(), "warning", "module.to(torch.bfloat16) rounds the frequencies: at position 1000 off by"),
        (Module(), "note", "built on the meta device and loaded, the module has no frequencies"),
        (Module(persistent=True), "note", "state_dict holds theta"),
        (Forgets(), "error", "a deep copy of the module gives another result"),
    ],
)
def test_what_becomes_of_a_modules_frequencies_is_told(module, severity, words):
    for fn in (adapters.tables(apply, module), adapters.counting(module.turn)):
        found = [f for f in probe.identify(fn, dim=DIM).findings if f.code == "R11"]
        assert any(f.severity == severity and words in f.message for f in found), found


def test_a_module_inside_of_a_function_is_told_not_to_have_been_asked():
    class Holder:
        def __init__(self, module):
            self.inner = module

        def turn(self, x, at):
            return adapters.tables(apply, self.inner)(x, at)

    inner = Module()
    adapted = adapters.tables(apply, lambda x, at: inner(x, at))
    for fn in (lambda x, at: adapters.tables(apply, inner)(x, at), Holder(inner).turn, adapted):
        (found,) = [f for f in probe.identify(fn, dim=DIM).findings if f.code == "R11"]
        told = "inner is a module inside of a function: casting, saving and loading it were not asked"
        assert (found.severity, found.message.partition(";")[0]) == ("note", told)


def test_a_module_that_cannot_be_tried_as_a_copy_says_so():
    module = Module()
    module.load_state_dict = lambda state: (_ for _ in ()).throw(RuntimeError("sealed"))
    found = probe.identify(adapters.tables(apply, module), dim=DIM).findings
    assert "could not be tried as a copy: sealed" in mistaken(found, "R11")


def test_a_module_that_makes_its_frequencies_in_each_call_has_no_trouble_with_copies():
    (found,) = probe.identify(adapters.tables(apply, Constant()), dim=DIM).findings
    assert "angles are taken in float32" in found.message


# --- what a right verdict leaves open ----------------------------------------------------------------------


def test_angles_in_float32_are_a_note_and_in_float64_none():
    def fn(x, at, dtype=torch.float32):
        return rotary.rotate(x, at[:, None].to(dtype) * PLAIN.to(dtype), layout="halves")

    report = probe.identify(fn, dim=DIM)
    (found,) = report.findings
    assert str(found).startswith("R10 note: steps are uneven by up to 0.0")
    assert "angles are taken in float32: right to about 1e-7 of the position" in found.message
    # What the note says of the error: no more than that, near the end, and no less than a tenth of it.
    at = torch.arange(8192)
    off = (at[:, None].float() * PLAIN.float() - at[:, None] * PLAIN.float().double()).abs().max()
    assert 1e-8 * 8192 < off < 1e-7 * 8192
    assert report.explain(group()) == (found,)
    assert probe.identify(lambda x, at: fn(x, at, torch.float64), dim=DIM).findings == ()


def test_a_result_of_another_dtype_is_a_note():
    def fn(x, at):
        return turning()(x.float(), at)

    (found,) = probe.identify(fn, dim=DIM).findings
    assert str(found) == (
        "R10 note: what comes back has another dtype than x: torch.float32 for torch.bfloat16, "
        "torch.float32 for torch.float16"
    )
    assert_matches(fn, group())


@pytest.mark.parametrize("rows", [256, 2048])
def test_a_table_that_ends_where_half_precision_is_asked_is_not_rounded(rows):
    found = probe.identify(lambda x, at: turning()(x, at.clamp(max=rows - 1)), dim=DIM).findings
    assert mistaken(found, "R10") == ""
    assert f"position {rows} turns like position {rows - 1}" in mistaken(found, "R15")


# --- heads and positions -----------------------------------------------------------------------------------

WRAP = "it runs where x is (batch, seq, heads, dim): wrap it in posbook.practice.adapters.heads_last"


def of_heads_last(width):
    """Turns x of (batch, seq, heads, dim), as Meta's Llama does."""
    theta = frequencies.geometric(width)

    def fn(x, at):
        angles = (at[:, None] * theta).repeat(1, 2)[:, None]
        part, rest = x[..., :width], x[..., width:]
        a, b = part.chunk(2, dim=-1)
        turned = part * angles.cos() + torch.cat((-b, a), dim=-1) * angles.sin()
        return (turned if width == DIM else torch.cat((turned, rest), dim=-1)).to(x.dtype)

    return fn


@pytest.mark.parametrize(
    "width, what", [(DIM // 2, "fn raised RuntimeError"), (DIM, "must return the shape")]
)
def test_a_function_of_heads_after_positions_is_told_its_adapter(width, what):
    fn = of_heads_last(width)
    with pytest.raises(ValueError, match=what) as raised:
        probe.identify(fn, dim=DIM)
    assert str(raised.value).endswith(WRAP)
    report = probe.identify(adapters.heads_last(fn), dim=DIM)
    assert (report.layout, report.features) == ("halves", tuple(range(width)))
    assert [f for f in report.findings if f.severity == "error"] == []


def test_one_that_runs_all_the_same_is_told_it_too():
    def fn(x, at):  # positions are those of the first axis of two
        return of_heads_last(DIM)(x, at[: x.shape[1]] if len(at) >= x.shape[1] else torch.arange(x.shape[1]))

    report = probe.identify(fn, dim=DIM)
    assert report.layout == "none"
    assert mistaken(report.findings, "R7").endswith(WRAP)
    assert [f.code for f in report.explain(group())] == ["R6", "R7"]


@pytest.mark.parametrize("fn", [lambda x, at: x @ torch.eye(3), lambda x, at: x[..., :2]])
def test_one_that_is_wrong_either_way_is_told_no_adapter(fn):
    with pytest.raises(ValueError) as raised:  # noqa: PT011
        probe.identify(fn, dim=DIM)
    assert "heads_last" not in str(raised.value)


def test_a_module_with_saved_frequencies_survives_the_meta_device():
    found = probe.identify(adapters.tables(apply, Module(persistent=True)), dim=DIM).findings
    assert "meta" not in mistaken(found, "R11")


def test_the_module_itself_is_left_as_it_was():
    module = Module()
    before = copy.deepcopy(module.state_dict()), module.theta.clone()
    probe.identify(adapters.tables(apply, module), dim=DIM)
    assert module.theta.dtype == torch.float32
    assert (module.state_dict(), module.theta.tolist()) == (before[0], before[1].tolist())


@pytest.mark.parametrize(
    "turn_keys, severity, words",
    [
        (lambda k, cos, sin: k, "error", "it depends on absolute positions"),
        (lambda k, cos, sin: apply(k, k, cos, sin, sign=-1)[0], "error", "depends on absolute positions"),
        (lambda k, cos, sin: 2 * apply(k, k, cos, sin)[0], "warning", "keys are not turned as queries"),
    ],
)
def test_keys_that_are_not_turned_as_queries_are_found_out(turn_keys, severity, words):
    def both(q, k, cos, sin):
        return apply(q, q, cos, sin)[0], turn_keys(k, cos, sin)

    found = probe.identify(adapters.tables(both, Constant()), dim=DIM).findings
    assert any((f.code, f.severity) == ("R12", severity) and words in f.message for f in found), found


def test_other_forms_are_the_same_function():
    plain = turning()

    def heads_after(x, at):
        return plain(x.transpose(1, 2), at).transpose(1, 2)

    def complex_tables(x, at):
        return torch.polar(torch.ones(1).double(), frequencies.angles(at, PLAIN))

    def complex_apply(q, k, table):
        a, b = q.double().chunk(2, dim=-1)
        turned = torch.complex(a, b) * table[:, None]
        return torch.cat((turned.real, turned.imag), dim=-1).to(q.dtype)

    forms = (
        adapters.heads_last(heads_after),
        adapters.heads_last(adapters.heads_last(adapters.tables(apply, Constant()))),
        adapters.tables(complex_apply, complex_tables),
        adapters.angles(
            lambda x, angles, scale: scale * rotary.rotate(x, angles, layout="halves"),
            lambda at: (frequencies.angles(at, PLAIN), 1.0),
        ),
        adapters.counting(Constant().turn),
    )
    for fn in forms:
        report = probe.identify(fn, dim=DIM)
        assert (report.layout, report.direction, report.rotary_dim) == ("halves", 1, DIM)
        torch.testing.assert_close(report.frequencies, PLAIN, rtol=1e-5, atol=0)
        assert [f for f in report.findings if f.severity == "error"] == []


def test_a_longer_call_sees_a_later_trained_length():
    late = Remembers()
    late.longest = 16_384

    def fn(x, at):
        late.longest = max(late.longest, int(at.max()) + 1)
        return turning(scaling.dynamic_ntk(PLAIN, late.longest, 16_384, 4))(x, at)

    assert mistaken(probe.identify(fn, dim=DIM).findings, "R13") == ""
    assert "the past is kept" in mistaken(probe.identify(fn, dim=DIM, longest=32_768).findings, "R13")


@pytest.mark.parametrize("options, words", [({"dim": 1}, "dim=1"), ({"dim": 4, "longest": 8}, "longest=8")])
def test_too_little_to_measure_is_refused(options, words):
    with pytest.raises(ValueError, match=words):
        probe.identify(turning(), **options)


def test_every_code_of_a_finding_in_the_package_is_tried_here_or_beside():
    folder = Path(probe.__file__).parent
    text = "".join((folder / name).read_text("utf-8") for name in ("probe.py", "tables.py"))
    tried = "".join(path.read_text("utf-8") for path in Path(__file__).parent.glob("test_*.py"))
    codes = set(re.findall(r'Finding\(\s*"([RA]\d+)"', text))
    assert codes == {*(f"R{i}" for i in range(1, 16)), *(f"A{i}" for i in range(1, 7))}
    assert {code for code in codes if f'"{code}"' in tried} == codes


def test_positions_read_from_the_axis_of_the_heads_are_found_out():
    found = probe.identify(
        lambda x, at: turning()(x, at) if x.shape[1] == 1 else along_the_heads(x, at), dim=DIM
    )
    assert "R7" in [f.code for f in found.findings]


def recorded():
    """One group of each kind that the recorded configurations ask for."""
    text = (Path(probe.__file__).parent / "data" / "rope_configs.jsonl").read_text("utf-8")
    groups = {}
    for record in map(json.loads, text.splitlines()):
        for each in config.read(record["config"]).groups:
            if each.scheme == "rotary" and each.rotary_dim % 2 == 0 and each.layout != "unknown":
                groups[replace(each, layers=(), kinds=())] = record["id"]
    return [pytest.param(each, id=name) for each, name in groups.items()]


@pytest.mark.parametrize("against", recorded())
def test_a_right_function_of_a_recorded_configuration_has_no_finding(against):
    layout = against.layout
    theta, dim = against.frequencies(), against.head_dim
    fn = turning(theta, layout, amplitude=against.attention_factor, width=against.rotary_dim)
    assert probe.identify(fn, dim=dim, longest=64).explain(against) == ()
    # The same of the last features has one, unless the whole head turns.
    moved = probe.identify(of_the_last(fn, against.rotary_dim), dim=dim, longest=64).explain(against)
    assert [f.code for f in moved] == (["R6"] if against.rotary_dim < dim else [])


def test_a_right_function_matches_and_a_wrong_one_does_not():
    assert_matches(turning(by_yarn(), amplitude=scaling.yarn_temperature(8)), group(**YARN))
    with pytest.raises(AssertionError, match=r"R4 error: .*'yarn' is not applied(.|\n)*R5 error"):
        assert_matches(turning(), group(**YARN))


@pytest.mark.parametrize(
    "fn, words",
    [
        (lambda x, at: x[..., :2], r"shape of x, \(64, 1, 2, 64\), not \(64, 1, 2, 2\)"),
        (lambda x, at: None, "not NoneType"),
        (lambda x, at: x.long(), "real numbers, as torch.float32, not torch.int64"),
        (lambda x, at: x + 1, "adds something"),
        (lambda x, at: x * math.nan, "NaN or infinity"),
    ],
)
def test_what_is_no_rotation_is_refused(fn, words):
    with pytest.raises(ValueError, match=words):
        probe.identify(fn, dim=DIM)

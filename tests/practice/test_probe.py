r"""A function nobody has documented is named: layout, direction, frequencies, amplitude, and its mistake."""

import math
from dataclasses import replace

import pytest
import torch

from posbook import frequencies, rotary, scaling
from posbook.practice import assert_matches, config, probe

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


def test_exponents_over_the_whole_head_are_named():
    against = group(partial_rotary_factor=0.5)
    wrong = 1e4 ** (-2 * torch.arange(16, dtype=torch.float64) / DIM)
    found = probe.identify(turning(wrong, width=32), dim=DIM).explain(against)
    assert "exponents over the head's 64 features, where 32 turn" in mistaken(found, "R4")


def test_an_unknown_mistake_names_the_pair_that_is_farthest_off():
    theta = PLAIN.clone()
    theta[7] *= 1.5
    assert "pair 7 turns by" in mistaken(probe.identify(turning(theta), dim=DIM).explain(group()), "R4")


@pytest.mark.parametrize(
    "amplitude, words",
    [(1.0, "forgotten"), (scaling.yarn_temperature(8) ** 2, "applied twice"), (3.0, "amplitude 3,")],
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


def test_positions_read_from_the_axis_of_the_heads_are_found_out():
    found = probe.identify(
        lambda x, at: turning()(x, at) if x.shape[1] == 1 else along_the_heads(x, at), dim=DIM
    )
    assert "R7" in [f.code for f in found.findings]


def test_a_right_function_matches_and_a_wrong_one_does_not():
    assert_matches(turning(by_yarn(), amplitude=scaling.yarn_temperature(8)), group(**YARN))
    with pytest.raises(AssertionError, match=r"R4 error: .*'yarn' is not applied(.|\n)*R5 error"):
        assert_matches(turning(), group(**YARN))


@pytest.mark.parametrize(
    "fn, words",
    [
        (lambda x, at: x[..., :2], r"shape of x, \(64, 1, 2, 64\), not \(64, 1, 2, 2\)"),
        (lambda x, at: None, "not NoneType"),
        (lambda x, at: x + 1, "adds something"),
        (lambda x, at: x * math.nan, "NaN or infinity"),
    ],
)
def test_what_is_no_rotation_is_refused(fn, words):
    with pytest.raises(ValueError, match=words):
        probe.identify(fn, dim=DIM)

import jaxtyping
import pytest
import torch

from posbook import axial, frequencies, rotary
from tests import assert_close, by_equation, by_equation_tables

QWEN2, QWEN3 = axial.chunked([2, 3, 3]), axial.interleaved([4, 2, 2])
ASSIGNED = pytest.mark.parametrize(
    "axes", [QWEN2, QWEN3, [1, 2, 1, 2, 1, 2, 0, 0]], ids=["chunked", "interleaved", "own"]
)


def randn(*shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


def score(q, k, here, there, angles):
    """Query at one place, key at another, turned by rotary."""
    turned = (
        rotary.rotate(x[None], angles(torch.tensor([place])), layout="interleaved")
        for x, place in ((q, here), (k, there))
    )
    return (next(turned) * next(turned)).sum()


def letters(axes):
    return "".join("TRC"[axis] for axis in axes)


def test_chunks_follow_each_other():
    assert letters(axial.chunked([16, 24, 24])) == "T" * 16 + "R" * 24 + "C" * 24


def test_turns_alternate_until_only_time_is_left():
    assert letters(axial.interleaved([24, 20, 20])) == "TRC" * 20 + "TTTT"
    assert letters(axial.interleaved([3, 3, 2])) == "TRCTRCTR"
    assert letters(axial.interleaved([3, 1, 2])) == "TRCTTC"
    assert axial.interleaved([2, 2]) == [0, 1, 0, 1]
    assert axial.interleaved([3]) == [0, 0, 0]


@pytest.mark.parametrize("sections", [[4, 2, 2], [5, 5, 5], [7, 1, 3], [9, 0, 1], [3, 2, 2, 2]])
def test_each_axis_has_as_many_pairs_as_its_section_says(sections):
    for assign in (axial.chunked, axial.interleaved):
        axes = assign(sections)
        assert [axes.count(axis) for axis in range(len(sections))] == sections


@ASSIGNED
def test_every_pair_turns_by_the_coordinate_of_its_axis(axes):
    theta = by_equation.geometric(16)
    places = [[5, 0, 3], [5, 2, 0], [9, 9, 9], [-1, 4, 700]]
    expected = [[place[axis] * t for axis, t in zip(axes, theta, strict=True)] for place in places]
    assert_close(axial.angles(torch.tensor(places), frequencies.geometric(16), axes), expected)


@ASSIGNED
def test_the_score_is_the_closed_form_in_the_offsets_along_the_axes(axes):
    q, k = randn(2, 16)
    here, there = [3, 1, 4], [1, 5, 9]
    expected = by_equation_tables.axial_score(
        q.tolist(), k.tolist(), here, there, by_equation.geometric(16), axes
    )
    assert_close(
        score(q, k, here, there, lambda p: axial.angles(p, frequencies.geometric(16), axes)), expected
    )


@pytest.mark.parametrize(
    "angles",
    [
        lambda places: axial.angles(places, frequencies.geometric(12), axial.chunked([1, 2, 3])),
        lambda places: axial.angles(places, frequencies.geometric(12), axial.interleaved([2, 2, 2])),
        lambda places: axial.split(places, frequencies.geometric(4)),
    ],
    ids=["chunked", "interleaved", "split"],
)
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_scores_depend_only_on_the_offset_along_every_axis(angles, axis):
    q, k = randn(2, 12)
    here, there = torch.tensor([3, 1, 4]), torch.tensor([1, 5, 9])
    step = torch.zeros(3, dtype=torch.long)
    step[axis] = 100
    scores = [
        score(q, k, (here + a * step).tolist(), (there + b * step).tolist(), angles)
        for a, b in ((0, 0), (1, 1), (7, 7), (0, 1))
    ]
    assert_close(scores[1], scores[0], tolerance=1e-11)
    assert_close(scores[2], scores[0], tolerance=1e-11)
    assert abs(scores[3] - scores[0]) > 1e-3


@ASSIGNED
def test_text_is_plain_rotary(axes):
    at, theta = torch.tensor([0, 1, 17, 100_000]), frequencies.geometric(16)
    assert_close(axial.angles(at[:, None].expand(-1, 3), theta, axes), frequencies.angles(at, theta))


def test_split_axes_are_alike_and_stand_one_after_the_other():
    theta = frequencies.geometric(8)
    places = torch.cartesian_prod(torch.arange(2), torch.arange(3))
    rows, columns = (frequencies.angles(places[:, axis], theta) for axis in (0, 1))
    assert_close(axial.split(places, theta), torch.cat((rows, columns), dim=-1))
    assert_close(axial.split(places[:, :1], theta), rows)


def test_each_row_of_a_batch_has_its_own_places():
    places = torch.randint(0, 9, (2, 5, 3), generator=torch.Generator().manual_seed(0))
    theta, x = frequencies.geometric(16), randn(2, 4, 5, 16)
    angles = axial.angles(places, theta, QWEN3)
    turned = rotary.rotate(x, angles[:, None], layout="halves")
    for row in range(2):
        alone = rotary.rotate(x[row], axial.angles(places[row], theta, QWEN3), layout="halves")
        assert_close(turned[row], alone)


def test_it_compiles_whole(monkeypatch):
    # Dynamo cannot see through the shape checks of the tests.
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    places, theta = torch.tensor([[1, 2, 3], [4, 5, 6]]), frequencies.geometric(16)
    whole = torch.compile(lambda p: axial.angles(p, theta, QWEN2), backend="eager", fullgraph=True)
    assert_close(whole(places), axial.angles(places, theta, QWEN2))


@pytest.mark.parametrize(
    "call, says",
    [
        (lambda p, t: axial.angles(p, t, axial.chunked([16, 24, 24])), "64 pairs, .* 8 frequencies"),
        (lambda p, t: axial.angles(p.T, t, QWEN2), r"axes \[0, 1, 2\] .* not \(3, 2\).*movedim"),
        (lambda p, t: axial.angles(p[:, :2], t, QWEN2), r"axes \[0, 1, 2\] .* not \(2, 2\)"),
        (lambda p, t: axial.angles(p, t, axial.chunked([4, 4])), r"axes \[0, 1\] .* not \(2, 3\)"),
        (lambda p, t: axial.angles(p, t, [-1] * 8), r"axes \[-1\] .* not \(2, 3\)"),
        (lambda p, t: axial.angles(p[0], t, QWEN2), r"\(\.\.\., seq, axes\).* not \(3,\)"),
        (lambda p, t: axial.split(p[0], t), r"\(\.\.\., seq, axes\).* not \(3,\)"),
        (lambda p, t: axial.angles(p.bfloat16(), t, QWEN2), "positions in torch.bfloat16"),
        (lambda p, t: axial.chunked([9, -1]), r"not negative, not \[9, -1\]"),
        (lambda p, t: axial.interleaved([9, -1]), r"not negative, not \[9, -1\]"),
        (lambda p, t: axial.interleaved([16, 24, 24]), "axis 1 would read pair 70, but the last is 63"),
        (lambda p, t: axial.interleaved([1, 2]), "axis 1 would read pair 3, but the last is 2"),
        (lambda p, t: axial.interleaved([1, 1, 2]), "axis 2 would read pair 5, but the last is 3"),
    ],
)
def test_bad_input_is_refused_by_name(call, says, monkeypatch):
    # Without the shape checks of the tests, as a user would run it.
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    with pytest.raises(ValueError, match=says):
        call(torch.tensor([[1, 2, 3], [4, 5, 6]]), frequencies.geometric(16))

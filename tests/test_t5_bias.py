import jaxtyping
import pytest
import torch

from posbook import positions, t5_bias
from tests import WORKED, by_equation

FAR = torch.arange(-3000, 3001)[None]


@pytest.mark.parametrize("bidirectional", [True, False])
@pytest.mark.parametrize(
    "buckets, max_distance", [(32, 128), (32, 100), (16, 64), (4, 128), (64, 2048), (8, 1024)]
)
def test_buckets_follow_the_equation(bidirectional, buckets, max_distance):
    options = {"bidirectional": bidirectional, "buckets": buckets, "max_distance": max_distance}
    expected = [by_equation.t5_bucket(offset, **options) for offset in FAR[0].tolist()]
    assert t5_bias.buckets(FAR, **options)[0].tolist() == expected


@pytest.mark.parametrize("bidirectional", [True, False])
def test_buckets_agree_with_the_worked_examples(bidirectional):
    worked = WORKED["t5_bucket_bidirectional_and_causal"]
    offsets = torch.tensor([[int(offset) for offset in worked]])
    expected = [pair[0 if bidirectional else 1] for pair in worked.values()]
    assert t5_bias.buckets(offsets, bidirectional=bidirectional).tolist() == [expected]


def test_short_integers_fall_in_the_same_buckets():
    offsets = torch.arange(-100, 100)[None]
    for dtype in (torch.int8, torch.int32):
        assert torch.equal(
            t5_bias.buckets(offsets.to(dtype), bidirectional=True),
            t5_bias.buckets(offsets, bidirectional=True),
        )


def test_the_last_bucket_begins_before_max_distance():
    past = torch.arange(0, -200, -1)[None]
    causal, both = (t5_bias.buckets(past, bidirectional=way)[0].tolist() for way in (False, True))
    assert causal.index(31) == 113
    assert both.index(15) == 91


def test_bucket_sixteen_is_never_used_in_both_directions():
    assert set(t5_bias.buckets(FAR, bidirectional=True)[0].tolist()) == set(range(32)) - {16}
    assert set(t5_bias.buckets(FAR, bidirectional=False)[0].tolist()) == set(range(32))


def test_a_whole_ratio_of_logarithms_falls_in_the_upper_bucket():
    # ln(16/8)/ln(128/8)·8 is exactly 2, and ln(32/8)/ln(128/8)·8 exactly 4.
    at = torch.tensor([[-15, -16, -31, -32, -63, -64]])
    assert t5_bias.buckets(at, bidirectional=True).tolist() == [[9, 10, 11, 12, 13, 14]]


def test_the_bias_reads_each_heads_column():
    table = torch.arange(32.0)[:, None] + 100 * torch.arange(3)
    at = torch.tensor([[0, 1, 2], [4, 9, 50]])
    buckets = t5_bias.buckets(positions.offsets(queries=at, keys=at), bidirectional=True)
    bias = t5_bias.bias(table, buckets)
    assert bias.shape == (2, 3, 3, 3)
    for head in range(3):
        assert torch.equal(bias[:, head], buckets + 100.0 * head)


def test_a_cached_step_is_the_last_row():
    table, at = torch.randn(32, 2), torch.arange(6)
    full = t5_bias.buckets(positions.offsets(queries=at, keys=at), bidirectional=False)
    step = t5_bias.buckets(positions.offsets(queries=at[5:], keys=at), bidirectional=False)
    assert torch.equal(t5_bias.bias(table, step), t5_bias.bias(table, full)[:, 5:])


def test_it_runs_without_values_and_compiles_whole(monkeypatch):
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    table = torch.randn(32, 4)
    of = lambda offsets: t5_bias.bias(table.to(offsets.device), t5_bias.buckets(offsets, bidirectional=True))  # noqa: E731
    offsets = torch.arange(-9, 9).reshape(2, 9)
    assert torch.equal(torch.compile(of, backend="eager", fullgraph=True)(offsets), of(offsets))
    assert of(offsets.to("meta")).shape == (4, 2, 9)


@pytest.mark.parametrize(
    "options, says",
    [
        ({"bidirectional": True, "buckets": 31}, "even number of buckets, not buckets=31"),
        ({"bidirectional": True, "buckets": 2}, "at least 2 buckets, not 1"),
        ({"bidirectional": False, "buckets": 1}, "at least 2 buckets, not 1"),
        ({"bidirectional": False, "max_distance": 16}, "exceed the 16 exact distances, not be 16"),
    ],
)
def test_bad_buckets_are_refused_by_name(options, says):
    with pytest.raises(ValueError, match=says):
        t5_bias.buckets(torch.zeros(1, 1, dtype=torch.long), **options)


@pytest.mark.parametrize("bucket", [32, -1])
def test_a_bucket_outside_the_table_is_refused(bucket):
    with pytest.raises(ValueError, match=f"rows 0 to 31, not {bucket}"):
        t5_bias.bias(torch.zeros(32, 2), torch.tensor([[0, bucket]]))

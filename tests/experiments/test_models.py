r"""The decoder and its encodings, against attention written out and against the package's formulas."""

import math

import pytest
import torch

from posbook import alibi, attention, frequencies, positions, rotary, shaw, sinusoidal, t5_bias
from posbook.experiments import encodings, language
from posbook.experiments.decoder import Block, Decoder
from posbook.experiments.encodings import NAMES, ClampedRoPE, Encoding, make

HEADS, DIM, SEQ = 4, 32, 10


def by_hand(block, x, encoding, causal):
    """Attention of a block, with the functions of the package and a name for each encoding."""
    at = torch.arange(x.shape[1])
    q, k, v = (
        part.unflatten(-1, (HEADS, -1)).transpose(1, 2)
        for part in block.qkv(block.norm_attention(x)).chunk(3, dim=-1)
    )
    offsets = positions.offsets(queries=at, keys=at)
    bias = None
    if isinstance(encoding, encodings.RoPE):
        angles = frequencies.angles(at, frequencies.geometric(DIM // HEADS))
        q, k = (rotary.rotate(t, angles, layout="halves") for t in (q, k))
    elif isinstance(encoding, encodings.ALiBi):
        bias = alibi.bias(alibi.slopes(HEADS), offsets)
    elif isinstance(encoding, encodings.T5):
        rows = t5_bias.buckets(offsets, bidirectional=not causal, buckets=SEQ, max_distance=SEQ)
        bias = t5_bias.bias(10 * encoding.table, rows)
    elif isinstance(encoding, encodings.Shaw):
        bias = shaw.key_term(q, encoding.table, shaw.indices(offsets, encoding.clip))
    out = attention.attend(q, k, v, bias=bias, mask=attention.causal(len(at)) if causal else None)
    return block.mix(out.transpose(1, 2).flatten(-2))


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("name", NAMES)
def test_a_block_is_attention_as_the_package_writes_it(name, causal):
    torch.manual_seed(0)
    encoding = make(name, dim=DIM, heads=HEADS, length=SEQ, causal=causal)
    for parameter in encoding.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    block = Block(DIM, HEADS, layers=1)
    torch.nn.init.normal_(block.qkv.weight)
    x, at = torch.randn(2, SEQ, DIM), torch.arange(SEQ)
    expected = by_hand(block, x, encoding, causal)
    assert (block.attend(x, at, encoding, causal) - expected).abs().max() < 2e-6 * (1 + expected.abs().max())


@pytest.mark.parametrize("name", NAMES)
def test_the_future_does_not_reach_the_past_of_a_decoder(name):
    model = language.build(name, seed=0)
    a = torch.randint(0, 97, (1, 12), generator=torch.Generator().manual_seed(0))
    b = a.clone()
    b[:, 8:] = 5
    x, y = model(a), model(b)
    assert (x - y)[:, :8].abs().max() < 2e-6 * x.abs().max()
    assert (x - y)[:, 8:].abs().max() > 1e-3 * x.abs().max()


def test_what_is_added_to_the_tokens_is_the_table_or_the_sinusoids():
    x, at = torch.zeros(1, 6, DIM), torch.arange(6)
    learned = make("learned", dim=DIM, heads=HEADS, length=4)
    assert torch.equal(learned.embed(x, at)[0], learned.table[[0, 1, 2, 3, 3, 3]])
    expected = sinusoidal.encode(frequencies.angles(at, frequencies.geometric(DIM)))
    added = make("sinusoidal", dim=DIM, heads=HEADS, length=4).embed(x, at)[0]
    assert (added - expected).abs().max() < 2e-6


def test_only_the_encodings_that_are_learned_have_parameters():
    have = {
        name: sum(p.numel() for p in make(name, dim=64, heads=4, length=64).parameters()) for name in NAMES
    }
    expected = {"none": 0, "learned": 64 * 64, "sinusoidal": 0, "shaw": 33 * 16, "t5": 32 * 4, "alibi": 0}
    assert have == expected | {"rope": 0}


def test_no_encoding_gives_back_what_it_got():
    x, at = torch.randn(1, 2, 3, 4), torch.arange(3)
    nothing = Encoding()
    assert nothing.embed(x, at) is x
    assert nothing.rotate(x, x, at) == (x, x)
    assert nothing.bias(x, x, at) is None


def test_a_kept_pair_sees_no_offset_beyond_its_reach():
    generator = torch.Generator().manual_seed(0)
    q, k = torch.randn(2, 1, 2, 60, 16, generator=generator).double()
    theta, reach, at = frequencies.geometric(16), 20, torch.arange(60)
    kept = torch.tensor([1, 0, 1, 1, 0, 0, 1, 0]).bool()
    encoding = ClampedRoPE(theta, kept, reach)
    scores = attention.scores(*encoding.rotate(q, k, at)) + encoding.bias(q, k, at)
    for m, n in [(59, 0), (59, 39), (59, 38), (30, 30), (21, 0), (20, 0)]:
        total = 0.0
        for pair in range(8):
            offset = max(n - m, -reach) if kept[pair] else n - m
            a, b = q[0, 1, m, pair].item(), q[0, 1, m, pair + 8].item()
            c, d = k[0, 1, n, pair].item(), k[0, 1, n, pair + 8].item()
            w = offset * theta[pair].item()
            total += a * (c * math.cos(w) - d * math.sin(w)) + b * (c * math.sin(w) + d * math.cos(w))
        assert scores[0, 1, m, n].item() == pytest.approx(total / 4, rel=1e-12, abs=1e-12)


def test_a_width_that_the_heads_do_not_divide_is_refused():
    with pytest.raises(ValueError, match="dim=30 is no multiple of heads=4"):
        Decoder(Encoding(), symbols=5, dim=30, heads=4)


def test_an_unknown_encoding_is_refused_by_name():
    with pytest.raises(ValueError, match=r"one of none, learned, .*, not 'rotary'"):
        make("rotary", dim=32, heads=4, length=8)


def test_one_entry_for_each_pair_is_needed():
    with pytest.raises(ValueError, match="each of the 8 pairs, not 3"):
        ClampedRoPE(frequencies.geometric(16), torch.zeros(3).bool(), 4)


def test_a_model_starts_from_its_seed():
    a, b, c = (language.build("rope", seed=seed).head.weight for seed in (0, 0, 1))
    assert torch.equal(a, b)
    assert not torch.equal(a, c)

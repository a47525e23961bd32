import pytest
import torch

from posbook import alibi, frequencies, positions, rotary, scaling, sinusoidal, t5_bias
from tests import EPSILON, assert_close
from tests.peers import PER_TOKEN, assert_frequencies, assert_turned, pinned

pinned("x-transformers", "2.31.10")

DIM = 16
AT = torch.arange(1024)
FLOAT32 = EPSILON[torch.float32]


def randn(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("width", [DIM, 8])
def test_it_turns_interleaved_pairs(x_transformers, width):
    x = randn(2, 3, 1024, DIM)
    peer = x_transformers.apply_rotary_pos_emb(x, *x_transformers.RotaryEmbedding(width)(AT))
    angles = frequencies.angles(AT, frequencies.geometric(width))
    assert_turned(peer, rotary.rotate(x.double(), angles, layout="interleaved", width=width), AT)


@pytest.mark.parametrize("dim", [4, 64])
def test_its_rescaled_base_is_ntk_and_its_interpolation_is_linear(x_transformers, dim):
    theta = frequencies.geometric(dim)
    rescaled = x_transformers.RotaryEmbedding(dim, base_rescale_factor=8.0)
    assert_frequencies(rescaled.inv_freq, scaling.ntk(theta, factor=8))
    # At position 1 the angles are the frequencies.
    angles, _ = x_transformers.RotaryEmbedding(dim, interpolation_factor=8.0)(torch.tensor([1]))
    assert_frequencies(angles[0, 0, 0::2], scaling.linear(theta, factor=8))


def test_a_cast_to_bfloat16_rounds_its_frequencies_for_good(x_transformers):
    theta = frequencies.geometric(64)
    exact = frequencies.angles(AT, theta)

    def off(embedding):
        return (embedding(AT)[0][0, :, 0::2] - exact).abs().max().item()

    peer = x_transformers.RotaryEmbedding(64)
    assert off(peer) < FLOAT32 + 1023 * PER_TOKEN
    # Positions, frequencies and angles are all rounded; here a position in bfloat16 is refused.
    assert off(peer.bfloat16()) == pytest.approx(3.6, abs=0.05)
    with pytest.raises(ValueError, match="in bfloat16, 257 is 256"):
        frequencies.angles(AT.bfloat16(), theta)
    # Back in float32 the frequencies stay rounded, and they are saved with the weights.
    rounded = 1023 * (theta.bfloat16() - theta).abs().max().item()
    assert off(peer.float()) == pytest.approx(rounded, rel=1e-3)
    assert rounded > 0.4
    assert "inv_freq" in peer.state_dict()


@pytest.mark.parametrize("heads", [*range(1, 18), 32, 40, 64, 71, 112])
def test_its_alibi_is_the_same_with_and_without_a_mask(x_transformers, heads):
    peer = x_transformers.AlibiPositionalBias(heads)(5, 9)
    at = torch.arange(9)
    ours = alibi.bias(alibi.slopes(heads), positions.offsets(queries=at[-5:], keys=at))
    torch.testing.assert_close(peer.double(), ours, rtol=FLOAT32, atol=0)


def test_its_alibi_takes_positions_of_rows(x_transformers):
    at = torch.tensor([[0, 1, 2, 7], [3, 0, 9, 9]])
    peer = x_transformers.AlibiPositionalBias(6).forward_custom_pos(at)
    ours = alibi.bias(alibi.slopes(6), positions.offsets(queries=at, keys=at))
    torch.testing.assert_close(peer.double(), ours, rtol=FLOAT32, atol=0)


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("buckets, max_distance", [(32, 128), (32, 100), (16, 64), (8, 1024), (64, 2048)])
def test_its_buckets_are_t5s(x_transformers, causal, buckets, max_distance):
    offsets = torch.arange(-1999, 2000)[None]
    peer = x_transformers.RelativePositionBias._relative_position_bucket(
        offsets, causal=causal, num_buckets=buckets, max_distance=max_distance
    )
    ours = t5_bias.buckets(offsets, bidirectional=not causal, buckets=buckets, max_distance=max_distance)
    assert torch.equal(peer, ours)


@pytest.mark.parametrize("causal", [True, False])
def test_its_bias_is_t5s_times_its_scale(x_transformers, causal):
    layer = x_transformers.RelativePositionBias(scale=8.0, causal=causal, heads=3)
    at = torch.arange(150)
    offsets = positions.offsets(queries=at[-4:], keys=at)
    table = layer.relative_attention_bias.weight.detach()
    ours = t5_bias.bias(table, t5_bias.buckets(offsets, bidirectional=not causal))
    assert torch.equal(layer(4, 150).detach(), 8 * ours)


def test_its_sinusoids_have_the_papers_frequencies_sines_first_and_a_learned_scale(x_transformers):
    layer = x_transformers.ScaledSinusoidalEmbedding(DIM)
    table = sinusoidal.encode(frequencies.angles(AT, frequencies.geometric(DIM)))
    peer = layer(torch.zeros(1, 1024, DIM)).detach()
    ours = table[:, rotary.permutation(DIM)] / DIM**0.5
    assert_close(peer * DIM**0.5, ours * DIM**0.5, tolerance=FLOAT32 + 1023 * PER_TOKEN)
    assert layer.scale.requires_grad
    assert (peer * DIM**0.5 - table).abs().max() > 1


def test_its_sinusoids_cannot_begin_at_each_rows_first_token(x_transformers):
    layer, real = x_transformers.ScaledSinusoidalEmbedding(DIM), torch.tensor([[1, 1, 1], [0, 1, 1]])
    with pytest.raises(RuntimeError, match="einsum"):
        layer(torch.zeros(2, 3, DIM), seq_start_pos=torch.tensor([0, 1]))
    at = positions.left_padded(real)
    table = sinusoidal.encode(frequencies.angles(at, frequencies.geometric(DIM)))
    assert_close(table[1, 1:], table[0, :2])

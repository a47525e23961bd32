import pytest
import torch

from posbook import frequencies, rotary, scaling
from tests.peers import assert_frequencies, assert_turned, pinned

pinned("rotary-embedding-torch", "0.9.1")

DIM = 16
AT = torch.arange(1024)


def randn(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def turned(x, at=AT, dim=DIM):
    angles = frequencies.angles(at, frequencies.geometric(dim))
    return rotary.rotate(x, angles, layout="interleaved", width=dim)


@pytest.fixture
def embedding(rotary_embedding_torch):
    # A fresh one for each test: it keeps the angles of its first call.
    return rotary_embedding_torch.RotaryEmbedding


def test_it_turns_interleaved_pairs(embedding):
    x = randn(2, 3, 1024, DIM)
    assert_turned(embedding(DIM).rotate_queries_or_keys(x), turned(x.double()), AT)


def test_it_turns_the_first_features_of_a_wider_head(embedding):
    x = randn(1, 2, 1024, DIM)
    assert_turned(embedding(8).rotate_queries_or_keys(x), turned(x.double(), dim=8), AT)


def test_a_cached_step_turns_alike(embedding):
    q, k = randn(1, 2, 3, DIM), randn(1, 2, 1024, DIM, seed=1)
    peer = embedding(DIM).rotate_queries_with_cached_keys(q, k)
    assert_turned(peer[0], turned(q.double(), at=AT[-3:]), AT[-3:])
    assert_turned(peer[1], turned(k.double()), AT)


@pytest.mark.parametrize("dim", [4, 64])
def test_its_rescaled_base_is_ntk_and_its_interpolation_is_linear(embedding, dim):
    theta = frequencies.geometric(dim)
    assert_frequencies(embedding(dim, theta_rescale_factor=8.0).freqs, scaling.ntk(theta, factor=8))
    peer = embedding(dim, interpolate_factor=8.0)
    # One token, so that the angles are the frequencies.
    angles = peer(peer.get_seq_pos(1, offset=1))[0, 0::2]
    assert_frequencies(angles, scaling.linear(theta, factor=8))


def test_a_single_pair_divides_by_zero_there_and_turns_here(embedding):
    with pytest.raises(ZeroDivisionError):
        embedding(2)
    x = torch.tensor([[1.0, 0.0]])
    assert turned(x, at=torch.tensor([1]), dim=2)[0].tolist() == pytest.approx([0.54030231, 0.84147098])


def test_in_bfloat16_its_positions_coincide_from_257_on_and_ours_do_not(embedding):
    x = torch.ones(1, 1, 1024, DIM, dtype=torch.bfloat16)
    exact, length = turned(x.double()), DIM**0.5
    peer, ours = embedding(DIM).rotate_queries_or_keys(x), turned(x)
    off, ours_off = (y.sub(exact).abs().amax((0, 1, 3)) for y in (peer, ours))
    # Up to 256 every position is a bfloat16, and both round only what they return: features between −2 and 2,
    # by half of eps = 2⁻⁷, or 2⁻⁷ between 1 and 2 after the rounding of cosines.
    rounding = 2**-7
    assert off[:257].max() < rounding
    # 257 is 256 there: the first pair, of length √2, is a radian behind: off by up to 2 sin ½ · √2.
    assert torch.equal(peer[0, 0, 257], peer[0, 0, 256])
    assert not torch.equal(ours[0, 0, 257], ours[0, 0, 256])
    assert 1 < off[257] < 1.3561 + rounding
    # From 512 on a position is rounded to a multiple of 4, by up to 2 radians: 2 sin 1 · √2.
    assert 2 < off.max() < 2.3801 + rounding
    assert len(peer[0, 0].unique(dim=0)) == 513
    # Here: half a unit in the last place of each feature, besides the rotation's own rounding in float32.
    assert ((ours.double() - exact).abs() <= 2**-8 * exact.abs() + 2e-7 * length).all()
    assert ours_off.max() < rounding
    assert len(ours[0, 0].unique(dim=0)) == 1024


def test_it_remembers_the_positions_of_bfloat16_in_float32(embedding):
    x, peer = torch.ones(1, 1, 1024, DIM), embedding(DIM)
    before = peer.rotate_queries_or_keys(x)
    assert_turned(before, turned(x.double()), AT)
    peer = embedding(DIM)
    peer.rotate_queries_or_keys(x.bfloat16())
    after = peer.rotate_queries_or_keys(x)
    assert (after - turned(x)).abs().max() > 2

import pytest
import torch

from posbook import attention, frequencies, xpos
from tests.peers import assert_turned, pinned

pinned("x-transformers", "2.31.10")
pinned("rotary-embedding-torch", "0.9.1")

DIM, LENGTH = 32, 700
AT = torch.arange(LENGTH)


def randn(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def turned(x, at, *, centre, key=False, base=512):
    angles = frequencies.angles(at, frequencies.geometric(DIM))
    scales = xpos.scales(at - centre, DIM, scale_base=base)
    return xpos.rotate(x, angles, 1 / scales if key else scales, layout="interleaved")


@pytest.fixture
def by_x_transformers(x_transformers):
    """Queries and keys as its attention turns them, at these positions."""

    def turn(q, k, at, base=512):
        tables = x_transformers.RotaryEmbedding(DIM, use_xpos=True, scale_base=base)
        angles, scales = tables(at)
        apply = x_transformers.apply_rotary_pos_emb
        return apply(q, angles, scales), apply(k, angles, scales**-1.0)

    return turn


@pytest.mark.parametrize("base", [512, 64])
def test_rotary_embedding_torch_agrees_and_centres_on_half_the_length(rotary_embedding_torch, base):
    q, k = randn(1, 2, LENGTH, DIM), randn(1, 2, LENGTH, DIM, seed=1)
    tables = rotary_embedding_torch.RotaryEmbedding(DIM, use_xpos=True, xpos_scale_base=base)
    peer_q, peer_k = tables.rotate_queries_and_keys(q, k)
    assert_turned(peer_q, turned(q, AT, centre=LENGTH // 2, base=base), AT)
    assert_turned(peer_k, turned(k, AT, centre=LENGTH // 2, base=base, key=True), AT)


@pytest.mark.parametrize("base", [512, 64])
@pytest.mark.parametrize("first", [0, 301])
def test_x_transformers_agrees_and_centres_on_half_the_last_position(by_x_transformers, first, base):
    at = AT + first
    q, k = randn(1, 2, LENGTH, DIM), randn(1, 2, LENGTH, DIM, seed=1)
    centre = (first + LENGTH) // 2
    peer_q, peer_k = by_x_transformers(q, k, at, base)
    assert_turned(peer_q, turned(q, at, centre=centre, base=base), at)
    assert_turned(peer_k, turned(k, at, centre=centre, base=base, key=True), at)


def test_their_centres_differ_and_their_scores_do_not(by_x_transformers, rotary_embedding_torch):
    q, k = randn(1, 1, LENGTH, DIM), randn(1, 1, LENGTH, DIM, seed=1)
    there_q, there_k = by_x_transformers(q, k, AT + 301)
    here_q, here_k = rotary_embedding_torch.RotaryEmbedding(DIM, use_xpos=True).rotate_queries_and_keys(q, k)
    assert (there_q - here_q).abs().max() > 0.1
    ours = attention.scores(turned(q.double(), AT, centre=0), turned(k.double(), AT, centre=0, key=True))
    causal = attention.causal(LENGTH)
    for peer in (attention.scores(there_q, there_k), attention.scores(here_q, here_k)):
        off = (peer.double() - ours)[..., causal].abs().max() / ours[..., causal].abs().max()
        assert off < 2e-4


def test_cached_keys_of_rotary_embedding_torch_are_centred_apart_from_the_query(rotary_embedding_torch):
    q, k = randn(1, 1, 1, DIM), randn(1, 1, LENGTH, DIM, seed=1)
    tables = rotary_embedding_torch.RotaryEmbedding(DIM, use_xpos=True)
    peer_q, peer_k = tables.rotate_queries_with_cached_keys(q, k)
    last = AT[-1:]
    # A query alone is centred on 1 // 2, its keys on half their number, so every pair's scores are too small.
    assert_turned(peer_q, turned(q, last, centre=0), last)
    assert_turned(peer_k, turned(k, AT, centre=LENGTH // 2, key=True), AT)
    whole = attention.scores(turned(q, last, centre=0), turned(k, AT, centre=0, key=True))
    assert (attention.scores(peer_q, peer_k) - whole).abs().max() > 0.1 * whole.abs().max()

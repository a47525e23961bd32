import pytest
import torch

from posbook import axial, frequencies, rotary
from tests.peers import assert_turned, pinned

pinned("transformers", "5.24.0")
pinned("rotary-embedding-torch", "0.9.1")

DIM = 128
QWEN3 = "qwen3_vl", "Qwen3VLTextConfig", "Qwen3VLTextRotaryEmbedding"
# Time, row and column of some text, of the patches of two images, and of text again, far out.
PLACES = torch.tensor(
    [
        [0, 0, 0],
        [1, 1, 1],
        [2, 2, 2],
        [2, 2, 9],
        [2, 7, 2],
        [2, 7, 9],
        [3, 40, 5],
        [3, 41, 80],
        [900, 900, 900],
    ]
)


@pytest.fixture(scope="session")
def turn(family):
    """Queries turned by the language model of one family, built from a tiny configuration."""

    def turned(folder, config, table, q, sections):
        module = family(folder)
        rope = {"rope_type": "default", "rope_theta": 10_000.0, "mrope_section": list(sections)}
        config = getattr(family(folder, "configuration"), config)(
            hidden_size=2 * DIM, num_attention_heads=2, head_dim=DIM, rope_parameters=rope
        )
        cos, sin = getattr(module, table)(config)(q, PLACES.T[:, None])
        return module.apply_rotary_pos_emb(q, q, cos, sin)[0]

    return turned


def q():
    return torch.randn(1, 2, len(PLACES), DIM, generator=torch.Generator().manual_seed(0))


def turned(axes, layout="halves"):
    return rotary.rotate(q(), axial.angles(PLACES, frequencies.geometric(DIM), axes), layout=layout)


def farthest(places):
    return places.abs().amax(dim=-1)


@pytest.mark.parametrize("sections", [(16, 24, 24), (24, 20, 20), (0, 32, 32), (1, 2, 61)])
def test_qwen2_vl_turns_by_chunks(turn, sections):
    # An axis without pairs is one that posbook leaves out.
    used = [axis for axis in range(3) if sections[axis]]
    axes = axial.chunked([sections[axis] for axis in used])
    ours = rotary.rotate(
        q(), axial.angles(PLACES[:, used], frequencies.geometric(DIM), axes), layout="halves"
    )
    peer = turn("qwen2_vl", "Qwen2VLTextConfig", "Qwen2VLRotaryEmbedding", q(), sections)
    assert_turned(peer, ours, farthest(PLACES))


@pytest.mark.parametrize("sections", [(24, 20, 20), (22, 21, 21), (40, 4, 20)])
def test_qwen3_vl_turns_by_turns(turn, sections):
    peer = turn(*QWEN3, q(), sections)
    assert_turned(peer, turned(axial.interleaved(sections)), farthest(PLACES))


def test_qwen3_vl_takes_fewer_pairs_than_a_section_says_where_posbook_refuses(turn):
    with pytest.raises(ValueError, match="cannot be interleaved"):
        axial.interleaved([16, 24, 24])
    peer = turn(*QWEN3, q(), (16, 24, 24))
    assert_turned(peer, turned(axial.interleaved([22, 21, 21])), farthest(PLACES))


def test_ernie_has_its_own_assignment(turn):
    # Rows and columns take turns, time has the slowest pairs; its sections are named row, column, time.
    axes = [1, 2] * 22 + [0] * 20
    name = "Ernie4_5_VLMoeText"
    peer = turn("ernie4_5_vl_moe", f"{name}Config", f"{name}RotaryEmbedding", q(), (22, 22, 20))
    assert_turned(peer, turned(axes, layout="interleaved"), farthest(PLACES))


def test_qwen2_vls_vision_encoder_splits_the_head(family):
    module, places = family("qwen2_vl"), torch.cartesian_prod(torch.arange(5), torch.arange(70))
    config = family("qwen2_vl", "configuration").Qwen2VLVisionConfig(embed_dim=2 * DIM, num_heads=2)
    x = torch.randn(len(places), 2, DIM, generator=torch.Generator().manual_seed(0))
    peer = module.apply_rotary_pos_emb_vision(x, x, *module.Qwen2VLVisionRotaryEmbedding(config)(x, places))[
        0
    ]
    ours = rotary.rotate(
        x.transpose(0, 1), axial.split(places, frequencies.geometric(DIM // 2)), layout="halves"
    )
    assert_turned(peer.transpose(0, 1), ours, farthest(places))


@pytest.mark.parametrize("shape", [(5, 7), (3, 4, 60)])
def test_rotary_embedding_torch_splits_the_head(rotary_embedding_torch, shape):
    places = torch.cartesian_prod(*map(torch.arange, shape))
    # Its pairs are written twice, as neighbours.
    angles = rotary_embedding_torch.RotaryEmbedding(dim=16).get_axial_freqs(*shape)
    x = torch.randn(len(places), 16 * len(shape), generator=torch.Generator().manual_seed(0))
    peer = rotary_embedding_torch.apply_rotary_emb(angles.flatten(0, -2), x)
    ours = rotary.rotate(x, axial.split(places, frequencies.geometric(16)), layout="interleaved")
    assert_turned(peer, ours, farthest(places))

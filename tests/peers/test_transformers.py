import math

import pytest
import torch

from posbook import alibi, attention, frequencies, learned, positions, rotary, scaling, sinusoidal, t5_bias
from tests import EPSILON, assert_close
from tests.peers import PER_TOKEN, assert_frequencies, assert_turned, pinned

pinned("transformers", "5.24.0")

DIM = 16
AT = torch.tensor([0, 1, 2, 257, 4095, 131_071])
FLOAT32 = EPSILON[torch.float32]
# Scores of two rows, each off by the floor of its angles.
NEAR = torch.arange(64)
SCORES = 2 * (FLOAT32 + 64 * PER_TOKEN)
# Rotary families, and how posbook says the same: layout, width.
TURNS = {
    "Llama": ("halves", DIM),
    "GPTNeoX": ("halves", DIM // 4),
    "Cohere": ("interleaved", DIM),
    "Glm": ("interleaved", DIM // 2),
    "DeepseekV2": ("interleaved", DIM),
}
FAMILY = {"GPTNeoX": "gpt_neox", "DeepseekV2": "deepseek_v2", "DeepseekV3": "deepseek_v3"}
ROPE = {"rope_type": "default", "rope_theta": 10_000.0}
PARTIAL = {"GPTNeoX": 0.25, "Glm": 0.5}


def randn(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def angles_at(at, dim, base=10_000.0):
    return frequencies.angles(at, frequencies.geometric(dim, base))


@pytest.fixture(scope="session")
def config(family):
    """A small configuration of one kind of model."""

    def make(name, **options):
        rope = {**ROPE, **({"partial_rotary_factor": PARTIAL[name]} if name in PARTIAL else {})}
        size = {"hidden_size": 2 * DIM, "num_attention_heads": 2, "num_key_value_heads": 2, "head_dim": DIM}
        if name.startswith("Deepseek"):
            # Only these features of a head turn.
            size |= {"q_lora_rank": None, "qk_rope_head_dim": DIM, "qk_nope_head_dim": DIM}
        options = {"rope_parameters": rope, **size, **options}
        return getattr(family(FAMILY.get(name, name.lower()), "configuration"), f"{name}Config")(**options)

    return make


@pytest.fixture(scope="session")
def turn(family, config):
    """Queries and keys turned by one family's own code, at these positions."""

    def turned(name, q, k, at, apply="apply_rotary_pos_emb", **options):
        module = family(FAMILY.get(name, name.lower()))
        tables = getattr(module, f"{name}RotaryEmbedding")(config(name, **options))(q, at[None])
        tables = tables if isinstance(tables, tuple) else (tables,)
        return getattr(module, apply)(q, k, *tables)

    return turned


@pytest.fixture(scope="session")
def scaled(config, rope_init):
    """Frequencies scaled by transformers, and the factor of its cosines and sines."""

    def scale(rope_type, *, dim, base, longest, length=None, **options):
        options = {"rope_type": rope_type, "rope_theta": base, **options}
        llama = config("Llama", head_dim=dim, max_position_embeddings=longest, rope_parameters=options)
        return rope_init[rope_type](llama, seq_len=length)

    return scale


@pytest.mark.parametrize("name", TURNS)
def test_queries_and_keys_turn_alike(turn, name):
    layout, width = TURNS[name]
    q, k = randn(2, 2, 3, len(AT), DIM)
    apply = "apply_rotary_emb" if name == "DeepseekV2" else "apply_rotary_pos_emb"
    for peer, x in zip(turn(name, q, k, AT, apply), (q, k), strict=True):
        ours = rotary.rotate(x.double(), angles_at(AT, width), layout=layout, width=width)
        assert_turned(peer, ours, AT)


def test_gptj_turns_interleaved_pairs_and_has_heads_after_positions(family):
    gptj, at, q = family("gptj"), torch.tensor([0, 1, 2, 257, 2047]), randn(2, 5, 3, DIM)
    sin, cos = gptj.create_sinusoidal_positions(2048, 8)[at].expand(2, -1, -1).chunk(2, dim=-1)
    peer = gptj.apply_rotary_pos_emb(q[..., :8], sin, cos)
    ours = rotary.rotate(q[..., :8].double().transpose(1, 2), angles_at(at, 8), layout="interleaved")
    assert_turned(peer.transpose(1, 2), ours, at)


def test_roformer_itself_turns_interleaved_pairs(family):
    roformer, at, q = family("roformer"), torch.arange(300), randn(1, 2, 300, DIM)
    table = roformer.RoFormerSinusoidalPositionalEmbedding(300, DIM).create_weight()
    apply = roformer.RoFormerSelfAttention.apply_rotary_position_embeddings
    peer, _ = apply(table[None, None], q, q)
    assert_turned(peer, rotary.rotate(q.double(), angles_at(at, DIM), layout="interleaved"), at)


def test_deepseek_turns_interleaved_pairs_and_leaves_them_in_halves(turn):
    q, k = randn(2, 1, 2, len(AT), DIM)
    perm = rotary.permutation(DIM)
    peers = turn("DeepseekV3", q, k, AT, "apply_rotary_pos_emb_interleave")
    for peer, x in zip(peers, (q.double(), k.double()), strict=True):
        interleaved = rotary.rotate(x, angles_at(AT, DIM), layout="interleaved")
        assert_turned(peer, interleaved[..., perm], AT)
        assert_turned(peer, rotary.rotate(x[..., perm], angles_at(AT, DIM), layout="halves"), AT)
        # Cached keys lie in another order than those of a library that leaves features in place.
        assert (peer - interleaved).abs().max() > 1


def test_deepseeks_scores_are_those_of_interleaved_pairs(turn):
    q, k = randn(2, 1, 2, len(NEAR), DIM)
    peer = attention.scores(*turn("DeepseekV3", q, k, NEAR, "apply_rotary_pos_emb_interleave"))
    ours = (rotary.rotate(x.double(), angles_at(NEAR, DIM), layout="interleaved") for x in (q, k))
    assert_close(peer, attention.scores(*ours), tolerance=SCORES)


def test_nanochat_turns_the_other_way(turn):
    q, k = randn(2, 1, 2, len(AT), DIM)
    for peer, x in zip(turn("NanoChat", q, k, AT), (q, k), strict=True):
        assert_turned(peer, rotary.rotate(x.double(), -angles_at(AT, DIM), layout="halves"), AT)


def test_nanochats_scores_need_the_second_halves_of_queries_and_keys_negated(turn):
    q, k = randn(2, 1, 2, len(NEAR), DIM)
    peer = attention.scores(*turn("NanoChat", q, k, NEAR))

    def scores(q, k):
        turned = (rotary.rotate(x.double(), angles_at(NEAR, DIM), layout="halves") for x in (q, k))
        return attention.scores(*turned)

    # Turning by −m and −n, the offset n − m counts as m − n: another score for the same features.
    assert (peer - scores(q, k)).abs().max() > 1
    mirror = torch.tensor([1.0] * (DIM // 2) + [-1.0] * (DIM // 2))
    assert_close(peer, scores(q * mirror, k * mirror), tolerance=SCORES)


def test_gemma3_turns_its_local_layers_by_other_frequencies(family, config):
    rope = {
        "sliding_attention": {"rope_type": "default", "rope_theta": 10_000.0},
        "full_attention": {"rope_type": "linear", "factor": 8.0, "rope_theta": 1_000_000.0},
    }
    gemma3 = family("gemma3")
    embedding = gemma3.Gemma3RotaryEmbedding(
        family("gemma3", "configuration").Gemma3TextConfig(
            head_dim=64, num_hidden_layers=6, rope_parameters=rope
        )
    )
    local = frequencies.geometric(64, base=10_000)
    everywhere = scaling.linear(frequencies.geometric(64, base=1_000_000), factor=8)
    q = randn(1, 2, len(AT), 64)
    for layer, theta in (("sliding_attention", local), ("full_attention", everywhere)):
        assert_frequencies(getattr(embedding, f"{layer}_inv_freq"), theta)
        peer, _ = gemma3.apply_rotary_pos_emb(q, q, *embedding(q, AT[None], layer))
        assert_turned(peer, rotary.rotate(q.double(), frequencies.angles(AT, theta), layout="halves"), AT)


def test_every_scaling_of_transformers_is_compared_here(rope_init):
    assert set(rope_init) == {"linear", "dynamic", "yarn", "longrope", "llama3", "proportional"}


@pytest.mark.parametrize("dim, base, factor", [(128, 1e4, 2.0), (64, 5e5, 8.0), (2, 1e4, 4.0)])
def test_linear_scaling_agrees(scaled, dim, base, factor):
    peer, temperature = scaled("linear", dim=dim, base=base, longest=4096, factor=factor)
    assert_frequencies(peer, scaling.linear(frequencies.geometric(dim, base), factor))
    assert temperature == 1


@pytest.mark.parametrize("dim, base, factor", [(128, 1e4, 1.0), (64, 5e5, 2.0), (4, 1e4, 10.0)])
@pytest.mark.parametrize("length", [None, 1, 4096, 4097, 8192, 65_536])
def test_dynamic_scaling_agrees(scaled, dim, base, factor, length):
    peer, temperature = scaled("dynamic", dim=dim, base=base, longest=4096, length=length, factor=factor)
    theta = frequencies.geometric(dim, base)
    assert_frequencies(peer, scaling.dynamic_ntk(theta, length or 4096, trained_length=4096, factor=factor))
    assert temperature == 1


def test_dynamic_scaling_of_a_single_pair_divides_by_zero_in_transformers_and_is_refused_here(scaled):
    with pytest.raises(ZeroDivisionError):
        scaled("dynamic", dim=2, base=1e4, longest=4096, length=8192, factor=2.0)
    with pytest.raises(ValueError, match="needs two pairs"):
        scaling.dynamic_ntk(frequencies.geometric(2), 8192, trained_length=4096, factor=2)


@pytest.mark.parametrize(
    "dim, base, trained, factor, options",
    [
        (128, 1e4, 4096, 8.0, {}),
        (64, 1e4, 2048, 16.0, {}),
        (128, 5e5, 8192, 32.0, {}),
        (64, 1e6, 32_768, 4.0, {"truncate": False}),
        (128, 1e4, 4096, 4.0, {"beta_fast": 64, "beta_slow": 2}),
        (64, 1e4, 131_072, 2.0, {}),  # a ramp that ends behind the last pair
        (16, 1e2, 131_072, 4.0, {}),  # and one that is cut at dim − 1
        (64, 1e4, 100, 8.0, {}),  # a ramp that would begin before the first pair
        (64, 1e4, 6, 4.0, {}),  # and one of no width
    ],
)
def test_yarn_agrees(scaled, dim, base, trained, factor, options):
    longest = int(factor * trained)
    rope = {"factor": factor, "original_max_position_embeddings": trained, **options}
    peer, temperature = scaled("yarn", dim=dim, base=base, longest=longest, **rope)
    theta = frequencies.geometric(dim, base)
    assert_frequencies(peer, scaling.yarn(theta, factor, trained, **options))
    assert temperature == pytest.approx(scaling.yarn_temperature(factor), rel=1e-12)


def test_yarn_of_part_of_the_features_agrees(scaled):
    rope = {"factor": 4.0, "original_max_position_embeddings": 4096, "partial_rotary_factor": 0.25}
    peer, _ = scaled("yarn", dim=128, base=1e4, longest=16_384, **rope)
    assert_frequencies(peer, scaling.yarn(frequencies.geometric(32), factor=4, trained_length=4096))


def test_the_ramp_of_transformers_is_the_released_codes_not_the_papers(scaled):
    rope = {"factor": 8.0, "original_max_position_embeddings": 4096}
    peer, _ = scaled("yarn", dim=128, base=1e4, longest=32_768, **rope)
    theta = frequencies.geometric(128)
    paper = scaling.yarn(theta, factor=8, trained_length=4096, ramp="turns")
    kept = [(((slowed / theta)[33] - 1 / 8) / (1 - 1 / 8)).item() for slowed in (peer, paper)]
    # Pair 33 is the middle of a ramp from pair 20 to 46. It made 5.645 turns: (5.645 − 1)/(32 − 1) = 0.1498.
    assert kept == pytest.approx([1 / 2, 0.1498], abs=1e-4)


def test_yarn_for_four_tokens_scales_nothing_in_transformers_and_is_refused_here(scaled):
    theta = frequencies.geometric(64)
    rope = {"factor": 4.0, "original_max_position_embeddings": 4}
    peer, _ = scaled("yarn", dim=64, base=1e4, longest=16, **rope)
    assert_frequencies(peer, theta)
    with pytest.raises(ValueError, match="run backwards"):
        scaling.yarn(theta, factor=4, trained_length=4)


@pytest.mark.parametrize("mscale, everywhere", [(1.0, 1.0), (0.707, 0.707), (1.0, 0.5)])
def test_deepseek_divides_the_temperature_and_scales_the_softmax(family, config, mscale, everywhere):
    rope = {"factor": 40.0, "original_max_position_embeddings": 4096}
    rope |= {**ROPE, "rope_type": "yarn", "mscale": mscale, "mscale_all_dim": everywhere}
    deepseek = config("DeepseekV3", max_position_embeddings=163_840, rope_parameters=rope)
    table = family("deepseek_v3").DeepseekV3RotaryEmbedding(deepseek).attention_scaling
    with torch.device("meta"):
        scale = family("deepseek_v3").DeepseekV3Attention(deepseek, layer_idx=0).scaling
    # A head has as many features that do not turn as features that do.
    peer = (table, scale * math.sqrt(2 * DIM))
    assert peer == pytest.approx(scaling.deepseek_temperatures(40, mscale, everywhere), rel=1e-12)


@pytest.mark.parametrize(
    "keys", [{"mscale": 0.5}, {"mscale_all_dim": 0.5}, {"mscale": 0.5, "mscale_all_dim": 0}]
)
def test_half_of_deepseeks_keys_count_for_nothing_in_transformers(scaled, keys):
    rope = {"factor": 40.0, "original_max_position_embeddings": 4096, **keys}
    _, temperature = scaled("yarn", dim=DIM, base=1e4, longest=163_840, **rope)
    assert temperature == pytest.approx(scaling.yarn_temperature(40), rel=1e-12)
    deepseek, _ = scaling.deepseek_temperatures(40, **keys)
    assert deepseek != pytest.approx(temperature, rel=0.1)


def test_yarns_temperature_stands_on_queries_and_on_keys(turn):
    rope = {**ROPE, "rope_type": "yarn", "factor": 8.0, "original_max_position_embeddings": 4096}
    q, k = randn(2, 1, 2, len(AT), DIM)
    angles = frequencies.angles(AT, scaling.yarn(frequencies.geometric(DIM), 8, 4096))
    peers = turn("Llama", q, k, AT, rope_parameters=rope, max_position_embeddings=32_768)
    for peer, x in zip(peers, (q, k), strict=True):
        ours = rotary.rotate(x.double(), angles, layout="halves") * scaling.yarn_temperature(8)
        assert_turned(peer, ours, AT)


@pytest.mark.parametrize(
    "dim, base, trained, factor, low, high",
    [
        (128, 5e5, 8192, 8.0, 1.0, 4.0),
        (64, 5e5, 8192, 32.0, 1.0, 4.0),
        (128, 1e4, 2048, 4.0, 2.0, 16.0),
        (16, 1e4, 4, 8.0, 1.0, 4.0),  # no pair comes round
    ],
)
def test_llama3_agrees(scaled, dim, base, trained, factor, low, high):
    peer, temperature = scaled(
        "llama3",
        dim=dim,
        base=base,
        longest=int(factor * trained),
        factor=factor,
        low_freq_factor=low,
        high_freq_factor=high,
        original_max_position_embeddings=trained,
    )
    theta = frequencies.geometric(dim, base)
    assert_frequencies(peer, scaling.llama3(theta, factor, trained, low=low, high=high))
    assert temperature == 1


@pytest.mark.parametrize("length, list_", [(None, "short"), (4096, "short"), (4097, "long"), (9999, "long")])
def test_longrope_agrees_and_goes_to_the_long_list_one_token_past_the_trained_length(scaled, length, list_):
    factors = {"short": [1 + 0.01 * i for i in range(24)], "long": [1.05**i for i in range(24)]}
    peer, temperature = scaled(
        "longrope",
        dim=48,
        base=1e4,
        longest=131_072,
        length=length,
        original_max_position_embeddings=4096,
        short_factor=factors["short"],
        long_factor=factors["long"],
    )
    assert_frequencies(peer, scaling.longrope(frequencies.geometric(48), factors[list_]))
    assert temperature == pytest.approx(scaling.longrope_temperature(32, trained_length=4096), rel=1e-12)


@pytest.mark.parametrize("fraction", [0.0, 0.25, 0.3, 0.5, 1.0])
def test_proportional_frequencies_agree(scaled, fraction):
    options = {"dim": 64, "base": 1e6, "longest": 4096, "partial_rotary_factor": fraction}
    theta = frequencies.proportional(64, fraction=fraction, base=1e6)
    assert_frequencies(scaled("proportional", **options)[0], theta)
    assert_frequencies(scaled("proportional", factor=8.0, **options)[0], scaling.linear(theta, factor=8))


def test_nested_yarn_ignores_truncate_in_transformers(family):
    rope = {
        "sliding_attention": dict(ROPE),
        "full_attention": {
            "rope_type": "yarn",
            "rope_theta": 1e6,
            "factor": 8.0,
            "original_max_position_embeddings": 4096,
            "truncate": False,
        },
    }
    gemma3 = family("gemma3", "configuration").Gemma3TextConfig(
        head_dim=256, num_hidden_layers=6, max_position_embeddings=32_768, rope_parameters=rope
    )
    peer = family("gemma3").Gemma3RotaryEmbedding(gemma3).full_attention_inv_freq
    theta = frequencies.geometric(256, base=1e6)
    assert_frequencies(peer, scaling.yarn(theta, factor=8, trained_length=4096, truncate=True))
    asked_for = scaling.yarn(theta, factor=8, trained_length=4096, truncate=False)
    # The ramp goes from 27 to 61 where 27.926 to 60.036 was asked for: pair 60 keeps 1/34 and not 0.0011.
    assert (peer / asked_for).max().item() == pytest.approx((1 + 7 / 34) / (1 + 7 * 0.0011), abs=1e-3)


def test_dynamic_frequencies_depend_on_earlier_calls_in_transformers(family, config):
    rope = {**ROPE, "rope_type": "dynamic", "factor": 2.0}
    llama = family("llama").LlamaRotaryEmbedding(
        config("Llama", max_position_embeddings=4096, rope_parameters=rope)
    )
    theta = frequencies.geometric(DIM)

    def after(length):
        llama(torch.zeros(1), torch.tensor([[length - 1]]))
        return llama.inv_freq

    def of(length):
        return scaling.dynamic_ntk(theta, length, trained_length=4096, factor=2)

    assert_frequencies(after(4096), theta)
    assert_frequencies(after(16_384), of(16_384))
    # A shorter text, and one that is no longer than the trained length, keep what the longer one left behind.
    assert_frequencies(after(8192), of(16_384))
    assert_frequencies(after(4096), of(16_384))
    assert (theta / of(16_384)).max().item() == pytest.approx(7)
    assert (theta / of(8192)).max().item() == pytest.approx(3)
    assert_frequencies(after(4095), theta)


def test_a_row_turns_otherwise_beside_a_longer_one_in_transformers(family, config):
    rope = {
        **ROPE,
        "rope_type": "longrope",
        "original_max_position_embeddings": 4096,
        "short_factor": [1.0] * 8,
        "long_factor": [4.0] * 8,
    }
    llama = family("llama").LlamaRotaryEmbedding(
        config("Llama", max_position_embeddings=16_384, rope_parameters=rope)
    )
    row, longer = torch.tensor([[4095]]), torch.tensor([[4096]])
    alone = llama(torch.zeros(1), row)[0] / llama.attention_scaling
    beside = llama(torch.zeros(1), torch.cat((row, longer)))[0][:1] / llama.attention_scaling
    short, long = (frequencies.geometric(DIM), scaling.longrope(frequencies.geometric(DIM), [4] * 8))
    for peer, theta in ((alone, short), (beside, long)):
        assert_close(peer[0, :, :8], frequencies.angles(row[0], theta).cos(), tolerance=4096 * PER_TOKEN)
    assert (alone - beside).abs().max() > 1


def test_a_cast_to_bfloat16_rounds_the_frequencies_of_transformers(family, config):
    llama = family("llama").LlamaRotaryEmbedding(
        config("Llama", head_dim=128, rope_parameters={**ROPE, "rope_theta": 5e5})
    )
    x, at = torch.zeros(1), torch.tensor([1000, 131_071])
    exact = angles_at(at, 128, base=5e5).cos()
    kept = llama(x, at[None])[0][0, :, :64]
    assert_close(kept, exact, tolerance=131_071 * PER_TOKEN)
    cast = llama.to(torch.bfloat16)(x, at[None])[0][0, :, :64]
    assert (cast - exact).abs().amax(-1).tolist() == pytest.approx([1.50, 1.96], abs=0.01)


def test_a_model_loaded_in_bfloat16_keeps_its_frequencies_in_float32(family, config, tmp_path):
    small = config("Llama", vocab_size=8, intermediate_size=8, num_hidden_layers=1)
    family("llama").LlamaModel(small).save_pretrained(tmp_path)
    loaded = family("llama").LlamaModel.from_pretrained(tmp_path, dtype=torch.bfloat16)
    assert loaded.layers[0].self_attn.q_proj.weight.dtype == torch.bfloat16
    assert loaded.rotary_emb.inv_freq.dtype == torch.float32
    assert_frequencies(loaded.rotary_emb.inv_freq, frequencies.geometric(DIM))


def test_bfloat16_features_meet_a_rounded_table_in_transformers_and_an_exact_one_here(turn):
    at = torch.arange(512)
    q = randn(1, 2, 512, DIM).bfloat16()
    exact = rotary.rotate(q.double(), angles_at(at, DIM), layout="halves")

    def off(y):
        return ((y.double() - exact).abs() / q.double().norm(dim=-1, keepdim=True)).max().item()

    peer, _ = turn("Llama", q, q, at)
    # Here the result is rounded, once: by half of eps = 2⁻⁷ of a feature, which may be as long as the row.
    # There cosines, products and their sum are rounded one by one.
    assert off(rotary.rotate(q, angles_at(at, DIM), layout="halves")) < 2**-8
    assert 2**-8 < off(peer) < 4 * 2**-8


BLOOM_HEADS = [*range(1, 18), 32, 40, 64, 71, 112]


@pytest.mark.parametrize("heads", BLOOM_HEADS)
def test_the_slopes_of_bloom_and_mpt_agree(family, heads):
    bloom = family("bloom").build_alibi_tensor(torch.ones(1, 2, dtype=torch.long), heads, torch.float32)
    mpt = family("mpt").build_mpt_alibi_tensor(heads, 2)
    for peer in (bloom[:, 0, 1], -mpt[:, 0, 0]):
        torch.testing.assert_close(peer.double(), alibi.slopes(heads), rtol=FLOAT32, atol=0)


@pytest.mark.parametrize("heads", [1, 6, 8])
def test_counting_from_one_end_is_alibi_only_under_a_causal_mask(family, heads):
    at = torch.arange(40)
    offsets = positions.offsets(queries=at, keys=at)
    bias, mask = alibi.bias(alibi.slopes(heads), offsets), attention.causal(40)
    bloom = family("bloom").build_alibi_tensor(torch.ones(1, 40, dtype=torch.long), heads, torch.float32)
    mpt = family("mpt").build_mpt_alibi_tensor(heads, 40)
    scores = randn(heads, 40, 40)
    for peer in (bloom, mpt):
        ours = attention.weights(scores + bias, mask)
        assert_close(attention.weights(scores + peer, mask), ours)
        # Where the first token sees them all, and nothing else tells them apart, it prefers the last.
        assert attention.weights(peer)[:, 0].argmax(-1).tolist() == [39] * heads
        assert attention.weights(bias)[:, 0].argmax(-1).tolist() == [0] * heads
    # The two differ by one number for each head, which the softmax takes off.
    assert_close((bloom - mpt).diff(dim=-1), torch.zeros(heads, 1, 39), tolerance=40 * FLOAT32)


def test_bloom_counts_a_left_padded_row_from_its_first_token(family):
    real = torch.tensor([[0, 0, 1, 1, 1], [1, 1, 1, 1, 1]])
    bloom = family("bloom").build_alibi_tensor(real, 4, torch.float32).unflatten(0, (2, 4))
    at = positions.left_padded(real)
    bias = alibi.bias(alibi.slopes(4), positions.offsets(queries=at, keys=at))
    mask = attention.causal(5) & real[:, None, None].bool()
    assert_close(attention.weights(bloom.expand(2, 4, 5, 5), mask), attention.weights(bias, mask))


@pytest.mark.parametrize("bidirectional", [True, False])
@pytest.mark.parametrize(
    "buckets, max_distance",
    [(32, 128), (32, 100), (16, 64), (8, 1024), (64, 2048), (24, 243), (48, 200), (128, 800), (4, 20)],
)
def test_t5_puts_every_offset_in_the_same_bucket(family, bidirectional, buckets, max_distance):
    offsets = torch.arange(-1999, 2000)[None]
    peer = family("t5").T5Attention._relative_position_bucket(
        offsets, bidirectional=bidirectional, num_buckets=buckets, max_distance=max_distance
    )
    ours = t5_bias.buckets(offsets, bidirectional=bidirectional, buckets=buckets, max_distance=max_distance)
    assert torch.equal(peer, ours)


def test_t5_rounds_a_logarithm_below_the_edge_of_a_bucket(family):
    # ln(54/24)/ln(81/24) is 2/3, since 54/24 = (3/2)² and 81/24 = (3/2)³: exactly 16 of 24 wide buckets.
    offsets = torch.arange(-1999, 2000)[None]
    peer = family("t5").T5Attention._relative_position_bucket(
        offsets, bidirectional=False, num_buckets=48, max_distance=81
    )
    ours = t5_bias.buckets(offsets, bidirectional=False, buckets=48, max_distance=81)
    (differs,) = (peer != ours)[0].nonzero().flatten().tolist()
    assert (offsets[0, differs], peer[0, differs], ours[0, differs]) == (-54, 24 + 15, 24 + 16)


@pytest.mark.parametrize("decoder", [True, False])
def test_t5_adds_the_same_bias_in_full_and_in_a_cached_step(family, decoder):
    t5 = family("t5", "configuration").T5Config(d_model=8, d_kv=4, num_heads=2, is_decoder=decoder)
    layer = family("t5").T5Attention(t5, has_relative_attention_bias=True, layer_idx=0)
    table = randn(32, 2)
    layer.relative_attention_bias.weight.data = table
    at = torch.arange(200)
    for queries in (at, at[-1:]):
        peer = layer.compute_bias(len(queries), 200, past_seen_tokens=200 - len(queries))[0]
        offsets = positions.offsets(queries=queries, keys=at)
        assert torch.equal(peer, t5_bias.bias(table, t5_bias.buckets(offsets, bidirectional=not decoder)))


def concatenated(at, theta):
    """All sines before all cosines: posbook's table with its columns in another order."""
    return sinusoidal.encode(frequencies.angles(at, theta))[:, rotary.permutation(2 * len(theta))]


def down_to_one_over_base(pairs):
    """tensor2tensor's frequencies, which end at 1/10 000 itself: N − 1 steps where the paper has N."""
    return torch.tensor([10_000.0 ** (-i / (pairs - 1)) for i in range(pairs)], dtype=torch.float64)


def test_marian_and_pegasus_have_the_papers_frequencies_and_sines_first(family):
    at, expected = torch.arange(300), concatenated(torch.arange(300), frequencies.geometric(DIM))
    for table in (
        family("marian").MarianSinusoidalPositionalEmbedding,
        family("pegasus").PegasusSinusoidalPositionalEmbedding,
    ):
        peer = table(300, DIM).create_weight()
        # Made in float64 and rounded once, by half of 2⁻²³ at most.
        assert_close(peer, expected, tolerance=6e-8)
        assert (peer - sinusoidal.encode(angles_at(at, DIM))).abs().max() > 1


def test_whisper_has_sines_first_and_other_frequencies(family):
    at = torch.arange(1500)
    peer = family("whisper").sinusoids(1500, 8)
    assert_close(peer, concatenated(at, down_to_one_over_base(4)), tolerance=FLOAT32 + 1500 * PER_TOKEN)
    assert_close(peer[1, :4], [0.84147098, 0.04639922, 0.00215443, 0.0001], tolerance=FLOAT32)
    paper = sinusoidal.encode(angles_at(at, 8))
    assert_close(paper[1, 0::2], [0.84147098, 0.09983342, 0.00999983, 0.001], tolerance=1e-8)
    # No order of columns makes up for it: only the first pair of clocks is the same.
    nearest = (peer[:, :, None] - paper[:, None, :]).abs().amax(0).amin(-1)
    assert (nearest > 0.1).tolist() == [False, True, True, True] * 2


def test_xglm_has_whispers_table_and_begins_at_two(family):
    table = family("xglm").XGLMSinusoidalPositionalEmbedding(298, DIM, padding_idx=1)
    at = torch.arange(298)
    expected = concatenated(at + 2, down_to_one_over_base(DIM // 2))
    assert_close(table(at[None])[0], expected, tolerance=FLOAT32 + 300 * PER_TOKEN)
    assert not table.weights[1].any()


def test_gpt2_adds_the_row_of_each_position(family):
    gpt2 = family("gpt2", "configuration").GPT2Config(
        n_embd=8, n_layer=1, n_head=2, n_positions=16, vocab_size=3, bos_token_id=None, eos_token_id=None
    )
    model, x = family("gpt2").GPT2Model(gpt2).eval(), randn(2, 16, 8)
    with torch.no_grad():
        embedded = model(inputs_embeds=x, output_hidden_states=True).hidden_states[0]
        assert torch.equal(embedded, x + learned.lookup(model.wpe.weight, torch.arange(16)))
        with pytest.raises(IndexError):
            model(inputs_embeds=randn(1, 17, 8))


def test_opt_begins_at_row_two_and_gives_padding_row_one(family):
    opt = family("opt").OPTLearnedPositionalEmbedding(16, 8)
    real = torch.tensor([[0, 0, 1, 1, 1], [1, 1, 1, 1, 1]])
    at = positions.left_padded(real)
    assert torch.equal(opt(real)[real.bool()], learned.lookup(opt.weight, at, offset=2)[real.bool()])
    assert torch.equal(opt(real, cache_length=4), learned.lookup(opt.weight, at[:, 4:], offset=2))
    # Padding is masked in either case; posbook gives it the first token's row.
    assert torch.equal(opt(real)[0, :2], opt.weight[[1, 1]])
    assert torch.equal(learned.lookup(opt.weight, at, offset=2)[0, :2], opt.weight[[2, 2]])
    assert torch.equal(
        opt(torch.ones(1, 16, dtype=torch.long))[0], learned.lookup(opt.weight, torch.arange(16), offset=2)
    )


@pytest.mark.parametrize("height, width", [(6, 6), (3, 5), (4, 4)])
def test_vit_resamples_its_table_alike(family, height, width):
    size = {"hidden_size": 8, "image_size": 16, "patch_size": 4, "num_attention_heads": 2}
    embeddings = family("vit").ViTEmbeddings(family("vit", "configuration").ViTConfig(**size))
    table = embeddings.position_embeddings[0].detach()
    peer = embeddings.interpolate_pos_encoding(torch.zeros(1, height * width + 1, 8), 4 * height, 4 * width)
    ours = learned.resample_grid(table.double(), old=(4, 4), new=(height, width), extra=1)
    assert_close(peer[0].detach(), ours)


@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
@pytest.mark.parametrize("align_corners", [True, False])
def test_the_taps_of_vision_models_agree(vision, mode, align_corners):
    indices, weights = vision.get_vision_interpolation_indices_and_weights(
        torch.tensor([[1, 6, 3]]), num_grid_per_side=5, mode=mode, align_corners=align_corners
    )
    table = randn(25, 8)
    peer = (table[indices] * weights[:, :, None]).sum(1)
    ours = learned.resample_grid(
        table.double(), old=(5, 5), new=(6, 3), mode=mode, align_corners=align_corners
    )
    assert_close(peer, ours)

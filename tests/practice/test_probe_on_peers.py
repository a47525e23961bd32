r"""Installed libraries, which nobody here wrote, are labelled rightly, their known faults included."""

import pytest
import torch

from posbook import frequencies, rotary, scaling
from posbook.practice import adapters, assert_matches, config, probe, tables
from tests.peers import pinned

pinned("transformers", "5.24.0")
pinned("rotary-embedding-torch", "0.9.1")
pinned("x-transformers", "2.31.10")

DIM = 64
SIZE = {"hidden_size": 2 * DIM, "num_attention_heads": 2, "num_key_value_heads": 2, "head_dim": DIM}
LATENT = {"qk_rope_head_dim": DIM}
DYNAMIC = {"rope_type": "dynamic", "factor": 2.0}
YARN = {"rope_type": "yarn", "factor": 8.0, "original_max_position_embeddings": 1024}
LLAMA3 = {
    "rope_type": "llama3",
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 1024,
}
LONGROPE = {
    "rope_type": "longrope",
    "factor": 4.0,
    "original_max_position_embeddings": 4096,
    "short_factor": [1.0] * 32,
    "long_factor": [4.0] * 32,
}


@pytest.fixture(scope="module")
def hugging_face(family):
    """What one family's code does to queries, and the group that our reader makes of its configuration."""

    def make(name, title, apply="apply_rotary_pos_emb", *, last=False, **options):
        rope = {"rope_type": "default", "rope_theta": 10_000.0, **options.pop("rope", {})}
        values = {**SIZE, "max_position_embeddings": 8192, "rope_parameters": rope, **options}
        peer = getattr(family(name, "configuration"), f"{title}Config")(**values)
        module = getattr(family(name), f"{title.removesuffix('Text')}RotaryEmbedding", None)
        module = module or getattr(family(name), f"{title}RotaryEmbedding")
        fn = adapters.tables(getattr(family(name), apply), module(peer))
        ours = {**values, "model_type": peer.model_type, "rope_parameters": {**rope, "rope_theta": 1e4}}
        (group,) = config.read(ours).groups
        return adapters.heads_last(fn) if last else fn, group

    return make


def codes(report, severity):
    return [f.code for f in report.findings if f.severity == severity]


def errors(fn, group):
    return [f.code for f in probe.identify(fn, dim=DIM).explain(group) if f.severity == "error"]


PEERS = {
    "llama": (("llama", "Llama"), {}, ("halves", 1, DIM, 1.0)),
    "llama, yarn": (("llama", "Llama"), {"rope": YARN}, ("halves", 1, DIM, scaling.yarn_temperature(8))),
    "llama, llama3": (("llama", "Llama"), {"rope": LLAMA3}, ("halves", 1, DIM, 1.0)),
    "gpt-neox": (
        ("gpt_neox", "GPTNeoX"),
        {"rope": {"partial_rotary_factor": 0.25}},
        ("halves", 1, DIM // 4, 1.0),
    ),
    "cohere": (("cohere", "Cohere"), {}, ("interleaved", 1, DIM, 1.0)),
    "glm": (("glm", "Glm"), {"rope": {"partial_rotary_factor": 0.5}}, ("interleaved", 1, DIM // 2, 1.0)),
    "glm, yarn": (
        ("glm", "Glm"),
        {"rope": {"partial_rotary_factor": 0.5, **YARN}},
        ("interleaved", 1, DIM // 2, scaling.yarn_temperature(8)),
    ),
    "deepseek v2": (("deepseek_v2", "DeepseekV2", "apply_rotary_emb"), LATENT, ("interleaved", 1, DIM, 1.0)),
    "deepseek v3": (
        ("deepseek_v3", "DeepseekV3", "apply_rotary_pos_emb_interleave"),
        LATENT,
        ("interleaved", 1, DIM, 1.0),
    ),
    "llama 4": (
        ("llama4", "Llama4Text", "apply_rotary_emb"),
        {"last": True, "intermediate_size_mlp": 8},
        ("interleaved", 1, DIM, 1.0),
    ),
    "nanochat": (("nanochat", "NanoChat"), {}, ("halves", -1, DIM, 1.0)),
}


@pytest.mark.parametrize("name", PEERS)
def test_a_family_of_transformers_is_labelled(hugging_face, name):
    arguments, options, (layout, direction, width, amplitude) = PEERS[name]
    fn, group = hugging_face(*arguments, **options)
    report = probe.identify(fn, dim=DIM)
    assert (report.layout, report.direction, report.rotary_dim) == (layout, direction, width)
    assert report.amplitude == pytest.approx(amplitude, rel=1e-6)
    torch.testing.assert_close(report.frequencies, group.frequencies(), rtol=1e-5, atol=0)
    assert codes(report, "error") == []
    # Its frequencies are a buffer that is not saved: a cast rounds it, and only its own loader restores it.
    assert codes(report, "warning") == ["R11"]
    assert "R11" in codes(report, "note")


@pytest.mark.parametrize("name", [name for name in PEERS if name != "nanochat"])
def test_a_family_of_transformers_matches_what_our_reader_makes_of_its_file(hugging_face, name):
    arguments, options, _ = PEERS[name]
    assert_matches(*hugging_face(*arguments, **options))


def test_deepseeks_channels_come_out_sorted_into_halves(hugging_face):
    fn, _ = hugging_face("deepseek_v3", "DeepseekV3", "apply_rotary_pos_emb_interleave", **LATENT)
    report = probe.identify(fn, dim=DIM)
    assert report.permutation == tuple(rotary.permutation(DIM).argsort().tolist())
    assert codes(report, "note") == ["R2", "R10", "R11"]


def test_nanochats_direction_is_the_only_thing_against_it(hugging_face):
    fn, group = hugging_face("nanochat", "NanoChat")
    assert errors(fn, group) == ["R3"]


def nanochat(x, at):
    """As in its own repository: the first half meets plus the sine, the second minus."""
    angles = at[:, None] * frequencies.geometric(DIM)
    cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
    a, b = x.chunk(2, dim=-1)
    return torch.cat((a * cos + b * sin, b * cos - a * sin), dim=-1)


def test_nanochat_written_by_hand_turns_clockwise():
    report = probe.identify(nanochat, dim=DIM)
    assert (report.layout, report.direction) == ("halves", -1)
    torch.testing.assert_close(report.frequencies, frequencies.geometric(DIM), rtol=1e-5, atol=0)
    assert report.findings == ()


def test_a_checkpoint_of_the_other_layout_is_found_out(hugging_face):
    llama, halves = hugging_face("llama", "Llama")
    cohere, neighbours = hugging_face("cohere", "Cohere")
    for fn, group in ((llama, neighbours), (cohere, halves)):
        assert errors(fn, group) == ["R2"]


def test_a_plain_llama_with_a_scaled_file_is_found_out(hugging_face):
    plain, _ = hugging_face("llama", "Llama")
    _, group = hugging_face("llama", "Llama", rope=YARN)
    told = "\n".join(map(str, probe.identify(plain, dim=DIM).explain(group)))
    assert "the scaling 'yarn' is not applied" in told
    assert "amplitude 1, 1.20794 is asked for: the factor is forgotten" in told


# --- what these libraries get wrong ------------------------------------------------------------------------


def test_dynamic_scaling_in_transformers_keeps_the_past_and_couples_rows(hugging_face):
    fn, group = hugging_face("llama", "Llama", rope=DYNAMIC, max_position_embeddings=4096)
    report = probe.identify(fn, dim=DIM)
    assert codes(report, "error") == ["R13", "R14"]
    # That one length counts for all rows is in the nature of the scaling; that the past counts is not.
    assert errors(fn, group) == ["R13"]
    with pytest.raises(AssertionError, match="R13 error: after a call with 8192 positions one with 4096"):
        assert_matches(fn, group)


def test_longrope_in_transformers_couples_rows(hugging_face):
    fn, group = hugging_face("llama", "Llama", rope=LONGROPE, max_position_embeddings=16_384)
    report = probe.identify(fn, dim=DIM)
    assert codes(report, "error") == ["R14"]
    assert "cached keys must be computed again" in "".join(f.message for f in report.findings)
    assert_matches(fn, group)


def test_rotary_embedding_torch_is_labelled_and_makes_positions_in_the_inputs_dtype(
    rotary_embedding_torch,
):
    fn = adapters.counting(rotary_embedding_torch.RotaryEmbedding(DIM).rotate_queries_or_keys)
    report = probe.identify(fn, dim=DIM)
    assert (report.layout, report.direction, report.rotary_dim) == ("interleaved", 1, DIM)
    torch.testing.assert_close(report.frequencies, frequencies.geometric(DIM), rtol=1e-5, atol=0)
    said = "\n".join(map(str, report.findings))
    for words in (
        "R10 error: in torch.bfloat16 positions 256 and 257 coincide",
        "R10 error: in torch.float16 positions 2048 and 2049 coincide",
        "R11 note: state_dict holds freqs",
        "R9 warning: positions other than 0, 1, 2",
    ):
        assert words in said


@pytest.mark.parametrize("width", [DIM, DIM // 2])
def test_x_transformers_is_labelled_and_saves_its_frequencies(x_transformers, width):
    module = x_transformers.RotaryEmbedding(width)
    report = probe.identify(adapters.angles(x_transformers.apply_rotary_pos_emb, module), dim=DIM)
    assert (report.layout, report.direction, report.rotary_dim) == ("interleaved", 1, width)
    torch.testing.assert_close(report.frequencies, frequencies.geometric(width), rtol=1e-5, atol=0)
    assert codes(report, "error") == []
    assert "state_dict holds inv_freq" in "".join(f.message for f in report.findings)


def test_xpos_is_seen_to_scale_what_it_turns(x_transformers):
    module = x_transformers.RotaryEmbedding(DIM, use_xpos=True)
    report = probe.identify(adapters.angles(x_transformers.apply_rotary_pos_emb, module), dim=DIM)
    assert report.layout == "interleaved"
    # Of queries alone, whose scale counts from the middle of each call.
    assert set(codes(report, "error")) == {"R9", "R12"}


# --- tables and biases -------------------------------------------------------------------------------------


def test_the_sinusoids_of_transformers_are_told_apart(family):
    marian = family("marian").MarianSinusoidalPositionalEmbedding(48, 32).create_weight()
    whisper = family("whisper").sinusoids(48, 32)
    xglm = family("xglm").XGLMSinusoidalPositionalEmbedding(48, 32, padding_idx=1)(torch.arange(46)[None])[0]
    said = {}
    for name, table in (("marian", marian), ("whisper", whisper), ("xglm", xglm)):
        answer = tables.sinusoid(table.detach())
        assert answer.name == "sinusoid, sines first"
        said[name] = "\n".join(map(str, answer.findings))
        assert answer.measured["first"] == (2 if name == "xglm" else 0)
    assert "tensor2tensor" in said["whisper"]
    assert "tensor2tensor" in said["xglm"]
    assert "tensor2tensor" not in said["marian"]
    assert "row 0 is position 2" in said["xglm"]


def test_x_transformers_sinusoid_is_scaled_and_comes_alone(x_transformers):
    answer = tables.added(x_transformers.ScaledSinusoidalEmbedding(64), dim=64)
    assert answer.name == "sinusoid, sines first"
    assert (answer.measured["input_scale"], answer.measured["scale"]) == (0, 0.125)


def test_opts_table_begins_at_row_two(family):
    opt = family("opt").OPTLearnedPositionalEmbedding(16, 8)
    answer = tables.looked_up(lambda at: opt(None, position_ids=at).detach(), opt.weight.detach())
    assert answer.measured == {"offset": 2, "usable": 16}


@pytest.mark.parametrize("heads", [1, 2, 3, 6, 8, 12, 40])
def test_alibi_of_three_libraries_is_named_and_so_is_its_form(family, x_transformers, heads):
    def bloom(queries, keys):
        real = torch.ones(1, len(keys), dtype=torch.long)
        return family("bloom").build_alibi_tensor(real, heads, torch.float32)

    def mpt(queries, keys):
        return family("mpt").build_mpt_alibi_tensor(heads, len(keys))

    for fn in (bloom, mpt):
        answer = tables.bias(fn, heads=heads)
        assert answer.name == "ALiBi, row-constant"
        assert [(f.code, f.severity) for f in answer.findings] == [("A4", "warning")]
    layer = x_transformers.AlibiPositionalBias(heads)
    answer = tables.bias(lambda queries, keys: layer(len(queries), len(keys)), heads=heads)
    assert (answer.name, answer.findings) == ("ALiBi", ())


@pytest.mark.parametrize("decoder", [True, False])
def test_t5s_own_bias_is_named(family, decoder):
    t5 = family("t5", "configuration").T5Config(d_model=8, d_kv=4, num_heads=2, is_decoder=decoder)
    layer = family("t5").T5Attention(t5, has_relative_attention_bias=True, layer_idx=0)
    layer.relative_attention_bias.weight.data = torch.randn(32, 2, generator=torch.Generator().manual_seed(0))

    def fn(queries, keys):
        return layer.compute_bias(len(queries), len(keys), past_seen_tokens=int(queries[0]))

    answer = tables.bias(fn, heads=2, table=layer.relative_attention_bias.weight.detach())
    assert (answer.name, answer.findings) == ("T5, causal" if decoder else "T5, bidirectional", ())


@pytest.mark.parametrize("causal", [True, False])
def test_x_transformers_bias_is_named_t5s(x_transformers, causal):
    layer = x_transformers.RelativePositionBias(scale=1.0, causal=causal, heads=3)
    layer.relative_attention_bias.weight.data = torch.randn(32, 3, generator=torch.Generator().manual_seed(0))
    answer = tables.bias(lambda queries, keys: layer(len(queries), len(keys)), heads=3)
    assert (answer.name, answer.findings) == ("T5, causal" if causal else "T5, bidirectional", ())


def test_xlnets_shift_is_transformer_xls(family):
    def fn(x):
        padded = torch.nn.functional.pad(x, (1, 0))[None, None]
        return family("xlnet").XLNetRelativeAttention.rel_shift_bnij(padded, klen=3)[0, 0]

    answer = tables.shift(fn)
    assert answer.name == "relative shift"
    assert "only under a causal mask" in answer.findings[0].message


@pytest.mark.parametrize(
    "name, title, sections, kind",
    [
        ("qwen2_vl", "Qwen2VL", [8, 12, 12], "chunked"),
        ("qwen3_vl", "Qwen3VLText", [12, 10, 10], "interleaved"),
        ("qwen3_vl", "Qwen3VLText", [8, 12, 12], "interleaved"),
    ],
)
def test_the_axes_of_m_rope_in_transformers_are_found(family, name, title, sections, kind):
    rope = {"rope_type": "default", "rope_theta": 1e6, "mrope_section": sections}
    options = {**SIZE, "rope_parameters": rope}
    peer = getattr(family(name, "configuration"), f"{title.removesuffix('Text')}TextConfig")(**options)
    embed = getattr(family(name), f"{title}RotaryEmbedding")(peer)
    module = family(name)

    def fn(x, coordinates):
        cos, sin = embed(x, coordinates[:, None])
        return module.apply_rotary_pos_emb(x, x, cos, sin)[0]

    answer = tables.axes(fn, dim=DIM, sections=sections, interleaved=kind == "interleaved")
    assert answer.name == kind
    # Sections that do not fit lose pairs to the first axis, in silence.
    fits = sections != [8, 12, 12] or kind == "chunked"
    assert [f.code for f in answer.findings] == ([] if fits else ["A6"])

r"""`explain` names the default that it took, the border that holds and the features that turn."""

import json

import pytest
import torch
from typer.testing import CliRunner

from posbook import t5_bias
from posbook.practice import config
from posbook.practice.cli import app


def explained(values, *arguments):
    """The exit code, and all that is printed, in one line."""
    result = CliRunner().invoke(app, ["explain", "-", *map(str, arguments)], input=json.dumps(values))
    return result.exit_code, " ".join(result.output.split())


def said(values):
    return [str(finding) for finding in config.read(values).findings]


T5 = {"model_type": "t5", "d_model": 512, "num_heads": 8, "num_layers": 6}
BUCKETS = {"relative_attention_num_buckets": 32}
DISTANCE = {"relative_attention_max_distance": 128}


def test_only_the_key_that_t5s_file_lacks_is_named():
    buckets = "D2 warning: no relative_attention_num_buckets: 32 is used"
    distance = "D2 warning: no relative_attention_max_distance: 128 is used"
    assert said(T5) == [buckets, distance]
    assert said(T5 | BUCKETS) == said(T5 | {"relative_attention_num_buckets": 16}) == [distance]
    assert said(T5 | DISTANCE) == [buckets]
    assert said(T5 | BUCKETS | DISTANCE) == []


QWEN3_NEXT = {
    "model_type": "qwen3_next",
    "hidden_size": 2048,
    "num_attention_heads": 16,
    "head_dim": 256,
    "num_hidden_layers": 48,
    "partial_rotary_factor": 0.25,
    "rope_theta": 1e7,
    "max_position_embeddings": 262_144,
}


@pytest.mark.parametrize("family", ["qwen3_next", "qwen3_5_text", "qwen3_5_moe_text"])
def test_linear_layers_are_taken_from_the_class_where_the_file_is_silent(family):
    silent = config.read(QWEN3_NEXT | {"model_type": family})
    still, turning = silent.groups
    assert turning.layers == tuple(range(3, 48, 4))
    assert (still.scheme, len(still.layers)) == ("none", 36)
    told = f"D2 warning: no full_attention_interval: 4 is used, the default of {family}"
    assert told in map(str, silent.findings)
    given = config.read(QWEN3_NEXT | {"model_type": family, "full_attention_interval": 4})
    assert given.groups == silent.groups
    assert told not in map(str, given.findings)


MPT = {"model_type": "mpt", "d_model": 7168, "n_heads": 56, "n_layers": 48}


def test_a_largest_alibi_bias_that_readers_disagree_on_is_an_error():
    code, told = explained(MPT | {"attn_config": {"alibi": True, "alibi_bias_max": 16}})
    assert code == 1
    assert "D3 error alibi_bias_max 16 is ignored by transformers 5.24.0" in told
    for agreed in ({}, {"alibi_bias_max": 8}, {"alibi_bias_max": None}):
        assert said(MPT | {"attn_config": {"alibi": True, **agreed}}) == []


@pytest.mark.parametrize("buckets, distance", [(32, 128), (16, 128), (64, 128), (32, 64), (8, 20), (4, 3)])
def test_t5s_last_bucket_begins_where_it_is_first_used(buckets, distance):
    values = {"relative_attention_num_buckets": buckets, "relative_attention_max_distance": distance}
    past = -torch.arange(distance + 1)[None]
    starts = []
    for both in (True, False):
        row = t5_bias.buckets(past, bidirectional=both, buckets=buckets, max_distance=distance)[0]
        starts.append(int((row == row.max()).nonzero()[0]))
    last = f"the last from {starts[0]} tokens on in the encoder and from {starts[1]} on in the decoder"
    assert f"T5's bias, {buckets} buckets, {last}" in explained(T5 | values)[1]


def test_t5s_buckets_that_reach_too_short_are_told_without_a_border():
    told = explained(T5 | {"relative_attention_num_buckets": 32, "relative_attention_max_distance": 16})[1]
    assert "T5's bias, 32 buckets, max_distance 16" in told


GPT2 = {"model_type": "gpt2", "n_embd": 768, "n_head": 12, "n_layer": 12, "n_positions": 1024}
ROBERTA = {
    "model_type": "roberta",
    "num_hidden_layers": 12,
    "max_position_embeddings": 514,
    "pad_token_id": 1,
}
OPT = {"model_type": "opt", "num_hidden_layers": 12, "max_position_embeddings": 2048}


@pytest.mark.parametrize(
    "values, rows, longest",
    [(GPT2, "1024 rows, position 0 in row 0", 1024), (ROBERTA, "514 rows, position 0 in row 2", 512),
     (OPT, "2050 rows, position 0 in row 2", 2048)],
)  # fmt: skip
def test_a_learned_table_that_is_too_short_for_the_length_is_an_error(values, rows, longest):
    code, told = explained(values, "--length", longest)
    assert code == 0
    assert f"a learned table of {rows}" in told
    code, told = explained(values, "--length", longest + 1)
    assert code == 1
    assert f"D6 error the learned table has rows for {longest} tokens, not for {longest + 1}" in told
    data = json.loads(CliRunner().invoke(app, ["explain", "-", "--json", "--length", "4096"],
                                         input=json.dumps(values)).stdout)  # fmt: skip
    assert [f["severity"] for f in data["findings"]][-1] == "error"


@pytest.mark.parametrize(
    "values",
    [T5 | BUCKETS | DISTANCE, {"model_type": "bloom", "n_head": 16, "n_layer": 2, "seq_length": 2048}],
)
def test_a_bias_has_no_last_length(values):
    assert explained(values, "--length", 1_000_000)[0] == 0


def test_a_learned_table_of_unknown_length_is_told_as_one():
    code, told = explained({"model_type": "roberta", "num_hidden_layers": 12}, "--length", 4096)
    assert code == 0
    assert "a learned table of a length that is not given, position 0 in row 2" in told
    assert "None" not in told


DEEPSEEK = {
    "model_type": "deepseek_v3",
    "hidden_size": 7168,
    "num_attention_heads": 128,
    "num_hidden_layers": 61,
    "qk_rope_head_dim": 64,
    "rope_theta": 1e4,
    "max_position_embeddings": 4096,
}


@pytest.mark.parametrize(
    "changes, told",
    [
        ({"qk_nope_head_dim": 128}, "rotary, the last 64 of 192 features, interleaved"),
        ({"qk_nope_head_dim": 128, "head_dim": 64}, "rotary, the last 64 of 192 features, interleaved"),
        ({"model_type": "deepseek_v4", "head_dim": 512}, "rotary, the last 64 of 512 features, interleaved"),
        ({}, "rotary, the last 64 features of a head, interleaved"),
    ],
)
def test_the_features_that_turn_are_counted_of_the_whole_head(changes, told):
    assert told in explained(DEEPSEEK | changes)[1]


def test_a_family_that_is_not_known_is_told_where_something_rotates():
    bogus = QWEN3_NEXT | {"model_type": "bogus_next"}
    told = "D3 warning: model_type 'bogus_next' is not known here: its layout and defaults are not checked"
    assert said(bogus).count(told) == 1
    assert explained(bogus)[0] == 0
    assert any("no model_type:" in line for line in said(bogus | {"model_type": None}))
    assert not any("not known here" in line for line in said(QWEN3_NEXT))
    assert said({"model_type": "bogus", "n_head": 16, "alibi": True}) == []
    (line,) = (line for line in said(DEEPSEEK | {"model_type": "sarvam_mla"}) if "layout" in line)
    assert line == "D3 warning: the layout of sarvam_mla is not known here"


def test_mpt_adds_its_slopes_though_the_file_does_not_say_so():
    silent = config.read(MPT)
    assert [(g.scheme, g.heads) for g in silent.groups] == [("alibi", 56)]
    assert said(MPT) == ["D2 warning: no attn_config.alibi: true is used, the default of mpt"]
    told = "D3 error: attn_config.alibi false is ignored by transformers 5.24.0, which adds the slopes"
    assert said(MPT | {"attn_config": {"alibi": False}}) == [told]


def test_a_width_that_is_no_quotient_is_told_though_other_layers_do_not_rotate():
    told = "D6 note: head_dim 256 is not hidden_size/heads 128: head_dim holds"
    assert said(QWEN3_NEXT | {"full_attention_interval": 4}) == [told]
    wide = {"model_type": "gemma4_text", "head_dim": 128, "global_head_dim": 512, "num_hidden_layers": 2}
    kinds = {"layer_types": ["sliding_attention", "full_attention"]}
    assert not any("is not hidden_size/heads" in line for line in said(QWEN3_NEXT | wide | kinds))


def test_layers_that_do_not_rotate_are_told_apart():
    values = QWEN3_NEXT | {"full_attention_interval": 4}
    assert "position no rotation: linear attention, which is recurrent" in explained(values)[1]
    mixed = QWEN3_NEXT | {"num_hidden_layers": 3, "layer_types": ["conv", "mamba", "full_attention"]}
    assert "position no rotation: a convolution; a recurrence" in explained(mixed)[1]
    plain = QWEN3_NEXT | {"model_type": "qwen3", "no_rope_layer_interval": 4}
    assert "position none: these layers do not rotate" in explained(plain)[1]

r"""Any config.json is read into one form; what was assumed, and what readers would get wrong, is said."""

import json
import math
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from posbook import alibi, frequencies, scaling
from posbook.practice import config, schema
from posbook.practice.findings import SECTIONS

ROOT = Path(__file__).parents[2]


def lines(path):
    return [json.loads(line) for line in (ROOT / path).read_text("utf-8").splitlines()]


CONFIGS = {record["id"]: record for record in lines("posbook/practice/data/rope_configs.jsonl")}
EXPECTED = lines("tests/data/rope_expected.jsonl")

LLAMA = {
    "model_type": "llama",
    "hidden_size": 4096,
    "num_attention_heads": 32,
    "num_hidden_layers": 4,
    "rope_theta": 10_000.0,
    "max_position_embeddings": 4096,
}


def llama(**changes):
    """A clean configuration with some keys changed, or left out where None is given."""
    return {key: value for key, value in (LLAMA | changes).items() if value is not None}


def only(model):
    (group,) = model.groups
    return group


def codes(model, severity=None):
    return [f.code for f in model.findings if severity in (None, f.severity)]


def said(model):
    return "\n".join(map(str, model.findings))


# --- real files --------------------------------------------------------------------------------------------


def name(record):
    parts = (record[key] for key in ("id", "name", "rope_type", "layer_type", "seq_len"))
    return " ".join(str(part) for part in parts if part is not None)


@pytest.mark.parametrize("record", EXPECTED, ids=name)
def test_a_real_configuration_gives_its_frequencies_and_factors(record):
    model = config.read(CONFIGS[record["id"]]["config"])
    kind = record["layer_type"]
    (group,) = (g for g in model.groups if g.scheme == "rotary" and (kind is None or kind in g.kinds))
    assert group.rope_type == record["rope_type"]
    expected = torch.tensor(record["inv_freq"], dtype=torch.float64)
    torch.testing.assert_close(group.frequencies(record["seq_len"]), expected, rtol=1e-9, atol=0)
    assert group.attention_factor == pytest.approx(record["attention_scaling"], rel=1e-12)
    # Only DeepSeek's attention and its descendants use the second factor; the field is theirs.
    assert group.softmax_factor == pytest.approx(record.get("softmax_scale_multiplier", 1.0), rel=1e-12)


@pytest.mark.parametrize("record", CONFIGS.values(), ids=lambda r: f"{r['id']} {r['name']}")
def test_the_groups_of_a_real_configuration_share_out_its_layers(record):
    model = config.read(record["config"])
    layers = sorted(layer for group in model.groups for layer in group.layers)
    assert layers in ([], list(range(model.layers or 0)))
    # A text that goes through JSON says the same as the mapping.
    assert config.read(json.dumps(record["config"])) == model


def test_layers_without_rotation_say_so():
    smollm = config.read(CONFIGS["C131"]["config"])
    turning, still = smollm.groups
    assert still.layers == tuple(range(3, 36, 4))
    assert (still.scheme, still.rope_type) == ("none", "none")
    assert still.frequencies() is None
    assert (still.attention_factor, still.softmax_factor) == (1.0, 1.0)
    assert turning.rotary_dim == 128


# --- spellings ---------------------------------------------------------------------------------------------

YARN = {"factor": 4.0, "original_max_position_embeddings": 1024}


@pytest.mark.parametrize(
    "spelled",
    [
        llama(rope_scaling={"type": "yarn", **YARN}),
        llama(rope_scaling={"rope_type": "yarn", **YARN}),
        llama(rope_theta=None, rope_parameters={"rope_type": "yarn", "rope_theta": 10_000.0, **YARN}),
        llama(rope_theta=None, rotary_emb_base=10_000, rope_scaling={"type": "yarn", **YARN}),
        llama(rope_parameters={"rope_type": "yarn", "rope_theta": 10_000.0, **YARN}),
        {"model_type": "a_vision_model", "text_config": llama(rope_scaling={"type": "yarn", **YARN})},
    ],
)
def test_every_spelling_of_one_recipe_is_one_group(spelled):
    expected = scaling.yarn(frequencies.geometric(128), 4, 1024)
    model = config.read(spelled)
    assert torch.equal(only(model).frequencies(), expected)
    assert only(model).attention_factor == scaling.yarn_temperature(4)
    assert codes(model, "error") == codes(model, "warning") == []


@pytest.mark.parametrize(
    "changes, width",
    [
        ({"partial_rotary_factor": 0.25}, 32),
        ({"rotary_pct": 0.25}, 32),
        ({"rotary_dim": 32}, 32),
        ({"rope_theta": None, "rope_parameters": {"rope_theta": 1e4, "partial_rotary_factor": 0.25}}, 32),
        ({"head_dim": 64}, 64),
        ({}, 128),
    ],
)
def test_the_width_that_turns_is_found_under_each_name(changes, width):
    group = only(config.read(llama(**changes)))
    assert group.rotary_dim == width
    assert torch.equal(group.frequencies(), frequencies.geometric(width))


def test_a_window_pattern_divides_the_layers():
    gemma = {"model_type": "gemma3_text", "head_dim": 256, "rope_local_base_freq": 1e4, "rope_theta": 1e6}
    model = config.read(llama(**gemma, num_hidden_layers=12, sliding_window_pattern=6))
    near, far = model.groups
    assert far.layers == (5, 11)
    assert (near.base, far.base) == (1e4, 1e6)


def test_linear_attention_does_not_rotate():
    model = config.read(llama(full_attention_interval=4, num_hidden_layers=8))
    assert [(g.scheme, g.layers) for g in model.groups] == [("none", (0, 1, 2, 4, 5, 6)), ("rotary", (3, 7))]


def test_the_window_turns_and_the_whole_does_not_in_command_r7b():
    kinds = ["sliding_attention"] * 3 + ["full_attention"]
    model = config.read(llama(model_type="cohere2", layer_types=kinds))
    assert [(g.scheme, g.layout, g.layers) for g in model.groups] == [
        ("rotary", "interleaved", (0, 1, 2)),
        ("none", "unknown", (3,)),
    ]


@pytest.mark.parametrize(
    "values, scheme",
    [
        ({"model_type": "bloom", "n_head": 12, "n_layer": 2, "hidden_size": 768}, "alibi"),
        ({"model_type": "mpt", "n_heads": 6, "n_layers": 2, "attn_config": {"alibi": True}}, "alibi"),
        ({"model_type": "falcon", "num_attention_heads": 8, "hidden_size": 64, "alibi": True}, "alibi"),
        ({"model_type": "gpt2", "n_embd": 768, "n_head": 12, "n_positions": 1024}, "learned"),
        ({"model_type": "t5", "d_model": 512, "num_heads": 8, "num_layers": 6}, "t5"),
    ],
)
def test_other_schemes_are_named(values, scheme):
    group = only(config.read(values))
    assert group.scheme == scheme
    assert group.frequencies() is None
    if scheme == "alibi":
        assert len(alibi.slopes(group.heads)) == group.heads > 0


@pytest.mark.parametrize("model_type, pad, first, usable", [("roberta", 1, 2, 512), ("roberta", 3, 4, 510)])
def test_robertas_rows_begin_after_the_padding(model_type, pad, first, usable):
    model = config.read({"model_type": model_type, "max_position_embeddings": 514, "pad_token_id": pad})
    assert only(model).row_offset == first
    assert f"{usable} of 514" in said(model)


# --- findings ----------------------------------------------------------------------------------------------

FACTORS = {"short_factor": [1.0] * 64, "long_factor": [2.0] * 64, "original_max_position_embeddings": 1024}


@pytest.mark.parametrize(
    "values, code, severity, words",
    [
        (llama(rope_parameters={"rope_theta": 5e5}), "D1", "error", "10000 at the top level, 500000 in"),
        (llama(rope_scaling={"type": "linear", "rope_type": "yarn", **YARN}), "D1", "error", "type wins"),
        (llama(rope_scaling={"type": "yarn", **YARN}), "D1", "note",
         "rope_scaling.type 'yarn' is the older spelling of rope_type"),
        (llama(n_positions=2048), "D1", "error", "max_position_embeddings 4096, n_positions 2048"),
        (
            llama(rope_parameters={"rope_type": "default"}, rope_scaling={"type": "linear", "factor": 2.0}),
            "D1",
            "error",
            "both given and differ",
        ),
        (
            llama(original_max_position_embeddings=2048, rope_scaling={"type": "yarn", **YARN}),
            "D1",
            "error",
            "2048 at the top level, 1024 inside",
        ),
        (llama(rotary_dim=64, partial_rotary_factor=0.25), "D1", "error", "rotary_dim 64"),
        (llama(rope_theta=None), "D2", "error", "10000 is used"),
        (llama(rope_theta=None, model_type="gemma"), "D2", "warning", "what gemma has by default"),
        (llama(rope_theta=None, model_type="new", rope_scaling={"type": "linear", "factor": 2.0}),
         "D2", "warning", "what most readers assume"),
        (llama(rope_scaling={"type": "yarn", "attn_factor": 0.5, **YARN}), "D3", "error", "1.1386 or 0.5693"),
        (llama(rope_scaling={"type": "yarn", "betafast": 32, **YARN}), "D3", "warning", "beta_fast is meant"),
        (llama(rope_scaling={"factor": 8.0}), "D3", "error", "no rope_type: it is ignored"),
        (llama(rope_scaling={"type": "su", **FACTORS}), "D3", "note", "read as 'longrope'"),
        (llama(rope_scaling={"type": "lnear", "factor": 8.0}), "D3", "error", "'linear' is meant"),
        (llama(rope_scaling={"type": "yarn", **YARN, "factor": 8.0}), "D4", "warning", "4096/1024 = 4"),
        (llama(rope_scaling={"type": "yarn", "factor": 8.0}), "D4", "error", "embeddings 4096 is"),
        (llama(rope_scaling={"type": "linear"}), "D4", "error", "has no factor"),
        (llama(rope_scaling={"type": "linear", "factor": 0.5}), "D4", "error", "below 1"),
        (llama(rope_scaling={"type": "longrope", **FACTORS, "long_factor": [2.0] * 48}), "D5", "error",
         "64 factors expected, 48 given"),
        (llama(hidden_size=4100), "D6", "error", "not a multiple of 32"),
        (llama(head_dim=80), "D6", "note", "head_dim 80 is not hidden_size/heads 128"),
        (llama(rope_parameters={"mrope_section": [16, 24, 20]}), "D6", "error", "adds up to 60"),
        (llama(no_rope_layers=[1, 1, 1, 0]), "D7", "note", "1 where rotary embedding is used"),
        (llama(layer_types=["full_attention"] * 3), "D7", "error", "3 layers, num_hidden_layers 4"),
        (llama(model_type="deepseek_v3", qk_rope_head_dim=64,
               rope_scaling={"type": "yarn", **YARN, "factor": 40.0, "mscale": 1.0, "mscale_all_dim": 1.0}),
         "D8", "note", "1.0000 on cosines and sines and 1.8739"),
        (llama(rope_scaling={"type": "dynamic", "factor": 2.0}), "D9", "note", "recompute cached keys"),
        (llama(rope_scaling={"type": "longrope", **FACTORS}), "D9", "note", "from 1025 tokens on"),
    ],
)  # fmt: skip
def test_what_a_reader_would_get_wrong_is_a_finding(values, code, severity, words):
    found = [f for f in config.read(values).findings if f.code == code]
    assert any(f.severity == severity and words in f.message for f in found), said(config.read(values))


def test_a_clean_file_has_no_finding():
    assert config.read(LLAMA).findings == ()
    assert config.read(llama(rope_scaling={"rope_type": "yarn", **YARN})).findings == ()
    assert config.read(llama(rope_scaling={"type": "default"})).findings == ()


# As the file of the 4B model leaves it: no base, no width, no pattern, no length.
GEMMA = {
    "model_type": "gemma3_text",
    "hidden_size": 2560,
    "num_hidden_layers": 34,
    "rope_scaling": {"factor": 8.0, "rope_type": "linear"},
    "sliding_window": 1024,
}


def test_a_base_that_only_a_contradicted_file_has_is_told_and_is_no_error():
    model = config.read(GEMMA)
    assert [group.base for group in model.groups] == [1e4, 1e6]
    (told,) = [f for f in model.findings if "full_attention" in f.message and f.code == "D2"]
    assert told.severity == "warning"
    assert told.message.endswith("maxtext writes 10000 for gemma3-4b, gemma3-12b, gemma3-27b")
    assert "released" not in told.message
    assert codes(model, "error") == []
    # Where released files of a family do differ, it stays an error.
    assert codes(config.read(llama(rope_theta=None)), "error") == ["D2"]


@pytest.mark.parametrize(
    "changes, told", [({}, True), ({"rope_local_base_freq": 2e4}, False), ({"rope_theta": 1e6}, True)]
)
def test_the_base_that_is_assumed_of_windows_is_told(changes, told):
    words = "no base of sliding_attention: 10000 is used, what gemma3_text has by default"
    assert (words in said(config.read(GEMMA | changes))) == told


def test_an_assumption_about_all_layers_is_told_once():
    assert codes(config.read(GEMMA)).count("D6") == 1


def test_windows_are_known_of_the_layers_that_slide_one_and_divide_no_recipe():
    near, far = config.read(GEMMA | {"max_position_embeddings": 131_072}).groups
    assert (near.window, far.window) == (1024, None)
    assert (near.reach(), near.reach(512), far.reach()) == (1024, 512, 131_072)
    kinds = ["sliding_attention", "full_attention"] * 2
    assert only(config.read(llama(layer_types=kinds, sliding_window=1024))).window is None


def test_every_code_has_a_section():
    numbers = {"D": range(1, 10), "R": range(1, 16), "A": range(1, 7)}
    assert set(SECTIONS) == {f"{letter}{i}" for letter, range_ in numbers.items() for i in range_}


def test_a_list_of_another_length_gives_no_frequencies():
    group = only(config.read(llama(rope_scaling={"type": "longrope", **FACTORS, "short_factor": [1.0] * 48})))
    with pytest.raises(ValueError, match="48"):
        group.frequencies()


def test_the_frequencies_change_with_the_length_where_the_file_says_so():
    group = only(config.read(llama(rope_scaling={"type": "longrope", **FACTORS})))
    plain = frequencies.geometric(128)
    assert torch.equal(group.frequencies(1024), plain)
    assert torch.equal(group.frequencies(1025), plain / 2)
    with pytest.raises(ValueError, match="length must be at least 1 token, not 0"):
        group.frequencies(0)


# --- what is no configuration ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "source, words",
    [
        ("no_such_file.json", "no_such_file.json: No such file"),
        ("{", "not JSON"),
        ('{"rope_theta": NaN}', "NaN is no number"),
        ("{" + '"a": {' * 100_000, "nested too deeply|not JSON"),
        ({}, "no key says how position enters"),
        ({"model_type": "llama"}, "no head_dim, and no hidden_size"),
        (llama(num_attention_heads=0), "num_attention_heads is 0"),
        (llama(hidden_size="4096"), "hidden_size is '4096'.*integer"),
        (llama(rope_theta="10000"), "rope_theta is '10000'.*number"),
        (llama(rope_theta=math.inf), "rope_theta is inf"),
        (llama(rope_scaling={"type": "linear", "factor": "8"}), "rope_scaling.factor is '8'"),
        (llama(rope_scaling=[1]), r"rope_scaling is \[1\]"),
        (llama(rope_scaling={"type": "longrope", **FACTORS, "long_factor": None}), "needs long_factor"),
        (llama(partial_rotary_factor=2.0), "256 of 128 features"),
        ({"model_type": "bloom"}, "no number of heads"),
    ],
)
def test_what_is_no_configuration_is_refused_in_one_line(source, words):
    with pytest.raises(config.Unusable, match=words) as caught:
        config.read(source)
    assert "\n" not in str(caught.value)


def test_files_that_are_no_text_or_too_large_are_refused(tmp_path):
    binary = tmp_path / "binary.json"
    binary.write_bytes(b"\xff\xfe\x00{")
    with pytest.raises(config.Unusable, match="not UTF-8"):
        config.read(binary)
    large = tmp_path / "large.json"
    with large.open("wb") as file:
        file.truncate(200 << 20)
    with pytest.raises(config.Unusable, match="209715200 bytes"):
        config.read(str(large))
    listed = tmp_path / "list.json"
    listed.write_text("[1]")
    with pytest.raises(config.Unusable, match="mapping, not list"):
        config.read(listed)


def test_a_path_gives_what_its_text_gives(tmp_path):
    path = tmp_path / "config.json"
    path.write_text(json.dumps(LLAMA), "utf-8")
    assert config.read(path) == config.read(str(path)) == config.read(LLAMA)


anything = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 10**6) | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@settings(max_examples=300, deadline=None, derandomize=True)
@given(st.data())
def test_whatever_the_file_holds_it_is_read_or_refused(data):
    record = data.draw(st.sampled_from(list(CONFIGS.values())))
    values = json.loads(json.dumps(record["config"]))
    place = values
    for key in ("rope_parameters", "rope_scaling"):
        if isinstance(values.get(key), dict) and data.draw(st.booleans()):
            place = values[key]
    keys = [*place, *schema.Config.model_fields, *schema.Rope.model_fields]
    place[data.draw(st.sampled_from(keys))] = data.draw(anything)
    try:
        model = config.read(values)
    except config.Unusable:
        return
    for group in model.groups:
        try:
            theta = group.frequencies()
        except ValueError:
            assert codes(model, "error")  # no numbers without a finding that says why
        else:
            assert theta is None or (theta >= 0).all()

r"""What released configurations ask for, said with posbook, against frequencies computed without it.

The records hold twelve digits of frequencies in float64, made by a routine of their own and checked against
transformers 5.24.0; one configuration may have several, by kind of layer and by length. ``trust`` in
``posbook/practice/data/rope_configs.jsonl`` says where each configuration comes from.
"""

import json
from collections import Counter
from pathlib import Path

import pytest
import torch

from posbook import frequencies, scaling
from tests import by_equation

ROOT = Path(__file__).parent.parent
CONFIGS = {
    record["id"]: record
    for record in map(
        json.loads, (ROOT / "posbook/practice/data/rope_configs.jsonl").read_text("utf-8").splitlines()
    )
}
EXPECTED = [
    json.loads(line) for line in (ROOT / "tests/data/rope_expected.jsonl").read_text("utf-8").splitlines()
]

# Records that posbook refuses to express, each with the reason.
REFUSED = {
    "C107": "the defaults of glm4_moe's configuration class give heads of ⌊4096/96⌋ = 42 features, of which "
    "half turn: 21, which transformers makes 11 pairs with exponents 2i/21. A width must be even",
}


def name(record):
    parts = (record[key] for key in ("id", "name", "rope_type", "layer_type", "seq_len"))
    return " ".join(str(part) for part in parts if part is not None)


def anywhere(config, key):
    """The value of a key that lies at the top, or inside rope_scaling or rope_parameters."""
    inside = config.get("rope_parameters") or config.get("rope_scaling") or {}
    return config.get(key, inside.get(key))


def by_posbook(record):
    """Frequencies, attention factor and softmax factor of one record, None where nothing turns."""
    config, rope = CONFIGS[record["id"]]["config"], record["standardized_rope_parameters"]
    kind, dim = record["rope_type"], record["rotary_dim"]
    if kind == "none":
        return None, 1.0, 1.0
    theta = frequencies.geometric(dim, rope["rope_theta"])
    factor, trained = rope.get("factor"), rope.get("original_max_position_embeddings")
    attention = softmax = 1.0

    if kind == "proportional":
        theta = scaling.linear(
            frequencies.proportional(dim, rope["partial_rotary_factor"], rope["rope_theta"]), factor or 1
        )
    elif kind == "linear":
        theta = scaling.linear(theta, factor)
    elif kind == "dynamic":
        theta = scaling.dynamic_ntk(theta, record["seq_len"], config["max_position_embeddings"], factor)
    elif kind == "llama3":
        theta = scaling.llama3(theta, factor, trained, rope["low_freq_factor"], rope["high_freq_factor"])
    elif kind == "longrope":
        long = (record["seq_len"] or 0) > trained
        theta = scaling.longrope(theta, anywhere(config, "long_factor" if long else "short_factor"))
        factor = factor or config["max_position_embeddings"] / trained
        attention = scaling.longrope_temperature(factor, trained)
    elif kind == "yarn":
        betas = {key: rope[key] for key in ("beta_fast", "beta_slow", "truncate") if key in rope}
        theta = scaling.yarn(theta, factor, trained, **betas)
        attention = scaling.yarn_temperature(factor)
        if rope.get("mscale") and rope.get("mscale_all_dim"):
            attention, softmax = scaling.deepseek_temperatures(factor, rope["mscale"], rope["mscale_all_dim"])
    elif kind != "default":
        raise ValueError(f"no call of posbook is known here for rope_type {kind!r}")
    return theta, rope.get("attention_factor", attention), softmax


@pytest.mark.parametrize("record", [r for r in EXPECTED if r["id"] not in REFUSED], ids=name)
def test_a_configuration_gives_its_frequencies_and_factors(record):
    theta, attention, softmax = by_posbook(record)
    if record["inv_freq"] is None:
        assert theta is None
        return
    expected = torch.tensor(record["inv_freq"], dtype=torch.float64)
    # Pairs that stand still are exactly 0, since no tolerance is absolute.
    torch.testing.assert_close(theta, expected, rtol=1e-9, atol=0)
    for key in ("attention_scaling", "attention_scaling_ref"):
        assert attention == pytest.approx(record[key], rel=1e-12)
    # Only DeepSeek's attention and its descendants use the second factor; the field is theirs.
    if "softmax_scale_multiplier" in record:
        assert softmax == pytest.approx(record["softmax_scale_multiplier"], rel=1e-12)


def test_an_odd_rotary_width_is_refused_and_is_a_width_of_its_own():
    (record,) = [record for record in EXPECTED if record["id"] in REFUSED]
    assert record["id"] == "C107"
    with pytest.raises(ValueError, match=r"even number of features.*dim=21"):
        frequencies.geometric(21)
    # What transformers turns: 10 000^(−2i/21), though the record's width, two features a pair, is 22.
    expected = [10_000 ** (-2 * i / 21) for i in range(11)]
    assert record["inv_freq"] == pytest.approx(expected, rel=1e-11)
    assert record["inv_freq"][1] != pytest.approx(by_equation.geometric(22)[1], rel=0.02)
    # The same frequencies, from an even width and another base.
    theta = frequencies.geometric(22, base=10_000 ** (22 / 21))
    assert theta.tolist() == pytest.approx(record["inv_freq"], rel=1e-9)


def test_every_configuration_and_every_kind_of_scaling_is_there():
    assert {record["id"] for record in EXPECTED} == set(CONFIGS)
    assert (len(CONFIGS), len(EXPECTED), len(REFUSED)) == (109, 152, 1)
    assert Counter(record["rope_type"] for record in EXPECTED) == {
        "default": 85,
        "dynamic": 18,
        "yarn": 15,
        "longrope": 12,
        "llama3": 9,
        "proportional": 7,
        "linear": 6,
    }


def test_no_record_is_without_rotation_and_none_is_in_doubt():
    # Layers that do not turn, as in no_rope_layers, have no record: all are of layers that do.
    assert [record["id"] for record in EXPECTED if record["inv_freq"] is None] == []
    assert [record["id"] for record in EXPECTED if record["flags"]] == []
    still = [record["id"] for record in EXPECTED if 0.0 in record["inv_freq"]]
    assert still == [record["id"] for record in EXPECTED if record["rope_type"] == "proportional"]


def test_keys_that_change_nothing_are_known_by_name():
    # A factor of attention under a name that transformers does not read, and mscale without its partner.
    (qwen,) = [r for r in EXPECTED if "attn_factor" in r["standardized_rope_parameters"]]
    assert qwen["attention_scaling"] == pytest.approx(scaling.yarn_temperature(4), rel=1e-12)
    (alone,) = [r for r in EXPECTED if r["name"] == "yarn mscale only"]
    assert alone["attention_scaling"] == pytest.approx(scaling.yarn_temperature(40), rel=1e-12)
    assert scaling.deepseek_temperatures(40, 0.707)[0] == pytest.approx(1.2608, abs=5e-5)

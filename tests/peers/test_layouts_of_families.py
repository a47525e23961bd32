r"""The layout that rope_families.json gives each family is the one its code in transformers turns by."""

import importlib
import inspect
import re
from pathlib import Path

import pytest

from posbook import frequencies
from posbook.practice import adapters, probe, schema
from tests.peers import pinned

pinned("transformers", "5.24.0")

# Released configurations name them, but their code comes with the checkpoint, or has another name by now.
NOT_IN_TRANSFORMERS = {"EvollaModel", "exaone", "internlm3", "iquestcoder", "sarvam_mla", "sarvam_moe"}
APPLY = ("apply_rotary_pos_emb_interleave", "apply_rotary_emb", "apply_rotary_pos_emb")
ONE_TENSOR = {  # apply(x, cos, sin)
    "deepseek_v4",
    "diffusion_gemma_text",
    "gemma3n_text",
    "gemma4_text",
    "gemma4_unified_text",
}
HEADS_LAST = {"llama4_text"}
SECTIONS = {"rope_type": "default", "rope_theta": 10_000.0, "mrope_section": [8, 12, 12]}
HALF = {"head_dim": 128, "rope_parameters": {**SECTIONS, "partial_rotary_factor": 0.5}}
# Whose class's defaults contradict each other: as released.
OPTIONS = {
    "glm4v_moe_text": HALF,
    "glm4v_text": HALF,
    "glm_image_text": HALF,
    "hunyuan_vl_text": {"head_dim": 64, "rope_parameters": SECTIONS},
}
# Whose outer configuration has no attention of its own: the part whose layers turn.
PART = {"blt": "encoder_config"}


@pytest.fixture(scope="session")
def classes():
    """The configuration class of every model_type, and the folder it lies in."""
    root = Path(importlib.import_module("transformers").__file__).parent / "models"
    found = {}
    for path in sorted(root.glob("*/configuration_*.py")):
        folder = path.parent.name
        if not (path.parent / f"modeling_{folder}.py").exists():
            continue
        module = importlib.import_module(f"transformers.models.{folder}.{path.stem}")
        for value in vars(module).values():
            if isinstance(value, type) and value.__module__ == module.__name__:
                found.setdefault(getattr(value, "model_type", ""), (folder, value))
    return found


def turning(name, folder, configuration):
    """What the family's code does to queries, and how many features its frequencies are for."""
    code = importlib.import_module(f"transformers.models.{folder}.modeling_{folder}")
    if name in ("gptj", "codegen"):
        return by_a_table(code), 16
    if name == "musicflamingo":
        return by_time(code), 16
    config = configuration(**OPTIONS.get(name, {}))
    config = getattr(config, PART.get(name, ""), config)
    apply = next(getattr(code, known) for known in APPLY if hasattr(code, known))
    embeddings = re.findall(r"^class (\w*RotaryEmbedding)\(", inspect.getsource(code), re.M)
    embed = next(e for e in embeddings if not re.search("Vision|DiT|SaProt", e))
    module = getattr(code, embed)(config)
    options = {}
    if "layer_type" in inspect.signature(module.forward).parameters:
        blocks = config.rope_parameters
        options["layer_type"] = next(kind for kind, block in blocks.items() if isinstance(block, dict))
    of_kind = options.get("layer_type", "") + "_inv_freq"
    theta = next(b for n, b in module.named_buffers() if n == of_kind.removeprefix("_"))
    one = (lambda q, k, *tables: apply(q, *tables)) if name in ONE_TENSOR else apply
    fn = adapters.tables(one, module, **options)
    return adapters.heads_last(fn) if name in HEADS_LAST else fn, 2 * len(theta)


def by_a_table(code):
    """GPT-J and CodeGen: sines and cosines side by side in one table, heads after positions."""

    def embed(x, at):
        return tuple(code.create_sinusoidal_positions(64, 16)[at].chunk(2, dim=-1))

    def apply(q, k, sin, cos):
        return code.apply_rotary_pos_emb(q, sin, cos)

    return adapters.heads_last(adapters.tables(apply, embed))


def by_time(code):
    """MusicFlamingo: angles are made of two coordinates of time; here of one, in its order of columns."""

    def embed(x, at):
        angles = (at[..., None] * frequencies.geometric(16)).repeat_interleave(2, dim=-1)
        return angles.cos(), angles.sin()

    return adapters.tables(lambda q, k, *tables: code.apply_rotary_time_emb(q, *tables), embed)


RELEASED = [name for name in schema.families() if name not in NOT_IN_TRANSFORMERS]


@pytest.mark.parametrize("name", RELEASED)
def test_a_familys_layout_is_that_of_its_code(classes, name):
    fn, dim = turning(name, *classes[name])
    report = probe.identify(fn, dim=dim, longest=64)
    assert report.layout == schema.families()[name]["layout"]
    assert report.direction == (-1 if name == "nanochat" else 1)


def test_of_a_wider_head_the_first_features_turn_and_of_deepseek_v4s_the_last(classes):
    """Of the families whose code turns a part by itself; others cut the head before."""
    wider = {}
    for name in RELEASED:
        fn, dim = turning(name, *classes[name])
        try:
            report = probe.identify(fn, dim=2 * dim, longest=64)
        except ValueError:  # a head is as wide as its table
            continue
        wider[name] = report.features == tuple(range(dim, 2 * dim))
        assert wider[name] or report.features == tuple(range(dim)), name
    assert {"glm", "gpt_neox", "nemotron", "bamba"} <= set(wider)
    assert {name for name, last in wider.items() if last} == {"deepseek_v4"}
    assert "qk_rope_head_dim" in schema.families()["deepseek_v4"]


def test_the_families_left_out_are_not_in_transformers(classes):
    assert {name for name in schema.families() if name not in classes} == NOT_IN_TRANSFORMERS

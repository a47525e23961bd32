r"""What a ``config.json`` may hold, and what is known of families where a file is silent.

The keys that have to do with position, each with the type it must have; the names under which one value goes;
and, from transformers 5.24.0, what the class of each ``model_type`` assumes.
"""

import json
from functools import cache
from importlib import resources
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

# Strict: a number in quotes is a mistake that one reader forgives and the next does not.

Count = Annotated[int, Field(strict=True, ge=1)]
Number = Annotated[float, Field(strict=True, allow_inf_nan=False)]
Positive = Annotated[float, Field(strict=True, allow_inf_nan=False, gt=0)]


class Rope(BaseModel):
    """The block ``rope_parameters``, formerly ``rope_scaling``, or one layer type's entry in it."""

    model_config = ConfigDict(extra="allow")

    rope_type: str | None = None
    type: str | None = None
    rope_theta: Positive | None = None
    partial_rotary_factor: Positive | None = None
    factor: Positive | None = None
    original_max_position_embeddings: Count | None = None
    low_freq_factor: Positive | None = None
    high_freq_factor: Positive | None = None
    beta_fast: Positive | None = None
    beta_slow: Positive | None = None
    truncate: bool | None = None
    mscale: Number | None = None
    mscale_all_dim: Number | None = None
    attention_factor: Positive | None = None
    short_factor: list[Positive] | None = None
    long_factor: list[Positive] | None = None
    mrope_section: list[Annotated[int, Field(ge=0)]] | None = None
    mrope_interleaved: bool | None = None
    alpha: Positive | None = None
    # Known, and of no consequence for the frequencies.
    llama_4_scaling_beta: Number | None = None
    max_position_embeddings: Count | None = None
    finetuned: bool | None = None


class Config(BaseModel):
    """The keys of ``config.json`` that have to do with position; any other is let through."""

    model_config = ConfigDict(extra="allow")

    model_type: str | None = None
    hidden_size: Count | None = None
    n_embd: Count | None = None
    d_model: Count | None = None
    num_attention_heads: Count | None = None
    n_head: Count | None = None
    num_heads: Count | None = None
    encoder_num_attention_heads: Count | None = None
    num_hidden_layers: Count | None = None
    n_layer: Count | None = None
    n_layers: Count | None = None
    num_layers: Count | None = None
    head_dim: Count | None = None
    global_head_dim: Count | None = None
    qk_rope_head_dim: Count | None = None
    qk_nope_head_dim: Count | None = None
    d_kv: Count | None = None
    max_position_embeddings: Count | None = None
    n_positions: Count | None = None
    n_ctx: Count | None = None
    seq_length: Count | None = None
    max_sequence_length: Count | None = None
    max_seq_len: Count | None = None
    original_max_position_embeddings: Count | None = None
    rope_theta: Positive | None = None
    rotary_emb_base: Positive | None = None
    rope_local_base_freq: Positive | None = None
    global_rope_theta: Positive | None = None
    local_rope_theta: Positive | None = None
    compress_rope_theta: Positive | None = None
    rope_scaling: dict[str, Any] | None = None
    rope_parameters: dict[str, Any] | None = None
    partial_rotary_factor: Positive | None = None
    rotary_pct: Positive | None = None
    rope_pct: Positive | None = None
    rotary_dim: Count | None = None
    layer_types: list[str] | None = None
    sliding_window: int | None = None
    sliding_window_pattern: Count | str | None = None
    full_attention_interval: Count | None = None
    global_attn_every_n_layers: Count | None = None
    no_rope_layers: list[Annotated[int, Field(ge=0, le=1)]] | None = None
    no_rope_layer_interval: Count | None = None
    alibi: bool | None = None
    attn_config: dict[str, Any] | None = None
    position_embedding_type: str | None = None
    pad_token_id: int | None = None
    relative_attention_num_buckets: Count | None = None
    relative_attention_max_distance: Count | None = None


LAYERS = ("num_hidden_layers", "n_layer", "n_layers", "num_layers")
HEADS = ("num_attention_heads", "n_head", "num_heads", "n_heads", "encoder_num_attention_heads")
WIDTH = ("hidden_size", "n_embd", "d_model")
LENGTH = (
    "max_position_embeddings",
    "n_positions",
    "n_ctx",
    "max_seq_len",
    "max_sequence_length",
    "seq_length",
)
BASE = ("rope_theta", "rotary_emb_base", "global_rope_theta")
PARTIAL = ("partial_rotary_factor", "rotary_pct", "rope_pct")
NESTED = ("text_config", "language_config", "llm_config", "thinker_config", "decoder")

TYPES = {"default", "linear", "dynamic", "yarn", "longrope", "llama3", "proportional"}
OTHER_NAMES = {"su": "longrope", "mrope": "default", "deepseek_yarn": "yarn", "none": "none"}
NEEDS = {
    "linear": ("factor",),
    "dynamic": ("factor",),
    "yarn": ("factor", "original_max_position_embeddings"),
    "longrope": ("short_factor", "long_factor", "original_max_position_embeddings"),
    "llama3": ("factor", "original_max_position_embeddings", "low_freq_factor", "high_freq_factor"),
}
# Kinds of layers in which nothing attends, so that nothing rotates.
NO_ATTENTION = {"linear_attention", "conv", "recurrent", "mamba", "mamba2", "ssm"}
# How order enters there.
INSTEAD = {"linear_attention": "linear attention, which is recurrent", "conv": "a convolution"}
# Families whose layers with full attention do not rotate where others slide a window.
NOPE_ON_FULL = {"cohere2", "exaone4"}
# Families whose scores take the temperature of mscale_all_dim, squared, besides that on cosines and sines.
SOFTMAX_TEMPERATURE = {"deepseek_v2", "deepseek_v3", "deepseek_v32", "mistral4", "kimi_k2", "longcat_flash"}
# Every how many layers one attends in full, where the class and not the file says it.
FULL_EVERY = {"gemma3_text": 6, "gemma3n_text": 5, "olmo3": 4}
# And every how many one attends at all, where the others are recurrent.
ATTENTION_EVERY = {"qwen3_next": 4, "qwen3_5_text": 4, "qwen3_5_moe_text": 4, "qwen4_exp_text": 4}
# Models that are no rotary models: how position enters, by their model_type.
ALIBI = {"bloom", "mpt"}
LEARNED = {
    "gpt2": 0, "gpt_neo": 0, "gpt_bigcode": 0, "openai-gpt": 0, "bert": 0, "distilbert": 0, "electra": 0,
    "albert": 0, "opt": 2, "bart": 2, "mbart": 2, "roberta": None, "xlm-roberta": None, "camembert": None,
}  # fmt: skip
T5 = {"t5", "mt5", "umt5", "longt5", "switch_transformers"}


@cache
def families() -> dict[str, Any]:
    """The defaults of each ``model_type``: its layout, and the block of frequencies its class assumes."""
    text = resources.files("posbook.practice").joinpath("data/rope_families.json").read_text("utf-8")
    return json.loads(text)["families"]


# Files of one project; other files of these models, and the class of their makers, have another base.
CONTRADICTED = {"gemma3-4b", "gemma3-12b", "gemma3-27b"}


@cache
def bases() -> dict[str, dict[float, list[tuple[str, str]]]]:
    """The bases that files give, by ``model_type``: for each base where it stands, as (project, model).

    Class defaults are not counted.
    """
    text = resources.files("posbook.practice").joinpath("data/rope_configs.jsonl").read_text("utf-8")
    found: dict[str, dict[float, list[tuple[str, str]]]] = {}
    for record in map(json.loads, text.splitlines()):
        base = record["config"].get("rope_theta")
        if base and record["trust"] in ("as-found", "converted"):
            source = record["source"]
            project = source.get("repo", source.get("package", "")).rpartition("/")[2]
            family = found.setdefault(record["config"]["model_type"], {})
            family.setdefault(float(base), []).append((project, record["name"]))
    return found

r"""Read any model's ``config.json`` and say what each of its layers does with position.

A file says it in one of many spellings, old and new, and leaves much unsaid. :func:`read` brings it into one
form: groups of layers with one recipe each, in :class:`Group`. Where a value was assumed, or where readers of
the file disagree, ``Model.findings`` says so.

What is assumed follows transformers 5.24.0, whose files these are: ``data/rope_families.json`` holds the
defaults of its configuration classes and the layouts of its modelling code. A configuration is data: nothing
in it is imported or run.
"""

import difflib
import json
import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from jaxtyping import Float64
from pydantic import BaseModel, ValidationError
from torch import Tensor

from posbook import frequencies, scaling
from posbook.practice import schema
from posbook.practice.findings import Finding

LARGEST = 1 << 24  # bytes; the longest real configuration, with all its factors, has a few hundred thousand


class Unusable(ValueError):
    """The file says too little, or nothing, about position; the message is one line.

    >>> read({"model_type": "llama"})
    Traceback (most recent call last):
    ...
    posbook.practice.config.Unusable: no head_dim, and no hidden_size with a number of heads to divide it by
    """


# --- what comes out ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Group:
    r"""Layers that do the same with position.

    ``layers`` are their numbers, from 0; empty where the file does not say how many layers there are.
    ``window`` is how many tokens a query of theirs sees, where the file says that they slide one.
    ``kinds`` are the file's names for them, such as ``"sliding_attention"``. ``scheme`` is ``"rotary"``,
    ``"alibi"``, ``"learned"``, ``"t5"`` or ``"none"``. The rest is about rotation: ``layout`` is
    ``"halves"``, ``"interleaved"`` or ``"unknown"``, ``rotary_dim`` of ``head_dim`` features turn,
    ``attention_factor`` multiplies cosines and sines, ``softmax_factor`` the scores besides. Those that turn
    are the ``"first"`` of a head or, as ``part`` says of latent attention, the ``"last"`` of a head that has
    others besides the ``head_dim`` counted here, ``whole_head`` in all. A learned table has ``rows``, and
    position 0 is row ``row_offset``. Both counts are 0 where the file does not say them.

    >>> Group(scheme="none").frequencies() is None
    True
    """

    layers: tuple[int, ...] = ()
    kinds: tuple[str, ...] = ()
    scheme: str = "rotary"
    rope_type: str = "default"
    layout: str = "unknown"
    hidden_size: int = 0
    head_dim: int = 0
    rotary_dim: int = 0
    part: str = "first"
    whole_head: int = 0
    base: float = 10_000.0
    attention_factor: float = 1.0
    softmax_factor: float = 1.0
    trained_length: int | None = None
    window: int | None = None
    factor: float = 1.0
    fraction: float = 1.0
    beta_fast: float = 32.0
    beta_slow: float = 1.0
    truncate: bool = True
    low: float = 1.0
    high: float = 4.0
    short_factor: tuple[float, ...] = ()
    long_factor: tuple[float, ...] = ()
    sections: tuple[int, ...] = ()
    interleaved_sections: bool = False
    heads: int = 0
    rows: int = 0
    row_offset: int = 0
    buckets: int = 0
    max_distance: int = 0

    def frequencies(self, length: int | None = None) -> Float64[Tensor, " pairs"] | None:
        r"""Radians per token of each pair, after scaling, for a sequence of ``length`` tokens.

        None where nothing rotates. Without ``length`` the trained length is meant; only dynamic NTK-aware
        scaling and LongRoPE look at it. Raises ValueError for a length below 1.

        >>> Group(rope_type="linear", factor=4.0, rotary_dim=4, base=100.0).frequencies().tolist()
        [0.25, 0.025]
        """
        if length is not None and length < 1:
            raise ValueError(f"length must be at least 1 token, not {length}")
        if self.scheme != "rotary":
            return None
        if self.rope_type == "proportional":
            theta = frequencies.proportional(self.rotary_dim, self.fraction, self.base)
            return scaling.linear(theta, self.factor) if self.factor > 1 else theta / self.factor
        width, base = self.rotary_dim, self.base
        if width % 2:  # transformers makes one pair more, with exponents over the odd width
            width, base = width + 1, base ** ((width + 1) / width)
        theta = frequencies.geometric(width, base)
        if self.rope_type == "linear":
            return theta / self.factor
        if self.rope_type == "dynamic":
            trained = self.trained_length
            return scaling.dynamic_ntk(theta, length or trained, trained, self.factor)
        if self.rope_type == "llama3":
            return scaling.llama3(theta, self.factor, self.trained_length, self.low, self.high)
        if self.rope_type == "yarn":
            return scaling.yarn(
                theta,
                self.factor,
                self.trained_length,
                self.beta_fast,
                self.beta_slow,
                truncate=self.truncate,
            )
        if self.rope_type == "longrope":
            long = (length or 0) > self.trained_length
            return scaling.longrope(theta, self.long_factor if long else self.short_factor)
        return theta

    def unscaled(self) -> Float64[Tensor, " pairs"] | None:
        r"""Radians per token of each pair before any scaling: those that the model was trained with at first.

        >>> Group(rope_type="linear", factor=4.0, rotary_dim=4, base=100.0).unscaled().tolist()
        [1.0, 0.1]
        """
        kept = self.rope_type if self.rope_type == "proportional" else "default"
        return replace(self, rope_type=kept, factor=1.0).frequencies()

    def slow(self, length: int | None = None) -> dict[str, int] | None:
        r"""How many pairs never come round within ``length`` tokens, before scaling and after.

        Without ``length`` the trained length is meant; layers that slide a window are counted within it. None
        where nothing rotates, or no length is known.

        >>> llama = Group(rope_type="llama3", factor=8.0, rotary_dim=128, base=500_000.0, trained_length=8192)
        >>> llama.slow()
        {'tokens': 8192, 'pairs': 64, 'before_scaling': 29, 'after_scaling': 32}
        """
        tokens = self.reach(length)
        if self.scheme != "rotary" or not tokens:
            return None
        before, after = self.unscaled(), self.frequencies(length)
        counts = [int((frequencies.turns(theta, tokens) < 1).sum()) for theta in (before, after)]
        names = ("tokens", "pairs", "before_scaling", "after_scaling")
        return dict(zip(names, (tokens, len(after), *counts), strict=True))

    def reach(self, length: int | None = None) -> int | None:
        r"""How many tokens a query sees in a text of ``length`` tokens; without it, of the trained length.

        >>> Group(trained_length=32_768, window=1024).reach(), Group(window=1024).reach(512), Group().reach()
        (1024, 512, None)
        """
        return min((n for n in (length or self.trained_length, self.window) if n), default=None)


@dataclass(frozen=True)
class Model:
    """A configuration in one form: groups of layers, and what a reader of the file would get wrong.

    >>> model = read({"model_type": "bloom", "n_head": 16, "n_layer": 24, "hidden_size": 1024})
    >>> model.layers, model.groups[0].scheme, model.groups[0].heads
    (24, 'alibi', 16)
    """

    model_type: str
    groups: tuple[Group, ...]
    findings: tuple[Finding, ...]
    layers: int | None = None
    longest: int | None = None


def read(source: str | Path | dict[str, Any]) -> Model:
    r"""The model that a ``config.json`` describes: a path, the text of one, or the mapping itself.

    Raises :class:`Unusable`, a ValueError of one line, for what is no configuration: a file that is not
    there, not UTF-8, not JSON or too large, no mapping, a number in quotes, NaN, zero heads, no width.

    >>> model = read({"model_type": "llama", "hidden_size": 4096, "num_attention_heads": 32,
    ...               "num_hidden_layers": 32, "rope_theta": 500000.0, "max_position_embeddings": 8192})
    >>> group, = model.groups
    >>> group.rope_type, group.layout, group.rotary_dim, len(group.layers)
    ('default', 'halves', 128, 32)
    >>> model.findings
    ()
    """
    if isinstance(source, str) and not source.lstrip().startswith("{"):
        source = Path(source)
    if isinstance(source, Path):
        return read_text(_text(source), str(source))
    return _model(source if isinstance(source, dict) else _parsed(source))


def read_text(text: str, name: str) -> Model:
    r"""As :func:`read`, of the text of a configuration that came from ``name``; every error begins with it.

    >>> read_text("", "standard input")
    Traceback (most recent call last):
    ...
    posbook.practice.config.Unusable: standard input: empty, where a configuration is due
    """
    try:
        return _model(_parsed(text))
    except Unusable as error:
        raise Unusable(f"{name}: {error}") from None


def _model(raw: Any) -> Model:
    if not isinstance(raw, dict):
        raise Unusable(f"a configuration is a mapping, not {type(raw).__name__}")
    return _Reader(raw).model()


def _text(path: Path) -> str:
    try:
        if path.stat().st_size > LARGEST:
            raise Unusable(f"{path}: {path.stat().st_size} bytes; a configuration has less than {LARGEST}")
        return path.read_text("utf-8")
    except UnicodeDecodeError:
        raise Unusable(f"{path}: not UTF-8 text") from None
    except OSError as error:
        raise Unusable(f"{path}: {error.strerror}") from None


def _parsed(text: str) -> Any:
    if not text.strip():
        raise Unusable("empty, where a configuration is due")
    if len(text) > LARGEST:
        raise Unusable(f"{len(text)} characters; a configuration has less than {LARGEST}")
    try:
        return json.loads(text, parse_constant=_no_constant)
    except RecursionError:
        raise Unusable("nested too deeply to be a configuration") from None
    except ValueError as error:
        raise Unusable(f"not JSON: {error}") from None


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is no number")


def _validated(kind: type[BaseModel], values: dict[str, Any], where: str) -> Any:
    try:
        return kind.model_validate(values)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join([*([where] if where else []), *map(str, first["loc"])])
        value = repr(first["input"])
        raise Unusable(f"{place} is {value[:60]}: {first['msg'][:1].lower()}{first['msg'][1:]}") from None
    except RecursionError:
        raise Unusable("nested too deeply to be a configuration") from None


@dataclass
class _Reader:
    """One reading of one file; its methods follow the order in which a file is understood."""

    raw: dict[str, Any]
    found: list[Finding] = field(default_factory=list)

    def say(self, code: str, severity: str, message: str) -> None:
        finding = Finding(code, severity, message)
        if finding not in self.found:
            self.found.append(finding)

    def model(self) -> Model:
        raw, outer = self.raw, self.raw.get("model_type")
        for _ in range(3):  # a multimodal file keeps the text model one or two levels down
            inner = next((raw[key] for key in schema.NESTED if isinstance(raw.get(key), dict)), None)
            if inner is None or _first(raw, schema.WIDTH) is not None:
                break
            raw = inner
        self.raw, self.config = raw, _validated(schema.Config, raw, "")
        self.model_type = self.config.model_type or (outer if isinstance(outer, str) else None) or "unknown"
        if self.model_type not in schema.families() and f"{self.model_type}_text" in schema.families():
            self.model_type += "_text"
        self.family = schema.families().get(self.model_type)
        self.length = self.one(schema.LENGTH)
        self.count = self.one(schema.LAYERS)
        groups = self.other_scheme() or self.rotary()
        return Model(self.model_type, tuple(groups), tuple(self.found), self.count, self.length)

    def one(self, names: tuple[str, ...]) -> Any:
        """The value that goes by several names; two that differ are a finding."""
        given = {name: getattr(self.config, name, None) for name in names}
        given = {name: value for name, value in given.items() if value is not None}
        if len(set(given.values())) > 1:
            spelled = ", ".join(f"{name} {_plain(value)}" for name, value in given.items())
            self.say("D1", "error", f"{spelled}: readers disagree")
        return next(iter(given.values()), None)

    # --- schemes that do not rotate ---

    def other_scheme(self) -> list[Group]:
        config, kind = self.config, self.model_type
        everything = tuple(range(self.count or 0))
        heads = self.one(schema.HEADS)
        inner = config.attn_config or {}
        alibi = config.alibi or inner.get("alibi") or kind in schema.ALIBI
        if alibi or config.position_embedding_type == "alibi":
            if heads is None:
                raise Unusable("ALiBi needs a slope for each head, and no number of heads is given")
            if kind == "mpt" and inner.get("alibi") is None:
                self.say("D2", "warning", "no attn_config.alibi: true is used, the default of mpt")
            elif kind == "mpt" and inner["alibi"] is False:
                told = "attn_config.alibi false is ignored by transformers 5.24.0, which adds the slopes"
                self.say("D3", "error", told)
            largest = inner.get("alibi_bias_max", 8)
            if largest not in (None, 8):
                self.say("D3", "error", f"alibi_bias_max {largest} is ignored by transformers 5.24.0, which "
                         "takes 8, and used by others: their slopes differ")  # fmt: skip
            return [Group(everything, scheme="alibi", rope_type="none", heads=heads)]
        if kind in schema.T5:
            buckets, distance = config.relative_attention_num_buckets, config.relative_attention_max_distance
            if buckets is None:
                self.say("D2", "warning", "no relative_attention_num_buckets: 32 is used")
            if distance is None:
                self.say("D2", "warning", "no relative_attention_max_distance: 128 is used")
            return [
                Group(
                    everything,
                    scheme="t5",
                    rope_type="none",
                    heads=heads or 0,
                    buckets=buckets or 32,
                    max_distance=distance or 128,
                )
            ]
        if kind in schema.LEARNED and config.position_embedding_type in (None, "absolute"):
            offset = schema.LEARNED[kind]
            if offset is None:  # RoBERTa's rows begin after that of the padding
                offset = (config.pad_token_id if config.pad_token_id is not None else 1) + 1
                rows = self.length
                usable = "" if rows is None else f": {rows - offset} of {rows} rows are usable"
                self.say("D6", "note", f"position 0 is row {offset}{usable}")
            else:  # OPT's and BART's tables have rows besides those of the positions
                rows = None if self.length is None else self.length + offset
            return [
                Group(
                    everything,
                    scheme="learned",
                    rope_type="none",
                    trained_length=self.length,
                    rows=rows or 0,
                    row_offset=offset,
                )
            ]
        return []

    # --- rotation ---

    def rotary(self) -> list[Group]:
        blocks, labels = self.blocks(), self.labels()
        if not blocks and self.family is None:
            raise Unusable(
                f"model_type {self.model_type!r} is not known here, and no key says how position enters"
            )
        if blocks and None not in blocks and set(labels) == {None}:
            self.say(
                "D7", "note", f"the file does not say which layers are {' and which '.join(map(str, blocks))}"
            )
            labels = []
        groups: dict[Group, Group] = {}
        for label in dict.fromkeys(labels or blocks or [None]):
            layers = tuple(i for i, other in enumerate(labels) if other == label)
            group = self.group(label, blocks)
            known = groups.get(group, replace(group, layers=(), kinds=()))
            kinds = known.kinds if label is None else (*known.kinds, label)
            groups[group] = replace(known, layers=tuple(sorted((*known.layers, *layers))), kinds=kinds)
        if any(group.layout == "unknown" for group in groups.values() if group.scheme == "rotary"):
            self.unknown_family()
        window = self.config.sliding_window
        if not window or window < 1:
            return list(groups.values())
        # Last, since layers that slide a window and layers that do not may share one recipe.
        return [
            replace(g, window=window) if g.kinds == ("sliding_attention",) else g for g in groups.values()
        ]

    def unknown_family(self) -> None:
        if self.family:
            told = f"the layout of {self.model_type} is not known here"
        elif self.model_type == "unknown":
            told = "no model_type: the layout and the defaults are not checked"
        else:
            told = (
                f"model_type {self.model_type!r} is not known here: its layout and defaults are not checked"
            )
        self.say("D3", "warning", told)

    def blocks(self) -> dict[str | None, schema.Rope | None]:
        """The blocks by kind of layer, or one under None; empty where the file has no key of rotation."""
        config = self.config
        new, old = config.rope_parameters, config.rope_scaling
        if new and old and new != old:
            self.say(
                "D1", "error", "rope_parameters and rope_scaling are both given and differ: readers disagree"
            )
        which, values = ("rope_parameters", new) if new else ("rope_scaling", old)
        values = values or {}
        nested = values and all(value is None or isinstance(value, dict) for value in values.values())
        base = self.one(schema.BASE)
        self.nested = bool(nested)
        if nested:
            return {
                kind: None if value is None else self.block(value, f"{which}.{kind}", None)
                for kind, value in values.items()
            }
        if not values and base is None and self.family is None:
            return {}
        flat = self.block(values, which, base)
        local = config.rope_local_base_freq or config.local_rope_theta
        if local is None and self.per_layer_defaults() and not values.get("rope_theta"):
            local = self.family["rope"].get("sliding_attention", {}).get("rope_theta")
            if local is not None and local != base:
                self.say("D2", "warning", f"no base of sliding_attention: {_plain(local)} is used, what "
                         f"{self.model_type} has by default")  # fmt: skip
        if config.compress_rope_theta:
            plain = _unscaled(flat, flat.rope_theta)
            # The released code keeps the temperature of the compressed layers at 1.
            changes = {"rope_theta": config.compress_rope_theta, "attention_factor": 1.0}
            return {"main": plain, "compress": flat.model_copy(update=changes)}
        if local is not None:
            plain = _unscaled(flat, local)
            return {"sliding_attention": plain, "full_attention": flat}
        return {None: flat}

    def per_layer_defaults(self) -> bool:
        return bool(self.family) and "sliding_attention" in self.family["rope"]

    def block(self, values: dict[str, Any], where: str, outer_base: float | None) -> schema.Rope:
        rope = _validated(schema.Rope, values, where)
        if rope.rope_type and rope.type and rope.rope_type != rope.type:
            self.say("D1", "error", f"rope_type {rope.rope_type!r} and type {rope.type!r}: rope_type wins in "
                     "transformers, type in others")  # fmt: skip
        if rope.rope_theta is not None and outer_base is not None and rope.rope_theta != outer_base:
            self.say(
                "D1",
                "error",
                f"rope_theta {_plain(outer_base)} at the top level, {_plain(rope.rope_theta)} in {where}: "
                "readers disagree",
            )
        self.unknown_keys(rope, where)
        return rope if rope.rope_theta is not None else rope.model_copy(update={"rope_theta": outer_base})

    def unknown_keys(self, rope: schema.Rope, where: str) -> None:
        extra = rope.model_extra or {}
        known = [name for name in schema.Rope.model_fields if name not in extra]
        for key, value in extra.items():
            if key == "attn_factor":
                full = scaling.yarn_temperature(rope.factor or 1)
                self.say(
                    "D3",
                    "error",
                    f"attn_factor {_plain(value)} is ignored by transformers and multiplied by others: "
                    f"{full:.4f} or {full * value:.4f}"
                    if isinstance(value, int | float)
                    else "attn_factor is ignored by transformers and multiplied by others",
                )
                continue
            near = difflib.get_close_matches(key, known, 1, cutoff=0.75)
            hint = f"; {near[0]} is meant?" if near else ""
            self.say("D3", "warning", f"{where} has {key}, which nothing reads{hint}")
        kind = rope.rope_type or rope.type
        if rope.rope_type is None and kind in schema.TYPES - {"default"}:
            self.say("D1", "note", f"{where}.type {kind!r} is the older spelling of rope_type: a reader of "
                     "rope_type alone scales nothing")  # fmt: skip
        if kind is None and rope.factor not in (None, 1):
            self.say(
                "D3", "error", f"{where} has factor {_plain(rope.factor)} and no rope_type: it is ignored"
            )

    def labels(self) -> list[str | None]:
        """The kind of each layer, [] where the number of layers is not known."""
        config, count = self.config, self.count
        if config.layer_types is not None:
            if count is not None and len(config.layer_types) != count:
                self.say(
                    "D7",
                    "error",
                    f"layer_types names {len(config.layer_types)} layers, num_hidden_layers {count}",
                )
            labels: list[str | None] = list(config.layer_types)
            self.count = len(labels)
        elif count is None:
            labels = []
        elif every := config.full_attention_interval or self.assumed_interval():
            labels = ["linear_attention" if (i + 1) % every else "full_attention" for i in range(count)]
        elif self.windows() is not None:
            full = self.windows()
            labels = ["full_attention" if full(i) else "sliding_attention" for i in range(count)]
        else:
            labels = [None] * count
        return self.without_rope(labels)

    def assumed_interval(self) -> int | None:
        """Every how many layers one attends where the class says it and the file does not."""
        every = schema.ATTENTION_EVERY.get(self.model_type)
        if every:
            whose = f"the default of {self.model_type}"
            self.say("D2", "warning", f"no full_attention_interval: {every} is used, {whose}")
        return every

    def windows(self) -> Callable[[int], bool] | None:
        """Which layers attend in full where the others slide a window; None where all are alike."""
        config, pattern = self.config, self.config.sliding_window_pattern
        if config.global_attn_every_n_layers or self.model_type == "modernbert":
            every = config.global_attn_every_n_layers or 3
            return lambda i: i % every == 0
        if isinstance(pattern, str):
            return lambda i: pattern[i % len(pattern)] in "Gg"
        every = pattern
        if every is None and self.model_type in schema.FULL_EVERY:
            every = schema.FULL_EVERY[self.model_type]
            self.say(
                "D7", "warning", f"no layer_types: every {every}th layer attends in full, as the class has it"
            )
        return every and (lambda i: (i + 1) % every == 0)

    def without_rope(self, labels: list[str | None]) -> list[str | None]:
        config = self.config
        rotates = config.no_rope_layers
        if rotates is None and config.no_rope_layer_interval:
            rotates = [int((i + 1) % config.no_rope_layer_interval != 0) for i in range(len(labels))]
        if rotates is None:
            return labels
        self.say("D7", "note", "no_rope_layers is 1 where rotary embedding is used, 0 where it is not")
        if not labels:
            labels, self.count = [None] * len(rotates), len(rotates)
        if len(rotates) != len(labels):
            self.say("D7", "error", f"no_rope_layers has {len(rotates)} entries for {len(labels)} layers")
        return [label if on else "no_rope" for label, on in zip(labels, rotates, strict=False)]

    def still(self, label: str | None, blocks: dict[str | None, schema.Rope | None]) -> bool:
        """Whether layers of this kind do not rotate."""
        if label in schema.NO_ATTENTION or label == "no_rope":
            return True
        if label == "full_attention" and self.model_type in schema.NOPE_ON_FULL:
            self.say("D7", "note", "layers with full attention do not rotate, those with a window do")
            return True
        return label in blocks and blocks[label] is None

    def group(self, label: str | None, blocks: dict[str | None, schema.Rope | None]) -> Group:
        if self.still(label, blocks):
            return Group(scheme="none", rope_type="none")
        rope = self.entry(label, blocks)
        where = f" of {label}" if label else ""
        kind = self.rope_type(rope, where)
        defaults = self.defaults(label)
        base = rope.rope_theta
        if base is None:
            base = defaults.get("rope_theta", 10_000.0)
            self.assumed_base(base, where)
        head_dim, rotary_dim, fraction = self.widths(label, rope, kind, defaults, where)
        group = Group(
            rope_type=kind,
            layout=self.family["layout"] if self.family else "unknown",
            hidden_size=self.one(schema.WIDTH) or 0,
            head_dim=head_dim,
            rotary_dim=rotary_dim,
            part="last" if self.latent() else "first",
            whole_head=self.whole_head(),
            base=float(base),
            fraction=fraction,
            sections=tuple(rope.mrope_section or ()),
            interleaved_sections=bool(rope.mrope_interleaved),
            trained_length=self.length,
        )
        if group.sections and sum(group.sections) != rotary_dim // 2:
            self.say("D6", "error", f"mrope_section {list(group.sections)} adds up to {sum(group.sections)}, "
                     f"and there are {rotary_dim // 2} pairs")  # fmt: skip
        return self.scaled(group, rope, where)

    def assumed_base(self, base: float, where: str) -> None:
        """Say that a base was assumed: an error where released files of the family have others."""
        whose = f"what {self.model_type} has by default" if self.family else "what most readers assume"
        known = schema.bases().get(self.model_type, {})
        released, contradicted = [], ""
        for other in sorted(known.keys() - {base}):
            names = [name for _, name in known[other] if name in schema.CONTRADICTED]
            if len(names) < len(known[other]):
                released.append(_plain(other))
            else:
                projects = " and ".join(dict.fromkeys(project for project, _ in known[other]))
                contradicted += f"; {projects} writes {_plain(other)} for {', '.join(names)}"
        seen = f"; released files of this family have {', '.join(released)} too" if released else ""
        severity = "error" if released else "warning"
        message = f"no rope_theta{where}: {_plain(base)} is used, {whose}{seen}{contradicted}"
        self.say("D2", severity, message)

    def entry(self, label: str | None, blocks: dict[str | None, schema.Rope | None]) -> schema.Rope:
        if not blocks:
            return schema.Rope()
        if label in blocks:
            return blocks[label]
        if None in blocks:
            flat = blocks[None]
            # OLMo 3 scales only the layers that attend in full.
            if label == "sliding_attention" and self.per_layer_defaults():
                return _unscaled(flat, flat.rope_theta)
            return flat
        kinds = ", ".join(str(kind) for kind in blocks)
        if self.family and label in (self.family["rope"] or {}):
            self.say("D7", "warning", f"no entry for {label} among {kinds}: the class's default is used")
            return schema.Rope()
        self.say("D7", "error", f"no entry for layers of kind {label} among {kinds}: the first is used")
        return next(rope for rope in blocks.values() if rope is not None)

    def defaults(self, label: str | None) -> dict[str, Any]:
        rope = self.family["rope"] if self.family else {}
        if any(value is None or isinstance(value, dict) for value in rope.values()):
            return rope.get(label) or rope.get("full_attention") or {}
        return rope

    def rope_type(self, rope: schema.Rope, where: str) -> str:
        kind = rope.rope_type or rope.type or "default"
        if kind in schema.OTHER_NAMES:
            meant = schema.OTHER_NAMES[kind]
            self.say("D3", "note", f"rope_type {kind!r}{where} is read as {meant!r}; others stop at it")
            kind = meant
        if kind not in schema.TYPES:
            near = difflib.get_close_matches(kind, schema.TYPES, 1)
            hint = f" ({near[0]!r} is meant?)" if near else ""
            self.say(
                "D3", "error", f"rope_type {kind!r}{where} is not known{hint}: the frequencies are unscaled"
            )
            kind = "default"
        missing = [name for name in schema.NEEDS.get(kind, ()) if getattr(rope, name) is None]
        lists = [name for name in missing if name in ("short_factor", "long_factor")]
        if lists:
            raise Unusable(f"rope_type {kind!r}{where} needs {' and '.join(lists)}")
        return kind

    def latent(self) -> int | None:
        """Features that turn in a head of latent attention, behind those that do not; None in other heads."""
        own = (self.family or {}).get("qk_rope_head_dim") if self.config.head_dim is None else None
        return self.config.qk_rope_head_dim or own

    def whole_head(self) -> int:
        """Features of a head of latent attention, those that do not turn included; 0 where it is not said."""
        turning, still, head_dim = self.latent(), self.config.qk_nope_head_dim, self.config.head_dim or 0
        if turning and still:
            return still + turning
        return head_dim if turning and head_dim > turning else 0

    def widths(
        self, label: str | None, rope: schema.Rope, kind: str, defaults: dict[str, Any], where: str
    ) -> tuple[int, int, float]:
        """Features of a head, how many of them rotate, and the part of a proportional head that turns."""
        config = self.config
        width, heads = self.one(schema.WIDTH), self.one(schema.HEADS)
        head_dim = config.head_dim
        family = self.family or {}
        # Gemma 4's full layers have a width of their own, which nothing is compared with.
        wider = label == "full_attention" and (config.global_head_dim or family.get("global_head_dim"))
        if label == "full_attention" and config.global_head_dim:
            head_dim = config.global_head_dim
        latent = self.latent()
        if latent:
            if not config.qk_rope_head_dim:
                self.say("D6", "warning", f"no qk_rope_head_dim: {latent} is used, as the class has it")
            return latent, latent, 1.0
        own = (
            family.get("global_head_dim")
            if label == "full_attention" and not config.global_head_dim
            else None
        )
        of = where if own is not None else ""
        if own is None and head_dim is None:
            own = family.get("head_dim")
        if own is not None:
            self.say("D6", "warning", f"{own} features a head are assumed{of}, as the class has it")
            head_dim = own
        if head_dim is None:
            if heads is None and self.model_type == "moonshine":
                heads = 8
                self.say("D6", "warning", "no number of heads: 8 is used, as the class has it")
            if width is None or heads is None:
                raise Unusable("no head_dim, and no hidden_size with a number of heads to divide it by")
            head_dim = width // heads
            if width % heads:
                self.say(
                    "D6",
                    "error",
                    f"hidden_size {width} is not a multiple of {heads} heads: {head_dim} is used",
                )
        elif width and heads and head_dim * heads != width and not wider:
            self.say(
                "D6",
                "note",
                f"head_dim {head_dim} is not hidden_size/heads {_plain(width / heads)}: head_dim holds",
            )
        partial = rope.partial_rotary_factor
        outer = self.one(schema.PARTIAL)
        if partial is not None and outer is not None and partial != outer:
            self.say("D1", "error", f"partial_rotary_factor {outer} at the top level, {partial} inside")
        partial = partial or outer
        if partial is None and config.rotary_dim is None:
            partial = defaults.get("partial_rotary_factor", 1.0)
            if partial != 1:
                self.say("D2", "warning", f"no partial_rotary_factor: {partial} is used, the default of "
                         f"{self.model_type}")  # fmt: skip
        if kind == "proportional":
            return head_dim, head_dim, min(partial or 1.0, 1.0)
        rotary_dim = int(head_dim * partial) if partial is not None else config.rotary_dim
        if partial is not None and config.rotary_dim is not None and config.rotary_dim != rotary_dim:
            self.say(
                "D1",
                "error",
                f"rotary_dim {config.rotary_dim}, but {partial} of {head_dim} features is {rotary_dim}",
            )
        if not 1 <= rotary_dim <= head_dim:
            raise Unusable(f"{rotary_dim} of {head_dim} features would rotate")
        if rotary_dim % 2:
            self.say(
                "D6",
                "error",
                f"{rotary_dim} features rotate: an odd number has no pairs; transformers makes "
                f"{rotary_dim // 2 + 1} with exponents over {rotary_dim}, others stop",
            )
        return head_dim, rotary_dim, 1.0

    # --- scaling ---

    def scaled(self, group: Group, rope: schema.Rope, where: str) -> Group:
        kind = group.rope_type
        if kind == "dynamic" and rope.alpha is not None:
            dim = group.rotary_dim
            base = group.base * rope.alpha ** (dim / (dim - 2))
            self.say(
                "D9", "note", f"alpha {_plain(rope.alpha)} raises the base to {base:.6g} at every length"
            )
            return replace(group, rope_type="default", base=base)
        trained, factor = self.trained(kind, rope, where), rope.factor
        if kind in ("yarn", "llama3", "longrope") and trained and self.length:
            ratio = self.length / trained
            if factor is None and kind != "longrope":
                factor = ratio
                self.say(
                    "D4", "warning", f"no factor{where}: {self.length}/{trained} = {_plain(ratio)} is used"
                )
            elif factor is not None and ratio != 1 and abs(ratio - factor) > 1e-6:
                # Llama 3.1 itself: 8, though its length is 16 times the original.
                severity = "note" if kind == "llama3" else "warning"
                counted = f"{self.length}/{trained} = {_plain(ratio)}"
                self.say("D4", severity, f"factor {_plain(factor)}{where}, but {counted}")
        if kind in ("linear", "dynamic", "llama3", "yarn") and factor is None:
            self.say("D4", "error", f"rope_type {kind!r}{where} has no factor: 1 is used")
            factor = 1.0
        if factor is not None and factor < 1:
            self.say(
                "D4", "error", f"factor {_plain(factor)}{where} is below 1: it would shorten the context"
            )
        factor = 1.0 if factor is None and kind != "longrope" else factor
        if kind == "dynamic":
            self.say(
                "D9",
                "note",
                f"past {trained} tokens the base grows with the length: recompute cached keys when it does",
            )
        group = replace(group, trained_length=trained, factor=float(factor or 1.0))
        if kind == "llama3":
            return replace(group, low=rope.low_freq_factor or 1.0, high=rope.high_freq_factor or 4.0)
        if kind == "yarn":
            return self.yarn(group, rope, where)
        if kind == "longrope":
            return self.longrope(group, rope, factor, where)
        return group

    def trained(self, kind: str, rope: schema.Rope, where: str) -> int | None:
        inside, outside = rope.original_max_position_embeddings, self.config.original_max_position_embeddings
        if kind not in ("yarn", "llama3", "longrope"):
            if kind == "dynamic" and self.length is None:
                raise Unusable(f"rope_type 'dynamic'{where} needs max_position_embeddings")
            return self.length
        if inside and outside and inside != outside:
            self.say(
                "D1",
                "error",
                f"original_max_position_embeddings {outside} at the top level, {inside} inside: "
                "the top level wins in transformers",
            )
        trained = outside or inside
        if trained is None:
            if self.length is None:
                raise Unusable(f"rope_type {kind!r}{where} needs original_max_position_embeddings")
            trained = self.length
            self.say(
                "D4",
                "error",
                f"rope_type {kind!r}{where} has no original_max_position_embeddings: max_position_embeddings "
                f"{trained} is used",
            )
        return trained

    def yarn(self, group: Group, rope: schema.Rope, where: str) -> Group:
        attention, softmax = scaling.yarn_temperature(group.factor), 1.0
        both = rope.mscale and rope.mscale_all_dim
        if both:
            attention, softmax = scaling.deepseek_temperatures(group.factor, rope.mscale, rope.mscale_all_dim)
        elif rope.mscale is not None or rope.mscale_all_dim is not None:
            alone = "mscale" if rope.mscale else "mscale_all_dim"
            self.say(
                "D8", "note", f"{alone} without the other is ignored: {attention:.4f} on cosines and sines"
            )
        if rope.attention_factor is not None:
            attention = rope.attention_factor
        if self.model_type not in schema.SOFTMAX_TEMPERATURE:
            softmax = 1.0
        elif rope.mscale_all_dim:
            softmax = scaling.yarn_temperature(group.factor, rope.mscale_all_dim) ** 2
        if softmax != 1:
            self.say(
                "D8", "note", f"{attention:.4f} on cosines and sines and {softmax:.4f} on the scores besides"
            )
        if rope.truncate is False and self.nested:
            self.say(
                "D3", "warning", f"truncate{where} is ignored by transformers 5.24.0, which reads it outside"
            )
        return replace(
            group,
            beta_fast=rope.beta_fast or 32.0,
            beta_slow=rope.beta_slow or 1.0,
            truncate=rope.truncate is not False,
            attention_factor=attention,
            softmax_factor=softmax,
        )

    def longrope(self, group: Group, rope: schema.Rope, factor: float | None, where: str) -> Group:
        pairs = group.rotary_dim // 2
        for name in ("short_factor", "long_factor"):
            if len(getattr(rope, name)) != pairs:
                given = len(getattr(rope, name))
                self.say("D5", "error", f"{name}{where}: {pairs} factors expected, {given} given")
        trained = group.trained_length
        if factor is None:
            factor = (self.length or trained) / trained
        attention = rope.attention_factor
        if attention is None:
            attention = scaling.longrope_temperature(factor, trained)
        self.say(
            "D9",
            "note",
            f"from {trained + 1} tokens on the long factors hold: keys cached before turn by the short ones "
            "and must be computed again",
        )
        return replace(
            group,
            short_factor=tuple(rope.short_factor),
            long_factor=tuple(rope.long_factor),
            attention_factor=attention,
        )


def _unscaled(rope: schema.Rope, base: float | None) -> schema.Rope:
    return schema.Rope(rope_theta=base, partial_rotary_factor=rope.partial_rotary_factor)


def _first(raw: dict[str, Any], names: tuple[str, ...]) -> Any:
    return next((raw[name] for name in names if raw.get(name) is not None), None)


def _plain(value: float | int) -> str:
    return (
        f"{value:g}" if isinstance(value, float) and math.isfinite(value) and value < 1e6 else f"{value:.10g}"
    )

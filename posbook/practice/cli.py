r"""The command: ``posbook explain config.json`` and ``posbook identify module:function --dim 64``.

Exit code 0 where nothing is wrong, 1 where a finding is an error, 2 where the input is unusable, with one
line that says why.
"""

import importlib
import importlib.util
import inspect
import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from importlib import metadata
from pathlib import Path
from typing import Annotated, Any

import torch
import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from posbook import frequencies, t5_bias
from posbook.practice import config, probe, schema
from posbook.practice.findings import Finding, ranges

app = typer.Typer(
    add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False, rich_markup_mode=None
)
COLOURS = {"error": "red", "warning": "yellow", "note": "dim"}

As_json = Annotated[bool, typer.Option("--json", help="For a script: the same as JSON.")]


def _version(asked: bool) -> bool:
    if asked:
        print(f"posbook {metadata.version('posbook')}")
        raise typer.Exit()
    return asked


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Which one this is.")
    ] = False,
) -> None:
    """Position in attention: what a model's configuration asks for, and what a function does."""


@app.command()
def explain(
    file: Annotated[str, typer.Argument(help="A config.json, or - for standard input.")],
    length: Annotated[int | None, typer.Option(help="Tokens; what is asked for at this length.")] = None,
    as_json: As_json = False,
    figure: Annotated[Path | None, typer.Option(help="Draw the turns of every pair into this .svg.")] = None,
) -> None:
    """Say what each layer of a model does with position, and what a reader of its file would get wrong."""
    try:
        if length is not None and length < 1:
            raise config.Unusable(f"--length must be at least 1 token, not {length}")
        if file == "-":
            model = config.read_text(sys.stdin.read(config.LARGEST + 1), "standard input")
        else:
            model = config.read(Path(file))
        if length is not None:
            model = replace(model, findings=(*model.findings, *_too_short(model, length)))
        if figure is not None:
            _draw(model, length, figure)
    except ValueError as error:
        _unusable(error)
    if as_json:
        print(json.dumps(_as_data(model, length), indent=1, ensure_ascii=False))
    else:
        _print_model(model, length)
    raise typer.Exit(_code(model.findings))


@app.command()
def identify(
    function: Annotated[
        str, typer.Argument(help="module:function or file.py:function, called as fn(x, positions).")
    ],
    dim: Annotated[int, typer.Option(help="Features of a head.")],
    against: Annotated[Path | None, typer.Option("--config", help="Compare with this config.json.")] = None,
    layer: Annotated[int | None, typer.Option(help="Compare with this layer, counted from 0.")] = None,
    length: Annotated[int | None, typer.Option(help="Tokens; the length to compare at.")] = None,
    as_json: As_json = False,
) -> None:
    """Say which encoding a function is: layout, direction, frequencies, amplitude, and its mistakes."""
    right: tuple[config.Group, ...] = ()
    others: tuple[config.Group, ...] = ()
    try:
        report = probe.identify(_function(function), dim=dim)
        found = report.findings
        if against is not None:
            turning = _turning(against, layer)
            answers = {group: report.explain(group, length) for group in turning}
            right = tuple(group for group in turning if not _errors(answers[group]))
            others = tuple(group for group in turning if _errors(answers[group]))
            if layer is not None and not right:
                elsewhere = (group for group in _turning(against, None) if group not in turning)
                right = tuple(group for group in elsewhere if not _errors(report.explain(group, length)))
            # A function need not be right for all layers: what is told is of those it comes nearest to.
            found = min(answers.values(), key=_errors)
        elif layer is not None:
            raise config.Unusable(f"--layer {layer} is a layer of a configuration: give --config, too")
    except probe.Raised as error:
        _unusable(f"{function} {error.told}; {error.hint.replace('is dim', 'is --dim')}")
    except ValueError as error:
        _unusable(error)
    if as_json:
        data = {**asdict(report), "frequencies": report.frequencies.tolist()}
        data["compared_with"] = None if against is None else str(against)
        data["right_for_layers"] = sorted(number for group in right for number in group.layers)
        data["findings"] = [_finding(f) for f in found]
        print(json.dumps(data, indent=1, ensure_ascii=False))
    else:
        _print_report(report, found)
        _print_verdict(against, right, others)
    raise typer.Exit(_code(found))


def main() -> None:
    app()


# --- in and out --------------------------------------------------------------------------------------------


def _function(name: str) -> probe.Rotation:
    module, _, attribute = name.rpartition(":")
    if not (module and attribute):
        raise config.Unusable(f"{name!r} is not module:function or file.py:function")
    if "(" in attribute:
        raise config.Unusable(f"{name}: a name is due, for nothing is called. {_instance(attribute)}")
    sys.path.insert(0, str(Path.cwd()))
    found: Any = _module(module)
    owner: Any = None
    try:
        for part in attribute.split("."):
            owner, found = found, getattr(found, part)
    except AttributeError as error:
        raise config.Unusable(f"{name}: {error}") from None
    if isinstance(owner, type) and inspect.isfunction(inspect.getattr_static(owner, part, None)):
        of, _, method = attribute.rpartition(".")
        raise config.Unusable(
            f"{name} is a method and needs an instance. {_calling(f'{of}()', owner, method)}"
        )
    if isinstance(found, type) and not issubclass(found, Callable):
        raise config.Unusable(
            f"{name} is a class, and nothing calls its instances. {_calling(f'{attribute}()', found)}"
        )
    if isinstance(found, type):
        raise config.Unusable(
            f"{name} is a class: name an instance of it, or a function that calls one. {_instance(attribute)}"
        )
    if not callable(found):
        raise config.Unusable(
            f"{name} is a {type(found).__name__}, no function. {_calling(attribute, type(found))}"
        )
    return found


def _calling(instance: str, owner: type, method: str = "") -> str:
    """A function that calls a method, where no instance can be called; empty where there is no method."""
    methods = {
        each: f for each, f in vars(owner).items() if inspect.isfunction(f) and not each.startswith("_")
    }
    method = method or next(iter(methods), "")
    if method not in methods:
        return ""
    call = f"{instance}.{method}({', '.join(list(inspect.signature(methods[method]).parameters)[1:])})"
    return f"Write def probed(x, at): return {call} into the file, with your values, and name :probed"


def _instance(attribute: str) -> str:
    called = attribute if "(" in attribute else f"{attribute}()"
    return f"Write a line such as probed = {called} into the file, and name :probed"


def _module(name: str) -> Any:
    try:
        if not name.endswith(".py"):
            return importlib.import_module(name)
        path = Path(name).resolve()
        sys.path.insert(0, str(path.parent))  # what lies beside the file is found as if it were run
        # Under a name of its own, so that a torch.py of somebody's is not taken for torch.
        spec = importlib.util.spec_from_file_location(f"_identified_{path.stem}", path)
        module = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = module
        spec.loader.exec_module(module)
        return module
    except OSError as error:
        raise config.Unusable(f"{name}: {error.strerror or error}") from None
    except ImportError as error:
        raise config.Unusable(f"{name}: {error}") from None
    except (Exception, SystemExit) as error:  # other people's code may raise anything
        raise config.Unusable(f"importing {name} raised {type(error).__name__}: {error}") from None


def _unusable(error: ValueError | str) -> None:
    print(" ".join(str(error).split()), file=sys.stderr)
    raise typer.Exit(2) from None


def _errors(found: tuple[Finding, ...]) -> int:
    return sum(finding.severity == "error" for finding in found)


def _code(found: tuple[Finding, ...]) -> int:
    return int(_errors(found) > 0)


def _finding(finding: Finding) -> dict[str, str]:
    return {**asdict(finding), "section": finding.section}


def _as_data(model: config.Model, length: int | None) -> dict[str, Any]:
    groups = []
    for group in model.groups:
        data = asdict(group)
        theta, why = _frequencies(group, length)
        data["frequencies"] = None if theta is None else theta.tolist()
        data["never_come_round"] = None if theta is None else group.slow(length)
        if why:
            data["no_frequencies"] = why
        groups.append(data)
    return {
        "model_type": model.model_type,
        "layers": model.layers,
        "longest": model.longest,
        "groups": groups,
        "findings": [_finding(finding) for finding in model.findings],
    }


def _frequencies(group: config.Group, length: int | None) -> tuple[Any, str]:
    try:
        return group.frequencies(length), ""
    except ValueError as error:
        return None, str(error)


def _print_model(model: config.Model, length: int | None) -> None:
    console = Console(highlight=False)
    count = f"{model.layers} layers" if model.layers else "number of layers not given"
    console.print(f"[bold]{escape(model.model_type)}[/], {count}")
    for group in model.groups:
        table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
        table.add_column(style="dim", no_wrap=True)
        table.add_column(overflow="fold")
        for name, text in _lines(group, length):
            table.add_row(name, escape(text))
        console.print()
        console.print(table)
    console.print()
    _print_findings(console, model.findings)


def _lines(group: config.Group, length: int | None) -> Iterator[tuple[str, str]]:
    """What is told of a group: name and text, line by line."""
    kinds = f" ({', '.join(group.kinds)})" if group.kinds else ""
    yield "layers", (ranges(group.layers) or "not numbered") + kinds
    match group.scheme:
        case "none":
            instead = "none: these layers do not rotate"
            if group.kinds and set(group.kinds) <= schema.NO_ATTENTION:
                named = (schema.INSTEAD.get(kind, "a recurrence") for kind in group.kinds)
                instead = f"no rotation: {'; '.join(dict.fromkeys(named))}"
            yield "position", instead
            return
        case "alibi":
            yield "position", f"ALiBi, a slope for each of {group.heads} heads"
            return
        case "t5":
            both, past = (_last_bucket(group, bidirectional) for bidirectional in (True, False))
            last = f"max_distance {group.max_distance}"
            if both is not None and past is not None:
                last = f"the last from {both} tokens on in the encoder and from {past} on in the decoder"
            yield "position", f"T5's bias, {group.buckets} buckets, {last}"
            return
        case "learned":
            rows = f"{group.rows} rows" if group.rows else "a length that is not given"
            yield "position", f"a learned table of {rows}, position 0 in row {group.row_offset}"
            return
    features = f"{group.rotary_dim} of {group.head_dim} features"
    if group.part == "last":
        features = f"the last {group.rotary_dim} features of a head"
        if group.whole_head:
            features = f"the last {group.rotary_dim} of {group.whole_head} features"
    yield "position", f"rotary, {features}, {group.layout}"
    theta, why = _frequencies(group, length)
    scaled = group.rope_type
    if group.rope_type not in ("default", "longrope"):
        scaled += f", factor {group.factor:g}"
    if group.rope_type in ("yarn", "llama3", "longrope", "dynamic"):
        scaled += f", trained at {group.trained_length} tokens"
    yield "base", f"{group.base:.10g}"
    yield "scaling", "none" if group.rope_type == "default" else scaled
    if theta is None:
        yield "frequencies", why
        return
    yield "frequencies", f"{theta[0]:.6g} … {theta[-1]:.6g} radians a token, {len(theta)} pairs"
    slow = group.slow(length)
    if slow is None:
        yield "turns", "not counted: the file gives no length, --length can"
    else:
        count = f"{slow['before_scaling']} of {slow['pairs']} pairs"
        within = f"in {slow['tokens']} tokens{', the window' if slow['tokens'] == group.window else ''}"
        if slow["before_scaling"] == slow["after_scaling"]:
            yield "turns", f"{count} never come round {within}"
        else:
            scaled = f"before scaling; {slow['after_scaling']} after"
            yield "turns", f"never come round {within}: {count} {scaled}"
    if group.attention_factor != 1 or group.softmax_factor != 1:
        on_scores = f", {group.softmax_factor:.6g} on the scores besides" if group.softmax_factor != 1 else ""
        yield "factors", f"{group.attention_factor:.6g} on cosines and sines{on_scores}"


def _too_short(model: config.Model, length: int) -> Iterator[Finding]:
    """An error for a learned table that has no row for the last of so many tokens."""
    for group in model.groups:
        tokens = group.rows - group.row_offset
        if group.scheme == "learned" and group.rows and length > tokens:
            yield Finding("D6", "error", f"the learned table has rows for {tokens} tokens, not for {length}")


def _last_bucket(group: config.Group, bidirectional: bool) -> int | None:
    """The distance from which T5's last bucket holds; None for buckets that t5_bias refuses."""
    back = -torch.arange(group.max_distance + 1)[None]
    sizes = {"buckets": group.buckets, "max_distance": group.max_distance}
    try:
        found = t5_bias.buckets(back, bidirectional=bidirectional, **sizes)[0]
    except ValueError:
        return None
    return int((found == found[-1]).int().argmax())


def _turning(against: Path, layer: int | None) -> list[config.Group]:
    """The groups of a model that rotate; of one layer, that of the layer."""
    groups = config.read(against).groups
    if layer is not None:
        groups = tuple(group for group in groups if layer in group.layers)
        if not groups:
            raise config.Unusable(f"{against}: there is no layer {layer}; posbook explain lists them")
    turning = [group for group in groups if group.scheme == "rotary"]
    if not turning:
        which = "no layer of this model" if layer is None else f"layer {layer} never"
        raise config.Unusable(f"{against}: {which} rotates")
    return turning


def _print_report(report: probe.Report, found: tuple[Finding, ...]) -> None:
    console = Console(highlight=False)
    turn = {1: "anticlockwise", -1: "clockwise"}[report.direction]
    console.print(f"layout       {report.layout}, {report.rotary_dim} of {report.dim} features")
    if report.layout != "none":
        theta = report.frequencies
        console.print(f"features     {ranges(report.features)} turn")
        console.print(f"direction    {turn}")
        console.print(f"frequencies  {theta[0]:.6g} … {theta[-1]:.6g}, {len(theta)} pairs")
        console.print(f"amplitude    {report.amplitude:.6g}")
    if report.permutation:
        console.print("channels     come out in another order")
    _print_findings(console, found, "")


def _print_verdict(
    against: Path | None, right: tuple[config.Group, ...], others: tuple[config.Group, ...]
) -> None:
    console = Console(highlight=False)
    if against is None:
        told = "Nothing was compared with a configuration: "
        told += "--config config.json says whether this is what the model asks for."
        console.print(told, soft_wrap=True)
    elif right and others:
        told = f"It does what the configuration asks for in {_layers(right)}, and not in {_layers(others)}."
        console.print(told, soft_wrap=True)
    elif right:
        console.print("It does what the configuration asks for.")
    elif len(others) > 1:
        told = "This model has layers of several kinds: --layer compares with one of them alone."
        console.print(told, soft_wrap=True)


def _layers(groups: tuple[config.Group, ...]) -> str:
    numbers = sorted(number for group in groups for number in group.layers)
    kinds = ", ".join(dict.fromkeys(kind for group in groups for kind in group.kinds))
    if not numbers:
        return f"layers of {kinds}" if kinds else "some layers"
    return f"layer{'s' if len(numbers) > 1 else ''} {ranges(numbers)}" + (f" ({kinds})" if kinds else "")


def _print_findings(
    console: Console, found: tuple[Finding, ...], clean: str = "Nothing found that a reader would get wrong."
) -> None:
    for finding in found:
        colour = COLOURS[finding.severity]
        console.print(
            f"[{colour}]{finding.code} {finding.severity}[/]  {escape(finding.message)}  "
            f"[dim]({finding.section})[/]",
            soft_wrap=True,
        )
    if not found and clean:
        console.print(clean)


def _draw(model: config.Model, length: int | None, path: Path) -> None:
    if path.suffix != ".svg":
        raise config.Unusable(f"{path}: the figure is written as .svg")
    try:
        import matplotlib

        matplotlib.use("svg")
        import matplotlib.pyplot as plt

        from posbook.figures import svg
        from posbook.figures.publish import write_whole
    except ImportError:
        raise config.Unusable("drawing needs matplotlib: pip install 'posbook[figures]'") from None
    plt.style.use("posbook.figures.posbook")
    fig, ax = plt.subplots(figsize=(7.2, 4.5))
    drawn = 0
    for group in model.groups:
        theta, _ = _frequencies(group, length)
        tokens = group.reach(length)
        if theta is None or not tokens:
            continue
        drawn += 1
        label = f"{', '.join(group.kinds) or 'all layers'}, {tokens} tokens"
        ax.plot(range(len(theta)), frequencies.turns(theta, tokens).clamp(min=1e-12), "o", label=label)
    if not drawn:
        raise config.Unusable(
            "no layer rotates within a length that the file names: there is nothing to draw"
        )
    ax.axhline(1)
    ax.set_yscale("log")
    ax.set_xlabel("pair, fastest first")
    ax.set_ylabel("turns within so many tokens")
    ax.legend()
    alt = f"Turns that each pair of {model.model_type} completes; logarithmic axis, with a line at one turn."
    write_whole(path, svg.themed(fig, alt))

r"""A function of another form, width or place is one line, and no all-clear is given too early."""

import json

import pytest
import torch
from typer.testing import CliRunner

from posbook.practice import probe
from posbook.practice.cli import app

SOURCE = """
import torch
from torch import nn
from posbook import frequencies, rotary

THETA = frequencies.geometric(128, base=5e5)

def turn(x, at):
    return rotary.rotate(x, frequencies.angles(at, THETA), layout="halves")

def by_tables(q, k, cos, sin):
    return q, k

def nothing():
    return 0

def looks_up(x, at):
    return {}[len(at)]

def only_short(x, at):
    if x.shape[1] > 1:
        raise KeyError("one head only")
    return turn(x, at)

class Rotary(nn.Module):
    def forward(self, x, at):
        return turn(x, at)

instance = Rotary()

class Holds(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("theta", THETA.clone(), persistent=False)

    def forward(self, x, at):
        return rotary.rotate(x, frequencies.angles(at, self.theta.double()), layout="halves").to(x.dtype)

holds = Holds()
THETAS = [THETA]

class Layers:
    def rotate(self, layer, x, positions):
        return rotary.rotate(x, frequencies.angles(positions, THETAS[layer]), layout="halves")

    turn = staticmethod(turn)

layers = Layers()
"""
LLAMA = {
    "model_type": "llama",
    "hidden_size": 4096,
    "num_attention_heads": 32,
    "num_hidden_layers": 32,
    "rope_theta": 5e5,
    "max_position_embeddings": 8192,
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "forms.py").write_text(SOURCE, "utf-8")
    (tmp_path / "config.json").write_text(json.dumps(LLAMA), "utf-8")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def run(monkeypatch):
    import sys

    monkeypatch.setattr(sys, "path", [*sys.path])
    return lambda *arguments, **options: CliRunner().invoke(app, [str(a) for a in arguments], **options)


def refused(result):
    assert result.exit_code == 2, (result.output, result.exception)
    assert result.stdout == ""
    (line,) = result.stderr.strip().splitlines()
    return line


def test_without_a_configuration_there_is_no_all_clear(run, folder):
    result = run("identify", "forms.py:turn", "--dim", 128)
    assert result.exit_code == 0
    assert "Nothing was compared with a configuration: --config" in result.stdout
    assert "Nothing found" not in result.stdout
    assert (
        json.loads(run("identify", "forms.py:turn", "--dim", 128, "--json").stdout)["compared_with"] is None
    )


def test_with_a_configuration_the_all_clear_says_what_it_is_about(run, folder):
    arguments = "identify", "forms.py:turn", "--dim", 128, "--config", "config.json"
    result = run(*arguments)
    assert result.exit_code == 0
    assert "It does what the configuration asks for." in result.stdout
    assert "Nothing was compared" not in result.stdout
    assert json.loads(run(*arguments, "--json").stdout)["compared_with"] == "config.json"


def test_warnings_and_notes_are_told_with_and_without_a_configuration_and_do_not_fail(run, folder):
    arguments = "identify", "forms.py:holds", "--dim", 128
    for more in ([], ["--config", "config.json"]):
        result = run(*arguments, *more)
        assert result.exit_code == 0
        assert "R11 warning  module.to(torch.bfloat16) rounds the frequencies" in result.stdout
        assert "R11 note  built on the meta device" in result.stdout
        found = json.loads(run(*arguments, *more, "--json").stdout)["findings"]
        assert [f["severity"] for f in found if f["code"] == "R11"] == ["warning", "note"]
    assert result.stdout.endswith("It does what the configuration asks for.\n")


def test_of_several_recipes_the_one_with_the_fewest_errors_is_compared_with(run, folder):
    other = {"sliding_attention": {"rope_theta": 5e5}, "full_attention": {"rope_theta": 1e6}}
    types = {"num_hidden_layers": 2, "layer_types": ["full_attention", "sliding_attention"]}
    (folder / "config.json").write_text(json.dumps(LLAMA | types | {"rope_parameters": other}), "utf-8")
    result = run("identify", "forms.py:holds", "--dim", 128, "--config", "config.json")
    assert (result.exit_code, "It does what" in result.stdout) == (0, True), result.stdout


@pytest.mark.parametrize("code", ["R4", "R6"])
def test_a_person_and_a_script_are_given_one_address(run, folder, code):
    width = {"R4": {"rope_theta": 1e4}, "R6": {"partial_rotary_factor": 0.5}}[code]
    (folder / "config.json").write_text(json.dumps(LLAMA | width), "utf-8")
    arguments = "identify", "forms.py:turn", "--dim", 128, "--config", "config.json"
    (found,) = json.loads(run(*arguments, "--json").stdout)["findings"]
    assert found["code"] == code
    assert f"({found['section']})" in run(*arguments).stdout


@pytest.mark.parametrize("name, dim, kind", [
    ("turn", 64, "ValueError"),
    ("turn", 127, "ValueError"),
    ("by_tables", 128, "TypeError"),
    ("nothing", 128, "TypeError"),
    ("looks_up", 128, "KeyError"),
])  # fmt: skip
def test_a_function_of_another_form_or_width_is_one_line(run, folder, name, dim, kind):
    line = refused(run("identify", f"forms.py:{name}", "--dim", dim))
    called = f"raised {kind} when called as fn(x ({dim}, 1, 2, {dim}), positions (2,)): "
    assert line.startswith(f"forms.py:{name} {called}")
    assert line.endswith("; is --dim right? for other forms see posbook.practice.adapters")


def test_a_function_that_raises_later_is_one_line_too(run, folder):
    assert "raised KeyError when called as fn(x (1, 3, 5, 128)" in refused(
        run("identify", "forms.py:only_short", "--dim", 128)
    )


def test_a_class_is_not_its_instance(run, folder):
    assert "forms.py:Rotary is a class: name an instance" in refused(
        run("identify", "forms.py:Rotary", "--dim", 128)
    )
    assert run("identify", "forms.py:instance", "--dim", 128).exit_code == 0


@pytest.mark.parametrize(
    "written, call",
    [("Rotary", "Rotary()"), *((call, call) for call in ("Rotary()", "Rotary(64, base=5e5)", "turn()"))],
)
def test_how_an_instance_is_named_is_said(run, folder, written, call):
    told = refused(run("identify", f"forms.py:{written}", "--dim", 128))
    assert told.endswith(f"Write a line such as probed = {call} into the file, and name :probed")


@pytest.mark.parametrize("written, why, call", [
    ("Layers", "is a class, and nothing calls its instances", "Layers().rotate(layer, x, positions)"),
    ("Layers.rotate", "is a method and needs an instance", "Layers().rotate(layer, x, positions)"),
    ("layers", "is a Layers, no function", "layers.rotate(layer, x, positions)"),
])  # fmt: skip
def test_where_no_instance_can_be_called_a_function_is_offered(run, folder, written, why, call):
    told = refused(run("identify", f"forms.py:{written}", "--dim", 128))
    assert told == (
        f"forms.py:{written} {why}. Write def probed(x, at): return {call} into the file, with your values, "
        "and name :probed"
    )
    assert (
        refused(run("identify", "forms.py:THETAS", "--dim", 128)) == "forms.py:THETAS is a list, no function."
    )


def test_the_function_that_is_offered_works_and_a_method_of_no_instance_is_called(run, folder):
    with (folder / "forms.py").open("a") as file:
        file.write("def probed(x, at): return Layers().rotate(0, x, at)\n")
    for name in ("probed", "Layers.turn"):
        assert run("identify", f"forms.py:{name}", "--dim", 128).exit_code == 0


def test_what_the_hint_says_works_and_nothing_was_called(run, folder):
    assert "nothing is called" in refused(run("identify", "forms.py:Rotary(print('called'))", "--dim", 128))
    with (folder / "forms.py").open("a") as file:
        file.write("probed = Rotary()\n")
    assert run("identify", "forms.py:probed", "--dim", 128).exit_code == 0


def test_a_function_of_heads_after_positions_is_told_its_adapter_on_one_line(run, folder):
    with (folder / "forms.py").open("a") as file:
        file.write("def last(x, at):\n    return x * torch.ones(1, len(at), 1, 1)\n")
    line = refused(run("identify", "forms.py:last", "--dim", 128))
    assert line.endswith("(batch, seq, heads, dim): wrap it in posbook.practice.adapters.heads_last")


def test_from_python_the_error_of_the_function_is_the_cause():
    def fn(x, at):
        return x @ torch.eye(3)

    with pytest.raises(
        ValueError, match=r"fn raised RuntimeError when called as fn\(x \(4, 1, 2, 4\)"
    ) as caught:
        probe.identify(fn, dim=4)
    assert isinstance(caught.value.__cause__, RuntimeError)


@pytest.mark.parametrize("where", ["forms.py", "{folder}/forms.py", "../{folder.name}/forms.py", "forms"])
def test_a_function_is_found_by_path_and_by_module(run, folder, where):
    result = run("identify", where.format(folder=folder) + ":turn", "--dim", 128)
    assert result.exit_code == 0, result.output
    assert "128 of 128 features" in result.stdout


def test_a_file_finds_what_lies_beside_it_and_shadows_nothing(run, folder):
    (folder / "elsewhere" / "beside_it.py").write_text(SOURCE, "utf-8")
    (folder / "elsewhere" / "torch.py").write_text("import torch\nfrom beside_it import turn\n", "utf-8")
    result = run("identify", "elsewhere/torch.py:turn", "--dim", 128)
    assert result.exit_code == 0, result.output


@pytest.mark.parametrize("text, words", [
    ("def turn(x, at:", "importing broken.py raised SyntaxError"),
    ("raise SystemExit(0)", "importing broken.py raised SystemExit"),
    ("import not_a_module_at_all", "broken.py: No module named 'not_a_module_at_all'"),
    ("", "has no attribute 'turn'"),
    (None, "broken.py: No such file or directory"),
])  # fmt: skip
def test_a_file_that_cannot_be_imported_is_one_line(run, folder, text, words):
    if text is not None:
        (folder / "broken.py").write_text(text, "utf-8")
    assert words in refused(run("identify", "broken.py:turn", "--dim", 64))

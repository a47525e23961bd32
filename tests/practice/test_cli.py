r"""The command tells a person and a script the same, and ends with a code that says how bad it is."""

import json
import math
import subprocess
import sys
from importlib import metadata

import pytest
import torch
from typer.testing import CliRunner

from posbook import frequencies
from posbook.practice import config
from posbook.practice.cli import app

LLAMA = {
    "model_type": "llama",
    "hidden_size": 512,
    "num_attention_heads": 8,
    "num_hidden_layers": 4,
    "rope_theta": 10_000.0,
    "max_position_embeddings": 4096,
}


@pytest.fixture
def run():
    return lambda *arguments, **options: CliRunner().invoke(app, [str(a) for a in arguments], **options)


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "config.json"

    def write(**changes):
        path.write_text(json.dumps(LLAMA | changes), "utf-8")
        return path

    return write


def test_a_clean_file_is_explained_and_ends_with_0(run, file):
    result = run("explain", file())
    assert result.exit_code == 0
    for words in ("llama", "4 layers", "0–3", "64 of 64 features, halves", "10000", "Nothing found"):
        assert words in result.output


def test_a_finding_that_is_an_error_ends_with_1_and_is_told(run, file):
    result = run("explain", file(rope_parameters={"rope_theta": 5e5}))
    assert result.exit_code == 1
    assert "D1 error" in result.output
    assert "readers disagree" in result.output
    assert "(use/porting.html#two-spellings)" in result.output


def test_the_version_is_that_of_the_package(run):
    assert run("--version").stdout.split() == ["posbook", metadata.version("posbook")]


@pytest.mark.parametrize(
    "text", ["{", "[]", "{}", '{"rope_theta": NaN}', json.dumps(LLAMA | {"num_attention_heads": 0})]
)
def test_unusable_input_ends_with_2_and_one_line(run, tmp_path, text):
    path = tmp_path / "config.json"
    path.write_text(text, "utf-8")
    result = run("explain", path)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert len(result.stderr.strip().splitlines()) == 1


@pytest.mark.parametrize("arguments", [["no_such.json"], ["config.json", "--length", "0"]])
def test_what_is_not_there_ends_with_2_too(run, file, monkeypatch, arguments):
    monkeypatch.chdir(file().parent)
    assert run("explain", *arguments).exit_code == 2


def test_json_holds_what_reading_the_file_gives(run, file):
    path = file(rope_scaling={"rope_type": "dynamic", "factor": 2.0})
    data = json.loads(run("explain", path, "--json", "--length", 8192).stdout)
    (group,) = config.read(path).groups
    assert data["groups"][0]["frequencies"] == group.frequencies(8192).tolist()
    assert data["findings"][0]["code"] == "D9"
    assert data["findings"][0]["section"].startswith("use/porting.html#")


def test_standard_input_is_read(run):
    assert run("explain", "-", input=json.dumps(LLAMA)).exit_code == 0
    assert run("explain", "-", input="/etc/passwd").exit_code == 2


@pytest.mark.parametrize(
    "text, words",
    [
        ("", "empty, where a configuration is due"),
        ("  \n", "empty, where a configuration is due"),
        ("model_type: llama", "not JSON: "),
        ("[1]", "a configuration is a mapping, not list"),
        ('{"model_type": "llama"}', "no head_dim, and no hidden_size"),
        ('{"rope_theta": NaN}', "not JSON: NaN is no number"),
    ],
)
def test_an_error_begins_with_the_name_of_the_file(run, tmp_path, text, words):
    path = tmp_path / "config.json"
    path.write_text(text, "utf-8")
    assert run("explain", path).stderr.startswith(f"{path}: {words}")
    assert run("explain", "-", input=text).stderr.startswith(f"standard input: {words}")


LLAMA31 = {
    "hidden_size": 4096,
    "num_attention_heads": 32,
    "rope_theta": 5e5,
    "max_position_embeddings": 131_072,
    "rope_scaling": {
        "rope_type": "llama3",
        "factor": 8.0,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": 8192,
    },
}


def test_slow_pairs_are_counted_before_scaling_and_after(run, file):
    path = file(**LLAMA31)
    waves = [2 * math.pi * 5e5 ** (i / 64) for i in range(64)]
    trained = sum(wave > 8192 for wave in waves)
    by_hand = []
    for wave in waves:  # Llama 3's rule, written again
        share = min(max((8192 / wave - 1) / 3, 0), 1)
        by_hand.append(8192 * (share / wave + (1 - share) / wave / 8) < 1)
    expected = {"tokens": 8192, "pairs": 64, "before_scaling": trained, "after_scaling": sum(by_hand)}
    assert json.loads(run("explain", path, "--json").stdout)["groups"][0]["never_come_round"] == expected
    told = f"in 8192 tokens: {trained} of 64 pairs before scaling; {sum(by_hand)} after"
    assert told in " ".join(run("explain", path).stdout.split())
    assert trained < sum(by_hand)


def test_slow_pairs_without_a_scaling_are_counted_once(run, file):
    told = run("explain", file()).stdout
    assert "9 of 32 pairs never come round in 4096 tokens" in told
    assert "after scaling" not in told


GEMMA3 = {
    "model_type": "gemma3_text",
    "head_dim": 256,
    "num_hidden_layers": 6,
    "sliding_window_pattern": 6,
    "sliding_window": 1024,
    "rope_theta": 1e6,
    "rope_local_base_freq": 1e4,
    "rope_scaling": {"rope_type": "linear", "factor": 8.0},
    "max_position_embeddings": 131_072,
}


def test_slow_pairs_of_layers_with_a_window_are_counted_within_it(run, file):
    path = file(**GEMMA3)
    slow = [sum(1024 * 1e4 ** (-i / 128) < 2 * math.pi for i in range(128))]
    slow += [sum(131_072 * 1e6 ** (-i / 128) / by < 2 * math.pi for i in range(128)) for by in (1, 8)]
    told = " ".join(run("explain", path).stdout.split())
    assert f"{slow[0]} of 128 pairs never come round in 1024 tokens, the window" in told
    assert f"in 131072 tokens: {slow[1]} of 128 pairs before scaling; {slow[2]} after" in told
    assert "in 512 tokens layers" in " ".join(run("explain", path, "--length", 512).stdout.split())


def test_a_file_without_a_length_says_why_nothing_is_counted(run, file):
    path = file(max_position_embeddings=None)
    assert "turns        not counted: the file gives no length, --length can" in run("explain", path).stdout
    assert "come round in 4096 tokens" in run("explain", path, "--length", 4096).stdout


def test_what_is_not_scaled_says_so(run, file):
    assert "scaling      none" in run("explain", file()).stdout
    assert "default" not in run("explain", file()).stdout


def test_the_figure_is_drawn(run, file, tmp_path):
    out = tmp_path / "turns.svg"
    assert run("explain", file(), "--figure", out).exit_code == 0
    assert "Turns that each pair of llama completes" in out.read_text("utf-8")
    assert run("explain", file(), "--figure", tmp_path / "turns.png").exit_code == 2
    assert run("explain", file(**GEMMA3), "--figure", out).exit_code == 0
    for words in ("sliding_attention, 1024 tokens", "full_attention, 131072 tokens"):
        assert words in out.read_text("utf-8")


RIGHT = """
from posbook import frequencies, rotary
def turn(x, at):
    theta = frequencies.geometric({dim}, base={base})
    return rotary.rotate(x, frequencies.angles(at, theta), layout="halves")
"""


@pytest.mark.parametrize("base, code", [(10_000, 0), (500_000, 1)])
def test_a_function_is_identified_and_compared(run, file, tmp_path, monkeypatch, base, code):
    (tmp_path / f"ours_{base}.py").write_text(RIGHT.format(dim=64, base=base), "utf-8")
    monkeypatch.chdir(tmp_path)
    result = run("identify", f"ours_{base}:turn", "--dim", 64, "--config", file())
    assert result.exit_code == code
    assert "halves, 64 of 64 features" in result.output
    assert "features     0–63 turn" in result.output
    assert ("base 500000, and 10000 is asked for" in result.output) == (code == 1)
    data = json.loads(run("identify", f"ours_{base}:turn", "--dim", 64, "--json").stdout)
    expected = frequencies.geometric(64, base)
    torch.testing.assert_close(
        torch.tensor(data["frequencies"], dtype=torch.float64), expected, rtol=1e-5, atol=0
    )


def test_a_function_is_right_for_some_layers_and_says_for_which(run, file, tmp_path, monkeypatch):
    (tmp_path / "local.py").write_text(RIGHT.format(dim=256, base=10_000), "utf-8")
    monkeypatch.chdir(tmp_path)
    path = file(**GEMMA3)
    asked = ("identify", "local:turn", "--dim", 256, "--config", path)
    told = " ".join(run(*asked).stdout.split())
    assert "in layers 0–4 (sliding_attention), and not in layer 5 (full_attention)." in told
    assert json.loads(run(*asked, "--json").stdout)["right_for_layers"] == [0, 1, 2, 3, 4]
    assert run(*asked, "--layer", 4).exit_code == 0
    assert run(*asked, "--layer", 5).exit_code == 1
    assert "base 10000 and no scaling" in run(*asked, "--layer", 5).stdout
    # Of the layer asked for it is wrong, and whose it is instead is told.
    assert told.endswith(" ".join(run(*asked, "--layer", 5).stdout.split())[-60:])
    assert json.loads(run(*asked, "--layer", 5, "--json").stdout)["right_for_layers"] == [0, 1, 2, 3, 4]
    beyond = run(*asked, "--layer", 6)
    assert beyond.exit_code == 2
    assert "no layer 6" in beyond.output
    assert run("identify", "local:turn", "--dim", 256, "--layer", 0).exit_code == 2


def test_a_function_right_for_no_layers_of_several_kinds_leads_to_the_choice_of_one(
    run, file, tmp_path, monkeypatch
):
    (tmp_path / "neither.py").write_text(RIGHT.format(dim=256, base=500_000), "utf-8")
    monkeypatch.chdir(tmp_path)
    result = run("identify", "neither:turn", "--dim", 256, "--config", file(**GEMMA3))
    assert result.exit_code == 1
    assert "--layer compares with one of them alone" in " ".join(result.stdout.split())


@pytest.mark.parametrize("name", ["nothing", "no_such_module:f", "math:no_such", "math:pi"])
def test_a_function_that_is_not_there_ends_with_2(run, name):
    assert run("identify", name, "--dim", 64).exit_code == 2


def test_the_command_starts_as_a_module_and_leaves_no_traceback(tmp_path):
    command = [
        sys.executable,
        "-c",
        "from posbook.practice.cli import main; main()",
        "explain",
        "missing.json",
    ]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr.strip() == "missing.json: No such file or directory"


def test_the_command_imports_nothing_large_that_it_does_not_use(file):
    large = ("torch._dynamo", "matplotlib", "transformers", "sphinx")
    code = (
        "import sys; from posbook.practice.cli import app; app(standalone_mode=False); "
        f"print([name for name in {large!r} if name in sys.modules])"
    )
    command = [sys.executable, "-c", code, "explain", str(file())]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "[]"

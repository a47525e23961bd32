r"""What is installed is whole: the wheel, away from the repository, explains, draws and finds its data."""

import json
import subprocess
import sys
import sysconfig
import zipfile
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LIBRARIES = sysconfig.get_path("purelib")
# Without site nothing reads .pth files, so that an editable posbook beside the libraries is not found.
ALONE = """
import sys
sys.path[:0] = {paths}
import posbook
assert posbook.__file__.startswith({paths}[0]), posbook.__file__
from importlib.metadata import entry_points
(command,) = entry_points(group="console_scripts", name="posbook")
sys.argv[1:] = {arguments}
command.load()()
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """Built as a release is; where its builder is not installed, pip fetches it."""
    out = tmp_path_factory.mktemp("wheel")
    options = ["--no-build-isolation"] if find_spec("hatchling") else []
    build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check", "--no-deps"]
    done = subprocess.run([*build, *options, "--wheel-dir", out, ROOT], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    (path,) = out.glob("posbook-*.whl")
    return path


@pytest.fixture
def run(wheel, tmp_path):
    site = tmp_path / "site"
    with zipfile.ZipFile(wheel) as archive:  # a pure wheel is installed by unpacking it
        archive.extractall(site)

    def command(*arguments):
        code = ALONE.format(paths=[str(site), LIBRARIES], arguments=[str(a) for a in arguments])
        alone = [sys.executable, "-I", "-S", "-c", code]
        return subprocess.run(alone, cwd=tmp_path, capture_output=True, text=True)

    return command


def test_the_wheel_holds_every_file_of_the_package(wheel):
    files = (path for path in (ROOT / "posbook").rglob("*") if path.is_file() and path.suffix != ".pyc")
    with zipfile.ZipFile(wheel) as archive:
        held = {name for name in archive.namelist() if name.startswith("posbook/")}
    assert held == {path.relative_to(ROOT).as_posix() for path in files}


def test_the_installed_command_explains_draws_and_finds_its_data(run, tmp_path):
    # Without a base: what the class has by default is in one file of data, what was released in the other.
    values = {"model_type": "llama", "hidden_size": 512, "num_attention_heads": 8, "num_hidden_layers": 4}
    path = tmp_path / "config.json"
    path.write_text(json.dumps(values | {"max_position_embeddings": 4096}), "utf-8")
    told = run("explain", path, "--figure", tmp_path / "turns.svg")
    assert told.returncode == 1, told.stderr
    assert "D2 error" in told.stdout
    assert "released files of this family have" in told.stdout
    assert "Turns that each pair of llama completes" in (tmp_path / "turns.svg").read_text("utf-8")


def test_the_installed_command_identifies_a_function_beside_it(run, tmp_path):
    (tmp_path / "ours.py").write_text(
        "from posbook import frequencies, rotary\n"
        "def turn(x, at):\n"
        "    theta = frequencies.geometric(8)\n"
        "    return rotary.rotate(x, frequencies.angles(at, theta), layout='interleaved')\n",
        "utf-8",
    )
    told = run("identify", "ours:turn", "--dim", 8)
    assert told.returncode == 0, told.stderr
    assert "interleaved, 8 of 8 features" in told.stdout

"""What a stranger meets first: make says in one line what is missing, and a broken-off build mends itself."""

import importlib.util
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
spec = importlib.util.spec_from_file_location("build", ROOT / "docs" / "_ext" / "build.py")
build = importlib.util.module_from_spec(spec)
spec.loader.exec_module(build)


@pytest.fixture
def make(tmp_path):
    """Run make in an empty checkout with an interpreter of one's own."""
    if shutil.which("make") is None:
        pytest.skip("make is not installed: apt install make")
    for name in ("Makefile", "pyproject.toml", "constraints.txt"):
        shutil.copy(ROOT / name, tmp_path)

    def run(python, *arguments):
        fake = tmp_path / "fake-python"
        fake.write_text(f"#!/bin/sh\n{python}\n")
        fake.chmod(0o755)
        command = ["make", "--no-print-directory", f"PYTHON={fake}", *arguments]
        result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        return result.returncode, result.stdout.splitlines()

    return run


def test_an_old_python_is_named_in_one_line(make):
    code, lines = make('case "$1" in -V) echo Python 3.9.2;; *) exit 1;; esac', "book")
    assert code != 0
    assert len(lines) == 1
    assert "needs Python 3.11 or newer, and this is Python 3.9.2" in lines[0]


def test_a_python_without_venv_is_told_which_package_to_install(make):
    code, lines = make('case "$2" in *ensurepip*) exit 1;; *) exit 0;; esac', "book")
    assert code != 0
    assert len(lines) == 1
    assert "apt install python3-venv" in lines[0]


def test_a_missing_python_is_told_so(make):
    code, lines = make("exit 0", "PYTHON=no-such-python", "book")
    assert code != 0
    assert lines == ["There is no no-such-python here: install Python 3.11 or newer."]


def test_another_torch_takes_the_place_of_the_pinned_one(make, tmp_path):
    make('if [ "$2" = venv ]; then mkdir -p .venv; fi', ".venv/constraints.txt", "TORCH=torch==9.9")
    assert "torch==" in ROOT.joinpath("constraints.txt").read_text()
    assert "torch==" not in tmp_path.joinpath(".venv", "constraints.txt").read_text()
    make("exit 0", ".venv/constraints.txt")
    assert "torch==" in tmp_path.joinpath(".venv", "constraints.txt").read_text()


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """A checkout whose Sphinx writes an index, or breaks off; says what was removed before it began."""
    for name in ("html", "doctrees"):
        tmp_path.joinpath("build", name).mkdir(parents=True)
    tmp_path.joinpath("docs", "gallery").mkdir(parents=True)
    tmp_path.joinpath("posbook").mkdir()
    tmp_path.joinpath("posbook", "rotary.py").write_text("turn = 1\n")
    for name in ("ROOT", "BUILD", "UNFINISHED", "PACKAGE"):
        old = getattr(build, name)
        monkeypatch.setattr(build, name, tmp_path / old.relative_to(ROOT))

    def run(*, code=0, interrupted=False):
        started_clean = []

        def sphinx(*_, **__):
            started_clean.append(not tmp_path.joinpath("docs", "gallery").exists())
            if interrupted:
                raise KeyboardInterrupt
            for folder in ("build/html", "docs/gallery"):
                tmp_path.joinpath(folder).mkdir(parents=True, exist_ok=True)
            tmp_path.joinpath("build", "html", "index.html").write_text("book")
            return subprocess.CompletedProcess([], code)

        monkeypatch.setattr(build.subprocess, "run", sphinx)
        try:
            return build.main([]), started_clean[0]
        except KeyboardInterrupt:
            return None, started_clean[0]

    return run


def test_a_second_build_takes_up_what_is_there(checkout, capsys):
    assert checkout()[0] == 0
    assert "build/html/index.html" in capsys.readouterr().out
    assert checkout() == (0, False)


@pytest.mark.parametrize("accident", [{"interrupted": True}, {"code": 2}])
def test_after_a_build_that_broke_off_the_next_starts_from_nothing(checkout, accident):
    checkout()
    checkout(**accident)
    assert checkout() == (0, True)
    assert checkout() == (0, False)


def test_a_change_in_the_package_rebuilds_every_figure(checkout, tmp_path):
    checkout()
    tmp_path.joinpath("posbook", "rotary.py").write_text("turn = 2\n")
    assert checkout() == (0, True)

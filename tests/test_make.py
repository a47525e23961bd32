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
    def pins(file):
        return [line for line in file.read_text().splitlines() if line.startswith("torch==")]

    constraints = tmp_path / ".venv" / "constraints.txt"
    make('if [ "$2" = venv ]; then mkdir -p .venv; fi', ".venv/constraints.txt", "TORCH=torch==9.9")
    assert constraints.exists()
    assert pins(constraints) == []
    make("exit 0", ".venv/constraints.txt")
    assert pins(constraints) == pins(ROOT / "constraints.txt") != []


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """A checkout whose Sphinx writes an index, or breaks off; a run tells exit code and how Sphinx began."""
    for folder in ("posbook", "docs/_ext", "examples"):
        tmp_path.joinpath(folder).mkdir(parents=True)
    for file in (
        "posbook/rotary.py",
        "docs/index.md",
        "docs/_ext/boxes.py",
        "conf.py",
        "pyproject.toml",
        "constraints.txt",
    ):
        tmp_path.joinpath(file).write_text("first\n")

    def run(*arguments, code=0, interrupted=False):
        began = ["not at all"]

        def sphinx(*_, **__):
            gallery = tmp_path / "docs" / "gallery"
            began[0] = "on what was there" if gallery.exists() else "from nothing"
            for folder in (gallery, tmp_path / "build" / "html"):
                folder.mkdir(parents=True, exist_ok=True)
            tmp_path.joinpath("build", "html", "index.html").write_text("book")
            if interrupted:
                raise KeyboardInterrupt
            return subprocess.CompletedProcess([], code)

        monkeypatch.setattr(build.subprocess, "run", sphinx)
        try:
            return build.main(arguments, root=tmp_path), began[0]
        except KeyboardInterrupt:
            return None, began[0]

    run.change = lambda file: tmp_path.joinpath(file).write_text("second\n")
    return run


def test_the_first_build_says_where_the_book_lies(checkout, capsys):
    assert checkout() == (0, "from nothing")
    assert "build/html/index.html  (" in capsys.readouterr().out


def test_a_second_build_with_nothing_changed_has_nothing_to_do(checkout):
    checkout()
    assert checkout() == (0, "not at all")


def test_a_changed_page_is_built_on_what_is_there(checkout):
    checkout()
    checkout.change("docs/index.md")
    assert checkout() == (0, "on what was there")


@pytest.mark.parametrize("file", ["posbook/rotary.py", "docs/_ext/boxes.py", "constraints.txt"])
def test_a_change_in_the_package_or_its_tools_draws_every_figure_again(checkout, file):
    checkout()
    checkout.change(file)
    assert checkout() == (0, "from nothing")


@pytest.mark.parametrize("accident", [{"interrupted": True}, {"code": 2}])
def test_after_a_build_that_broke_off_the_next_starts_from_nothing(checkout, accident):
    checkout()
    checkout.change("docs/index.md")
    assert checkout(**accident)[0] != 0
    assert checkout() == (0, "from nothing")
    assert checkout() == (0, "not at all")


def test_a_strict_or_clean_build_builds_whatever_is_there(checkout):
    checkout()
    assert checkout("--strict") == (0, "on what was there")
    assert checkout("--clean") == (0, "from nothing")


def test_an_epub_that_sphinx_did_not_write_is_no_success(checkout, capsys):
    assert checkout("--epub")[0] == 1
    assert "The EPUB was not made" in capsys.readouterr().err

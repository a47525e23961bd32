r"""The porting page explains every finding under its name, and its session is what the commands print."""

import re
import sys
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from typer.testing import CliRunner

from posbook.practice.cli import app
from posbook.practice.findings import SECTIONS, Finding

BUILT = [pytest.mark.book, pytest.mark.xdist_group("built")]
# Of a function, of its cache and its batch, and of what is added; named here, since readers link to them.
OTHERS = [
    "layout",
    "direction",
    "frequencies",
    "factor",
    "partial-rotation",
    "offset",
    "precision",
    "relativity",
    "positions",
    "path-dependence",
    "batch",
    "casting",
    "added-tables",
    "biases",
]
TEXT = (Path(__file__).parents[2] / "docs" / "use" / "porting.md").read_text("utf-8")
BLOCKS = re.DOTALL | re.MULTILINE
FILES = re.findall(r"`(\S+\.(?:json|py))`:\n\n```\w+\n(.*?)^```$", TEXT, BLOCKS)
(SESSION,) = re.findall(r"^```console\n(.*?)^```$", TEXT, BLOCKS)
SHOWN = [part.split("\n", 1) for part in re.split(r"^\$ posbook ", SESSION, flags=re.MULTILINE)[1:]]


class TestThePortingPage:
    pytestmark = BUILT

    @pytest.fixture
    def page(self, book):
        address = urlsplit(Finding(next(iter(SECTIONS)), "note", "").section)
        found = book.page(book.root / address.path)
        assert found is not None, f"there is no page {address.path}"
        return found

    @pytest.mark.parametrize("code", SECTIONS)
    def test_explains_every_code_that_a_finding_can_have(self, page, code):
        address = urlsplit(Finding(code, "note", "").section)
        section = page.body.select_one(f"section#{address.fragment}")
        assert address.path == page.path
        assert section is not None, f"{code}: no section #{address.fragment}"
        codes = [tag.get_text() for tag in section.find_all("code")]
        assert code in codes, f"#{address.fragment} does not name {code}"

    @pytest.mark.parametrize("anchor", OTHERS)
    def test_has_every_section_that_is_linked_to(self, page, anchor):
        assert page.body.select_one(f"section#{anchor}") is not None, f"no section #{anchor}"


class TestTheSessionOnThePortingPage:
    @pytest.mark.parametrize("command, shown", SHOWN, ids=["explain", "identify"])
    def test_is_what_the_commands_print(self, tmp_path, monkeypatch, command, shown):
        for name, text in FILES:
            (tmp_path / name).write_text(text, "utf-8")
        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr(sys, "path", [*sys.path])
        result = CliRunner().invoke(app, command.split(), env={"COLUMNS": "80"})
        # Tables are filled up with spaces to the width of the terminal.
        assert [line.rstrip() for line in result.stdout.splitlines()] == shown.rstrip().splitlines()

"""CITATION.cff says what pyproject.toml and LICENSE say."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
CITATION = ROOT.joinpath("CITATION.cff").read_text(encoding="utf-8")


def value(key):
    return re.search(rf"^{key}: (.+)$", CITATION, re.MULTILINE)[1].strip('"')


def values(key):
    return re.findall(
        r"^ +- (.+)$", re.search(rf"^{key}:\n((?: +.*\n)+)", CITATION, re.MULTILINE)[1], re.MULTILINE
    )


def test_the_citation_has_what_its_format_asks_for():
    assert value("cff-version") == "1.2.0"
    assert value("message")
    assert value("title")
    assert values("authors")
    assert value("type") in ("software", "dataset")


def test_the_citation_agrees_with_the_package():
    project = tomllib.loads(ROOT.joinpath("pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert value("version") == project["version"]
    assert values("keywords") == project["keywords"]
    assert values("authors") == [f'name: "{author["name"]}"' for author in project["authors"]]
    assert values("license") == [project["license"], "CC-BY-4.0"]

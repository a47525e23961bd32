"""Every claim of the ledger has a verdict, something it rests on, and a chapter."""

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
PAGE = DOCS / "use" / "heard-and-checked.md"
VERDICTS = {"true", "condition", "false", "open"}

ENTRY = re.compile(
    r"^:::\{claim\}(?P<slug>[^\n]*)\n"
    r"(?P<options>(?::[\w-]+:[^\n]*\n)*)\n*"
    r"(?P<claim>[^\n].*?)(?:\n\n(?P<reason>.*?))?\n:::$",
    re.DOTALL | re.MULTILINE,
)
COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
MEANT = re.compile(r"<!-- link: (\S+) -->")  # a chapter that is still to be written
EVIDENCE = re.compile(r"\{(?:proved|prf:ref|measured|num|cited)\}`|^```python$", re.MULTILINE)
NONE_KNOWN = re.compile(r"\bknow of no|\bno (?:\w+ )?(?:evidence|experiment)")


def entries(text):
    for match in ENTRY.finditer(text):
        options = dict(re.findall(r"^:([\w-]+): *(.*?) *$", match["options"], re.MULTILINE))
        chapters = [name.strip() for name in options.get("chapter", "").split(",") if name.strip()]
        yield {
            "slug": match["slug"].strip(),
            "verdict": options.get("verdict"),
            "chapters": chapters,
            "meant": MEANT.findall(match[0]),
            "claim": match["claim"],
            "reason": COMMENT.sub("", match["reason"] or ""),
        }


def faults(text):
    found, seen = [], set()
    for entry in entries(text):
        slug, verdict, reason = entry["slug"], entry["verdict"], entry["reason"]
        if not re.fullmatch(r"[a-z0-9]+(?:-[a-z0-9]+)*", slug):
            found.append(f"{slug!r} is no anchor")
        if slug in seen:
            found.append(f"{slug} occurs twice")
        seen.add(slug)
        if verdict not in VERDICTS:
            found.append(f"{slug} has no verdict")
        elif verdict == "open" and not NONE_KNOWN.search(reason):
            found.append(f"{slug} does not say what evidence is missing")
        elif verdict != "open" and not EVIDENCE.search(reason):
            found.append(f"{slug} rests on nothing")
        if not entry["chapters"] and not entry["meant"]:
            found.append(f"{slug} names no chapter")
        found += [
            f"{slug}: no page {name}" for name in entry["chapters"] if not (DOCS / f"{name}.md").is_file()
        ]
    return found


@pytest.fixture(scope="module")
def page():
    return PAGE.read_text(encoding="utf-8")


def test_every_claim_has_a_verdict_evidence_and_a_chapter(page):
    assert faults(page) == []


def test_every_claim_is_read_as_one(page):
    ledger = list(entries(page))
    assert len(ledger) == page.count("\n:::{claim}") >= 140
    assert {entry["verdict"] for entry in ledger} == VERDICTS
    assert not [entry["slug"] for entry in ledger if ":::" in entry["claim"] + entry["reason"]]


def test_every_part_has_claims_under_its_name(page):
    index = DOCS.joinpath("index.md").read_text(encoding="utf-8")
    parts = [name for number, name in re.findall(r':caption: "(\d+) · (.+)"', index) if int(number) < 7]
    assert len(parts) >= 4
    sections = dict(re.findall(r"^## ([^\n]+)\n(.*?)(?=^## |\Z)", page, re.DOTALL | re.MULTILINE))
    assert [part for part in parts if not list(entries(sections.get(part, "")))] == []


def test_a_claim_that_a_chapter_corrects_is_in_the_ledger(page):
    named = {name for entry in entries(page) for name in entry["chapters"] + entry["meant"]}
    with_boxes = {
        path.relative_to(DOCS).with_suffix("").as_posix()
        for path in DOCS.glob("*/*.md")
        if path.parent.name not in {"use", "practice", "reference", "gallery"}
        and "\n:::{heard}\n" in path.read_text(encoding="utf-8")
    }
    assert len(with_boxes) > 10
    assert with_boxes - named == set()


SOUND = """
:::{claim} a-thing
:verdict: false
:chapter: why/symmetry

All swans are white.

One is black. {proved}`thm-black`
:::
"""


def test_a_sound_claim_has_no_fault():
    assert faults(SOUND) == []


@pytest.mark.parametrize(
    "old, new, said",
    [
        (":verdict: false\n", "", "has no verdict"),
        (":verdict: false", ":verdict: wrong", "has no verdict"),
        (" {proved}`thm-black`", "", "rests on nothing"),
        (" {proved}`thm-black`", " <!-- {proved}`thm-black` -->", "rests on nothing"),
        ("\n\nOne is black. {proved}`thm-black`", "", "rests on nothing"),
        (":verdict: false", ":verdict: open", "does not say what evidence is missing"),
        (":chapter: why/symmetry\n", "", "names no chapter"),
        ("why/symmetry", "why/symmetry, why/swans", "no page why/swans"),
        ("a-thing", "a thing", "is no anchor"),
        (SOUND, SOUND + SOUND, "occurs twice"),
    ],
)
def test_a_planted_fault_is_found(old, new, said):
    assert old in SOUND
    (found,) = faults(SOUND.replace(old, new))
    assert said in found


def test_a_number_in_the_claim_is_no_reason():
    text = SOUND.replace("All", "All {num}`7`").replace(" {proved}`thm-black`", "")
    assert faults(text) == ["a-thing rests on nothing"]


def test_a_claim_without_evidence_says_so():
    text = SOUND.replace("false", "open").replace("One is black. {proved}`thm-black`", "We know of no count.")
    assert faults(text) == []


def test_a_chapter_to_come_may_be_meant():
    text = SOUND.replace(":chapter: why/symmetry\n", "").replace(
        "One is black.", "One is black.\n<!-- link: length/swans -->\n"
    )
    assert faults(text) == []
    assert next(entries(text))["meant"] == ["length/swans"]

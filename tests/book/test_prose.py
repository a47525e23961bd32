"""The rules of the prose, seen to hold and seen to fail."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
spec = importlib.util.spec_from_file_location("prose", ROOT / "docs" / "_ext" / "prose.py")
prose = importlib.util.module_from_spec(spec)
spec.loader.exec_module(prose)


@pytest.fixture
def faults(tmp_path):
    def of(text):
        page = tmp_path / "page.md"
        page.write_text(text, encoding="utf-8")
        return [fault.split(": ", 1)[1].split(" is ")[0] for fault in prose.faults(page)]

    return of


def test_every_page_with_an_example_is_run():
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "docs", "README.md"]
    collected = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    run = {line.split("::")[0] for line in collected.splitlines() if "::" in line}
    pages = [*prose.pages(ROOT / "docs"), ROOT / "README.md"]
    with_examples = {
        page.relative_to(ROOT).as_posix() for page in pages if "\n>>> " in page.read_text(encoding="utf-8")
    }
    assert with_examples <= run
    assert {"docs/index.md", "docs/notation.md", "docs/why/symmetry.md"} <= with_examples


def test_no_page_of_the_book_types_a_number():
    pages = prose.pages(ROOT / "docs")
    assert len(pages) > 10
    assert [fault for page in pages for fault in prose.faults(page)] == []


@pytest.mark.parametrize(
    "text, number",
    [
        ("It is 0.7 of the whole.", "0.7"),
        ("It is −3.48 then.", "−3.48"),
        ("Of 24 orders one stays.", "24"),
        ("Of $24$ orders one stays.", "24"),
        ("Below $10^{-12}$ or $2.5 \\times 10^{-3}$.", "2.5"),
        ("All 786,432 of them.", "786,432"),
        ("A third, 33 %, of it.", "33 %"),
        ("| a cell | 0.25 |", "0.25"),
        (":::{gallery-figure} plot_x\nA caption with 99 in it.\n:::", "99"),
        (":::{exercise} Title\n:label: ex-20\n\nTake 17 tokens.\n:::", "17"),
        (":::{exercise} The 17 orders\n:label: ex-20\n:::", "17"),
        ("```{zoo}\n```\n\nOf 24 orders one stays.\n\n```python\n>>> 1\n1\n```", "24"),
        ("```{toctree}\nwhy/one\n```\n\nOf 24 orders one stays.", "24"),
        ("```{note} The 17 orders\nOf them.\n```", "17"),
        ("````{note}\n```python\n>>> 25\n25\n```\nOf 24 orders one stays.\n````", "24"),
        ("- A list:\n\n  ```python\n  >>> 25\n  25\n  ```\n\n  Of 24 orders one stays.", "24"),
    ],
)
def test_a_typed_number_is_a_fault(faults, text, number):
    assert number in faults(text)


@pytest.mark.parametrize(
    "text",
    [
        "Twelve is small: 12, 3, 0.",
        "Since 2017 it is known.",
        "{num}`0.7 <plot_x:share>` and {cited}`147.18 <haviv2022nope, Table 4>`.",
        "The dtype float64 and GPT-2.",
        "A formula $x^{24} + 0.5$ and `code 0.5`.",
        "$$\n0.5 + 24\n$$ (eq-x)",
        "```python\n>>> 0.5 + 24\n24.5\n```",
        "```{math}\n:label: eq-24\n\n24 = 4!\n```",
        "```\n24 lines\n```",
        "````text\n```python\n24\n```\n24\n````",
        "```{zoo}\n```\n\n```python\n>>> 24\n24\n```",
        ":::{exercise} Title\n:label: ex-24\n:::",
        "[a link](page-24.md#section-0.5)",
        "---\nexact:\n  24: the orders of four tokens\n---\n\nOf 24 orders one stays.",
    ],
)
def test_what_is_computed_cited_small_or_no_prose_may_stand(faults, text):
    assert faults(text) == []


def test_a_fault_is_reported_in_its_line(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("---\na: b\n---\n\n```python\n1.5\n```\n\nHere: 2.5.\n", encoding="utf-8")
    assert prose.faults(page)[0].startswith(f"{page}:9: 2.5")


def test_a_formula_is_referred_to_on_its_own_page_only(faults):
    own = "```{math}\n:label: eq-a\n\na\n```\n\n$$ b $$ (eq-b)\n\nBy {eq}`eq-a` and {eq}`eq-b`.\n"
    assert faults(own) == []
    assert faults("By {eq}`eq-a` and {eq}`(2) <eq-b>`.") == ["eq-a", "eq-b"]


def test_exact_constants_need_a_reason_and_a_use_and_are_few(faults):
    assert "has no reason" in faults('---\nexact:\n  24: ""\n---\nOf 24 orders.')[0]
    assert "does not occur" in faults("---\nexact:\n  24: orders\n---\nNone.")[0]
    seven = "".join(f"  {n}: because\n" for n in range(13, 20))
    found = faults(f"---\nexact:\n{seven}---\n{' '.join(map(str, range(13, 20)))}")
    assert found[0].startswith("7 exact constants")

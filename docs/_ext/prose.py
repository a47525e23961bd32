r"""The rules of the prose, as far as a machine can read them.

    python docs/_ext/prose.py docs

A number in the prose is computed ({num}), cited ({cited}), or one of the page's few exact constants, which
its front matter lists with their reasons:

    exact:
      24: "4!, the orders of four tokens"

Everything else that is a decimal or above twelve is a fault. Code, formulas, link targets, directive options
and years are no prose; a formula that is nothing but a number is.

Formulas are counted anew on every page, so {eq} to another page's formula is a fault: its number says
nothing.
"""

import re
import sys
from pathlib import Path

import yaml

FRONT_MATTER = re.compile(r"\A---\n(.*?)\n---\n", re.DOTALL)
NUMBER = re.compile(r"(?<![\w.,])[-−]?\d+(?:,\d{3})*(?:\.\d+)?(?:e[-−+]?\d+)?(?:\s?%)?(?!\w)")
ONLY_A_NUMBER = re.compile(r"[\s\d.,+\-−{}\\!]*(?:\\(?:times|cdot)\s*10\^\{?[-−]?\d+\}?)?\s*(?:\\?%)?")
YEAR = re.compile(r"(?:19|20)\d\d")
LARGEST_BARE = 12
MOST_CONSTANTS = 6

# In this order: what comes later no longer sees what came before.
NO_PROSE = [
    re.compile(
        r"^\s*:{3,}(?:\{[\w:-]+\})?", re.MULTILINE
    ),  # what opens or closes a directive, but for its title
    re.compile(r"^\s*:[\w-]+:.*$", re.MULTILINE),  # its options
    re.compile(r"^\(.*\)=\s*$", re.MULTILINE),  # labels
    re.compile(r"<!--.*?-->", re.DOTALL),
    re.compile(r"\$\$.*?\$\$(?:\s*\([\w-]+\))?", re.DOTALL),
    re.compile(r"\{[\w:]+\}`[^`]*`"),  # roles, {num} and {cited} among them: the build checks them
    re.compile(r"`+[^`]*`+"),
    re.compile(r"\]\([^)]*\)"),
    re.compile(r"30[- ]seconds?"),  # the name of a box
]
FENCE = re.compile(r" *(?P<ticks>`{3,})(?P<info>[^`\n]*)\n?")
DIRECTIVE = re.compile(r"\{(?P<name>[\w:-]+)\}")
NO_PROSE_INSIDE = {"math", "eval-rst", "toctree", "bibliography", "code-block", "testcode", "raw"}
EQUATION = re.compile(r":label: (eq-[\w-]+)|\$\$\s*\((eq-[\w-]+)\)")
EQUATION_MEANT = re.compile(r"\{eq\}`(?:[^`<]*<)?(eq-[\w-]+)>?`")
MATHS = re.compile(r"\$([^$]+)\$")


def blank(match):
    """As many lines as before, so that a fault is reported where it stands."""
    return "\n" * match.group().count("\n") + " "


def without_code(text):
    """The text with fences blanked, and what stands in them, but for what stands in a directive of prose.

    A closing fence is told from an opening one by counting through the page: a regular expression takes the
    end of a directive for the start of code, and does not see what follows.
    """
    open_fences, lines = [], []  # of the fences that are open, outermost first: ticks, is it prose inside?
    for line in text.splitlines(keepends=True):
        fence = FENCE.fullmatch(line)
        in_code = bool(open_fences) and not open_fences[-1][1]
        if fence and open_fences and not fence["info"].strip() and len(fence["ticks"]) >= open_fences[-1][0]:
            open_fences.pop()
            line = "\n"
        elif in_code:
            line = "\n"
        elif fence:
            directive = DIRECTIVE.match(fence["info"])
            prose = bool(directive) and directive["name"] not in NO_PROSE_INSIDE
            open_fences.append((len(fence["ticks"]), prose))
            line = fence["info"][directive.end() :] + "\n" if prose else "\n"  # a title is prose
        lines.append(line)
    return "".join(lines)


def bare_numbers(text):
    """(line, number) for every number that the prose of a page states by itself."""
    front = FRONT_MATTER.match(text)
    if front:
        text = blank(front) + text[front.end() :]
    text = without_code(text)
    for pattern in NO_PROSE:
        text = pattern.sub(blank, text)
    text = MATHS.sub(lambda m: m[1] if ONLY_A_NUMBER.fullmatch(m[1]) else blank(m), text)
    for line, content in enumerate(text.splitlines(), 1):
        for match in NUMBER.finditer(content):
            yield line, match.group().strip()


def small(number):
    """Whole numbers up to twelve, which prose counts with, and years."""
    digits = number.replace("−", "-").lstrip("-")
    return YEAR.fullmatch(digits) or (digits.isdecimal() and int(digits) <= LARGEST_BARE)


def faults(path):
    """The faults of one page, each as 'path:line: what is wrong'."""
    text = path.read_text(encoding="utf-8")
    front = FRONT_MATTER.match(text)
    exact = ((yaml.safe_load(front[1]) or {}).get("exact") or {}) if front else {}
    exact = {str(number): why for number, why in exact.items()}
    stated = list(bare_numbers(text))
    remedy = "take it from a script or doctest with {num}, or cite it"
    found = [
        f"{path}:{line}: {n} is typed: {remedy}" for line, n in stated if n not in exact and not small(n)
    ]
    found += [
        f"{path}:1: the exact constant {n} does not occur" for n in exact.keys() - {n for _, n in stated}
    ]
    found += [f"{path}:1: the exact constant {n} has no reason" for n, why in exact.items() if not why]
    own = {label for match in EQUATION.finditer(text) for label in match.groups() if label}
    for line, content in enumerate(text.splitlines(), 1):
        found += [
            f"{path}:{line}: {label} is another page's formula, and formulas are counted by page: link to it"
            for label in EQUATION_MEANT.findall(content)
            if label not in own
        ]
    if len(exact) > MOST_CONSTANTS:
        found.append(f"{path}:1: {len(exact)} exact constants; at most {MOST_CONSTANTS} make a short list")
    return found


def pages(folder):
    generated = folder / "gallery"
    return sorted(
        path
        for path in folder.rglob("*.md")
        if generated not in path.parents
        and not any(part.startswith("_") for part in path.relative_to(folder).parts)
    )


def main(folder):
    found = [fault for path in pages(Path(folder)) for fault in faults(path)]
    print(*found, sep="\n", end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))

r"""What a reader of a configuration, or of a function, should be told: a code, how bad it is, and a sentence.

A code is one question of the checklist on the porting page: ``D1`` to ``D9`` are asked of a configuration,
``R1`` to ``R15`` of a function that rotates, ``A1`` to ``A6`` of tables and biases that are added.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

SECTIONS = {
    "D1": "two-spellings",
    "D2": "no-base",
    "D3": "unknown-keys",
    "D4": "the-ratio",
    "D5": "lists-of-factors",
    "D6": "widths",
    "D7": "layers-that-differ",
    "D8": "two-temperatures",
    "D9": "length-changes-the-past",
    "R1": "offset",
    "R2": "layout",
    "R3": "direction",
    "R4": "frequencies",
    "R5": "factor",
    "R6": "partial-rotation",
    "R7": "positions",
    "R8": "offset",
    "R9": "positions",
    "R10": "precision",
    "R11": "casting",
    "R12": "relativity",
    "R13": "path-dependence",
    "R14": "batch",
    "R15": "positions",
    "A1": "added-tables",
    "A2": "added-tables",
    "A3": "added-tables",
    "A4": "biases",
    "A5": "biases",
    "A6": "biases",
}


@dataclass(frozen=True)
class Finding:
    r"""One thing a reader would get wrong.

    ``severity`` is ``"error"`` where two readers would compute different numbers or none, ``"warning"`` where
    something was assumed, ``"note"`` where the file is right and easily misread.

    >>> str(Finding("D2", "warning", "no rope_theta: 10000 is used"))
    'D2 warning: no rope_theta: 10000 is used'
    """

    code: str
    severity: str
    message: str

    @property
    def section(self) -> str:
        """The section of the porting page that explains the code.

        >>> Finding("R3", "error", "turns clockwise").section
        'use/porting.html#direction'
        """
        return f"use/porting.html#{SECTIONS[self.code]}"

    def __str__(self) -> str:
        return f"{self.code} {self.severity}: {self.message}"


def ranges(numbers: Sequence[int]) -> str:
    """Ascending numbers as a person writes them: runs in one, and what goes on in steps by its first two.

    >>> ranges([0, 1, 2, 3, 5, 8, 9]), ranges([3, 7, 11, 15])
    ('0–3, 5, 8–9', '3, 7 … 15')
    """
    if len(numbers) > 2:
        step = numbers[1] - numbers[0]
        if step > 1 and all(b - a == step for a, b in itertools.pairwise(numbers)):
            return f"{numbers[0]}, {numbers[1]} … {numbers[-1]}"
    runs: list[list[int]] = []
    for number in numbers:
        if runs and runs[-1][1] == number - 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ", ".join(str(a) if a == b else f"{a}–{b}" for a, b in runs)

r"""The last line of a gallery script: say what is seen, report the numbers, hand the figure over."""

import json
import math
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib
import matplotlib.pyplot as plt
from matplotlib.backends import BackendFilter, backend_registry
from matplotlib.figure import Figure

from posbook.figures import svg

SHORTEST_ALT = 60


class Published(NamedTuple):
    """What a script said about its figure; the gallery's scraper reads it from the figure."""

    alt: str
    numbers: dict[str, int | float | str]
    measured: dict[str, int | str] | None
    step: int = 1
    steps: int = 1
    data: Any = None


def publish(
    fig: Figure | Sequence[Figure],
    *,
    alt: str | Sequence[str] | None = None,
    numbers: dict[str, Any] | None = None,
    seed: int | str | None = None,
    size: str | None = None,
    spread: str | None = None,
    data: Any = None,
) -> None:
    r"""Publish the one figure of a script: print its numbers, then show, save or hand over the figure.

    ``alt`` says what is seen, in at least 60 characters.
    ``numbers`` are those the prose may quote: plain int, float or str, each under a Python name.
    A figure of something measured tells ``seed``, ``size`` and ``spread``, all three.
    A figure drawn in several steps is a list of figures, in order, with a list of as many alts.
    ``data`` is what a figure that moves is given besides, anything that JSON can hold: it is not printed.

    With a screen, or in a notebook, the figure is shown; without one it is saved as <script>.svg where the
    script was started (its further steps as <script>_2.svg and so on; as figure.svg where no file was run),
    and the path is printed; in the gallery's build (POSBOOK_GALLERY=1) the scraper saves it.
    Raises ValueError naming the script.

    >>> publish(plt.figure(), alt="Too short.")
    Traceback (most recent call last):
        ...
    ValueError: ...: alt text of 10 characters; say in at least 60 what is seen
    """
    script = script_name()
    figures = [fig] if isinstance(fig, Figure) else list(fig)
    alts = [alt or ""] if alt is None or isinstance(alt, str) else list(alt)
    if not figures or len(alts) != len(figures):
        raise ValueError(
            f"{script}: {len(figures)} figures and {len(alts)} alt texts; each step needs its own"
        )
    alts = [" ".join(text.split()) for text in alts]
    numbers = dict(numbers or {})
    for text in alts:
        if len(text) < SHORTEST_ALT:
            raise ValueError(
                f"{script}: alt text of {len(text)} characters; say in at least {SHORTEST_ALT} what is seen"
            )
    if len(set(alts)) < len(alts):
        raise ValueError(f"{script}: two steps have the same alt text; say what changed")
    for name, value in numbers.items():
        _check_number(script, name, value)
    measured = {"seed": seed, "size": size, "spread": spread}
    missing = [name for name, value in measured.items() if value is None]
    if 0 < len(missing) < len(measured):
        raise ValueError(
            f"{script}: a measured figure tells seed, size and spread; {' and '.join(missing)} missing"
        )
    try:
        json.dumps(data, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{script}: data is nothing that JSON can hold: {error}") from None
    for step, (figure, text) in enumerate(zip(figures, alts, strict=True), 1):
        figure.published = Published(text, numbers, None if missing else measured, step, len(figures), data)

    for name, value in numbers.items():
        print(f"{name} = {f'{value:.6g}' if type(value) is float else value}")
    if os.environ.get("POSBOOK_GALLERY") == "1":
        return
    backend = matplotlib.get_backend().lower()
    # A notebook's backend is no screen, and shows a figure below the cell all the same.
    if "inline" in backend or backend in backend_registry.list_builtin(BackendFilter.INTERACTIVE):
        plt.show()
        return
    drawings = [svg.themed(figure, text) for figure, text in zip(figures, alts, strict=True)]
    for step, drawing in enumerate(drawings, 1):
        path = Path(Path(script).stem + (f"_{step}" if step > 1 else "") + ".svg")
        write_whole(path, drawing)
        print(path)


def script_name() -> str:
    """The file name of the running script, from its code: sphinx-gallery gives a script no __file__.

    A cell of a notebook and a line at the prompt are in no file; what Python puts instead is no name.
    """
    frame = sys._getframe()
    while frame.f_back is not None and frame.f_globals.get("__name__") != "__main__":
        frame = frame.f_back
    name = Path(frame.f_code.co_filename).name
    return "figure" if name.startswith("<") or "get_ipython" in frame.f_globals else name


def write_whole(path: Path, content: str | bytes) -> None:
    """Write a file whole or not at all: a build cut short must leave no half figure for the next to reuse."""
    unfinished = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        unfinished.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8"))
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)


def _check_number(script: str, name: str, value: object) -> None:
    if not name.isidentifier():
        raise ValueError(
            f"{script}: the number {name!r} needs a Python name, since the prose quotes it by name"
        )
    # Exact types: a bool, a numpy scalar or a tensor would be stored as something else than was printed.
    if type(value) not in (int, float, str):
        raise ValueError(f"{script}: {name} is a {type(value).__name__}; give a plain int, float or str")
    if type(value) is float and not math.isfinite(value):
        raise ValueError(f"{script}: {name} is {value}; only a finite number can be quoted")

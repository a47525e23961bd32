r"""What is kept of a run, and how it is written: JSON, whole or not at all.

A record says which recipe and which code it comes from by a fingerprint, over the settings and over the
source of the modules that make the numbers, comments and docstrings left out. A record whose fingerprint is
not that of the code beside it is stale, and the tests say so.
"""

import ast
import contextlib
import hashlib
import importlib
import inspect
import io
import json
import os
import platform
import statistics
import tokenize
from importlib import resources
from importlib.metadata import version
from pathlib import Path

RESULTS = resources.files("posbook.experiments") / "results"


def load(name: str) -> dict:
    r"""The shipped record of an experiment. Raises ValueError where there is none.

    >>> load("no-such-thing")
    Traceback (most recent call last):
    ...
    ValueError: there is no record named 'no-such-thing'
    """
    path = RESULTS / f"{name}.json"
    if not path.is_file():
        raise ValueError(f"there is no record named {name!r}")
    return json.loads(path.read_text("utf-8"))


def runs(record: dict, variant: str) -> list[dict]:
    r"""The runs of one variant, one a seed. Raises ValueError for a variant that was not run.

    >>> runs({"runs": [{"variant": "rope", "seed": 0}]}, "rope")
    [{'variant': 'rope', 'seed': 0}]
    """
    found = [run for run in record["runs"] if run["variant"] == variant]
    if not found:
        raise ValueError(f"no run of {variant!r} is in this record")
    return found


def middle(runs: list[dict], what: str) -> float | list[float]:
    r"""The median over the seeds of a number, or of each entry where it is a list.

    >>> middle([{"x": [1.0, 5.0]}, {"x": [2.0, 7.0]}, {"x": [9.0, 6.0]}], "x")
    [2.0, 6.0]
    """
    values = [run[what] for run in runs]
    if isinstance(values[0], list):
        return [statistics.median(column) for column in zip(*values, strict=True)]
    return statistics.median(values)


def fingerprint(modules: tuple[str, ...], settings: dict) -> str:
    r"""Twelve hexadecimal digits for these settings and the code of these modules of the laboratory."""
    total = hashlib.sha256(json.dumps(settings, sort_keys=True).encode())
    for name in sorted(modules):
        source = inspect.getsource(importlib.import_module(f"posbook.experiments.{name}"))
        total.update(code(source).encode())
    return total.hexdigest()[:12]


def code(source: str) -> str:
    r"""A source without what does not count: comments, docstrings, blank lines.

    >>> code('"Says."\n\nx = 1  # why\n')
    'x = 1'
    """
    lines = source.splitlines()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            row, column = token.start
            lines[row - 1] = lines[row - 1][:column]
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node, False):
            said = node.body[0]
            lines[said.lineno - 1 : said.end_lineno] = [""] * (said.end_lineno - said.lineno + 1)
    return "\n".join(line.rstrip() for line in lines if line.strip())


def circumstances() -> dict:
    r"""What a number may depend on besides its seed: versions and machine.

    >>> sorted(circumstances())
    ['machine', 'python', 'torch']
    """
    return {"python": platform.python_version(), "torch": version("torch"), "machine": platform.machine()}


def read(path: Path) -> dict:
    r"""What was written. Raises ValueError for a file that is damaged."""
    try:
        return json.loads(path.read_text("utf-8"))
    except ValueError as damage:
        raise ValueError(f"{path} is damaged ({damage}): delete it and run again") from None


def write(path: Path, content: dict) -> None:
    r"""Write JSON whole or not at all, numbers rounded to six digits."""
    with whole(path) as unfinished:
        unfinished.write_text(json.dumps(rounded(content), indent=1) + "\n", "utf-8")


def rounded(value):
    r"""The same, with every float to six significant digits.

    >>> rounded({"a": [0.123456789]})
    {'a': [0.123457]}
    """
    if isinstance(value, float):
        return float(f"{value:.6g}")
    if isinstance(value, dict):
        return {key: rounded(item) for key, item in value.items()}
    return [rounded(item) for item in value] if isinstance(value, list | tuple) else value


@contextlib.contextmanager
def whole(path: Path):
    r"""A file beside ``path`` to write to, which takes its name when all went well and is removed otherwise.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> with contextlib.suppress(RuntimeError), whole(folder / "x") as unfinished:
    ...     _ = unfinished.write_text("half")
    ...     raise RuntimeError
    >>> list(folder.iterdir())
    []
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        yield unfinished
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)

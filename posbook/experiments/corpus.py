r"""English prose that comes with every Python: docstrings and the language reference.

Each module and each chapter of the reference is a document. Paragraphs that occur twice are kept once, and a
tenth of the documents, chosen by a hash of their names, is kept for evaluation. Documentation differs
between versions of Python, so the evaluation text ships with the package, under Python's licence: models and
losses stay comparable, and no paragraph of it is trained on.
"""

import ast
import functools
import hashlib
import importlib
import sysconfig
from importlib import resources
from pathlib import Path

import torch
from jaxtyping import Int64
from torch import Tensor

SEPARATOR = "\f"  # between documents
ALPHABET = SEPARATOR + "\n" + "".join(map(chr, range(32, 127)))
ENOUGH = 1_000_000
NO_PROSE = {"idlelib", "lib2to3", "site-packages", "test", "tests"}
EVALUATION = resources.files("posbook.experiments") / "data" / "evaluation.txt"


def documents() -> dict[str, str]:
    r"""Every document of this installation by its name: docstrings of the library, topics of the reference.

    >>> "wrap" in documents()["textwrap.py"]
    True
    """
    library = Path(sysconfig.get_path("stdlib"))
    found = {}
    for path in sorted(library.rglob("*.py")):
        name = path.relative_to(library)
        if NO_PROSE.isdisjoint(name.parts):
            found[name.as_posix()] = "\n\n".join(_docstrings(path))
    try:
        topics = importlib.import_module("pydoc_data.topics").topics
    except ModuleNotFoundError:
        topics = {}
    return found | {f"topics/{name}": text for name, text in sorted(topics.items())}


def split(found: dict[str, str], known: frozenset[str] = frozenset()) -> tuple[str, str]:
    r"""Text to train on and text to evaluate on; a paragraph occurs once, and one that is ``known`` never.

    >>> training, evaluation = split({"a": "One.\n\nTwo.", "b": "Two.\n\nThree."}, frozenset({"One."}))
    >>> (training + evaluation).count("T"), "One" in training + evaluation
    (2, False)
    """
    seen, texts = set(known), {False: [], True: []}
    for name, text in found.items():
        kept = []
        for paragraph in _paragraphs(text):
            if paragraph not in seen:
                seen.add(paragraph)
                kept.append(paragraph)
        if kept:
            chosen = int(hashlib.md5(name.encode(), usedforsecurity=False).hexdigest(), 16) % 10 == 0
            texts[chosen].append("\n\n".join(kept))
    return SEPARATOR.join(texts[False]), SEPARATOR.join(texts[True])


@functools.cache
def evaluation() -> str:
    r"""The text that ships with the package, on which every loss of the book is measured."""
    return EVALUATION.read_text("utf-8")


@functools.cache
def training() -> str:
    r"""The text to train on, from this installation of Python.

    Raises ValueError where the installation has too little of it, as where sources or docstrings were
    stripped.
    """
    known = frozenset(p for document in evaluation().split(SEPARATOR) for p in _paragraphs(document))
    text = split(documents(), known)[0]
    if len(text) < ENOUGH:
        raise ValueError(
            f"this Python has {len(text):,} characters of documentation and {ENOUGH:,} are needed: "
            "its sources or docstrings were stripped, take another installation"
        )
    return text


def encode(text: str) -> Int64[Tensor, " characters"]:
    r"""The number of each character in ``ALPHABET``. Raises ValueError for any other character.

    >>> encode("\n !").tolist()
    [1, 2, 3]
    """
    number = {character: i for i, character in enumerate(ALPHABET)}
    try:
        return torch.tensor([number[character] for character in text])
    except KeyError as unknown:
        raise ValueError(f"the alphabet is printable ASCII, which {unknown} is not in") from None


def _docstrings(path: Path) -> list[str]:
    try:
        tree = ast.parse(path.read_bytes())
    except (SyntaxError, ValueError):  # templates that are no Python
        return []
    kinds = ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef
    return [text for node in ast.walk(tree) if isinstance(node, kinds) and (text := ast.get_docstring(node))]


def _paragraphs(text: str) -> list[str]:
    lines = ("".join(c for c in line if c in ALPHABET).rstrip() for line in text.split("\n"))
    return [paragraph.strip("\n") for paragraph in "\n".join(lines).split("\n\n") if paragraph.strip()]

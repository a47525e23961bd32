"""The prose is tested: every ```python example of the book and of the README runs, page by page."""

import pytest
from sybil import Sybil
from sybil.parsers.myst import DocTestDirectiveParser, PythonCodeBlockParser, SkipParser

pytest_collect_file = Sybil(
    parsers=[DocTestDirectiveParser(), PythonCodeBlockParser(), SkipParser()],
    patterns=["docs/**/*.md", "README.md"],
    excludes=["docs/gallery/**", "docs/_*/**"],
).pytest()


@pytest.fixture(autouse=True)
def seeded():
    """A test that forgets its seed is still repeatable."""
    import torch

    torch.manual_seed(0)

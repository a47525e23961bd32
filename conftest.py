"""The prose is tested: every ```python example of the book and of the README runs, page by page."""

import pytest
import torch
from sybil import Sybil
from sybil.parsers.myst import DocTestDirectiveParser, PythonCodeBlockParser, SkipParser

pytest_collect_file = Sybil(
    parsers=[DocTestDirectiveParser(), PythonCodeBlockParser(), SkipParser()],
    patterns=["docs/*.md", "docs/**/*.md", "README.md"],
    excludes=["docs/gallery/**", "docs/_*/**"],
).pytest()


# The tensors here are small, and on a busy machine two threads wait for each other more than they compute.
torch.set_num_threads(1)


@pytest.fixture(autouse=True)
def seeded():
    """A test that forgets its seed is still repeatable."""
    torch.manual_seed(0)

r"""Tests mirror the package; expected values come from by_equation.py, a promise, or tests/data."""

import json
from pathlib import Path

import torch

WORKED = json.loads((Path(__file__).parent / "data" / "worked_examples.json").read_text())
EPSILON = {torch.float64: 1e-12, torch.float32: 2e-6, torch.float16: 2e-3, torch.bfloat16: 2e-2}


def assert_close(actual, expected, *, tolerance=None):
    """Equal within rounding, relative to the size of the terms; printed digits have their own tolerance."""
    expected = torch.as_tensor(expected, dtype=torch.float64)
    tolerance = EPSILON[actual.dtype] if tolerance is None else tolerance
    size = expected.abs().max().item() if expected.numel() else 0.0
    torch.testing.assert_close(actual.double(), expected, rtol=0, atol=tolerance * max(size, 1.0))

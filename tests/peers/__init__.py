r"""posbook compared with installed libraries that nobody here wrote, without the network.

Where a peer is wrong, or has another convention, the test's name says so and both values are written down.
A peer that works in float32 has a floor of its own, and no comparison can be closer.
"""

from importlib.metadata import PackageNotFoundError, version

import pytest
import torch

from tests import EPSILON

# A float32 angle is a position times a rounded frequency, rounded again: off by about 1e-7 of itself. It
# grows by up to a radian a token: at position m it is off by up to 1e-7·m, and what it turns by as much of
# its length.
PER_TOKEN = 1e-7


def pinned(library, tested):
    """Stop if another version is installed: what these tests say of a peer, they say of one version."""
    try:
        installed = version(library)
    except PackageNotFoundError:
        installed = "nothing"
    if installed != tested:
        pytest.fail(
            f"compared with {library} {tested}, but {installed} is installed: say `make env`, "
            "or --ignore=tests/peers",
            pytrace=False,
        )


def assert_frequencies(peer, ours):
    """Each within float32's rounding of itself: the slowest are a million times slower than the first."""
    torch.testing.assert_close(peer.double(), ours, rtol=EPSILON[torch.float32], atol=0)


def assert_turned(peer, ours, at):
    """Rows turned alike, as far as float32 angles allow at their positions."""
    floor = EPSILON[torch.float32] + PER_TOKEN * at[:, None]
    off = (peer.double() - ours.double()).abs() / ours.double().norm(dim=-1, keepdim=True)
    assert (off <= floor).all(), f"off by {off.max().item():.2g} of a row's length"

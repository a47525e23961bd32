r"""Choose how fast each pair turns, and read its angle at each position.

.. math:: \theta_i = \text{base}^{-2i/\text{dim}}, \qquad
          \text{angle}_{m,i} = m\,\theta_i, \qquad
          \text{wavelength}_i = 2\pi / \theta_i

Pairs are numbered :math:`i = 0 \dots \text{dim}/2 - 1` from the fastest; :math:`\theta_i` is in radians per
token. ``dim`` is the model's width for the table of Vaswani et al. (2017, §3.5), the head's for RoFormer (Su
et al. 2021).

Everything here is float64: at position 100 000 a float32 phase is off by up to 0.005 rad.
"""

import math

import torch
from jaxtyping import Float, Float64, Real
from torch import Tensor


def geometric(dim: int, base: float | int = 10_000.0) -> Float64[Tensor, " pairs"]:
    r"""The frequencies :math:`\theta_i = \text{base}^{-2i/\text{dim}}`, fastest first.

    The last is :math:`\text{base}^{-1 + 2/\text{dim}}`, not 1/base. The power is taken directly, to 1e-15;
    through a logarithm and an exponential the relative error would reach 4e-15. Raises ValueError unless
    ``dim`` is even and positive and ``base`` is finite and at least 1, so that pair 0 is the fastest.

    >>> [round(theta, 12) for theta in geometric(8).tolist()]
    [1.0, 0.1, 0.01, 0.001]
    """
    if dim < 2 or dim % 2:
        raise ValueError(f"pairs need an even number of features, 2 or more, not dim={dim}")
    if not 1 <= base < math.inf:
        raise ValueError(f"base must be finite and at least 1, not base={base}")
    return base ** (-torch.arange(0, dim, 2, dtype=torch.float64) / dim)


def proportional(dim: int, fraction: float | int, base: float | int = 10_000.0) -> Float64[Tensor, " pairs"]:
    r"""The frequencies of :func:`geometric`, but only the fastest part of them turns: the rest is exactly 0.

    The first :math:`\lfloor \text{fraction}\cdot\text{dim}/2 \rfloor` pairs keep their frequencies, whose
    exponent stays :math:`2i/\text{dim}`: the p-RoPE of Barbero et al. (2025), and "proportional" in
    transformers. Partial rotary, ``rotate(…, width=r)`` with ``geometric(r)``, spans all frequencies with
    fewer pairs instead. Raises ValueError unless ``fraction`` is between 0, where nothing turns, and 1, and
    as :func:`geometric` does.

    >>> [round(theta, 12) for theta in proportional(8, fraction=0.5).tolist()]
    [1.0, 0.1, 0.0, 0.0]
    """
    if not 0 <= fraction <= 1:
        raise ValueError(
            f"fraction must be from 0 to 1, the part of the pairs that turns, not fraction={fraction}"
        )
    theta = geometric(dim, base)
    theta[int(fraction * dim // 2) :] = 0
    return theta


def angles(
    positions: Real[Tensor, "*seq"], frequencies: Float[Tensor, " pairs"]
) -> Float64[Tensor, "*seq pairs"]:
    r"""The phase :math:`m\,\theta_i` of every pair at every position, in radians, on the positions' device.

    Raises ValueError for frequencies with more than one axis, and for positions in half precision,
    where neighbours coincide. On a device without float64 keep the positions on the CPU:
    only sines and cosines need to travel.

    >>> angles(torch.tensor([0, 1, 30]), torch.tensor([1.0, 0.5])).tolist()
    [[0.0, 0.0], [1.0, 0.5], [30.0, 15.0]]
    """
    if frequencies.ndim != 1:
        raise ValueError(f"frequencies have one axis, (pairs,), not shape {tuple(frequencies.shape)}")
    if positions.dtype in (torch.float16, torch.bfloat16):
        raise ValueError(
            f"positions in {positions.dtype} are rounded (in bfloat16, 257 is 256): give them as integers"
        )
    return positions.to(torch.float64)[..., None] * frequencies.to(positions.device, torch.float64)


def wavelengths(frequencies: Float[Tensor, "*pairs"]) -> Float64[Tensor, "*pairs"]:
    r"""Tokens that one turn takes: :math:`2\pi/\theta_i`; infinite for a pair that stands still.

    >>> [round(tokens, 3) for tokens in wavelengths(torch.tensor([1.0, 0.5, 0.0])).tolist()]
    [6.283, 12.566, inf]
    """
    return 2 * math.pi / frequencies.to(torch.float64)


def turns(frequencies: Float[Tensor, "*pairs"], length: float | int) -> Float64[Tensor, "*pairs"]:
    r"""Turns that each pair completes in ``length`` tokens: :math:`\text{length}\cdot\theta_i/2\pi`.

    Below 1 the pair never came round, so part of its circle was never seen. Raises ValueError unless
    ``length`` is positive.

    >>> int((turns(geometric(128), length=4096) < 1).sum())
    18
    """
    if not length > 0:
        raise ValueError(f"length must be a positive number of tokens, not length={length}")
    return length * frequencies.to(torch.float64) / (2 * math.pi)

r"""Write each position as a row of clocks, added to the input.

.. math:: \mathrm{PE}_{p,2i} = \sin(p\,\theta_i), \qquad \mathrm{PE}_{p,2i+1} = \cos(p\,\theta_i)

Vaswani et al. (2017, §3.5). Moving :math:`k` tokens on is one fixed matrix, the same at every position:
:math:`\mathrm{PE}_{p+k} = R_k\,\mathrm{PE}_p`.
"""

import torch
from jaxtyping import Float, Float64
from torch import Tensor


def encode(angles: Float[Tensor, "*seq pairs"]) -> Float64[Tensor, "*seq dim"]:
    r"""The table :math:`(\sin, \cos, \sin, \cos, \dots)` of these angles; dim = 2·pairs.

    The paper's layout, interleaved. The code released with the paper (tensor2tensor) puts all sines first and
    spaces its wavelengths differently, so no reordering of columns turns one into the other.

    >>> encode(torch.zeros(1, 3)).tolist()
    [[0.0, 1.0, 0.0, 1.0, 0.0, 1.0]]
    """
    angles = angles.to(torch.float64)
    return torch.stack((angles.sin(), angles.cos()), dim=-1).flatten(-2)


def shift(frequencies: Float[Tensor, " pairs"], k: float | int) -> Float64[Tensor, "dim dim"]:
    r"""The matrix :math:`R_k` that moves every encoding :math:`k` tokens on.

    .. math:: R_k = \bigoplus_i \begin{pmatrix} \cos k\theta_i & \sin k\theta_i \\
                                               -\sin k\theta_i & \cos k\theta_i \end{pmatrix}

    The minus sign stands below because the sine is written first: as points (cos, sin), each pair still turns
    anticlockwise.

    >>> from posbook import frequencies
    >>> theta = frequencies.geometric(4)
    >>> table = encode(frequencies.angles(torch.arange(4), theta))
    >>> torch.allclose(shift(theta, 2) @ table[1], table[3])
    True
    """
    phase = k * frequencies.to(torch.float64)
    cos, sin = phase.cos(), phase.sin()
    blocks = torch.stack((cos, sin, -sin, cos), dim=-1).unflatten(-1, (2, 2))
    return torch.block_diag(*blocks)

r"""Turn each pair, and let it shrink with position in the query and grow in the key.

.. math:: \tilde q_m = \zeta^{m/B} R_m q, \qquad \tilde k_n = \zeta^{-n/B} R_n k, \qquad
          \zeta_i = \frac{2i/\text{dim} + \gamma}{1 + \gamma}

Sun et al. (2023); :math:`\gamma = 0.4` and :math:`B = 512`, the ``scale_base``, are those of their released
code, torchscale. Pair :math:`i` of the score is rotary's times :math:`\zeta_i^{(m-n)/B}`, which depends only
on the offset. It fades with distance in the past, soonest in the fast pairs, and grows without bound in the
future: it needs a causal mask.
"""

import torch
from jaxtyping import Float64, Num, Real
from torch import Tensor

from posbook.frequencies import angles as phases
from posbook.rotary import rotate as turn


def scales(
    positions: Real[Tensor, "*seq"], dim: int, *, scale_base: float | int = 512, gamma: float | int = 0.4
) -> Float64[Tensor, "*seq pairs"]:
    r"""The factors :math:`\zeta_i^{m/B}` of queries at these positions; keys have ``1 / scales``.

    Take one and the same :math:`c` from the positions of all queries and keys, and no score changes:
    :math:`\zeta_i^{-c/B}` and :math:`\zeta_i^{c/B}` cancel pair by pair. Released code takes the middle of
    each call: the factors of keys overflow float16 near position 4 500, and float32 near 36 000. Keys cached
    under another :math:`c` do not fit.

    Raises ValueError unless ``dim`` is even and positive, ``scale_base`` and ``gamma`` are positive, and
    for positions in half precision.

    >>> scales(torch.tensor([-512, 0, 512]), 2, gamma=1.0).tolist()
    [[2.0], [1.0], [0.5]]
    """
    if dim < 2 or dim % 2:
        raise ValueError(f"pairs need an even number of features, 2 or more, not dim={dim}")
    if not (scale_base > 0 and gamma > 0):
        raise ValueError(f"scale_base and gamma must be positive, not {scale_base=}, {gamma=}")
    zeta = (torch.arange(0, dim, 2, dtype=torch.float64) / dim + gamma) / (1 + gamma)
    # A power in the position is a phase without the i.
    return phases(positions, zeta.log() / scale_base).exp()


def rotate(
    x: Num[Tensor, "*rows dim"],
    angles: Num[Tensor, "*at pairs"],
    scales: Num[Tensor, "*_at _pairs"],
    *,
    layout: str,
    width: int | None = None,
) -> Num[Tensor, "*rows dim"]:
    r"""Queries, or with ``1 / scales`` keys: every pair turned by its angle and multiplied by its scale.

    Otherwise as :func:`posbook.rotary.rotate`, with its errors; features beyond ``width`` stay as they are.
    Raises ValueError unless ``scales`` has the shape of ``angles``.

    >>> still, halved = torch.zeros(1, 1), torch.full((1, 1), 0.5)
    >>> rotate(torch.ones(1, 2), still, halved, layout="halves").tolist()
    [[0.5, 0.5]]
    >>> rotate(torch.ones(1, 2), still, 1 / halved, layout="halves").tolist()
    [[2.0, 2.0]]
    """
    if not (x.is_floating_point() and scales.is_floating_point()):
        raise ValueError(f"x and scales must be real floating point, not {x.dtype} and {scales.dtype}")
    if scales.shape != angles.shape:
        raise ValueError(
            f"each angle has its scale, but angles have shape {tuple(angles.shape)} "
            f"and scales {tuple(scales.shape)}"
        )
    # Half precision is rounded once, after both steps.
    work = torch.promote_types(x.dtype, torch.float32)
    turned = turn(x.to(work), angles, layout=layout, width=width)
    width = 2 * angles.shape[-1]
    scales = scales.to(x.device, work)
    members = torch.stack((scales, scales), dim=-1 if layout == "interleaved" else -2).flatten(-2)
    return torch.cat((turned[..., :width] * members, turned[..., width:]), dim=-1).to(x.dtype)

r"""Turn each pair of features by an angle that grows with position.

.. math:: \begin{pmatrix} x'_a \\ x'_b \end{pmatrix} =
          \begin{pmatrix} \cos m\theta_i & -\sin m\theta_i \\ \sin m\theta_i & \cos m\theta_i \end{pmatrix}
          \begin{pmatrix} x_a \\ x_b \end{pmatrix}, \qquad
          (R_m q)^\top (R_n k) = q^\top R_{n-m}\, k

RoFormer (Su et al. 2021, eq. 13–16 and 34). Pair :math:`i` is :math:`(a, b) = (2i, 2i+1)` in the layout
``"interleaved"`` (RoFormer, GPT-J, Meta's Llama) and :math:`(i, i + \text{dim}/2)` in ``"halves"`` (GPT-NeoX,
Hugging Face's Llama). A checkpoint needs the layout it was trained in.
"""

import itertools

import torch
from jaxtyping import Int, Num
from torch import Tensor

from posbook.positions import has_values

# Cut into pairs, x has two axes where it had one; a layout is the axis that tells a pair's members apart.
_MEMBERS = {"interleaved": -1, "halves": -2}
_BLOCK = 1 << 19  # numbers turned at a time: 2 MB in float32, which stays in cache


def rotate(
    x: Num[Tensor, "*rows dim"], angles: Num[Tensor, "*at pairs"], *, layout: str, width: int | None = None
) -> Num[Tensor, "*rows dim"]:
    r"""Queries or keys with pair :math:`i` of every row turned anticlockwise by that row's angle :math:`i`.

    ``x`` is (…, seq, dim). ``angles`` are radians: (seq, pairs), shared by all leading axes, or of the rank
    of ``x`` with 1 on each axis they do not depend on, as (batch, 1, seq, pairs). ``width`` pairs and turns
    only the first so many features and leaves the others as they are; without it every feature turns. The
    result has the dtype of ``x``.

    Raises ValueError for a layout that is neither ``"interleaved"`` nor ``"halves"``, an odd or too large
    width, a number of pairs other than width/2, angles of another rank, and axes that do not match.

    >>> import math
    >>> quarter = torch.full((1, 2), math.pi / 2)
    >>> rotate(torch.tensor([[1.0, 2.0, 3.0, 4.0]]), quarter, layout="interleaved").round().tolist()
    [[-2.0, 1.0, -4.0, 3.0]]
    >>> rotate(torch.tensor([[1.0, 2.0, 3.0, 4.0]]), quarter, layout="halves").round().tolist()
    [[-3.0, -4.0, 1.0, 2.0]]
    """
    width = x.shape[-1] if width is None else width
    _check(x, angles, layout, width)

    # Phases in float64: at position 100 000 a float32 phase is off by up to 0.005 rad. Sines and cosines are
    # at most 1, so they can be rounded, once, to the dtype of the rotation, which half precision would spoil.
    work = torch.float64 if x.dtype == torch.float64 else torch.float32
    angles = angles.to(torch.float64)
    cos, sin = angles.cos().to(x.device, work), angles.sin().to(x.device, work)
    # Many short sequences are as many small blocks, and slower than the formula.
    large = x.numel() > _BLOCK and x.shape[-2] * width > _BLOCK // 32
    if x.is_cpu and large and has_values(x) and not (x.requires_grad or angles.requires_grad):
        return _rotate_in_blocks(x, cos, sin, layout, width)

    members = _MEMBERS[layout]
    cut = (width // 2, 2) if members == -1 else (2, width // 2)
    a, b = x[..., :width].to(work).unflatten(-1, cut).unbind(members)
    turned = torch.stack((a * cos - b * sin, a * sin + b * cos), dim=members).flatten(-2)
    return torch.cat((turned.to(x.dtype), x[..., width:]), dim=-1)


def _rotate_in_blocks(x: Tensor, cos: Tensor, sin: Tensor, layout: str, width: int) -> Tensor:
    # The formula of `rotate` for a large tensor that needs no gradient. Its time goes into fresh memory, so
    # only the result is allocated, and each block of rows is finished while it lies in cache.
    result = torch.empty_like(x)
    result[..., width:] = x[..., width:]
    half = width // 2
    turn = torch.complex(cos, sin) if layout == "interleaved" else cos
    turn, sin = turn.expand(*x.shape[:-1], -1), sin.expand(*x.shape[:-1], -1)
    rows = max(1, _BLOCK // width)
    for *row, start in itertools.product(*map(range, x.shape[:-2]), range(0, x.shape[-2], rows)):
        at = (*row, slice(start, start + rows))
        block, into = x[at][:, :width].to(cos.dtype), result[at][:, :width]
        if layout == "interleaved":  # neighbours are the parts of a complex number as they lie
            turned = torch.view_as_complex(block.contiguous().unflatten(-1, (-1, 2))) * turn[at]
            into.copy_(torch.view_as_real(turned).flatten(-2))
        else:
            turned = into if into.dtype == block.dtype else torch.empty_like(block)
            a, b = block[:, :half], block[:, half:]
            torch.mul(a, turn[at], out=turned[:, :half]).addcmul_(b, sin[at], value=-1)
            torch.mul(b, turn[at], out=turned[:, half:]).addcmul_(a, sin[at])
            into.copy_(turned)  # onto itself, and free, where no dtype changes
    return result


def permutation(dim: int) -> Int[Tensor, " dim"]:
    r"""The order of features that carries interleaved pairs to halves: :math:`(0, 2, \dots, 1, 3, \dots)`.

    With ``perm = permutation(dim)``, rotating ``x[..., perm]`` in halves gives ``rotated[..., perm]``, where
    ``rotated`` is ``x`` rotated interleaved. Scores do not change when queries and keys are both permuted, so
    a checkpoint is converted by permuting the rows of its query and key projections, head by head.
    ``perm.argsort()`` goes back.

    >>> permutation(8).tolist()
    [0, 2, 4, 6, 1, 3, 5, 7]
    """
    if dim < 2 or dim % 2:
        raise ValueError(f"pairs need an even number of features, 2 or more, not dim={dim}")
    return torch.arange(dim).unflatten(0, (dim // 2, 2)).T.flatten()


def _check(x: Num[Tensor, "*rows dim"], angles: Num[Tensor, "*at pairs"], layout: str, width: int) -> None:
    came = f"x has shape {tuple(x.shape)} and angles {tuple(angles.shape)}"
    if layout not in _MEMBERS:
        raise ValueError(f"layout must be 'interleaved' or 'halves', not {layout!r}")
    if not (x.is_floating_point() and angles.is_floating_point()):
        raise ValueError(f"x and angles must be real floating point, not {x.dtype} and {angles.dtype}")
    if x.ndim < 2:
        raise ValueError(f"x must be (..., seq, dim), but {came}")
    if width < 2 or width % 2 or width > x.shape[-1]:
        raise ValueError(
            f"a rotation needs an even number of features between 2 and dim={x.shape[-1]}, not width={width}"
        )
    if angles.shape[-1] != width // 2:
        raise ValueError(
            f"{width} features are {width // 2} pairs, not {angles.shape[-1]}: "
            "turn fewer with width=2·pairs, or make angles for all of them"
        )
    # (batch, seq, pairs) against (batch, heads, seq, dim) would line batches up with heads in silence.
    if angles.ndim not in (2, x.ndim):
        raise ValueError(
            f"angles must be (seq, pairs), or have the rank of x with 1 for heads, but {came}: "
            "write angles[:, None] for angles that differ between the rows of a batch"
        )
    if angles.shape[-2] != x.shape[-2]:
        raise ValueError(f"x must be (..., seq, dim) with one row of angles for each position, but {came}")
    if any(have not in (1, need) for have, need in zip(angles.shape[:-2], x.shape, strict=False)):
        raise ValueError(f"each leading axis of angles must be 1 or equal that of x, but {came}")

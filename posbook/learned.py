r"""Add to each token a learned vector, looked up by its position.

.. math:: x'_t = x_t + w_{p_t}

Gehring et al. (2017), Devlin et al. (2019). The table :math:`w` has one row for each position seen in
training and none for a later one. A longer input needs a resampled table, each new row a weighted sum of old
ones.
"""

from collections.abc import Callable

import torch
from jaxtyping import Float, Float64, Integer
from torch import Tensor

from posbook.positions import check_rows


def lookup(
    table: Float[Tensor, "rows dim"], positions: Integer[Tensor, "*seq"], *, offset: int = 0
) -> Float[Tensor, "*seq dim"]:
    r"""The vectors :math:`w_p` of these positions, from row ``offset`` + :math:`p` of the table.

    OPT begins at row 2, fairseq and RoBERTa at ``padding_idx + 1``. Raises ValueError for a position
    without a row, be it negative or past the end; see :func:`resample`.

    >>> table = torch.tensor([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    >>> lookup(table, torch.tensor([0, 3])).tolist()
    [[0.0, 0.0], [1.0, 1.0]]
    >>> lookup(table, torch.tensor([0, 1]), offset=2).tolist()
    [[1.0, 0.0], [1.0, 1.0]]
    """
    _check_table(table)
    if not 0 <= offset < table.shape[0]:
        raise ValueError(f"offset must be one of the table's rows, 0 to {table.shape[0] - 1}, not {offset}")
    if positions.is_floating_point() or positions.dtype == torch.bool:
        raise ValueError(f"positions that are looked up must be integers, not {positions.dtype}")
    # In a narrow type the sum would wrap round, and uint8 would be taken for a mask.
    positions = positions.long()
    check_rows(positions, f"counted from row {offset}, the table of positions", table.shape[0] - offset)
    return table[positions + offset]


def resample(
    table: Float[Tensor, "rows dim"], length: int, *, align_corners: bool = False
) -> Float[Tensor, "length dim"]:
    r"""The table stretched or shrunk to ``length`` rows, linearly between neighbours.

    Of :math:`N` rows, new row :math:`j` of :math:`L` reads the place

    .. math:: \left(j + \tfrac12\right) \frac{N}{L} - \tfrac12 \quad\text{or}\quad j\,\frac{N - 1}{L - 1}

    without or with ``align_corners``, as in torch: the first makes every row a cell of equal width, the end
    rows repeated beyond their centres; the second keeps the end rows where they are. Shrinking does not
    smooth: it may skip rows. Raises ValueError for a length below 1.

    >>> resample(torch.tensor([[0.0], [4.0]]), 4).flatten().tolist()
    [0.0, 1.0, 3.0, 4.0]
    >>> resample(torch.tensor([[0.0], [3.0]]), 4, align_corners=True).flatten().tolist()
    [0.0, 1.0, 2.0, 3.0]
    """
    _check_table(table)
    if length < 1:
        raise ValueError(f"a table needs at least one row, not length={length}")
    weights = _weights(table.shape[0], length, _linear, align_corners).to(table.device)
    return (weights @ table.to(torch.float64)).to(table.dtype)


def resample_grid(
    table: Float[Tensor, "rows dim"],
    *,
    old: tuple[int, int],
    new: tuple[int, int],
    extra: int = 0,
    mode: str = "bicubic",
    align_corners: bool = False,
) -> Float[Tensor, "new_rows dim"]:
    r"""The table of an image's patches, resampled from ``old`` to ``new`` = (height, width).

    Patches are in reading order. The first ``extra`` rows (a class token, registers) belong to no patch and
    are kept. ``mode`` is ``"bicubic"`` (torch's kernel, :math:`a = -\tfrac34`) or ``"bilinear"``, along each
    axis as :func:`resample` with its ``align_corners``. A checkpoint needs the pair that its code uses:
    Hugging Face's ViT resamples bicubically without aligned corners, its Qwen3-VL bilinearly with them.

    Raises ValueError unless the table has ``extra`` + height · width rows, and for another mode or size.

    >>> table = torch.tensor([[9.0], [0.0], [2.0], [4.0], [6.0]])
    >>> grid = resample_grid(table, old=(2, 2), new=(3, 3), extra=1, mode="bilinear", align_corners=True)
    >>> grid.flatten().tolist()
    [9.0, 0.0, 1.0, 2.0, 2.0, 3.0, 4.0, 4.0, 5.0, 6.0]
    """
    _check_table(table)
    if mode not in _KERNELS:
        raise ValueError(f"mode must be 'bicubic' or 'bilinear', not {mode!r}")
    if min(*old, *new) < 1 or extra < 0:
        raise ValueError(f"sizes must be positive and extra not negative, not {old=}, {new=}, {extra=}")
    if table.shape[0] != extra + old[0] * old[1]:
        raise ValueError(
            f"{extra} extra rows and {old[0]} × {old[1]} patches are {extra + old[0] * old[1]} rows, "
            f"but the table has {table.shape[0]}"
        )
    down, across = (
        _weights(rows, length, _KERNELS[mode], align_corners).to(table.device)
        for rows, length in zip(old, new, strict=True)
    )
    patches = table[extra:].to(torch.float64).unflatten(0, old)
    resampled = torch.einsum("ih,jw,hwd->ijd", down, across, patches).flatten(0, 1)
    return torch.cat((table[:extra], resampled.to(table.dtype)))


def _weights(
    rows: int, length: int, kernel: Callable[[Tensor], Tensor], align_corners: bool
) -> Float64[Tensor, "length rows"]:
    at = torch.arange(length, dtype=torch.float64)
    places = at * (rows - 1) / max(length - 1, 1) if align_corners else (at + 0.5) * rows / length - 0.5
    # Neighbours beyond an end are the end row again: their weights fall to it.
    neighbours = places.floor()[:, None] + torch.arange(-1, 3)
    shares = kernel((places[:, None] - neighbours).abs())
    return shares.new_zeros(length, rows).scatter_add(1, neighbours.long().clamp(0, rows - 1), shares)


def _linear(distance: Float64[Tensor, "*places"]) -> Float64[Tensor, "*places"]:
    return (1 - distance).clamp(min=0)


def _cubic(distance: Float64[Tensor, "*places"], a: float = -0.75) -> Float64[Tensor, "*places"]:
    near = ((a + 2) * distance - (a + 3)) * distance**2 + 1
    far = a * (distance - 1) * (distance - 2) ** 2
    return torch.where(distance <= 1, near, torch.where(distance < 2, far, 0.0))


_KERNELS = {"bilinear": _linear, "bicubic": _cubic}


def _check_table(table: Float[Tensor, "..."]) -> None:
    if table.ndim != 2 or not table.shape[0]:
        raise ValueError(f"a table of positions must be (rows, dim), not {tuple(table.shape)}")

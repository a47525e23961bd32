r"""Say where tokens stand, and how far each key lies from each query.

.. math:: \text{offset}_{mn} = n - m

The query stands at :math:`m`, the key at :math:`n`, both counted from 0. A negative offset is the past.
The sign is that of Shaw et al. (2018), who write :math:`j - i`; ALiBi's paper counts :math:`m - n`.
"""

import torch
from jaxtyping import Int, Real, Shaped
from torch import Tensor


def offsets(
    *, queries: Real[Tensor, "*#batch q"], keys: Real[Tensor, "*#batch k"]
) -> Real[Tensor, "*batch q k"]:
    r"""How far each key lies ahead of each query: :math:`n - m`.

    Leading axes are rows of a batch and broadcast. One cached step is one query and all the keys.
    Raises ValueError for positions in half precision, which are rounded before they come here.

    >>> offsets(queries=torch.arange(3), keys=torch.arange(3)).tolist()
    [[0, 1, 2], [-1, 0, 1], [-2, -1, 0]]
    >>> offsets(queries=torch.tensor([2]), keys=torch.arange(3)).tolist()
    [[-2, -1, 0]]
    """
    return _exact(keys)[..., None, :] - _exact(queries)[..., :, None]


def packed(documents: Int[Tensor, "*batch seq"]) -> Int[Tensor, "*batch seq"]:
    r"""Positions in a row that holds several documents: each starts again at 0.

    ``documents`` names the document of every token; a document is a run of equal names.
    Keeping the documents out of each other's sight is the mask's work, not the positions'.

    >>> packed(torch.tensor([7, 7, 7, 1, 1, 2, 2, 2, 2])).tolist()
    [0, 1, 2, 0, 1, 0, 1, 2, 3]
    """
    index = torch.arange(documents.shape[-1], device=documents.device).expand(documents.shape)
    begins = torch.ones_like(documents, dtype=torch.bool)
    begins[..., 1:] = documents[..., 1:] != documents[..., :-1]
    return index - torch.where(begins, index, 0).cummax(dim=-1).values


def left_padded(real: Shaped[Tensor, "*batch seq"]) -> Int[Tensor, "*batch seq"]:
    r"""Positions in rows padded on the left: the first real token of each row stands at 0.

    ``real`` is True, or 1, where a token is real. Padding gets 0 as well: it must be masked anyway.
    Raises ValueError for other values, and for padding that follows a real token.

    >>> left_padded(torch.tensor([[0, 0, 1, 1, 1], [1, 1, 1, 1, 1]])).tolist()
    [[0, 0, 0, 1, 2], [0, 1, 2, 3, 4]]
    """
    if has_values(real):
        if not ((real == 0) | (real == 1)).all():
            raise ValueError(f"real is True or 1 for a token and False or 0 for padding, not {real.tolist()}")
        if (real[..., 1:] < real[..., :-1]).any():
            raise ValueError(f"padding must come before the tokens of its row, but real={real.tolist()}")
    return (real.long().cumsum(dim=-1) - 1).clamp(min=0)


def check_rows(indices: Int[Tensor, "..."], table: str, rows: int) -> None:
    r"""Raise ValueError if an index points outside a table of so many rows.

    A negative index would otherwise wrap round to the table's end in silence, and one past the end
    would stop a GPU without a message.

    >>> check_rows(torch.tensor([0, 31, 32]), "the bias table", 32)
    Traceback (most recent call last):
    ...
    ValueError: the bias table has rows 0 to 31, not 32
    """
    if not has_values(indices):
        return
    wide = indices.long()  # the number of rows may not fit a narrow type of index
    if (outside := wide[(wide < 0) | (wide >= rows)]).numel():
        raise ValueError(f"{table} has rows 0 to {rows - 1}, not {outside[0].item()}")


def _exact(positions: Real[Tensor, "*seq"]) -> Real[Tensor, "*seq"]:
    if positions.dtype in (torch.float16, torch.bfloat16):
        raise ValueError(
            f"positions in {positions.dtype} are rounded (in bfloat16, 257 is 256): give them as integers"
        )
    # The difference of two narrow integers wraps round, that of two unsigned ones already below zero.
    return positions if positions.is_floating_point() else positions.long()


def has_values(tensor: Shaped[Tensor, "..."]) -> bool:
    r"""Whether there are numbers to look at: not while compiling, on meta or fake tensors, or in vmap.

    >>> has_values(torch.arange(3)), has_values(torch.arange(3, device="meta"))
    (True, False)
    """
    return (
        not torch.compiler.is_compiling()
        and type(tensor) in (Tensor, torch.nn.Parameter)
        and not tensor.is_meta
        and not torch._C._functorch.is_functorch_wrapped_tensor(tensor)
    )

r"""What the small models are asked: the next character, and whether A comes before B."""

import torch
from jaxtyping import Bool, Int64
from torch import Generator, Tensor

A, B, FILLERS = 0, 1, 2  # symbols; every one from FILLERS on says nothing


def generator(*numbers: int) -> Generator:
    r"""A source of random numbers that depends on these numbers only, as on a seed and a step.

    >>> a, b, c = (torch.rand(1, generator=generator(*n)) for n in [(0, 1), (0, 1), (1, 0)])
    >>> bool(a == b), bool(a == c)
    (True, False)
    """
    mixed = 0
    for number in numbers:
        mixed = (mixed * 1_000_003 + number + 1) % 2**63
    return Generator().manual_seed(mixed)


def windows(text: Int64[Tensor, " characters"], length: int, starts: Int64[Tensor, " batch"]):
    r"""Pieces of the text and, for every character of them, the next.

    >>> [x.tolist() for x in windows(torch.arange(9), 3, torch.tensor([0, 5]))]
    [[[0, 1, 2], [5, 6, 7]], [[1, 2, 3], [6, 7, 8]]]
    """
    pieces = text[starts[:, None] + torch.arange(length + 1)]
    return pieces[:, :-1], pieces[:, 1:]


def order(batch: int, length: int, symbols: int, source: Generator) -> tuple[Tensor, Tensor]:
    r"""Random sequences with one A and one B among fillers, and whether A comes first.

    Returns tokens (batch, length) and labels (batch,). Raises ValueError for a length below 2 or without a
    filler.

    >>> tokens, first = order(2, 4, symbols=5, source=generator(0))
    >>> bool(((tokens == A).int().argmax(1) < (tokens == B).int().argmax(1)).eq(first).all())
    True
    """
    if length < 2 or symbols <= FILLERS:
        raise ValueError(f"A, B and a filler are needed, not length={length}, symbols={symbols}")
    tokens = torch.randint(FILLERS, symbols, (batch, length), generator=source)
    places = torch.rand(batch, length, generator=source).topk(2).indices
    tokens.scatter_(1, places, torch.tensor([A, B]).expand(batch, 2))
    return tokens, (places[:, 0] < places[:, 1]).long()


def swapped(tokens: Int64[Tensor, "batch seq"]) -> Int64[Tensor, "batch seq"]:
    r"""The same sequences with A and B exchanged: each answer changes, and no bag of tokens does.

    >>> swapped(torch.tensor([[2, 0, 3, 1]])).tolist()
    [[2, 1, 3, 0]]
    """
    is_a: Bool[Tensor, "batch seq"] = tokens == A
    return torch.where(is_a, B, torch.where(tokens == B, A, tokens))

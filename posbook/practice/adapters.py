r"""Other people's functions and modules in the form that :mod:`~posbook.practice.probe` asks for.

The probe calls ``fn(x, positions)``. Libraries have other forms, and each has its adapter here::

    tables      cos, sin = embed(x, positions); q, k = apply(q, k, cos, sin)
    angles      angles = embed(positions); x = apply(x, angles)
    counting    x = method(x, offset=…), which counts positions itself
    heads_last  any of these, where x is (batch, seq, heads, dim)

The first is Hugging Face's, the second x-transformers', the third rotary-embedding-torch's, the last that of
Meta's Llama and of torchtune. None of them is imported. An adapter remembers where the frequencies live, so
that the probe can look at what becomes of them when a module is copied, cast, saved or built without memory.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from torch import Tensor, nn


@dataclass(frozen=True)
class Adapted:
    r"""``fn(x, positions)`` made of ``embed``, which holds the frequencies, and ``call``, which uses it.

    ``call(embed, x, positions)`` gives the turned queries and the turned keys of x, in this order.

    >>> import torch
    >>> fn = Adapted(embed=None, call=lambda embed, x, at: (2 * x, 3 * x))
    >>> fn(torch.ones(1), torch.arange(1))
    tensor([2.])
    """

    embed: Any
    call: Callable[[Any, Tensor, Tensor], tuple[Tensor, Tensor]]

    def __call__(self, x: Tensor, positions: Tensor) -> Tensor:
        return self.call(self.embed, x, positions)[0]

    def keys(self, x: Tensor, positions: Tensor) -> Tensor:
        """What becomes of x as keys, which most functions turn as they turn queries.

        >>> import torch
        >>> Adapted(None, lambda embed, x, at: (x, -x)).keys(torch.ones(1), torch.arange(1))
        tensor([-1.])
        """
        return self.call(self.embed, x, positions)[1]

    @property
    def module(self) -> nn.Module | None:
        """The module that holds the frequencies; None where a function does.

        >>> type(tables(max, nn.Identity()).module).__name__, tables(max, min).module
        ('Identity', None)
        """
        owner = getattr(self.embed, "__self__", self.embed)
        return owner if isinstance(owner, nn.Module) else None

    def having(self, module: nn.Module) -> "Adapted":
        """The same with another module in its place, such as a copy that was cast.

        >>> copied = nn.Identity()
        >>> tables(max, nn.Identity()).having(copied).module is copied
        True
        """
        bound = getattr(self.embed, "__self__", None) is not None
        return replace(self, embed=getattr(module, self.embed.__name__) if bound else module)


def tables(apply: Callable, embed: Callable, **options: Any) -> Adapted:
    r"""Of ``embed(x, positions)``, which gives cosines and sines, and ``apply(q, k, cos, sin)``.

    Positions come to ``embed`` as (batch, seq). It may give one table of complex numbers in place of two, and
    ``apply`` only one tensor for both. ``options`` go to ``embed``, as ``layer_type="full_attention"``. For
    Hugging Face's Llama: ``tables(modeling_llama.apply_rotary_pos_emb, LlamaRotaryEmbedding(config))``.

    >>> from posbook import frequencies
    >>> from posbook.practice import probe
    >>> def embed(x, at):
    ...     angles = frequencies.angles(at, frequencies.geometric(4)).repeat(1, 1, 2)
    ...     return angles.cos().to(x.dtype), angles.sin().to(x.dtype)
    >>> def apply(q, k, cos, sin):
    ...     def turn(x):
    ...         a, b = x.chunk(2, dim=-1)
    ...         return x * cos[:, None] + torch.cat((-b, a), dim=-1) * sin[:, None]
    ...     return turn(q), turn(k)
    >>> import torch
    >>> probe.identify(tables(apply, embed), dim=4).layout
    'halves'
    """

    def call(embed: Callable, x: Tensor, at: Tensor) -> tuple[Tensor, Tensor]:
        found = embed(x, at if at.ndim > 1 else at[None], **options)
        turned = apply(x, x, *(found if isinstance(found, tuple) else (found,)))
        return turned if isinstance(turned, tuple) else (turned, turned)

    return Adapted(embed, call)


def angles(apply: Callable, embed: Callable) -> Adapted:
    r"""Of ``embed(positions)``, which gives angles, and ``apply(x, angles)``.

    Where ``embed`` gives several things, ``apply`` takes them all: x-transformers' give angles and a scale.
    For it: ``angles(x_transformers.apply_rotary_pos_emb, RotaryEmbedding(dim))``.

    >>> from posbook import frequencies, rotary
    >>> from posbook.practice import probe
    >>> fn = angles(
    ...     lambda x, turned: rotary.rotate(x, turned, layout="halves"),
    ...     lambda at: frequencies.angles(at, frequencies.geometric(8)),
    ... )
    >>> probe.identify(fn, dim=8).layout
    'halves'
    """

    def call(embed: Callable, x: Tensor, at: Tensor) -> tuple[Tensor, Tensor]:
        found = embed(at)
        turned = apply(x, *(found if isinstance(found, tuple) else (found,)))
        return turned, turned

    return Adapted(embed, call)


def counting(method: Callable) -> Adapted:
    r"""Of ``method(x, offset=…)``, which counts the positions of x itself, from an offset.

    For rotary-embedding-torch: ``counting(RotaryEmbedding(dim).rotate_queries_or_keys)``. Raises ValueError
    for positions that do not follow one another, which such a method cannot express.

    >>> import torch
    >>> def method(x, offset=0):
    ...     return x * (torch.arange(x.shape[-2]) + offset)[:, None]
    >>> counting(method)(torch.ones(1, 2), torch.tensor([5])).tolist()
    [[5.0, 5.0]]
    >>> counting(method)(torch.ones(2, 2), torch.tensor([0, 7]))
    Traceback (most recent call last):
    ...
    ValueError: this function counts positions one after another from an offset, not [0, 7]
    """

    def call(method: Callable, x: Tensor, at: Tensor) -> tuple[Tensor, Tensor]:
        if at.ndim != 1 or (at.diff() != 1).any():
            raise ValueError(
                "this function counts positions one after another from an offset, "
                f"not {at.tolist() if at.numel() < 9 else tuple(at.shape)}"
            )
        turned = method(x, offset=int(at[0]))
        return turned, turned

    return Adapted(method, call)


def heads_last(adapted: Callable) -> Adapted:
    r"""Of a function of x as (batch, seq, heads, dim), where the probe has (batch, heads, seq, dim).

    >>> import torch
    >>> def fn(x, at):  # (batch, seq, heads, dim)
    ...     return x * at[:, None, None]
    >>> heads_last(fn)(torch.ones(1, 1, 3, 2), torch.arange(3))[0, 0].tolist()
    [[0.0, 0.0], [1.0, 1.0], [2.0, 2.0]]
    """
    if not isinstance(adapted, Adapted):
        adapted = Adapted(adapted, lambda fn, x, at: (fn(x, at), fn(x, at)))
    inner = adapted.call

    def call(embed: Any, x: Tensor, at: Tensor) -> tuple[Tensor, Tensor]:
        queries, keys = inner(embed, x.transpose(1, 2), at)
        return queries.transpose(1, 2), keys.transpose(1, 2)

    return replace(adapted, call=call)


def module_of(fn: Callable) -> tuple[nn.Module | None, Callable[[nn.Module], Callable]]:
    r"""The module in which a function keeps its frequencies, and how the function is made of another one.

    A module that is itself called with x and positions needs no adapter. None for a plain function.

    >>> found, again = module_of(nn.Identity())
    >>> type(found).__name__, again(found) is found
    ('Identity', True)
    """
    if isinstance(fn, Adapted):
        return fn.module, fn.having
    owner = getattr(fn, "__self__", fn)
    if not isinstance(owner, nn.Module):
        return None, lambda module: fn
    return owner, (lambda module: module) if owner is fn else (lambda module: getattr(module, fn.__name__))

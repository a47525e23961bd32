r"""Every encoding behind the same three hooks; the only place in the package where parameters live.

``embed(x, at)`` returns the embedded tokens, ``rotate(q, k, at)`` queries and keys, ``bias(q, k, at)`` what
is added to the scaled scores, or None. :class:`Encoding` itself does nothing in any of them: no encoding. The
mathematics are those of the package; here they get parameters and a name.

Past the trained length the learned table has no rows: there :class:`Learned` repeats the last one, so that
such a model can be run at all, and the book says so wherever it shows it.
"""

import torch
from torch import Tensor, nn

from posbook import alibi, attention, frequencies, positions, rotary, shaw, sinusoidal, t5_bias
from posbook import learned as learned_table


class Encoding(nn.Module):
    r"""No encoding: every hook gives back what it got.

    >>> Encoding().bias(torch.zeros(1, 1, 2, 4), torch.zeros(1, 1, 2, 4), torch.arange(2)) is None
    True
    """

    def embed(self, x: Tensor, at: Tensor) -> Tensor:
        return x

    def rotate(self, q: Tensor, k: Tensor, at: Tensor) -> tuple[Tensor, Tensor]:
        return q, k

    def bias(self, q: Tensor, k: Tensor, at: Tensor) -> Tensor | None:
        return None


class Learned(Encoding):
    r"""A table of ``length`` rows, added to the tokens; a later position gets the last row."""

    def __init__(self, dim: int, length: int):
        super().__init__()
        self.table = nn.Parameter(0.1 * torch.randn(length, dim))

    def embed(self, x, at):
        return x + learned_table.lookup(self.table, at.clamp(max=len(self.table) - 1))


class Sinusoidal(Encoding):
    r"""The sines and cosines of the position, added to the tokens."""

    def __init__(self, dim: int):
        super().__init__()
        self.register_buffer("theta", frequencies.geometric(dim), persistent=False)

    def embed(self, x, at):
        return x + sinusoidal.encode(frequencies.angles(at, self.theta)).to(x.dtype)


class Shaw(Encoding):
    r"""A learned vector for each clipped offset, on the keys; the same for all heads.

    The vectors on the values are left out: Shaw et al. (2018, Table 3) found that those on the keys suffice.
    """

    def __init__(self, head_dim: int, clip: int):
        super().__init__()
        self.clip = clip
        self.table = nn.Parameter(0.1 * torch.randn(2 * clip + 1, head_dim))

    def bias(self, q, k, at):
        rows = shaw.indices(positions.offsets(queries=at, keys=at), self.clip)
        return shaw.key_term(q, self.table, rows)


class T5(Encoding):
    r"""A learned number for each bucket of offsets, of which there are 32, or fewer in a short sequence.

    The numbers are ten times the parameter. AdamW moves a parameter by about the learning rate a step, and
    trained in a few minutes a bias would not get far enough.
    """

    def __init__(self, heads: int, max_distance: int, *, bidirectional: bool = False):
        super().__init__()
        self.max_distance, self.bidirectional = max_distance, bidirectional
        self.table = nn.Parameter(torch.zeros(min(32, max_distance), heads))

    def bias(self, q, k, at):
        buckets = t5_bias.buckets(
            positions.offsets(queries=at, keys=at),
            bidirectional=self.bidirectional,
            buckets=len(self.table),
            max_distance=self.max_distance,
        )
        return t5_bias.bias(10 * self.table, buckets)


class ALiBi(Encoding):
    r"""A fixed slope times the distance. Without a mask it is symmetric."""

    def __init__(self, heads: int):
        super().__init__()
        self.register_buffer("slopes", alibi.slopes(heads), persistent=False)

    def bias(self, q, k, at):
        return alibi.bias(self.slopes, positions.offsets(queries=at, keys=at))


class RoPE(Encoding):
    r"""Queries and keys turned by their positions; ``temperature`` multiplies both, as YaRN does."""

    def __init__(self, theta: Tensor, temperature: float = 1.0):
        super().__init__()
        self.temperature = temperature
        self.register_buffer("theta", theta, persistent=False)

    def rotate(self, q, k, at):
        angles = frequencies.angles(at, self.theta)
        return tuple(self.temperature * rotary.rotate(x, angles, layout="halves") for x in (q, k))


class ClampedRoPE(RoPE):
    r"""Rotary scores in which the pairs that are ``kept`` never see a key further back than ``reach``.

    The angle between a query and a key is the offset times the frequency. For a key beyond the reach the kept
    pairs take the offset -reach instead: the query stands at reach, the key at 0. The bias is what that
    changes. Under a causal mask only, where no key lies ahead.
    """

    def __init__(self, theta: Tensor, kept: Tensor, reach: int):
        super().__init__(theta)
        if kept.shape != theta.shape:
            raise ValueError(f"kept names each of the {len(theta)} pairs, not {len(kept)}")
        self.reach = reach
        self.register_buffer("kept", kept, persistent=False)

    def bias(self, q, k, at):
        def score(of_query, of_key):
            angles = (torch.where(self.kept, place, at[:, None]) * self.theta for place in (of_query, of_key))
            turned = (rotary.rotate(x, a, layout="halves") for x, a in zip((q, k), angles, strict=True))
            return attention.scores(*turned)

        here = at[:, None]
        far = positions.offsets(queries=at, keys=at) < -self.reach
        return torch.where(far, score(self.reach, 0) - score(here, here), 0)


NAMES = ("none", "learned", "sinusoidal", "shaw", "t5", "alibi", "rope")


def make(name: str, *, dim: int, heads: int, length: int, causal: bool = True) -> Encoding:
    r"""An encoding by name, for a model of this width, these heads and this trained length.

    Raises ValueError for a name that is not among ``NAMES``.

    >>> make("alibi", dim=64, heads=4, length=64).slopes.tolist()
    [0.25, 0.0625, 0.015625, 0.00390625]
    """
    makers = {
        "none": Encoding,
        "learned": lambda: Learned(dim, length),
        "sinusoidal": lambda: Sinusoidal(dim),
        "shaw": lambda: Shaw(dim // heads, clip=min(16, length - 1)),
        "t5": lambda: T5(heads, length, bidirectional=not causal),
        "alibi": lambda: ALiBi(heads),
        "rope": lambda: RoPE(frequencies.geometric(dim // heads)),
    }
    if name not in makers:
        raise ValueError(f"encoding must be one of {', '.join(NAMES)}, not {name!r}")
    return makers[name]()

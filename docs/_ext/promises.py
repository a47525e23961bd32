r"""What each encoding promises, measured in one place: the book shows it, tests/test_promises.py expects it.

    ```{promises}
    ```

A scheme says what it does where position can enter attention, and by default does nothing there. A new
encoding is one more row of SCHEMES, a new promise one more row of PROMISES.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import torch
from sphinx.util.docutils import SphinxDirective

from posbook import (
    alibi,
    attention,
    axial,
    cope,
    fire,
    frequencies,
    kerple,
    learned,
    positions,
    properties,
    rotary,
    scaling,
    shaw,
    sinusoidal,
    t5_bias,
    transformer_xl,
    xpos,
)

DIM, TOKENS, LONG, SHIFTS = 8, 4, 2**13, (1, 10, 1000)


@dataclass(frozen=True)
class Scheme:
    module: str
    causal: bool = False
    embed: Callable = lambda x, at: x
    queries: Callable = lambda q, at: q
    keys: Callable = lambda k, at: k
    scores: Callable = lambda q, k, m, n: 0  # added to the scores of queries at m and keys at n
    values: Callable = lambda weights, m, n: 0  # added to the output


def randn(*shape, seed):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


THETA = frequencies.geometric(DIM)
PROJECTIONS = randn(3, DIM, DIM, seed=0) / DIM**0.5
ROWS = randn(LONG, DIM, seed=1)
BUCKETS = randn(32, 1, seed=2)
ON_KEYS, ON_VALUES = randn(2, 9, DIM, seed=3)
DISTANCES = transformer_xl.encode(frequencies.angles(torch.arange(LONG), THETA)) @ PROJECTIONS[0]
U, V = randn(2, DIM, seed=4)
IN, OUT = randn(2, 1, 16, seed=5)
COUNTS = randn(9, DIM, seed=6)


def offsets(m, n):
    return positions.offsets(queries=m, keys=n)


def wave(x, at):
    return x + sinusoidal.encode(frequencies.angles(at, THETA))


def turn(x, at, theta=THETA):
    return rotary.rotate(x, frequencies.angles(at, theta), layout="halves")


def turn_by_length(x, at):
    length = int(at.max()) + 1
    return turn(x, at, scaling.dynamic_ntk(THETA, length=length, trained_length=TOKENS - 2, factor=2))


def turn_twice(x, at):
    coordinates = torch.stack((at, 2 * at), dim=-1)
    return rotary.rotate(x, axial.split(coordinates, frequencies.geometric(DIM // 2)), layout="halves")


def shrink(q, at):
    return xpos.rotate(q, frequencies.angles(at, THETA), xpos.scales(at, DIM), layout="halves")


def grow(k, at):
    return xpos.rotate(k, frequencies.angles(at, THETA), 1 / xpos.scales(at, DIM), layout="halves")


def clipped(m, n):
    return shaw.indices(offsets(m, n), clip=4)


def on_keys(q, k, m, n):
    return shaw.key_term(q, ON_KEYS.to(q.dtype), clipped(m, n))


def on_values(weights, m, n):
    return shaw.value_term(weights, ON_VALUES, clipped(m, n))


def by_bucket(q, k, m, n):
    return t5_bias.bias(BUCKETS, t5_bias.buckets(offsets(m, n), bidirectional=True))


def by_slope(q, k, m, n):
    return alibi.bias(alibi.slopes(8)[:1], offsets(m, n))


def by_logarithm(q, k, m, n):
    return kerple.logarithmic(torch.ones(1).double(), torch.ones(1).double(), offsets(m, n))


def by_share(q, k, m, n):
    return fire.bias(fire.distances(queries=m, keys=n, c=1.0, threshold=9), lambda x: (x @ IN).relu() @ OUT.T)


def by_query(q, k, m, n):
    return transformer_xl.terms(q, k, *(x.to(q.dtype) for x in (DISTANCES, U, V)), offsets(m, n))


def by_count(q, k, m, n):
    counted = cope.gates(attention.scores(q, k), offsets(m, n) <= 0)
    return cope.term(q, COUNTS.to(q.dtype), cope.positions(counted, len(COUNTS)))


SCHEMES = {
    "nothing": Scheme("attention"),
    "nothing, causal": Scheme("attention", causal=True),
    "sinusoidal": Scheme("sinusoidal", embed=wave),
    "learned": Scheme("learned", embed=lambda x, at: x + learned.lookup(ROWS, at)),
    "rotary": Scheme("rotary", queries=turn, keys=turn),
    "rotary, dynamic NTK": Scheme("scaling", queries=turn_by_length, keys=turn_by_length),
    "axial": Scheme("axial", queries=turn_twice, keys=turn_twice),
    "xPos, causal": Scheme("xpos", causal=True, queries=shrink, keys=grow),
    "Shaw": Scheme("shaw", scores=on_keys, values=on_values),
    "Transformer-XL, causal": Scheme("transformer_xl", causal=True, scores=by_query),
    "T5": Scheme("t5_bias", scores=by_bucket),
    "ALiBi": Scheme("alibi", scores=by_slope),
    "ALiBi, causal": Scheme("alibi", causal=True, scores=by_slope),
    "KERPLE": Scheme("kerple", scores=by_logarithm),
    "KERPLE, causal": Scheme("kerple", causal=True, scores=by_logarithm),
    "FIRE, causal": Scheme("fire", causal=True, scores=by_share),
    "CoPE, causal": Scheme("cope", causal=True, scores=by_count),
}


def content(scheme, q, k, m, n):
    """Queries at m and keys at n as they meet, in the dtype they came in."""
    q, k = scheme.embed(q, m).to(q.dtype), scheme.embed(k, n).to(k.dtype)
    return scheme.queries(q, m), scheme.keys(k, n)


def scores(scheme, q, k, m, n):
    return (attention.scores(q, k) + scheme.scores(q, k, m, n)).to(q.dtype)


def layer(scheme, x, at, stored=None, *, causal):
    """One head of attention, and what a later call needs: positions, keys and values so far."""
    x = scheme.embed(x, at)
    q, k, v = (x @ projection for projection in PROJECTIONS)
    q, k, n = scheme.queries(q, at), scheme.keys(k, at), at
    if stored is not None:
        n, k, v = (torch.cat(pair) for pair in zip(stored, (n, k, v), strict=True))
    mask = attention.causal(len(at), len(n)) if causal else None
    weights = attention.weights(scores(scheme, q, k, at, n), mask)
    return attention.output(weights, v) + scheme.values(weights, at, n), (n, k, v)


def of_rows(scheme):
    def f(x, at=None):
        at = torch.arange(len(x)) if at is None else at
        return layer(scheme, x, at, causal=scheme.causal)[0]

    return f


def relative(scheme):
    def score(q, k, m, n):
        m, n = torch.tensor([m]), torch.tensor([n])
        return scores(scheme, *content(scheme, q, k, m, n), m, n)

    q, k = randn(2, 16, 1, DIM, seed=7)
    return properties.relativity(score, q, k, m=5, n=2, shifts=SHIFTS)


def keeps_norms(scheme):
    x, at = randn(TOKENS, DIM, seed=8), torch.arange(TOKENS)
    return max(properties.norm(lambda x, i=i: content(scheme, x, x, at, at)[i], x) for i in (0, 1))


def equivariant(scheme):
    return properties.equivariance(of_rows(scheme), randn(TOKENS, DIM, seed=9))


def blind_to_reversal(scheme):
    return properties.reversal(of_rows(scheme), randn(TOKENS, DIM, seed=9))


def shift_invariant(scheme):
    return properties.shift(of_rows(scheme), randn(TOKENS, DIM, seed=9), shifts=SHIFTS)


def cache_safe(scheme):
    def step(x, at, stored):
        return layer(scheme, x, at, stored, causal=True)

    return properties.caching(step, randn(TOKENS, DIM, seed=9))


def looking_back(scheme):
    """As f(x, at): every feature of a query at the end, scored with every feature of a key at each place."""

    def f(x, at):
        q, k = torch.diag(x[0])[:, None, None, :], torch.diag(x[0])[:, None, :].expand(-1, len(at), -1)
        q, k = content(scheme, q, k, at[-1:], at)
        return scores(scheme, q, k, at[-1:], at).movedim(-1, 0)

    return f


def precise(scheme):
    return properties.precision(looking_back(scheme), torch.ones(DIM), length=LONG)


def distinct(scheme):
    x = torch.ones(DIM, dtype=torch.bfloat16)
    return len(properties.collisions(looking_back(scheme), x, length=LONG))


# How far the promise is violated, and what that stays below where it is kept.
PROMISES = {
    "relative": (relative, 1e-9),
    "keeps norms": (keeps_norms, 1e-9),
    "equivariant": (equivariant, 1e-9),
    "blind to reversal": (blind_to_reversal, 1e-9),
    "shift-invariant": (shift_invariant, 1e-9),
    "cache-safe": (cache_safe, 1e-9),
    "precise": (precise, 2e-6),
    "distinct": (distinct, 1),
}


@cache
def violation(scheme, promise):
    return PROMISES[promise][0](SCHEMES[scheme])


def keeps(scheme, promise):
    return violation(scheme, promise) < PROMISES[promise][1]


def table():
    """Markdown, so that the book's own parser makes the links."""
    lines = ["| | " + " | ".join(PROMISES) + " |", "|---" * (1 + len(PROMISES)) + "|"]
    for name, scheme in SCHEMES.items():
        cells = ("yes" if keeps(name, promise) else "no" for promise in PROMISES)
        lines.append(f"| [{name}](/reference/{scheme.module}.md) | " + " | ".join(cells) + " |")
    return "\n".join(lines)


class Promises(SphinxDirective):
    def run(self):
        return self.parse_text_to_nodes(table())


def setup(app):
    app.add_directive("promises", Promises)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}

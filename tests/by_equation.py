r"""The equations written again, with loops and ``math`` alone, as what the tests expect."""

import math


def geometric(dim, base=10_000.0):
    return [base ** (-2 * i / dim) for i in range(dim // 2)]


def sinusoid(p, dim, base=10_000.0):
    row = []
    for theta in geometric(dim, base):
        row += [math.sin(p * theta), math.cos(p * theta)]
    return row


def rotate(x, m, frequencies, layout):
    """One vector at position m; features past the pairs stay."""
    pairs, turned = len(frequencies), list(x)
    for i, theta in enumerate(frequencies):
        a, b = (2 * i, 2 * i + 1) if layout == "interleaved" else (i, i + pairs)
        cos, sin = math.cos(m * theta), math.sin(m * theta)
        turned[a] = x[a] * cos - x[b] * sin
        turned[b] = x[a] * sin + x[b] * cos
    return turned


def dot(a, b):
    return sum(x * y for x, y in zip(a, b, strict=True))


def rotary_score(q, k, m, n, frequencies):
    """Equation 2 of Chen et al. (2023) for interleaved pairs: only m − n appears."""
    score = 0.0
    for i, theta in enumerate(frequencies):
        (q0, q1), (k0, k1) = q[2 * i : 2 * i + 2], k[2 * i : 2 * i + 2]
        score += (q0 * k0 + q1 * k1) * math.cos((m - n) * theta)
        score += (q0 * k1 - q1 * k0) * math.sin((m - n) * theta)
    return score


def attend(q, k, v, *, bias=None, may=None, scale=None):
    """One head: rows of q, k and v are lists; bias and may are tables over (query, key)."""
    scale = 1 / math.sqrt(len(q[0])) if scale is None else scale
    scores, weights, output = [], [], []
    for m, query in enumerate(q):
        row = [dot(query, key) * scale + (bias[m][n] if bias else 0.0) for n, key in enumerate(k)]
        powers = [math.exp(s) if may is None or may[m][n] else 0.0 for n, s in enumerate(row)]
        alpha = [p / sum(powers) if sum(powers) else 0.0 for p in powers]
        scores.append(row)
        weights.append(alpha)
        output.append([dot(alpha, column) for column in zip(*v, strict=True)])
    return scores, weights, output


def alibi_slopes(heads):
    """The rule of the released code, head by head."""
    power = 2 ** math.floor(math.log2(heads))
    slopes = [2 ** (-8 * h / power) for h in range(1, power + 1)]
    odd = 1
    while len(slopes) < heads:
        slopes.append(2 ** (-8 * odd / (2 * power)))
        odd += 2
    return slopes


def t5_bucket(offset, *, bidirectional, buckets, max_distance):
    first = 0
    if bidirectional:
        buckets //= 2
        first = buckets if offset > 0 else 0
        distance = abs(offset)
    else:
        distance = max(-offset, 0)
    exact = buckets // 2
    if distance < exact:
        return first + distance
    ramp = math.log(distance / exact) / math.log(max_distance / exact) * (buckets - exact)
    # The nudge puts a ratio that is a whole number in exact arithmetic on the right side of the floor.
    return first + min(exact + math.floor(ramp + 1e-12), buckets - 1)


def shaw(q, k, v, key_vectors, value_vectors, clip):
    """Equations 3 and 4 of Shaw et al. (2018); the tables map a clipped offset to a vector."""
    scores, output = [], []
    for m, query in enumerate(q):
        at = [max(-clip, min(clip, n - m)) for n in range(len(k))]
        row = []
        for n, key in enumerate(k):
            moved = [x + a for x, a in zip(key, key_vectors[at[n]], strict=True)]
            row.append(dot(query, moved) / math.sqrt(len(query)))
        alpha = [math.exp(s) / sum(map(math.exp, row)) for s in row]
        z = [0.0] * len(v[0])
        for n, value in enumerate(v):
            for c in range(len(z)):
                z[c] += alpha[n] * (value[c] + value_vectors[at[n]][c])
        scores.append(row)
        output.append(z)
    return scores, output


def packed(documents):
    positions = []
    for i, name in enumerate(documents):
        positions.append(positions[-1] + 1 if i and name == documents[i - 1] else 0)
    return positions

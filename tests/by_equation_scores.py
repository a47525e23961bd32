r"""What is added to the scores, written again with loops and ``math`` alone, for one head."""

import math

from tests.by_equation import dot


def transformer_xl(q, k, r, u, v):
    """The four terms of §3.3 of Dai et al. (2019), unscaled; r(d) is the projected encoding of distance d."""
    return [
        [
            dot(query, key) + dot(query, r(m - n)) + dot(u, key) + dot(v, r(m - n)) if n <= m else -math.inf
            for n, key in enumerate(k)
        ]
        for m, query in enumerate(q)
    ]


def kerple_power(r1, r2, m, n):
    return -r1 * math.pow(abs(m - n), r2)


def kerple_logarithmic(r1, r2, m, n):
    return -r1 * math.log(1 + r2 * abs(m - n))


def fire_distance(m, n, c, threshold):
    if n > m:
        return math.inf
    return math.log(c * (m - n) + 1) / math.log(c * max(threshold, m) + 1)


def network(x, weight, bias, weight_out, bias_out):
    """One number in, one hidden layer with ReLU, one number out for each head."""
    hidden = [max(0.0, w[0] * x + b) for w, b in zip(weight, bias, strict=True)]
    return [dot(w, hidden) + b for w, b in zip(weight_out, bias_out, strict=True)]


def cope(q, k, table):
    """The scores, unscaled, with vectors interpolated before they meet the query; causal."""
    counts, scores = [], []
    for m, query in enumerate(q):
        gate = [1 / (1 + math.exp(-dot(query, key))) for key in k]
        row, places = [], []
        for n, key in enumerate(k):
            place = min(sum(gate[j] for j in range(n, m + 1)), len(table) - 1)
            below, above = table[math.floor(place)], table[math.ceil(place)]
            share = place - math.floor(place)
            vector = [share * a + (1 - share) * b for a, b in zip(above, below, strict=True)]
            places.append(place)
            row.append(dot(query, key) + dot(query, vector))
        counts.append(places)
        scores.append(row)
    return counts, scores

r"""What is added to the scores, against libraries nobody here wrote.

KERPLE and FIRE are in none of those installed: what they give is said by ``tests/by_equation_scores.py``.
"""

import pytest
import torch

from posbook import attention, cope, frequencies, positions, transformer_xl
from tests import assert_close
from tests.peers import pinned

pinned("transformers", "5.24.0")
pinned("x-transformers", "2.31.10")

HEADS, WIDTH = 3, 4
XLNET = {"vocab_size": 9, "d_model": 12, "n_layer": 1, "n_head": HEADS, "d_inner": 8, "dropout": 0.0}


def randn(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def offsets(n, keys=None):
    at = torch.arange(keys or n)
    return positions.offsets(queries=at[-n:], keys=at)


@pytest.fixture
def xlnet(family):
    config = family("xlnet", "configuration").XLNetConfig
    return config(vocab_size=9, d_model=HEADS * WIDTH, n_layer=1, n_head=HEADS, d_inner=8, dropout=0.0)


@pytest.mark.parametrize("n, keys", [(1, 1), (5, 5), (3, 8), (40, 40)])
@pytest.mark.parametrize("causal", [False, True])
def test_transformer_xls_scores_are_those_of_xlnet_which_also_looks_ahead(family, xlnet, n, keys, causal):
    theirs = family("xlnet").XLNetRelativeAttention(xlnet).double()
    u, v = randn(2, HEADS, WIDTH, seed=9)
    theirs.r_w_bias.data, theirs.r_r_bias.data = u, v
    q, k, r = (randn(rows, HEADS, WIDTH, seed=rows) for rows in (n, keys, n + keys - 1))
    mask = attention.causal(n, keys) if causal else torch.ones(n, keys, dtype=torch.bool)
    # Its rows go down, from a distance that no pair has.
    down = torch.cat((torch.full_like(r[:1], torch.nan), r.flip(0)))
    _, expected = theirs.rel_attn_core(
        *(x[:, None] for x in (q, k, k, down)),
        attn_mask=(~mask).double()[:, :, None, None],
        output_attentions=True,
    )
    q, k, r = (x.transpose(0, 1) for x in (q, k, r))
    added = transformer_xl.terms(q, k, r, u, v, offsets(n, keys), lowest=1 - n)
    weights = attention.weights(attention.scores(q, k) + added, mask)
    assert_close(weights, expected[:, :, 0].permute(2, 0, 1).detach())
    if causal:
        past = transformer_xl.terms(q, k, r[:, n - 1 :], u, v, offsets(n, keys))
        assert_close(attention.weights(attention.scores(q, k) + past), weights)


def test_the_encodings_of_distances_are_xlnets(family, xlnet):
    theirs = family("xlnet").XLNetModel(xlnet).relative_positional_encoding(qlen=6, klen=9)
    angles = frequencies.angles(torch.arange(9, -6, -1), frequencies.geometric(12))
    assert_close(theirs[:, 0], transformer_xl.encode(angles))


@pytest.mark.parametrize("rows", [3, 7, 20])
@pytest.mark.parametrize("n, keys", [(9, 9), (2, 9)])
def test_cope_is_that_of_x_transformers_which_leaves_the_term_unscaled(x_transformers, n, keys, rows):
    # Its plain form: interpolated, and no head hears of another.
    theirs = x_transformers.CoPE(WIDTH, HEADS, max_pos=rows).double()
    theirs.pos_emb.data = randn(rows, WIDTH, seed=2)
    q, k, mask = randn(2, HEADS, n, WIDTH), randn(2, HEADS, keys, WIDTH, seed=1), attention.causal(n, keys)
    scores = attention.scores(q, k)
    expected = theirs(q, scores.masked_fill(~mask, -torch.finfo(torch.float64).max)).detach()
    at = cope.positions(cope.gates(scores, mask), rows)
    assert_close(cope.term(q, theirs.pos_emb.detach(), at, scale=1), expected)

r"""A transformer in a hundred lines, into which every encoding goes by three hooks.

Pre-norm blocks, GELU, no dropout. Position enters through ``encoding`` alone: ``embed`` on the embedded
tokens, ``rotate`` on queries and keys, ``bias`` on the scores. All layers share one encoding, as in T5.
"""

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional

from posbook import attention
from posbook.experiments.encodings import Encoding


class Block(nn.Module):
    r"""Attention, then a feed-forward net, each on a norm of the stream and added to it."""

    def __init__(self, dim: int, heads: int, layers: int):
        super().__init__()
        self.heads = heads
        self.norm_attention, self.norm_feed = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.qkv, self.mix = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.feed = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))
        for linear in (self.qkv, self.mix, self.feed[0], self.feed[2]):
            # What is added to the stream starts small, so that depth does not make the stream large.
            adds = linear is self.mix or linear is self.feed[2]
            nn.init.normal_(linear.weight, std=0.02 / math.sqrt(2 * layers) if adds else 0.02)
            nn.init.zeros_(linear.bias)

    def attend(self, x, at, encoding: Encoding, causal: bool):
        split = self.qkv(self.norm_attention(x)).unflatten(-1, (3, self.heads, -1))
        q, k, v = split.movedim(-3, 0).transpose(-2, -3)
        bias = encoding.bias(q, k, at)
        q, k = encoding.rotate(q, k, at)
        if bias is None:
            mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=causal)
        else:
            if causal:
                bias = bias.masked_fill(~attention.causal(len(at), device=x.device), -torch.inf)
            mixed = functional.scaled_dot_product_attention(q, k, v, attn_mask=bias.to(q.dtype))
        return self.mix(mixed.transpose(-2, -3).flatten(-2))

    def forward(self, x, at, encoding: Encoding, causal: bool):
        x = x + self.attend(x, at, encoding, causal)
        return x + self.feed(self.norm_feed(x))


class Decoder(nn.Module):
    r"""Tokens to logits. With ``causal=False`` it is an encoder, every token seeing every other.

    Raises ValueError for a width that the heads do not divide.

    >>> model = Decoder(Encoding(), symbols=10, outputs=3, dim=32, layers=2, heads=4)
    >>> tuple(model(torch.zeros(5, 7, dtype=torch.long)).shape)
    (5, 7, 3)
    """

    def __init__(
        self,
        encoding: Encoding,
        *,
        symbols: int,
        outputs: int | None = None,
        dim: int = 64,
        layers: int = 4,
        heads: int = 4,
        causal: bool = True,
    ):
        super().__init__()
        if dim % heads:
            raise ValueError(f"the heads must divide the width: dim={dim} is no multiple of heads={heads}")
        self.encoding, self.causal = encoding, causal
        self.embedding = nn.Embedding(symbols, dim)  # standard normal
        self.blocks = nn.ModuleList(Block(dim, heads, layers) for _ in range(layers))
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, outputs or symbols)
        nn.init.normal_(self.head.weight, std=0.02)
        nn.init.zeros_(self.head.bias)

    def streams(self, tokens: Int[Tensor, "batch seq"]) -> list[Float[Tensor, "batch seq dim"]]:
        r"""The stream as it enters the first block and as it leaves each, for the probes."""
        at = torch.arange(tokens.shape[-1], device=tokens.device)
        streams = [self.encoding.embed(self.embedding(tokens), at)]
        for block in self.blocks:
            streams.append(block(streams[-1], at, self.encoding, self.causal))
        return streams

    def forward(self, tokens: Int[Tensor, "batch seq"]) -> Float[Tensor, "batch seq outputs"]:
        return self.head(self.norm(self.streams(tokens)[-1]))

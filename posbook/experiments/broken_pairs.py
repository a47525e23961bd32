r"""Which rotary pairs fail beyond the trained length: each is kept in range, or let out of it, alone.

A pair is *in range* where the offset it sees is clipped to the longest of training; no parameter changes.
All at four times the trained length, on the model of :mod:`~posbook.experiments.extrapolation` with heads of
width 16, and on one with heads of width 32, which has twice as many pairs.
"""

import torch

from posbook import frequencies
from posbook.experiments import extrapolation, language
from posbook.experiments.encodings import ClampedRoPE

MODULES = ("broken_pairs", "extrapolation")
STEPS = extrapolation.STEPS
FACTOR, WINDOWS = 4, 32
HEADS = {"width-16": 4, "width-32": 2}
VARIANTS = {"width-16": 3, "width-32": 2}
SETTINGS = {"steps": STEPS, "factor": FACTOR, "windows": WINDOWS}


def run(variant, seed, workshop, steps=STEPS):
    heads = HEADS[variant]
    model = workshop.trained("rope", seed, steps=steps, heads=heads)
    return measured(model, heads, device=workshop.device)


def measured(model, heads, *, windows=WINDOWS, device="cpu", only=None):
    r"""The loss with no pair, every pair, one pair and all but one kept in range; ``only`` some pairs."""
    theta = frequencies.geometric(language.DIM // heads)
    turns = frequencies.turns(theta, language.LENGTH)
    pairs = range(len(theta))
    tried = list(pairs) if only is None else only

    def loss(kept, length=FACTOR * language.LENGTH):
        kept = torch.tensor([pair in kept for pair in pairs])
        model.encoding = ClampedRoPE(theta, kept, reach=language.LENGTH - 1).to(device)
        return language.by_length(model, [length], windows=windows, device=device)["last"][0]

    slow = [pair for pair in pairs if turns[pair] < 1]
    return {
        "turns": turns.tolist(),
        "tried": tried,
        "at_length": loss([], language.LENGTH),
        "none_kept": loss([]),
        "all_kept": loss(pairs),
        "slow_kept": loss(slow),
        "fast_kept": loss([pair for pair in pairs if pair not in slow]),
        "one_kept": [loss([pair]) for pair in tried],
        "one_let_out": [loss([p for p in pairs if p != pair]) for pair in tried],
    }


def headline(result):
    guilty = next(i for i, pair in enumerate(result["tried"]) if result["turns"][pair] < 1)
    return {
        "at L": result["at_length"],
        "at 4L": result["none_kept"],
        "guilty kept": result["one_kept"][guilty],
        "guilty let out": result["one_let_out"][guilty],
    }

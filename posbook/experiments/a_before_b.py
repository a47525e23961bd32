r"""The question "A before B?" under a causal mask, on sequences longer than any in training.

Trained on lengths 4 to 16, asked at up to 128. Small enough for ten seeds, and it needs them.
"""

import torch
from torch.nn import functional

from posbook.experiments import tasks, training
from posbook.experiments.decoder import Decoder
from posbook.experiments.encodings import make
from posbook.experiments.training import Recipe
from posbook.experiments.word_order import Answering

MODULES = ("a_before_b", "decoder", "encodings", "tasks", "training", "word_order")
SHORTEST, LONGEST = 4, 16
SYMBOLS, DIM, LAYERS, HEADS = 16, 64, 2, 4
LENGTHS = [16, 32, 64, 128]
TESTED = 1024
RECIPE = Recipe(steps=300, batch=32, rate=2e-3, cosine=False)
STEPS = RECIPE.steps
VARIANTS = dict.fromkeys(("none", "learned", "sinusoidal", "t5", "alibi", "rope"), 10)
SETTINGS = {"steps": STEPS, "lengths": LENGTHS, "tested": TESTED}


def run(variant, seed, workshop, steps=STEPS):
    torch.manual_seed(seed)
    encoding = make(variant, dim=DIM, heads=HEADS, length=LONGEST)
    model = Decoder(encoding, symbols=SYMBOLS, outputs=2, dim=DIM, layers=LAYERS, heads=HEADS)
    recipe = Recipe(steps=steps, batch=RECIPE.batch, rate=RECIPE.rate, cosine=RECIPE.cosine)

    def batch(step):
        source = tasks.generator(seed, step)
        length = int(torch.randint(SHORTEST, LONGEST + 1, (1,), generator=source))
        return tasks.order(recipe.batch, length, SYMBOLS, source)

    answering = Answering(model)
    training.train(answering, batch, functional.cross_entropy, recipe, fabric=workshop.fabric)
    return {"lengths": LENGTHS, "accuracy": [accuracy(answering, length, seed) for length in LENGTHS]}


@torch.no_grad()
def accuracy(answering, length, seed):
    r"""How often the model is right at this length."""
    device = next(answering.parameters()).device
    tokens, first = tasks.order(TESTED, length, SYMBOLS, tasks.generator(seed, 10**6, length))
    return float((answering(tokens.to(device)).argmax(1).cpu() == first).double().mean())


def headline(result):
    return {f"at {n}": value for n, value in zip(result["lengths"], result["accuracy"], strict=True)}

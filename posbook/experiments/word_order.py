r"""The question "A before B?" without a mask, where only the encoding can tell.

Every sequence has one A, one B and fillers; the tokens of the last layer are averaged, so that nothing but
positions can tell which came first. Swapping A and B turns each answer round: on such pairs a model that
cannot see order is right exactly half of the time. ``none-causal`` and ``alibi-causal`` read the last token
under a causal mask.
"""

import torch
from torch.nn import functional

from posbook.experiments import tasks, training
from posbook.experiments.decoder import Decoder
from posbook.experiments.encodings import NAMES, make
from posbook.experiments.training import Recipe

MODULES = ("decoder", "encodings", "tasks", "training", "word_order")
LENGTH, SYMBOLS, DIM, LAYERS, HEADS = 16, 16, 32, 2, 4
TESTED = 4096
RECIPE = Recipe(steps=500, batch=64, rate=2e-3, cosine=False)
STEPS = RECIPE.steps
VARIANTS = dict.fromkeys((*NAMES, "none-causal", "alibi-causal"), 10)
SETTINGS = {"steps": STEPS, "length": LENGTH, "tested": TESTED}


def build(variant, seed):
    name, causal = variant.removesuffix("-causal"), variant.endswith("-causal")
    torch.manual_seed(seed)
    encoding = make(name, dim=DIM, heads=HEADS, length=LENGTH, causal=causal)
    return Decoder(encoding, symbols=SYMBOLS, outputs=2, dim=DIM, layers=LAYERS, heads=HEADS, causal=causal)


def answer(model, tokens):
    logits = model(tokens)
    return logits[:, -1] if model.causal else logits.mean(1)


class Answering(torch.nn.Module):
    r"""The model with its answer instead of its logits, as the loop wants it."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, tokens):
        return answer(self.model, tokens)


def run(variant, seed, workshop, steps=STEPS):
    model = build(variant, seed)
    recipe = Recipe(steps=steps, batch=RECIPE.batch, rate=RECIPE.rate, cosine=RECIPE.cosine)
    losses = training.train(
        Answering(model),
        lambda step: tasks.order(recipe.batch, LENGTH, SYMBOLS, tasks.generator(seed, step)),
        functional.cross_entropy,
        recipe,
        fabric=workshop.fabric,
    )
    every = 10
    return measured(model, seed) | {
        "losses": [sum(losses[i : i + every]) / len(losses[i : i + every]) for i in range(0, steps, every)]
    }


@torch.no_grad()
def measured(model, seed):
    r"""How often the model is right, on fresh sequences, on pairs with A and B swapped, on reversed pairs."""
    device = next(model.parameters()).device
    tokens, first = (x.to(device) for x in tasks.order(TESTED, LENGTH, SYMBOLS, tasks.generator(seed, 10**6)))
    said = answer(model, tokens)
    right = (said.argmax(1) == first).double()
    result = {"accuracy": float(right.mean())}
    for name, changed in (("swapped", tasks.swapped(tokens)), ("reversed", tokens.flip(1))):
        other = answer(model, changed)
        right_there = (other.argmax(1) == 1 - first).double()
        result[f"{name}_accuracy"] = float((right + right_there).mean() / 2)
        result[f"{name}_difference"] = float((other - said).abs().max())
    return result


def headline(result):
    return {"accuracy": result["accuracy"], "on swapped pairs": result["swapped_accuracy"]}

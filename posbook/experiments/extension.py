r"""The trained rotary model on longer contexts, under every rule of :mod:`posbook.scaling`.

Each rule is tried as it comes (zero-shot), and after a short training at four times the length. The loss at
the trained length, under the same rule, says what the rule costs there.
"""

import copy
from dataclasses import replace

from posbook import frequencies, scaling
from posbook.experiments import extrapolation, language, training
from posbook.experiments.encodings import RoPE

MODULES = ("extension", "extrapolation")
STEPS = extrapolation.STEPS
FACTORS = [2, 4, 8]
WINDOWS = 128
TUNED = 4  # the factor of the short training
TUNING = replace(language.RECIPE, steps=60, batch=8, rate=5e-4, warmup=5)
# The fastest pair makes ten turns in 64 characters, so that a ramp from 32 turns keeps none: `fitted` keeps
# pairs with two turns, and slows those with half a turn or less by the whole factor.
FITTED = {"beta_fast": 2, "beta_slow": 0.5, "ramp": "turns"}


def _by_hand(theta, factor):
    # LongRoPE's factors come from a search. The simplest list: what came round stays, the rest is slowed.
    return scaling.longrope(
        theta, [1 if r >= 1 else factor for r in frequencies.turns(theta, language.LENGTH)]
    )


# Each rule: frequencies, factor and the length of the moment to frequencies and temperature.
RULES = {
    "plain": lambda theta, s, length: (theta, 1.0),
    "linear": lambda theta, s, length: (scaling.linear(theta, s), 1.0),
    "ntk": lambda theta, s, length: (scaling.ntk(theta, s), 1.0),
    "dynamic": lambda theta, s, length: (
        scaling.dynamic_ntk(theta, max(length, language.LENGTH), language.LENGTH, factor=1),
        1.0,
    ),
    # As released, by the index of the pair; as in the paper, by turns.
    "yarn": lambda theta, s, length: (scaling.yarn(theta, s, language.LENGTH), scaling.yarn_temperature(s)),
    "yarn-turns": lambda theta, s, length: (
        scaling.yarn(theta, s, language.LENGTH, ramp="turns"),
        scaling.yarn_temperature(s),
    ),
    "yarn-fitted": lambda theta, s, length: (
        scaling.yarn(theta, s, language.LENGTH, **FITTED),
        scaling.yarn_temperature(s),
    ),
    "llama3": lambda theta, s, length: (scaling.llama3(theta, s, language.LENGTH), 1.0),
    "longrope": lambda theta, s, length: (
        _by_hand(theta, s),
        scaling.longrope_temperature(s, language.LENGTH),
    ),
}
VARIANTS = dict.fromkeys(RULES, 3)
SETTINGS = {"steps": STEPS, "factors": FACTORS, "windows": WINDOWS, "tuning": TUNING.steps, "tuned": TUNED}


def run(variant, seed, workshop, steps=STEPS):
    model = workshop.trained("rope", seed, steps=steps)
    theta = frequencies.geometric(language.DIM // 4)

    def under(factor, length):
        model.encoding = RoPE(*RULES[variant](theta, factor, length)).to(workshop.device)

    def loss(model, length):
        tried = language.by_length(model, [length], windows=WINDOWS, device=workshop.device)
        return tried["last"][0]

    zero_shot, at_length = [], []
    for factor in FACTORS:
        for length, found in ((factor * language.LENGTH, zero_shot), (language.LENGTH, at_length)):
            under(factor, length)
            found.append(loss(model, length))
    result = {"factors": FACTORS, "zero_shot": zero_shot, "at_length": at_length}

    # At four times the length the dynamic rule is the NTK-aware one, and a training at that length the same.
    if variant != "dynamic":
        long = TUNED * language.LENGTH
        under(TUNED, long)
        tuned = copy.deepcopy(model)
        batch = language.batches(1000 + seed, length=long, batch=TUNING.batch)
        training.train(tuned, batch, language.loss, TUNING, fabric=workshop.fabric)
        result["tuned"] = loss(tuned, long)
        result["tuned_at_length"] = loss(tuned, language.LENGTH)
    return result


def headline(result):
    shown = {f"at {s}L": value for s, value in zip(result["factors"], result["zero_shot"], strict=True)}
    return shown | ({"4L, tuned": result["tuned"]} if "tuned" in result else {})

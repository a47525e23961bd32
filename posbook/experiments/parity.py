r"""Learned against sinusoidal positions, by the length of the training.

Vaswani et al. (2017, Table 3, row E) found them nearly identical at the end of training. How long it takes to
get there is what is measured here.
"""

from posbook.experiments import language

MODULES = ("parity",)
STEPS = None  # in the variant
WINDOWS = 256
TRAININGS = {600: 3, 1500: 2, 3000: 1}  # steps, seeds
VARIANTS = {
    f"{name}-{steps}": seeds for steps, seeds in TRAININGS.items() for name in ("learned", "sinusoidal")
}
SETTINGS = {"windows": WINDOWS}


def run(variant, seed, workshop, steps=None):
    name, trained = variant.split("-")
    model = workshop.trained(name, seed, steps=steps or int(trained))
    return language.by_length(model, [language.LENGTH], windows=WINDOWS, device=workshop.device)


def headline(result):
    return {"at L": result["last"][0]}

r"""Train short, test long: the loss of each encoding by the length of its context.

After Press et al. (2022, fig. 1), at a size that trains in minutes. ``unigram``, ``bigram`` and ``trigram``
are models that count letters: lines to hold the losses against.
"""

from posbook.experiments import language

MODULES = ("extrapolation",)
STEPS = language.RECIPE.steps
LENGTHS = [16, 32, 48, 64, 80, 96, 128, 192, 256, 384, 512]
WINDOWS = 256
COUNTED = {"unigram": 1, "bigram": 2, "trigram": 3}
# Each variant with the number of its seeds.
VARIANTS = {
    "rope": 3,
    "alibi": 3,
    "sinusoidal": 3,
    "learned": 2,
    "t5": 2,
    "none": 2,
    **dict.fromkeys(COUNTED, 1),
}
SETTINGS = {"steps": STEPS, "lengths": LENGTHS, "windows": WINDOWS}


def run(variant, seed, workshop, steps=STEPS):
    if variant in COUNTED:
        return {"loss": language.counted(COUNTED[variant])}
    model = workshop.trained(variant, seed, steps=steps)
    return language.by_length(model, LENGTHS, windows=WINDOWS, device=workshop.device)


def headline(result):
    if "loss" in result:
        return {"loss": result["loss"]}
    last = dict(zip(result["lengths"], result["last"], strict=True))
    return {
        "at L": last[64],
        "just past L": last[80],
        "at 2L": last[128],
        "at 4L": last[256],
        "at 8L": last[512],
    }

r"""The character models of the book: their recipe, and their losses by the length of the context.

Loss is in nats a character, on the evaluation text. Every context length is asked for the *same* targets: the
windows end alike, and only reach back further, so that lengths differ in their context and in nothing else.
"""

import torch
from torch import Tensor
from torch.nn import functional

from posbook.experiments import corpus, tasks
from posbook.experiments.decoder import Decoder
from posbook.experiments.encodings import Encoding, make
from posbook.experiments.training import Recipe

LENGTH = 64  # characters seen in training
DIM, LAYERS = 64, 4
LONGEST = 512  # the longest context that is asked for
TARGETS = 16  # the last characters of each window, those that are counted
RECIPE = Recipe(steps=1500, batch=32, rate=3e-3)


def build(name: str | Encoding, *, seed: int, heads: int = 4) -> Decoder:
    r"""An untrained character model; what it starts from depends on the seed and the encoding."""
    torch.manual_seed(seed)
    encoding = make(name, dim=DIM, heads=heads, length=LENGTH) if isinstance(name, str) else name
    return Decoder(encoding, symbols=len(corpus.ALPHABET), dim=DIM, layers=LAYERS, heads=heads)


def batches(seed: int, *, length: int = LENGTH, batch: int = RECIPE.batch):
    r"""``batch(step)``: windows of the training text, drawn by the seed and the step."""
    text = corpus.encode(corpus.training())

    def draw(step: int):
        source = tasks.generator(seed, step)
        starts = torch.randint(len(text) - length, (batch,), generator=source)
        return tasks.windows(text, length, starts)

    return draw


def loss(logits: Tensor, targets: Tensor) -> Tensor:
    r"""The mean cross-entropy, in nats a character."""
    return functional.cross_entropy(logits.flatten(0, 1), targets.flatten())


@torch.no_grad()
def by_length(model: Decoder, lengths: list[int], *, windows: int, device: str = "cpu") -> dict[str, list]:
    r"""The loss at the end of contexts of these lengths, and the mean over each whole context.

    ``windows`` places are spread evenly over the evaluation text; at each, every context ends alike, and the
    last ``TARGETS`` characters count. Raises ValueError for a context shorter than these, or longer than
    ``LONGEST``.
    """
    if not TARGETS <= min(lengths) <= max(lengths) <= LONGEST:
        raise ValueError(f"contexts hold {TARGETS} to {LONGEST} characters, not {lengths}")
    text = corpus.encode(corpus.evaluation())
    ends = torch.linspace(LONGEST, len(text) - 1, windows).long()
    last, mean = [], []
    model = model.to(device).eval()
    for length in lengths:
        sums = torch.zeros(2, dtype=torch.float64)
        # As many characters at a time whatever the length, so that memory stays the same.
        for group in ends.split(max(1, 4096 // length)):
            inputs, targets = (x.to(device) for x in tasks.windows(text, length, group - length))
            losses = functional.cross_entropy(model(inputs).mT, targets, reduction="none").cpu().double()
            sums += torch.stack((losses[:, -TARGETS:].mean(1).sum(), losses.mean(1).sum()))
        last.append(float(sums[0] / windows))
        mean.append(float(sums[1] / windows))
    return {"lengths": lengths, "last": last, "mean": mean}


def counted(order: int, *, smoothing: float = 0.02) -> float:
    r"""The loss of a model that counts: 1 takes the frequency of a letter, 2 that after the letter before.

    Counts of the training text, each a little more than seen; measured on the whole evaluation text.
    """
    symbols = len(corpus.ALPHABET)
    text, asked = corpus.encode(corpus.training()), corpus.encode(corpus.evaluation())

    def pieces(text):
        return sum(text[i : len(text) - order + i + 1] * symbols ** (order - 1 - i) for i in range(order))

    counts = torch.bincount(pieces(text), minlength=symbols**order).double() + smoothing
    chance = counts.view(-1, symbols) / counts.view(-1, symbols).sum(1, keepdim=True)
    return float(-chance.flatten()[pieces(asked)].log().mean())

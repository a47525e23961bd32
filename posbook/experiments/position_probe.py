r"""Where in a model the position can be read, layer by layer.

After Haviv et al. (2022, fig. 2): from the stream as it enters the first block and as it leaves each, a
linear and a small non-linear reader guess the position; the mean error of always guessing the middle is a
quarter of the length. Beside it, for each stream: how far its last row moves when the tokens before it are
shuffled, and the spread, by position, of what the first attention adds.
"""

import torch
from torch import nn
from torch.nn import functional

from posbook.experiments import corpus, language, tasks

MODULES = ("position_probe",)
STEPS = language.RECIPE.steps
WINDOWS, HELD_OUT = 400, 100
HIDDEN, READER_STEPS, READER_BATCH = 128, 250, 4096
RIDGE = 1e-3
VARIANTS = dict.fromkeys(("none-untrained", "none", "learned", "sinusoidal", "t5", "alibi", "rope"), 2)
SETTINGS = {"steps": STEPS, "windows": WINDOWS, "held_out": HELD_OUT, "reader_steps": READER_STEPS}


def run(variant, seed, workshop, steps=STEPS):
    name = variant.removesuffix("-untrained")
    if variant == name:
        model = workshop.trained(name, seed, steps=steps)
    else:
        model = language.build(name, seed=seed).to(workshop.device).eval()
    return measured(model, seed)


def measured(model, seed):
    device = next(model.parameters()).device
    text, count = corpus.encode(corpus.evaluation()), WINDOWS + HELD_OUT
    starts = torch.linspace(0, len(text) - language.LENGTH - 2, count).long()
    order = torch.randperm(count, generator=tasks.generator(seed))
    tokens = tasks.windows(text, language.LENGTH, starts[order])[0].to(device)
    with torch.no_grad():
        streams = model.streams(tokens)
    errors = {"linear": [], "hidden": []}
    for number, stream in enumerate(streams):
        read, asked = _scaled(stream[:WINDOWS], stream[WINDOWS:])
        errors["linear"].append(_linear(read, asked))
        errors["hidden"].append(_hidden(read, asked, tasks.generator(seed, number)))
    return {
        **errors,
        "guessing": _error(torch.full((HELD_OUT * language.LENGTH,), _positions(1).mean())),
        "shuffled": _shuffled(model, streams, tokens, seed),
        "spread": _spread(model, streams[0]),
    }


def _positions(windows):
    return torch.arange(language.LENGTH).repeat(windows).double()


def _error(guess):
    return float((guess.double().cpu() - _positions(len(guess) // language.LENGTH)).abs().mean())


def _scaled(read, asked):
    mean, deviation = read.flatten(0, 1).mean(0), read.flatten(0, 1).std(0) + 1e-6
    return ((x.flatten(0, 1).sub(mean).div(deviation)) for x in (read, asked))


def _linear(read, asked):
    x, y = read.double().cpu(), _positions(WINDOWS)
    mean = y.mean()
    weights = torch.linalg.solve(x.T @ x + RIDGE * len(x) * torch.eye(x.shape[1]), x.T @ (y - mean))
    return _error(asked.double().cpu() @ weights + mean)


def _hidden(read, asked, source):
    torch.manual_seed(source.initial_seed())
    reader = nn.Sequential(nn.Linear(read.shape[1], HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, 1)).to(read.device)
    optimizer = torch.optim.Adam(reader.parameters(), lr=1e-2)
    y = (_positions(WINDOWS) / language.LENGTH).float().to(read.device)
    for step in range(READER_STEPS):
        for group in optimizer.param_groups:
            group["lr"] = 1e-2 * (1 - step / READER_STEPS)
        rows = torch.randint(len(y), (READER_BATCH,), generator=source)
        loss = functional.l1_loss(reader(read[rows]).squeeze(1), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        return _error(reader(asked).squeeze(1) * language.LENGTH)


@torch.no_grad()
def _shuffled(model, streams, tokens, seed):
    r"""The median, over windows, of how far the last row moves, relative to its length."""
    order = torch.randperm(language.LENGTH - 1, generator=tasks.generator(seed, 7))
    mixed = torch.cat((tokens[:, :-1][:, order], tokens[:, -1:]), dim=1)
    pairs = zip(streams, model.streams(mixed), strict=True)
    return [float(((b - a)[:, -1].norm(dim=-1) / a[:, -1].norm(dim=-1)).median()) for a, b in pairs]


@torch.no_grad()
def _spread(model, stream):
    r"""By position: the root mean square, over windows and features, of the first attention less its mean."""
    at = torch.arange(stream.shape[1], device=stream.device)
    added = model.blocks[0].attend(stream, at, model.encoding, model.causal)
    return (added - added.mean(0)).square().mean((0, 2)).sqrt().tolist()


def headline(result):
    return {"best linear": min(result["linear"]), "best hidden": min(result["hidden"])}

r"""The loop: seed in, losses out.

What a batch holds depends on the seed and the step alone, so a run that was interrupted goes on as if it had
not been. Lightning Fabric carries it to several processes or to a GPU: under ``torchrun`` each process takes
its share of every batch, and the loss is that of one process.
"""

import math
import os
import pickle
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from lightning_fabric import Fabric
from torch import Tensor, nn
from tqdm import tqdm

from posbook.experiments.records import whole

DEVICES = ("cpu", "cuda", "mps")


@dataclass(frozen=True)
class Recipe:
    r"""How a model is trained: AdamW, a linear warm-up, then constant or along a cosine down to a floor."""

    steps: int
    batch: int
    rate: float
    warmup: int = 50
    floor: float = 0.05
    cosine: bool = True
    betas: tuple[float, float] = (0.9, 0.98)
    weight_decay: float = 0.01
    clip: float = 1.0

    def rate_at(self, step: int) -> float:
        r"""The learning rate of a step.

        >>> recipe = Recipe(steps=101, batch=1, rate=1.0, warmup=1)
        >>> [round(recipe.rate_at(step), 3) for step in (0, 50, 100)]
        [1.0, 0.525, 0.05]
        """
        rise = min(1.0, (step + 1) / self.warmup) if self.warmup else 1.0
        along = step / max(1, self.steps - 1)
        fall = self.floor + (1 - self.floor) * 0.5 * (1 + math.cos(math.pi * along)) if self.cosine else 1.0
        return self.rate * rise * fall


def launch(device: str = "cpu") -> Fabric:
    r"""One process, or those that torchrun started, on this kind of device.

    Raises ValueError for a device that is unknown or not there.
    """
    if device not in DEVICES:
        raise ValueError(f"device must be one of {', '.join(DEVICES)}, not {device!r}")
    if device != "cpu" and not getattr(torch, device).is_available():
        raise ValueError(f"there is no {device} device here: say cpu")
    processes = int(os.environ.get("LOCAL_WORLD_SIZE", 1))
    fabric = Fabric(accelerator=device, devices=processes, strategy="ddp" if processes > 1 else "auto")
    fabric.launch()
    return fabric


def train(
    model: nn.Module,
    batch: Callable[[int], tuple[Tensor, Tensor]],
    loss: Callable[[Tensor, Tensor], Tensor],
    recipe: Recipe,
    *,
    fabric: Fabric,
    kept: Path | None = None,
    every: int = 250,
    show: str | None = None,
) -> list[float]:
    r"""Train in place, and return the loss of every step.

    ``batch(step)`` gives inputs and targets, ``loss(outputs, targets)`` their mean loss. With ``kept`` the
    state is written to that file every so many steps, taken up from there, and removed at the end; with
    ``show`` a bar of that name is drawn. Raises ValueError if processes cannot share a batch evenly, for a
    file that is damaged, and for a loss that is no number.
    """
    if recipe.batch % fabric.world_size:
        raise ValueError(f"{fabric.world_size} processes cannot share a batch of {recipe.batch} evenly")
    optimizer = torch.optim.AdamW(
        model.parameters(), lr=recipe.rate, betas=recipe.betas, weight_decay=recipe.weight_decay
    )
    inner, losses = model, []
    model, optimizer = fabric.setup(model, optimizer)
    if kept is not None and kept.exists():
        state = read(kept)
        inner.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        losses = state["losses"]

    model.train()
    bar = tqdm(
        range(len(losses), recipe.steps),
        initial=len(losses),
        total=recipe.steps,
        desc=show,
        disable=show is None or fabric.global_rank > 0,
        leave=False,
    )
    for step in bar:
        for group in optimizer.param_groups:
            group["lr"] = recipe.rate_at(step)
        share = slice(fabric.global_rank, None, fabric.world_size)
        inputs, targets = (fabric.to_device(x[share]) for x in batch(step))
        value = loss(model(inputs), targets)
        if not value.isfinite():
            raise ValueError(f"the loss of step {step} is {value.item()}: the training came apart")
        optimizer.zero_grad()
        fabric.backward(value)
        fabric.clip_gradients(model, optimizer, max_norm=recipe.clip)
        optimizer.step()
        losses.append(float(fabric.all_reduce(value.detach())))
        due = (step + 1) % every == 0 and step + 1 < recipe.steps
        if kept is not None and due and not fabric.global_rank:
            state = {"model": inner.state_dict(), "optimizer": optimizer.state_dict(), "losses": losses}
            with whole(kept) as unfinished:
                torch.save(state, unfinished)
    if kept is not None and not fabric.global_rank:
        kept.unlink(missing_ok=True)
    model.eval()
    return losses


def read(path: Path) -> dict:
    r"""What was written of an unfinished run. Raises ValueError for a file that is damaged."""
    try:
        return torch.load(path, weights_only=True)
    except (OSError, RuntimeError, EOFError, ValueError, pickle.UnpicklingError) as damage:
        raise ValueError(f"{path} is damaged ({type(damage).__name__}): delete it to start again") from None

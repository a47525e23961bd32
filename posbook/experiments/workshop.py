r"""Trained character models, kept in a folder: each is trained once, whoever needs it first."""

import contextlib
import fcntl
import hashlib
from dataclasses import asdict, replace
from pathlib import Path

from lightning_fabric import Fabric
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

from posbook.experiments import corpus, language, records, training
from posbook.experiments.decoder import Decoder

# What the numbers of a trained model depend on.
MODULES = ("corpus", "decoder", "encodings", "language", "tasks", "training")


class Workshop:
    r"""Where models are trained and kept: a folder, a device, and whether to draw bars."""

    def __init__(self, folder: Path, *, fabric: Fabric | None = None, show: bool = False):
        self.folder, self.show = folder, show
        self.fabric = fabric or training.launch()
        self.device = str(self.fabric.device)

    def trained(self, name: str, seed: int, *, steps: int, heads: int = 4) -> Decoder:
        r"""The model of this encoding, seed, length of training and number of heads.

        Two processes that need the same one do not both train it: the second waits.
        """
        recipe = replace(language.RECIPE, steps=steps)
        model = language.build(name, seed=seed, heads=heads)
        key = f"{name}-{heads}heads-{steps}steps-seed{seed}"
        path = self.folder / "models" / f"{key}.safetensors"
        with alone(path.with_suffix(".lock")):
            stamp = self.stamp(recipe)
            if path.exists() and stamp_of(path) == stamp:
                read_into(model, path)
                return model.to(self.device)
            losses = training.train(
                model,
                language.batches(seed),
                language.loss,
                recipe,
                fabric=self.fabric,
                kept=path.with_suffix(f".{stamp}.state"),
                show=key if self.show else None,
            )
            if not self.fabric.global_rank:
                save(model, path, {"stamp": stamp, "loss": f"{losses[-1]:.4f}"})
        return model

    def stamp(self, recipe: training.Recipe) -> str:
        text = corpus.training()
        settings = asdict(recipe) | {"corpus": hashlib.sha256(text.encode()).hexdigest()}
        return records.fingerprint(MODULES, settings)


def save(model: Decoder, path: Path, said: dict[str, str]) -> None:
    r"""Write the parameters and what is said of them, whole or not at all."""
    tensors = {name: value.detach().cpu().contiguous() for name, value in model.state_dict().items()}
    with records.whole(path) as unfinished:
        save_file(tensors, unfinished, metadata=said)


def read_into(model: Decoder, path: Path) -> None:
    r"""Fill a model with written parameters. Raises ValueError for a file that is damaged or does not fit."""
    try:
        with safe_open(path, "pt") as held:
            tensors = {name: held.get_tensor(name) for name in held.keys()}  # noqa: SIM118
    except (OSError, SafetensorError) as damage:
        raise ValueError(f"{path} is no checkpoint, or is damaged: {damage}") from None
    try:
        model.load_state_dict(tensors)
    except RuntimeError:
        raise ValueError(f"{path} holds another model: its parameters do not fit") from None
    model.eval()


def shipped() -> Decoder:
    r"""The rotary model that ships with the package: seed 0 of :mod:`~posbook.experiments.extrapolation`."""
    model = language.build("rope", seed=0)
    read_into(model, Path(str(records.RESULTS / "rope.safetensors")))
    return model


def stamp_of(path: Path) -> str:
    try:
        with safe_open(path, "pt") as held:
            return (held.metadata() or {}).get("stamp", "")
    except (OSError, SafetensorError) as damage:
        raise ValueError(f"{path} is no checkpoint, or is damaged: {damage}") from None


@contextlib.contextmanager
def alone(path: Path):
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield

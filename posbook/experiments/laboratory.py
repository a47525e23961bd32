r"""Which runs there are, which are missing, and what they come to.

A run is one variant of one experiment with one seed. It is written whole when it is finished, so that what
was interrupted, or stopped with Ctrl-C, is taken up where it was; :func:`gather` makes the runs of an
experiment into the record that goes with the package, once they are all there.
"""

import importlib
import math
import multiprocessing
import signal
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

import torch
from tqdm import tqdm

from posbook.experiments import records, training
from posbook.experiments.workshop import MODULES, Workshop

# In this order: who trains a model comes before who only looks at it.
EXPERIMENTS = (
    "extrapolation",
    "broken_pairs",
    "parity",
    "extension",
    "position_probe",
    "word_order",
    "a_before_b",
)
TRAINS_LANGUAGE = {"extrapolation", "broken_pairs", "parity", "extension", "position_probe"}
FOLDER = Path("build") / "experiments"


@dataclass(frozen=True)
class Run:
    r"""One variant of one experiment with one seed; ``steps`` only where they are not the recipe's."""

    experiment: str
    variant: str
    seed: int
    steps: int | None = None

    def path(self, folder: Path) -> Path:
        changed = f".steps{self.steps}" if self.steps else ""
        return folder / self.experiment / f"{self.variant}.seed{self.seed}{changed}.json"


def module(name: str):
    r"""An experiment by its name. Raises ValueError for any other.

    >>> module("parity").VARIANTS["learned-3000"]
    1
    """
    if name not in EXPERIMENTS:
        raise ValueError(f"experiment must be one of {', '.join(EXPERIMENTS)}, not {name!r}")
    return importlib.import_module(f"posbook.experiments.{name}")


def fingerprint(name: str) -> str:
    r"""That of an experiment's code and settings, with those of the models it looks at."""
    code = module(name)
    used = (*code.MODULES, *MODULES) if name in TRAINS_LANGUAGE else code.MODULES
    return records.fingerprint(tuple(set(used)), code.SETTINGS)


def plan(names, seeds: int | None = None, steps: int | None = None) -> list[Run]:
    r"""Every run of these experiments, the first ``seeds`` seeds of each variant if given.

    Seeds beyond the recipe's are allowed. Raises ValueError for a number that is not positive.

    >>> len(plan(["word_order"])), len(plan(["word_order"], seeds=2))
    (90, 18)
    """
    for value, what in ((seeds, "seeds"), (steps, "steps")):
        if value is not None and value < 1:
            raise ValueError(f"{what} must be at least 1, not {value}")
    return [
        Run(name, variant, seed, steps)
        for name in names
        for variant, number in module(name).VARIANTS.items()
        for seed in range(number if seeds is None else seeds)
    ]


def check_device(device: str) -> None:
    r"""Raise ValueError, as a run would, for a device that is unknown or not here; before processes start.

    >>> check_device("tpu")
    Traceback (most recent call last):
    ...
    ValueError: device must be one of cpu, cuda, mps, not 'tpu'
    """
    if device not in training.DEVICES:
        raise ValueError(f"device must be one of {', '.join(training.DEVICES)}, not {device!r}")
    if device != "cpu" and not getattr(torch, device).is_available():
        raise ValueError(f"there is no {device} device here: say cpu")


def missing(runs: list[Run], folder: Path) -> list[Run]:
    r"""Those that were not yet finished with the code as it is."""
    current = {name: fingerprint(name) for name in {run.experiment for run in runs}}
    return [run for run in runs if (found(run, folder) or {}).get("fingerprint") != current[run.experiment]]


def found(run: Run, folder: Path) -> dict | None:
    path = run.path(folder)
    return records.read(path) if path.exists() else None


def perform(run: Run, folder: Path, device: str = "cpu", show: bool = False) -> dict:
    r"""Do one run, and write it when it is finished."""
    code, stamp = module(run.experiment), fingerprint(run.experiment)
    fabric = training.launch(device)
    start = time.process_time()
    workshop = Workshop(folder, fabric=fabric, show=show)
    result = code.run(run.variant, run.seed, workshop, steps=run.steps or code.STEPS)
    written = {
        "variant": run.variant,
        "seed": run.seed,
        "fingerprint": stamp,
        "cpu_seconds": time.process_time() - start,
        "circumstances": records.circumstances(),
        **result,
    }
    if not fabric.global_rank:
        records.write(run.path(folder), written)
    return written


def perform_all(runs: list[Run], folder: Path, device: str = "cpu", jobs: int = 1) -> None:
    r"""Do these runs, ``jobs`` at a time, each on one thread; finished ones stay when it is interrupted."""
    if jobs == 1:
        for run in tqdm(runs, desc="runs"):
            perform(run, folder, device, show=True)
        return
    # Two processes with a thread each finish sooner than one with two.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(jobs, mp_context=context, initializer=_begin) as pool:
        futures = [pool.submit(perform, run, folder, device) for run in runs]
        try:
            for future in tqdm(as_completed(futures), total=len(futures), desc="runs"):
                future.result()
        except BaseException:
            working = list(pool._processes.values())
            pool.shutdown(wait=False, cancel_futures=True)
            for process in working:
                process.terminate()
            raise


def _begin():
    torch.set_num_threads(1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the first process ends the others


def gather(name: str, folder: Path) -> dict:
    r"""The record of an experiment out of its runs. Raises ValueError while one is missing."""
    runs = plan([name])
    lacking = missing(runs, folder)
    if lacking:
        raise ValueError(f"{len(lacking)} of {len(runs)} runs of {name} are missing, among them {lacking[0]}")
    done = [found(run, folder) for run in runs]
    circumstances = [run.pop("circumstances") for run in done]
    for run in done:
        del run["fingerprint"]
    return {
        "experiment": name,
        "fingerprint": fingerprint(name),
        "settings": module(name).SETTINGS,
        "seeds": sorted({run.seed for run in runs}),
        "circumstances": [dict(kind) for kind in sorted({tuple(sorted(c.items())) for c in circumstances})],
        "cpu_seconds": sum(run["cpu_seconds"] for run in done),
        "runs": done,
    }


def table(name: str, runs: list[dict]) -> dict[str, dict[str, list[float]]]:
    r"""The headline numbers of runs: for each variant and number, the values of its seeds."""
    shown = {}
    for run in runs:
        for what, value in module(name).headline(run).items():
            shown.setdefault(run["variant"], {}).setdefault(what, []).append(value)
    return shown


# What is run again to confirm a record: of each experiment the run that needs the fewest models.
SAMPLES = {
    "extrapolation": "rope",
    "broken_pairs": "width-16",
    "parity": "learned-600",
    "extension": "linear",
    "position_probe": "rope",
    "word_order": "rope",
    "a_before_b": "rope",
}


def confirm(name: str, folder: Path) -> dict:
    r"""The record of an experiment under the fingerprint of the code as it is now.

    For code that was tidied and should give the same numbers: one run is done again, and must give those of
    the record, on the machine that made it. Raises ValueError where it does not.
    """
    record = records.load(name)
    if record["fingerprint"] == fingerprint(name):
        return record
    run = Run(name, SAMPLES[name], 0)
    before = records.runs(record, run.variant)[0]
    fresh = records.rounded(perform(run, folder, show=True))
    for what, value in before.items():
        if what != "cpu_seconds" and not _alike(value, fresh[what]):
            raise ValueError(f"{run} does not give its record: {what} is {fresh[what]}, not {value}")
    return record | {"fingerprint": fingerprint(name)}


def _alike(a, b) -> bool:
    if isinstance(a, list):
        return len(a) == len(b) and all(map(_alike, a, b))
    return a == b if isinstance(a, str) else math.isclose(a, b, rel_tol=1e-3, abs_tol=1e-6)

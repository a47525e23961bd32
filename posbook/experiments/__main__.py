r"""Run experiments: ``python -m posbook.experiments all``, or one by its name."""

import argparse
import os
import shutil
import statistics
import sys
from pathlib import Path

import torch

from posbook.experiments import corpus, laboratory, records


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m posbook.experiments",
        description="Train the small models of the book, and compare with the shipped numbers.",
    )
    parser.add_argument("name", help=f"all, or one of {', '.join(laboratory.EXPERIMENTS)}")
    parser.add_argument("--steps", type=int, help="train for so many steps; such runs are not shipped")
    parser.add_argument("--seeds", type=int, help="only the first so many seeds of each variant")
    parser.add_argument("--device", default="cpu", help="cpu (the default), cuda or mps")
    parser.add_argument(
        "--jobs", type=int, default=min(2, os.cpu_count() or 1), help="runs at a time (here %(default)s)"
    )
    parser.add_argument(
        "--folder", type=Path, default=laboratory.FOLDER, help="where finished runs are kept (%(default)s)"
    )
    parser.add_argument("--ship", action="store_true", help="write the records that go with the package")
    parser.add_argument(
        "--confirm", action="store_true", help="the code was tidied: run a sample again, keep the records"
    )
    options = parser.parse_args(arguments)
    try:
        return _run(options)
    except (ValueError, OSError) as fault:
        print(f"posbook.experiments: {fault}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("\nposbook.experiments: stopped; finished runs are kept", file=sys.stderr)
        return 130


def _run(options) -> int:
    laboratory.check_device(options.device)
    names = laboratory.EXPERIMENTS if options.name == "all" else [options.name]
    if options.confirm:
        torch.set_num_threads(1)
        for name in names:
            record = laboratory.confirm(name, options.folder / "confirmed")
            records.write(Path(str(records.RESULTS)) / f"{name}.json", record)
        return 0
    runs = laboratory.plan(names, options.seeds, options.steps)
    lacking = laboratory.missing(runs, options.folder)
    print(f"{len(runs)} runs, {len(runs) - len(lacking)} of them finished before", file=sys.stderr)
    if lacking:
        corpus.training()  # says at once if this Python has no text
        several = "WORLD_SIZE" in os.environ  # torchrun started several processes for each run
        torch.set_num_threads(1)
        laboratory.perform_all(lacking, options.folder, options.device, 1 if several else options.jobs)
    if int(os.environ.get("RANK", 0)):
        return 0
    for name in names:
        done = [laboratory.found(run, options.folder) for run in runs if run.experiment == name]
        print("\n".join(_lines(name, done, compare=not options.steps)))
    if options.ship:
        _ship(names, options.folder)
    return 0


def _lines(name: str, done: list[dict], *, compare: bool) -> list[str]:
    try:
        shipped = laboratory.table(name, records.load(name)["runs"]) if compare else {}
    except ValueError:
        shipped = {}
    lines = ["", name]
    for variant, numbers in laboratory.table(name, done).items():
        for what, values in numbers.items():
            line = f"  {variant:16} {what:18} {statistics.median(values):8.4f}"
            if len(values) == 1:
                line += "  (1 seed)"
            else:
                line += f"  ({min(values):.4f} to {max(values):.4f}, {len(values)} seeds)"
            before = shipped.get(variant, {}).get(what)
            if before:
                line += f"  shipped {statistics.median(before):8.4f}"
                line += f"  {statistics.median(values) - statistics.median(before):+.4f}"
            lines.append(line)
    return lines


def _ship(names, folder: Path) -> None:
    gathered = {name: laboratory.gather(name, folder) for name in names}  # all, before one is written
    results = Path(str(records.RESULTS))
    for name, record in gathered.items():
        records.write(results / f"{name}.json", record)
    if "extrapolation" in names:
        steps = laboratory.module("extrapolation").STEPS
        with records.whole(results / "rope.safetensors") as unfinished:
            shutil.copyfile(folder / "models" / f"rope-4heads-{steps}steps-seed0.safetensors", unfinished)


if __name__ == "__main__":
    sys.exit(main())

r"""How fast rotary embedding is here and elsewhere: `make bench`.

Rotates q and k of shape (1, 32, 4096, 128) in one process, the methods taking turns, and writes
docs/reference/speed.json: medians, extra memory, and the error against float64. Only ratios inside one run
mean anything: run it on a quiet machine.
"""

import argparse
import json
import os
import platform
import statistics
import time
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import torch
from rotary_embedding_torch import RotaryEmbedding
from torch.profiler import ProfilerActivity, profile
from tqdm import tqdm
from transformers.models.llama.modeling_llama import apply_rotary_pos_emb
from x_transformers import x_transformers

from posbook import frequencies, rotary

RESULT = Path(__file__).parents[2] / "docs" / "reference" / "speed.json"
SHAPE = (1, 32, 4096, 128)


def methods(q, k):
    """Name, layout and a function without arguments for all that is timed; tables are made beforehand."""
    seq, dim = q.shape[-2:]
    angles = frequencies.angles(torch.arange(seq), frequencies.geometric(dim))
    both = torch.cat((angles, angles), dim=-1)[None]
    cos, sin = both.cos().to(q.dtype), both.sin().to(q.dtype)
    lucid = RotaryEmbedding(dim=dim)
    x_angles, _ = x_transformers.RotaryEmbedding(dim).forward_from_seq_len(seq)
    into = torch.empty_like(q), torch.empty_like(k)
    return [
        ("copy into memory that is there", None, lambda: (into[0].copy_(q), into[1].copy_(k))),
        ("clone", None, lambda: (q.clone(), k.clone())),
        *(
            (
                f"posbook, {layout}",
                layout,
                lambda layout=layout: tuple(rotary.rotate(x, angles, layout=layout) for x in (q, k)),
            )
            for layout in ("halves", "interleaved")
        ),
        ("transformers", "halves", lambda: apply_rotary_pos_emb(q, k, cos, sin)),
        (
            "rotary-embedding-torch",
            "interleaved",
            lambda: (lucid.rotate_queries_or_keys(q), lucid.rotate_queries_or_keys(k)),
        ),
        (
            "x-transformers",
            "interleaved",
            lambda: tuple(x_transformers.apply_rotary_pos_emb(x, x_angles) for x in (q, k)),
        ),
    ]


def by_float64(x, layout):
    """The rotation in float64, by complex numbers, with nothing of posbook in it."""
    seq, dim = x.shape[-2:]
    angles = torch.arange(seq, dtype=torch.float64)[:, None] * 10_000.0 ** (
        -torch.arange(0, dim, 2, dtype=torch.float64) / dim
    )
    turn = torch.polar(torch.ones_like(angles), angles)
    axis, cut = (-1, (-1, 2)) if layout == "interleaved" else (-2, (2, -1))
    a, b = x.double().unflatten(-1, cut).unbind(axis)
    z = torch.complex(a, b) * turn
    return torch.stack((z.real, z.imag), dim=axis).flatten(-2)


def extra_memory(run):
    """The most memory that was allocated at once while it ran, in MiB."""
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as seen:
        kept = run()
    held = most = 0
    for event in seen.profiler.kineto_results.events():
        if event.name() == "[memory]":
            held += event.nbytes()
            most = max(most, held)
    del kept
    return most / 2**20


@torch.no_grad()
def measure(dtype, rounds):
    generator = torch.Generator().manual_seed(0)
    q, k = (torch.randn(SHAPE, generator=generator).to(dtype) for _ in "qk")
    timed = methods(q, k)
    seconds = {name: [] for name, *_ in timed}
    for _ in tqdm(range(rounds + 1), desc=str(dtype)):  # the first round warms up
        for name, _, run in timed:
            start = time.perf_counter()
            kept = run()
            seconds[name].append(time.perf_counter() - start)
            del kept
    rows = []
    for name, layout, run in timed:
        error = float((run()[0].double() - by_float64(q, layout)).abs().max()) if layout else None
        milliseconds = 1e3 * statistics.median(seconds[name][1:])
        rows.append({"method": name, "ms": milliseconds, "extra_mib": extra_memory(run), "error": error})
    return rows


def main():
    parser = argparse.ArgumentParser(description="Time rotary embedding here and elsewhere.")
    parser.add_argument("--rounds", type=int, default=9)
    options = parser.parse_args()
    result = {
        "date": datetime.now(UTC).date().isoformat(),
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, {torch.get_num_threads()} threads",
        "shape": SHAPE,
        "rounds": options.rounds,
        "versions": {
            name: version(name)
            for name in ("torch", "transformers", "rotary-embedding-torch", "x-transformers")
        },
        "float32": measure(torch.float32, options.rounds),
        "bfloat16": measure(torch.bfloat16, options.rounds),
    }
    for dtype in ("float32", "bfloat16"):
        clone = next(row["ms"] for row in result[dtype] if row["method"] == "clone")
        print(dtype)
        for row in result[dtype]:
            error = "" if row["error"] is None else f"{row['error']:.1e}"
            print(
                f"  {row['method']:32} {row['ms']:8.1f} ms {row['ms'] / clone:6.2f} x clone"
                f" {row['extra_mib']:7.0f} MiB  {error}"
            )
    unfinished = RESULT.with_suffix(".part")
    unfinished.write_text(json.dumps(result, indent=1) + "\n")
    unfinished.replace(RESULT)


if __name__ == "__main__":
    main()

r"""The loop, the files it leaves, and the command."""

import errno
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from torch.nn import functional

from posbook.experiments import __main__ as command
from posbook.experiments import laboratory, records, tasks, training, workshop
from posbook.experiments.training import Recipe
from posbook.experiments.word_order import Answering, build

ROOT = Path(__file__).parents[2]
RECIPE = Recipe(steps=12, batch=8, rate=1e-3, cosine=False)


@pytest.fixture(scope="module")
def fabric():
    return training.launch()


def batch(step):
    return tasks.order(RECIPE.batch, 16, 16, tasks.generator(0, step))


def train(fabric, batch=batch, **options):
    model = build("rope", 0)
    losses = training.train(
        Answering(model), batch, functional.cross_entropy, RECIPE, fabric=fabric, **options
    )
    return model, losses


def test_the_loop_is_adamw_as_torch_has_it(fabric):
    """The same steps, written out with nothing of the loop in them."""
    _, losses = train(fabric)
    again = Answering(build("rope", 0))
    optimizer = torch.optim.AdamW(again.parameters(), lr=1e-3, betas=(0.9, 0.98), weight_decay=0.01)
    expected = []
    for step in range(RECIPE.steps):
        for group in optimizer.param_groups:
            group["lr"] = 1e-3 * min(1, (step + 1) / 50)
        tokens, first = batch(step)
        loss = functional.cross_entropy(again(tokens), first)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(again.parameters(), 1.0)
        optimizer.step()
        expected.append(loss.item())
    assert losses == pytest.approx(expected, rel=1e-5)


def test_a_training_that_was_interrupted_goes_on_as_if_it_had_not_been(fabric, tmp_path):
    def stops(step):
        if step == 9:
            raise KeyboardInterrupt
        return batch(step)

    kept = tmp_path / "x.state"
    with pytest.raises(KeyboardInterrupt):
        train(fabric, stops, kept=kept, every=4)
    assert len(training.read(kept)["losses"]) == 8
    seen = []
    model, losses = train(fabric, lambda step: (seen.append(step), batch(step))[1], kept=kept, every=4)
    whole, expected = train(fabric)
    assert seen == [8, 9, 10, 11]
    assert losses == pytest.approx(expected, rel=1e-6)
    assert (model.head.weight - whole.head.weight).abs().max() < 1e-6
    assert not kept.exists()


def test_a_loss_that_is_no_number_stops_the_training(fabric):
    with pytest.raises(ValueError, match="the loss of step 0 is nan: the training came apart"):
        training.train(
            Answering(build("none", 0)),
            batch,
            lambda out, y: functional.cross_entropy(out, y) * torch.nan,
            RECIPE,
            fabric=fabric,
        )


@pytest.mark.parametrize(
    "name, why", [("tpu", "one of cpu, cuda, mps, not 'tpu'"), ("mps", "there is no mps")]
)
def test_an_unknown_or_absent_device_is_refused(name, why):
    if name == "mps" and torch.mps.is_available():
        pytest.skip("there is one here")
    with pytest.raises(ValueError, match=why):
        training.launch(name)


def test_a_damaged_state_is_refused_by_its_name(fabric, tmp_path):
    kept = tmp_path / "x.state"
    kept.write_bytes(b"not a state")
    with pytest.raises(ValueError, match=r"x\.state is damaged .*delete it to start again"):
        train(fabric, kept=kept)


def test_a_damaged_or_foreign_checkpoint_is_refused(tmp_path):
    path = tmp_path / "x.safetensors"
    path.write_bytes(b"\x08" * 40)
    model = build("rope", 0)
    with pytest.raises(ValueError, match="is no checkpoint, or is damaged"):
        workshop.read_into(model, path)
    workshop.save(build("learned", 0), path, {})
    with pytest.raises(ValueError, match="holds another model"):
        workshop.read_into(model, path)


def test_a_checkpoint_gives_back_the_model(tmp_path):
    model = build("shaw", 3)
    workshop.save(model, tmp_path / "x.safetensors", {"stamp": "a"})
    again = build("shaw", 4)
    workshop.read_into(again, tmp_path / "x.safetensors")
    tokens, _ = batch(0)
    assert torch.equal(model(tokens), again(tokens))
    assert workshop.stamp_of(tmp_path / "x.safetensors") == "a"


def test_a_full_disk_leaves_the_old_record_and_nothing_else(tmp_path, monkeypatch, capsys):
    path = tmp_path / "x.json"
    records.write(path, {"a": 1})

    def full(*_, **__):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(OSError, match="No space left"):
        records.write(path, {"a": 2})
    monkeypatch.setattr(laboratory, "perform_all", full)
    assert command.main(["word_order", "--steps", "1", "--folder", str(tmp_path)]) == 2
    assert (
        capsys.readouterr().err.splitlines()[-1] == "posbook.experiments: [Errno 28] No space left on device"
    )
    assert json.loads(path.read_text()) == {"a": 1}
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    "arguments, why",
    [
        (["grokking"], "experiment must be one of extrapolation, .*, not 'grokking'"),
        (["parity", "--seeds", "0"], "seeds must be at least 1, not 0"),
        (["parity", "--steps", "-5"], "steps must be at least 1, not -5"),
    ],
)
def test_bad_input_is_one_clear_line(arguments, why, capsys):
    assert command.main(arguments) == 2
    said = capsys.readouterr().err.strip().splitlines()
    assert len(said) == 1
    assert re.search(why, said[0])


@pytest.mark.parametrize("device", ["tpu", "cuda", "mps"])
def test_a_device_is_refused_before_a_run_starts_and_as_the_run_would(device, tmp_path, monkeypatch, capsys):
    if device != "tpu" and getattr(torch, device).is_available():
        pytest.skip("there is one here")
    monkeypatch.setattr(laboratory, "perform_all", lambda *_, **__: pytest.fail("a run was started"))
    arguments = ["word_order", "--steps", "1", "--device", device, "--folder", str(tmp_path)]
    assert command.main(arguments) == 2
    (line,) = capsys.readouterr().err.strip().splitlines()
    with pytest.raises(ValueError, match="device") as caught:
        training.launch(device)
    assert line == f"posbook.experiments: {caught.value}"


def test_help_says_where_finished_runs_are_kept(capsys):
    with pytest.raises(SystemExit):
        command.main(["--help"])
    assert f"kept ({laboratory.FOLDER})" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(
    "values, told", [([0.5], "0.5000  (1 seed)"), ([0.5, 0.25], "(0.2500 to 0.5000, 2 seeds)")]
)
def test_the_spread_is_told_where_there_is_one(values, told, monkeypatch):
    monkeypatch.setattr(laboratory, "table", lambda *_: {"rope": {"accuracy": values}})
    assert command._lines("word_order", [], compare=False)[-1].endswith(told)


def test_a_damaged_run_is_refused_by_its_name(tmp_path, capsys):
    path = laboratory.Run("word_order", "none", 0, 3).path(tmp_path)
    path.parent.mkdir(parents=True)
    path.write_text('{"half')
    assert command.main(["word_order", "--steps", "3", "--folder", str(tmp_path)]) == 2
    assert "none.seed0.steps3.json is damaged" in capsys.readouterr().err


def test_ctrl_c_keeps_the_seeds_that_are_finished(tmp_path):
    options = ["--steps", "40", "--jobs", "1"]
    process = subprocess.Popen(
        [sys.executable, "-m", "posbook.experiments", "word_order", *options, "--folder", str(tmp_path)],
        cwd=ROOT,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
    )
    limit = time.monotonic() + 240  # a busy machine takes its time
    while len(list(tmp_path.glob("word_order/*.json"))) < 2 and time.monotonic() < limit:
        time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    said = process.communicate(timeout=60)[1]
    assert process.returncode == 130, said[-2000:]
    assert said.strip().endswith("stopped; finished runs are kept")
    finished = sorted((tmp_path / "word_order").iterdir())
    assert len(finished) >= 2
    assert all(records.read(path)["seed"] >= 0 for path in finished)  # none is half-written


def test_two_processes_have_the_loss_of_one(tmp_path):
    """The same command, by itself and under torchrun; every process takes half of every batch."""
    run = ["word_order", "--steps", "30", "--seeds", "1", "--jobs", "1"]
    variants = tmp_path / "only_rope.py"
    variants.write_text(
        "import sys\nfrom posbook.experiments import __main__, word_order\n"
        "word_order.VARIANTS = {'rope': 1}\nsys.exit(__main__.main(sys.argv[1:]))\n"
    )
    env = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    single = [sys.executable, str(variants)]
    double = [
        sys.executable,
        "-m",
        "torch.distributed.run",
        "--nproc-per-node",
        "2",
        "--standalone",
        str(variants),
    ]
    losses = []
    for name, start in (("one", single), ("two", double)):
        folder = tmp_path / name
        done = subprocess.run(
            [*start, *run, "--folder", str(folder)], cwd=ROOT, env=env, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        losses.append(records.read(folder / "word_order" / "rope.seed0.steps30.json")["losses"])
    assert losses[0] == pytest.approx(losses[1], abs=1e-3)


def test_processes_that_cannot_share_a_batch_are_refused(fabric, monkeypatch):
    monkeypatch.setattr(type(fabric), "world_size", 3)
    with pytest.raises(ValueError, match="3 processes cannot share a batch of 8 evenly"):
        train(fabric)


def test_what_is_finished_is_not_done_again(tmp_path, monkeypatch):
    run = laboratory.Run("word_order", "none", 0, 3)
    laboratory.perform(run, tmp_path)
    assert laboratory.missing([run], tmp_path) == []
    monkeypatch.setitem(laboratory.module("word_order").SETTINGS, "length", 17)
    assert laboratory.missing([run], tmp_path) == [run]


def test_a_record_is_not_shipped_while_a_run_is_missing(tmp_path):
    laboratory.perform(laboratory.Run("word_order", "none", 0, 3), tmp_path)
    with pytest.raises(ValueError, match="90 of 90 runs of word_order are missing"):
        laboratory.gather("word_order", tmp_path)


def test_a_fingerprint_sees_code_and_settings_and_no_comments():
    plain = "x = 1\n"
    assert records.code('r"""Says."""\n\nx = 1  # because\n') == records.code(plain)
    assert records.code("x = 2\n") != records.code(plain)
    a = records.fingerprint(("tasks",), {"steps": 1})
    assert a != records.fingerprint(("tasks",), {"steps": 2})
    assert a != records.fingerprint(("corpus",), {"steps": 1})


def test_a_model_is_trained_once(tmp_path, monkeypatch, fabric):
    shop = workshop.Workshop(tmp_path, fabric=fabric)
    first = shop.trained("none", 0, steps=2)
    monkeypatch.setattr(training, "train", lambda *_, **__: pytest.fail("trained again"))
    again = shop.trained("none", 0, steps=2)
    assert torch.equal(first.head.weight, again.head.weight)


def test_tidied_code_keeps_a_record_only_if_a_run_gives_its_numbers(tmp_path, monkeypatch):
    fresh = {"variant": "rope", "seed": 0, "accuracy": 0.75, "losses": [1.0, 0.5], "cpu_seconds": 9.0}
    monkeypatch.setattr(laboratory, "perform", lambda *_, **__: fresh)
    kept = {"fingerprint": "old", "runs": [fresh | {"cpu_seconds": 1.0}]}
    monkeypatch.setattr(records, "load", lambda _: kept)
    found = laboratory.confirm("word_order", tmp_path)
    assert found == kept | {"fingerprint": laboratory.fingerprint("word_order")}
    kept["runs"] = [fresh | {"losses": [1.0, 0.6]}]
    with pytest.raises(
        ValueError, match=r"does not give its record: losses is \[1.0, 0.5\], not \[1.0, 0.6\]"
    ):
        laboratory.confirm("word_order", tmp_path)

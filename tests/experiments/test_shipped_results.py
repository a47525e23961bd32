r"""What the shipped records say, with margins, and that they belong to the code beside them."""

import statistics

import pytest
import torch

from posbook.experiments import broken_pairs, laboratory, language, records, training, word_order, workshop

SIZE = 1_000_000


def at(run, length):
    return run["last"][run["lengths"].index(length)]


@pytest.mark.parametrize("name", laboratory.EXPERIMENTS)
def test_a_record_belongs_to_the_code_beside_it(name):
    record = records.load(name)
    assert record["fingerprint"] == laboratory.fingerprint(name), (
        f"{name} was measured with other code: python -m posbook.experiments {name} --ship"
    )
    counts = {v: len(records.runs(record, v)) for v in {run["variant"] for run in record["runs"]}}
    assert counts == laboratory.module(name).VARIANTS


def test_a_record_of_another_recipe_is_seen(monkeypatch):
    monkeypatch.setitem(laboratory.module("word_order").SETTINGS, "steps", 501)
    assert records.load("word_order")["fingerprint"] != laboratory.fingerprint("word_order")


def test_the_checkpoint_is_below_a_megabyte_and_has_its_record_s_loss():
    path = records.RESULTS / "rope.safetensors"
    assert path.stat().st_size < SIZE
    found = language.by_length(workshop.shipped(), [64, 256], windows=256)["last"]
    run = records.runs(records.load("extrapolation"), "rope")[0]
    assert found == pytest.approx([at(run, 64), at(run, 256)], abs=1e-3)


def test_rope_fails_beyond_the_trained_length():
    for run in records.runs(records.load("extrapolation"), "rope"):
        assert at(run, 256) - at(run, 64) > 1.0
        assert abs(at(run, 80) - at(run, 64)) < 0.15


def test_alibi_stays_where_it_was():
    for run in records.runs(records.load("extrapolation"), "alibi"):
        assert abs(at(run, 256) - at(run, 64)) < 0.15


def test_sinusoids_fail_at_once():
    for run in records.runs(records.load("extrapolation"), "sinusoidal"):
        assert at(run, 80) - at(run, 64) > 0.4


def test_only_the_first_pair_that_never_came_round_is_guilty():
    for run in records.runs(records.load("broken_pairs"), "width-16"):
        guilty = next(pair for pair, turns in enumerate(run["turns"]) if turns < 1)
        for pair, loss in enumerate(run["one_kept"]):
            assert (loss - run["at_length"] < 0.15) == (pair == guilty), (run["seed"], pair)


def test_the_guilty_pair_of_the_shipped_model_is_guilty_when_measured_anew():
    found = broken_pairs.measured(workshop.shipped(), heads=4, windows=16, only=[2, 3, 4])
    kept = dict(zip(found["tried"], found["one_kept"], strict=True))
    out = dict(zip(found["tried"], found["one_let_out"], strict=True))
    assert found["none_kept"] - found["at_length"] > 1.0
    assert kept[3] - found["at_length"] < 0.15
    assert min(kept[2], kept[4]) - found["at_length"] > 1.0
    assert out[3] - found["at_length"] > 1.0
    assert max(out[2], out[4]) - found["at_length"] < 0.2


@pytest.mark.parametrize("variant", ["none", "alibi"])
def test_what_no_mask_and_no_order_can_tell_is_right_half_of_the_time(variant):
    blind = {"none": ("swapped", "reversed"), "alibi": ("reversed",)}[variant]
    for run in records.runs(records.load("word_order"), variant):
        for pairs in blind:
            assert run[f"{pairs}_difference"] < 1e-5
            assert abs(run[f"{pairs}_accuracy"] - 0.5) < 0.002


@pytest.mark.parametrize("variant", ["learned", "sinusoidal", "shaw", "t5", "rope", "none-causal"])
def test_a_causal_mask_or_any_signed_encoding_tells_the_order(variant):
    accuracy = [run["accuracy"] for run in records.runs(records.load("word_order"), variant)]
    assert statistics.median(accuracy) > 0.98


def test_a_fresh_training_gives_the_record(tmp_path):
    """The same recipe, seed and code; other machines may round otherwise, so only the course must agree."""
    shop = workshop.Workshop(tmp_path, fabric=training.launch())
    kept = next(run for run in records.runs(records.load("word_order"), "none-causal") if run["seed"] == 0)
    fresh = word_order.run("none-causal", 0, shop)
    assert fresh["losses"][:10] == pytest.approx(kept["losses"][:10], abs=1e-3)
    assert fresh["accuracy"] == pytest.approx(kept["accuracy"], abs=0.02)


def test_a_fresh_model_without_positions_cannot_tell_swapped_pairs(tmp_path):
    shop = workshop.Workshop(tmp_path, fabric=training.launch())
    found = word_order.run("none", 99, shop, steps=60)
    assert found["swapped_difference"] < 1e-5
    assert abs(found["swapped_accuracy"] - 0.5) < 0.002


def test_the_prefix_cannot_be_shuffled_unseen_but_at_depth_one():
    for variant in ("none", "none-untrained"):
        for run in records.runs(records.load("position_probe"), variant):
            embedding, first, *deeper = run["shuffled"]
            assert embedding < 1e-6
            assert first < 1e-5
            assert min(deeper) > 100 * first


def test_position_is_in_the_stream_of_a_trained_model_without_encoding():
    for run in records.runs(records.load("position_probe"), "none"):
        assert run["linear"][0] == pytest.approx(run["guessing"], rel=0.05)
        assert min(run["hidden"][1:]) < 0.5 * run["guessing"]
    for run in records.runs(records.load("position_probe"), "rope"):
        assert min(run["linear"]) > 0.8 * run["guessing"]


def test_random_numbers_do_not_depend_on_the_process():
    a, b = (torch.rand(3, generator=laboratory.module("word_order").tasks.generator(5, 6)) for _ in "ab")
    assert torch.equal(a, b)

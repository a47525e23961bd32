r"""What the models are trained on and asked."""

import hashlib
import math

import pytest
import torch

from posbook.experiments import corpus, language, tasks


def test_no_paragraph_of_the_evaluation_text_is_trained_on():
    asked = {p for d in corpus.evaluation().split(corpus.SEPARATOR) for p in d.split("\n\n")}
    read = [p for d in corpus.training().split(corpus.SEPARATOR) for p in d.split("\n\n")]
    assert len(asked) > 900
    assert asked.isdisjoint(read)
    assert len(read) == len(set(read))


def test_the_evaluation_text_is_the_one_the_records_were_measured_on():
    digest = hashlib.sha256(corpus.evaluation().encode()).hexdigest()
    assert digest.startswith("1888a58a77f946c0")
    assert set(corpus.evaluation()) <= set(corpus.ALPHABET)


def test_its_licence_lies_beside_it():
    licence = (corpus.EVALUATION.parent / "LICENSE.PSF.txt").read_text("utf-8")
    assert "PYTHON SOFTWARE FOUNDATION LICENSE" in licence


def test_a_document_is_wholly_on_one_side():
    found = {f"m{i}": f"first {i}\n\nsecond {i}" for i in range(100)}
    training, evaluation = corpus.split(found)
    sides = [
        {line.split()[1] for line in text.split("\n") if "first" in line} for text in (training, evaluation)
    ]
    assert sides[0].isdisjoint(sides[1])
    assert 3 < len(sides[1]) < 25


def test_an_installation_without_docstrings_is_refused(monkeypatch):
    monkeypatch.setattr(corpus, "documents", lambda: {"a": "Too little."})
    with pytest.raises(ValueError, match=r"has 11 characters of documentation and 1,000,000 are needed"):
        corpus.training.__wrapped__()


def test_a_character_outside_the_alphabet_is_refused():
    with pytest.raises(ValueError, match="which 'é' is not in"):
        corpus.encode("é")


@pytest.mark.parametrize("length", [2, 5, 16])
def test_a_question_holds_one_a_and_one_b_and_its_answer(length):
    tokens, first = tasks.order(200, length, 6, tasks.generator(3))
    for row, answer in zip(tokens.tolist(), first.tolist(), strict=True):
        assert row.count(tasks.A) == row.count(tasks.B) == 1
        assert (row.index(tasks.A) < row.index(tasks.B)) == answer
    assert 0.3 < first.double().mean() < 0.7


def test_swapping_turns_every_answer_round_and_reversing_too():
    tokens, first = tasks.order(50, 8, 6, tasks.generator(0))
    for changed in (tasks.swapped(tokens), tokens.flip(1)):
        earlier = (changed == tasks.A).int().argmax(1) < (changed == tasks.B).int().argmax(1)
        assert (earlier.long() == 1 - first).all()
    assert torch.equal(tasks.swapped(tokens).sort(1).values, tokens.sort(1).values)


@pytest.mark.parametrize("length, symbols", [(1, 6), (8, 2)])
def test_a_question_without_room_is_refused(length, symbols):
    with pytest.raises(ValueError, match=f"length={length}, symbols={symbols}"):
        tasks.order(1, length, symbols, tasks.generator(0))


def test_every_context_length_is_asked_for_the_same_targets():
    """A model that knows each target without its context has one loss, whatever the length."""

    model = language.build("none", seed=0)
    with torch.no_grad():
        model.head.weight.zero_()
        model.head.bias.copy_(torch.arange(97.0))
    found = language.by_length(model, [16, 64, 512], windows=9)["last"]
    assert max(found) - min(found) < 1e-9


def test_a_loss_is_that_of_the_last_sixteen_characters():
    model = language.build("none", seed=0)
    text = corpus.encode(corpus.evaluation())
    end = torch.linspace(512, len(text) - 1, 2).long()
    total = 0.0
    for e in end.tolist():
        chance = model(text[None, e - 32 : e]).detach().double().softmax(-1)[0]
        total += sum(-chance[i, text[e - 32 + i + 1]].log().item() for i in range(16, 32)) / 16
    assert language.by_length(model, [32], windows=2)["last"][0] == pytest.approx(total / 2, rel=2e-6)


def test_a_context_that_is_too_short_or_too_long_is_refused():
    model = language.build("none", seed=0)
    for lengths in ([8], [64, 1024]):
        with pytest.raises(ValueError, match="contexts hold 16 to 512 characters"):
            language.by_length(model, lengths, windows=1)


def test_letters_are_counted_as_a_book_keeper_would(monkeypatch):
    monkeypatch.setattr(corpus, "training", lambda: "abab" * 50)
    monkeypatch.setattr(corpus, "evaluation", lambda: "ab" * 50)
    assert language.counted(1, smoothing=1e-9) == pytest.approx(math.log(2), rel=1e-6)
    assert language.counted(2, smoothing=1e-9) == pytest.approx(0, abs=1e-6)

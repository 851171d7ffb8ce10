import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from relvec.data.benchmarks.classification import LabelledPairs, Part
from relvec.errors import RelvecError
from relvec.evaluation.fine_tuning import ClassifierTuner, FineTuning, evaluate_fine_tuned
from relvec.evaluation.task import Outcome
from relvec.model.torch_backend import TorchRelBERT

WORDS = {
    "antonym": ["hot:cold", "big:small", "up:down", "old:young", "wet:dry", "fast:slow"],
    "hypernym": ["oak:tree", "rose:flower", "cat:animal", "tea:drink", "red:color", "car:vehicle"],
    "maker": ["baker:bread", "barista:coffee", "poet:poem", "potter:vase", "tailor:suit", "brewer:beer"],
}
QUICK = FineTuning(epochs=3, learning_rate=3e-3, batch_size=4)


def labelled(start: int, end: int) -> LabelledPairs:
    rows = [(text.split(":"), label) for label, texts in WORDS.items() for text in texts[start:end]]
    return LabelledPairs(tuple((head, tail) for (head, tail), _ in rows), tuple(label for _, label in rows))


@pytest.fixture
def parts() -> dict[Part, LabelledPairs]:
    return {"train": labelled(0, 4), "valid": labelled(4, 5), "test": labelled(5, 6)}


def kill_at(monkeypatch: pytest.MonkeyPatch, last: int) -> list[int]:
    """Stop the next run before step `last`; the returned list tells which steps were taken."""
    taken: list[int] = []
    original: Callable[[ClassifierTuner, int], float] = ClassifierTuner.step

    def step(tuner: ClassifierTuner, number: int) -> float:
        if number == last:
            raise KeyboardInterrupt
        taken.append(number)
        return original(tuner, number)

    monkeypatch.setattr(ClassifierTuner, "step", step)
    return taken


@pytest.mark.parametrize("rank", [0, 4])
def test_a_handful_of_pairs_is_learnt_by_heart(tiny: TorchRelBERT, parts: dict[Part, LabelledPairs], rank: int) -> None:
    recipe = FineTuning(epochs=20, learning_rate=3e-2, batch_size=6, lora_rank=rank)
    result = evaluate_fine_tuned(tiny, {"train": parts["train"], "test": parts["train"]}, recipe)
    assert result.metrics["micro_f1"] == result.metrics["macro_f1"] == 100
    assert result.metrics["epochs"][-1]["train_loss"] < result.metrics["epochs"][0]["train_loss"]
    assert result.metrics["configuration"] == {**recipe.as_dict(), "epoch": 20}
    json.dumps(result.metrics)


def test_the_order_of_a_pair_can_be_learnt(tiny: TorchRelBERT) -> None:
    pairs = labelled(0, 2).pairs
    there_and_back = LabelledPairs((*pairs, *((t, h) for h, t in pairs)), ("there",) * 6 + ("back",) * 6)
    recipe = FineTuning(epochs=20, learning_rate=3e-2, batch_size=6)
    result = evaluate_fine_tuned(tiny, {"train": there_and_back, "test": there_and_back}, recipe)
    assert result.metrics["micro_f1"] == 100


def test_the_result_has_what_that_of_frozen_vectors_has(tiny: TorchRelBERT, parts: dict[Part, LabelledPairs]) -> None:
    result = evaluate_fine_tuned(tiny, parts, QUICK)
    assert isinstance(result, Outcome)
    assert {"macro_f1", "micro_f1", "interval", "by_class", "pairs", "configuration"} <= result.metrics.keys()
    assert result.metrics["pairs"] == {"train": 12, "valid": 3, "test": 3}
    assert [(row["head"], row["tail"]) for row in result.predictions] == list(parts["test"].pairs)


@pytest.mark.parametrize("rank", [0, 4])
def test_a_model_in_bfloat16_computes_in_it_and_is_trained_in_float32(
    tiny_folder: Path, parts: dict[Part, LabelledPairs], rank: int
) -> None:
    model = TorchRelBERT.from_pretrained(tiny_folder, dtype="bfloat16")
    tuner = ClassifierTuner(model, parts, FineTuning(lora_rank=rank))
    assert {weight.dtype for weight in tuner.weights.values()} == {torch.float32}
    assert model.dtype == torch.bfloat16
    halved: set[torch.dtype] = set()
    encoder: Any = tuner.model.encoder
    product = encoder.encoder.layer[0].attention.self.query
    product.register_forward_hook(lambda _, __, output: halved.add(output.dtype))
    before = {name: weight.detach().clone() for name, weight in tuner.weights.items()}
    tuner.step(1)
    assert halved == {torch.bfloat16}
    assert any(not torch.equal(before[name], weight) for name, weight in tuner.weights.items())


@pytest.mark.parametrize("rank", [0, 2])
def test_the_model_of_the_caller_stays_as_it_is(
    tiny: TorchRelBERT, parts: dict[Part, LabelledPairs], rank: int
) -> None:
    before, random = tiny.fingerprint, torch.get_rng_state()
    evaluate_fine_tuned(tiny, parts, FineTuning(epochs=1, learning_rate=1e-2, lora_rank=rank))
    assert tiny.fingerprint == before
    assert torch.equal(torch.get_rng_state(), random)
    assert all(weight.requires_grad for weight in tiny.encoder.parameters())


def test_the_epoch_with_the_best_validation_score_counts(tiny: TorchRelBERT, parts: dict[Part, LabelledPairs]) -> None:
    # Once the score is perfect no later epoch beats it, and the answers of that one stay.
    easy: dict[Part, LabelledPairs] = {"train": parts["train"], "valid": parts["train"], "test": parts["test"]}
    recipe = FineTuning(epochs=15, learning_rate=3e-2, batch_size=6)
    result = evaluate_fine_tuned(tiny, easy, recipe)
    scores = [epoch["valid_micro_f1"] for epoch in result.metrics["epochs"]]
    best = scores.index(max(scores))
    assert 0 < best < 14
    assert result.metrics["configuration"]["epoch"] == best + 1
    tuner = ClassifierTuner(tiny, easy, recipe)
    for step in range(1, (best + 1) * tuner.evaluate_every + 1):
        tuner.step(step)
    predicted = [tuner.classes[place] for place in tuner.predict(easy["test"])]
    assert [row["predicted"] for row in result.predictions] == predicted


def test_without_a_validation_part_the_last_epoch_counts(tiny: TorchRelBERT, parts: dict[Part, LabelledPairs]) -> None:
    del parts["valid"]
    metrics = evaluate_fine_tuned(tiny, parts, QUICK).metrics
    assert metrics["configuration"]["epoch"] == 3
    assert [epoch["valid_micro_f1"] for epoch in metrics["epochs"]] == [None] * 3


@pytest.mark.parametrize("rank", [0, 2])
@pytest.mark.parametrize(("killed_at", "begins_at"), [(2, 1), (6, 5), (8, 7), (9, 9)])
def test_a_killed_run_resumes_to_the_same_result(
    tiny: TorchRelBERT,
    parts: dict[Part, LabelledPairs],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    rank: int,
    killed_at: int,
    begins_at: int,
) -> None:
    recipe = FineTuning(epochs=3, learning_rate=3e-3, batch_size=4, lora_rank=rank)
    whole = evaluate_fine_tuned(tiny, parts, recipe)
    monkeypatch.setattr(ClassifierTuner, "checkpoint_every", 2)

    def run() -> Outcome:
        return evaluate_fine_tuned(tiny, parts, recipe, work_folder=tmp_path)

    with monkeypatch.context() as patch:
        kill_at(patch, killed_at)
        with pytest.raises(KeyboardInterrupt):
            run()
    taken = kill_at(monkeypatch, 0)
    assert run() == whole
    assert taken == list(range(begins_at, 10))


def test_a_finished_run_is_not_trained_again(
    tiny: TorchRelBERT, parts: dict[Part, LabelledPairs], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = evaluate_fine_tuned(tiny, parts, QUICK, work_folder=tmp_path)
    taken = kill_at(monkeypatch, 0)
    assert evaluate_fine_tuned(tiny, parts, QUICK, work_folder=tmp_path) == first
    assert taken == []
    evaluate_fine_tuned(tiny, parts, FineTuning(epochs=1, seed=1), work_folder=tmp_path)
    assert taken != []


def test_the_same_seed_gives_the_same_training_and_another_another(
    tiny: TorchRelBERT, parts: dict[Part, LabelledPairs]
) -> None:
    def losses(seed: int) -> list[Any]:
        recipe = FineTuning(epochs=2, learning_rate=3e-3, batch_size=4, seed=seed)
        torch.manual_seed(np.random.default_rng().integers(1000))  # whatever was drawn before
        return evaluate_fine_tuned(tiny, parts, recipe).metrics["epochs"]

    assert losses(1) == losses(1)
    assert losses(1) != losses(2)


def test_an_epoch_shows_every_pair_once_and_each_epoch_in_another_order(
    tiny: TorchRelBERT, parts: dict[Part, LabelledPairs]
) -> None:
    tuner = ClassifierTuner(tiny, parts, FineTuning(batch_size=5))
    epochs = [[tuner.rows(step) for step in range(start, start + 3)] for start in (1, 4)]
    for batches in epochs:
        assert [len(batch) for batch in batches] == [5, 5, 2]
        assert sorted(row for batch in batches for row in batch) == list(range(12))
    assert epochs[0] != epochs[1]


def test_a_step_encodes_both_directions_of_each_pair_once(tiny: TorchRelBERT, parts: dict[Part, LabelledPairs]) -> None:
    sizes: list[int] = []
    tuner = ClassifierTuner(tiny, parts, QUICK)
    tuner.model.encoder.register_forward_hook(lambda _, __, output: sizes.append(len(output.last_hidden_state)))
    tuner.step(1)
    assert sum(sizes) == 8


def test_a_work_folder_that_cannot_be_made_is_named(
    tiny: TorchRelBERT, parts: dict[Part, LabelledPairs], tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(RelvecError, match=r"Cannot write"):
        evaluate_fine_tuned(tiny, parts, QUICK, work_folder=tmp_path / "file" / "below")

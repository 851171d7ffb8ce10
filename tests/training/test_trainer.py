import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from relvec import RelvecError
from relvec.data.rated import RatedRelation, split
from relvec.model.adapter import adapter_config
from relvec.model.torch_backend import TorchRelBERT
from relvec.training.loop import CHECKPOINT_NAME, Course, copied_weights
from relvec.training.losses import LOSSES
from relvec.training.recipe import Recipe
from relvec.training.trainer import Trainer

QUICK: dict[str, Any] = {
    "template": "[h] is the <mask> of [t]",
    "pooling": "average",
    "relations_per_batch": 4,
    "positives_per_relation": 3,
    "steps": 6,
    "learning_rate": 3e-3,
    "warmup_steps": 2,
    "evaluate_every": 2,
    "lora_rank": 0,
}
PAIRS = [("hot", "cold"), ("baker", "bread")]

MakeTrainer = Callable[..., Trainer]


@pytest.fixture
def make_trainer(tiny_folder: Path, tmp_path: Path, relations: list[RatedRelation]) -> MakeTrainer:
    def make(output: str = "trained", folder: Path = tiny_folder, **changes: Any) -> Trainer:
        recipe = Recipe().changed(QUICK | {"base": str(folder)} | changes)
        model = TorchRelBERT.from_pretrained(folder, template=recipe.template, pooling=recipe.pooling)
        return Trainer(model, split(relations, "train"), split(relations, "valid"), recipe, tmp_path / output)

    return make


def take_steps(trainer: Trainer) -> None:
    """Train without choosing the best weights: on so small a model the best may be those it began with."""
    for step in range(1, trainer.steps + 1):
        trainer.step(step)


@pytest.mark.parametrize("loss", LOSSES)
def test_training_lowers_every_loss(make_trainer: MakeTrainer, loss: str) -> None:
    trainer = make_trainer(loss=loss, steps=30, evaluate_every=30, triples_per_batch=4, dropout=False)
    batch = trainer.sampler(0)

    def on_batch() -> float:
        with torch.no_grad():
            vectors = torch.from_numpy(trainer.model.encode(batch.pairs))
            return float(trainer.loss(vectors[batch.row], batch))

    before = on_batch()
    take_steps(trainer)
    assert on_batch() < before


@pytest.mark.parametrize("rank", [0, 4])
def test_the_saved_model_gives_the_vectors_of_the_trained_one(
    make_trainer: MakeTrainer, any_folder: Path, tmp_path: Path, rank: int
) -> None:
    trainer = make_trainer(folder=any_folder, lora_rank=rank)
    base = trainer.model.encode(PAIRS)
    take_steps(trainer)
    trainer.save(Course({6: 1.0}, {0: {"valid loss": 2.0}, 6: {"valid loss": 1.0}}, best_step=6))
    trained = trainer.model.encode(PAIRS)
    assert np.abs(trained - base).max() > 1e-3
    loaded = TorchRelBERT.from_pretrained(tmp_path / "trained")
    tolerance = 2e-2 if rank else 1e-5  # adapters are stored as half precision
    np.testing.assert_allclose(loaded.encode(PAIRS), trained, atol=tolerance)
    assert loaded.training_record["metrics"]["step"] == 6


def test_an_adapter_is_what_peft_itself_would_load(
    make_trainer: MakeTrainer, tiny_folder: Path, tmp_path: Path
) -> None:
    from peft import PeftModel

    make_trainer(lora_rank=4).fit()
    base = TorchRelBERT.from_pretrained(tiny_folder)
    PeftModel.from_pretrained(base.encoder, str(tmp_path / "trained"))
    loaded = TorchRelBERT.from_pretrained(tmp_path / "trained")
    np.testing.assert_allclose(loaded.encode(PAIRS), base.encode(PAIRS), atol=1e-4)


def test_the_card_names_data_recipe_seed_and_validation_loss(make_trainer: MakeTrainer, tmp_path: Path) -> None:
    make_trainer(seed=7).fit()
    card = (tmp_path / "trained" / "README.md").read_text()
    for part in ("bundled", "| seed | 7 |", "| loss | contrastive |", "| validation loss |"):
        assert part in card


def test_the_weights_with_the_lowest_validation_loss_are_kept(make_trainer: MakeTrainer) -> None:
    trainer = make_trainer(learning_rate=0.3, warmup_steps=0, steps=6)  # so high a rate soon makes things worse
    course = trainer.fit()
    assert trainer.evaluate() == pytest.approx(course.best, rel=1e-4)


@pytest.mark.parametrize("rank", [0, 4])
def test_a_killed_run_resumes_to_the_same_weights(
    make_trainer: MakeTrainer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, rank: int
) -> None:
    whole = make_trainer("whole", lora_rank=rank)
    whole.fit()
    expected = copied_weights(whole.weights)

    killed = make_trainer("killed", lora_rank=rank)
    original = killed.step
    monkeypatch.setattr(killed, "step", lambda step: original(step) if step < 6 else _kill())
    with pytest.raises(KeyboardInterrupt):
        killed.fit()
    assert (tmp_path / "killed" / CHECKPOINT_NAME).is_file()

    resumed = make_trainer("killed", lora_rank=rank)
    steps: list[int] = []
    continued = resumed.step
    monkeypatch.setattr(resumed, "step", lambda step: (steps.append(step), continued(step))[1])  # type: ignore[func-returns-value]
    resumed.fit()
    assert steps == [5, 6]
    for name, weight in resumed.weights.items():
        assert torch.equal(weight, expected[name]), name
    assert not (tmp_path / "killed" / CHECKPOINT_NAME).exists()


def _kill() -> float:
    raise KeyboardInterrupt


def test_a_folder_with_a_readme_of_its_own_takes_no_model(make_trainer: MakeTrainer, tmp_path: Path) -> None:
    (tmp_path / "trained").mkdir()
    (tmp_path / "trained/README.md").write_text("My project")
    with pytest.raises(RelvecError, match=r"has a README.md that is not a model's; choose another folder"):
        make_trainer()


def test_a_checkpoint_of_another_base_is_not_mixed_in(
    make_trainer: MakeTrainer, tiny_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = Path(shutil.copytree(tiny_folder, tmp_path / "base"))
    killed = make_trainer(folder=base, lora_rank=4)
    original = killed.step
    monkeypatch.setattr(killed, "step", lambda step: original(step) if step < 4 else _kill())
    with pytest.raises(KeyboardInterrupt):
        killed.fit()
    other = TorchRelBERT.from_pretrained(base)
    with torch.no_grad():
        next(other.encoder.parameters()).add_(1)
    other.save_pretrained(base)
    with pytest.raises(RelvecError, match="belongs to a run with another base"):
        make_trainer(folder=base, lora_rank=4).fit()


def test_an_adapter_never_replaces_what_it_stands_on(
    make_trainer: MakeTrainer, tiny_folder: Path, tmp_path: Path
) -> None:
    base = Path(shutil.copytree(tiny_folder, tmp_path / "base"))
    make_trainer("lower", folder=base, lora_rank=2).fit()
    for output in ("lower", "base"):
        with pytest.raises(RelvecError, match="holds the base that the adapter needs; choose another output"):
            make_trainer(output, folder=tmp_path / "lower", lora_rank=2)


def test_a_model_never_replaces_what_it_was_trained_from(
    make_trainer: MakeTrainer, tiny_folder: Path, tmp_path: Path
) -> None:
    base = Path(shutil.copytree(tiny_folder, tmp_path / "base"))
    with pytest.raises(RelvecError, match="holds the base that the training needs; choose another output"):
        make_trainer("base", folder=base)


@pytest.mark.parametrize("epochs", [0.0, 1.0])
def test_a_finished_run_is_known_again_and_spared_by_others(
    make_trainer: MakeTrainer, tmp_path: Path, epochs: float
) -> None:
    first = make_trainer(lora_rank=2, steps=2, epochs=epochs).fit()
    written = (tmp_path / "trained" / "adapter_model.safetensors").stat().st_mtime_ns
    again = make_trainer(lora_rank=2, steps=2, epochs=epochs).fit()
    assert again.was_finished
    assert (again.first, again.best, again.best_step) == (first.first, first.best, first.best_step)
    with pytest.raises(RelvecError, match="belongs to a run with another base, other settings or other data"):
        make_trainer(lora_rank=2, steps=2, epochs=epochs, seed=1).fit()
    assert (tmp_path / "trained" / "adapter_model.safetensors").stat().st_mtime_ns == written


def test_a_model_that_tells_no_run_is_spared(make_trainer: MakeTrainer, tiny_folder: Path, tmp_path: Path) -> None:
    shutil.copytree(tiny_folder, tmp_path / "trained")
    with pytest.raises(RelvecError, match="belongs to a run with another base"):
        make_trainer().fit()


def test_weights_that_are_not_finite_are_never_saved(make_trainer: MakeTrainer, tmp_path: Path) -> None:
    model = make_trainer().model
    next(model.encoder.parameters()).data[0] = float("nan")
    with pytest.raises(RelvecError, match="is not finite"):
        model.save_pretrained(tmp_path / "saved")
    assert not (tmp_path / "saved").exists()


@pytest.mark.parametrize("part", ["train", "valid"])
@pytest.mark.parametrize(
    ("word", "message"), [("Paris " * 100, "tokens where the model takes"), ("a <mask> b", "<mask>")]
)
def test_a_pair_that_the_model_cannot_take_fails_before_the_first_step(
    tiny: TorchRelBERT, relations: list[RatedRelation], tmp_path: Path, part: str, word: str, message: str
) -> None:
    parts = {"train": split(relations, "train"), "valid": split(relations, "valid")}
    last = parts[part][-1]
    parts[part][-1] = replace(last, negatives=(*last.negatives, ("hot", word)))
    recipe = Recipe().changed(QUICK)
    with pytest.raises(RelvecError, match=message):
        Trainer(tiny, parts["train"], parts["valid"], recipe, tmp_path / "trained")


def test_an_adapter_finds_its_base_from_any_working_directory(
    make_trainer: MakeTrainer, tiny_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tiny_folder.parent)
    make_trainer(folder=Path(tiny_folder.name), lora_rank=2).fit()
    monkeypatch.chdir(tmp_path)
    assert adapter_config(tmp_path / "trained").base_model_name_or_path == str(tiny_folder)
    assert TorchRelBERT.from_pretrained("trained").training_record["base"] == tiny_folder.name
    assert str(tiny_folder) not in (tmp_path / "trained" / "README.md").read_text()


def test_a_model_trained_from_a_trained_one_names_the_language_model_below_both(
    make_trainer: MakeTrainer, tiny_folder: Path, tmp_path: Path
) -> None:
    for base, output in ((tiny_folder, "first"), (tmp_path / "first", "second"), (tmp_path / "second", "third")):
        make_trainer(output, folder=base, lora_rank=2, steps=1).fit()
        assert TorchRelBERT.from_pretrained(tmp_path / output).language_model == str(tiny_folder)
    assert TorchRelBERT.from_pretrained(tmp_path / "third").training_record["base"] == str(tmp_path / "second")


def test_the_same_seed_gives_the_same_model_and_another_another(make_trainer: MakeTrainer) -> None:
    vectors = []
    for output, seed in (("a", 1), ("b", 1), ("c", 2)):
        trainer = make_trainer(output, seed=seed, lora_rank=4)
        take_steps(trainer)
        vectors.append(trainer.model.encode(PAIRS))
    np.testing.assert_array_equal(vectors[0], vectors[1])
    assert np.abs(vectors[0] - vectors[2]).max() > 1e-6


@pytest.mark.parametrize("precision", ["no", "bf16"])
def test_gradients_of_threads_and_of_chunks_equal_those_of_one_pass(
    make_trainer: MakeTrainer, monkeypatch: pytest.MonkeyPatch, precision: str
) -> None:
    monkeypatch.setattr(torch, "get_num_threads", lambda: 2)
    values, gradients = [], []
    for output, size in (("plain", 0), ("threads", 1000), ("chunks", 3)):
        trainer = make_trainer(output, dropout=False, pairs_per_forward=size or 1000, mixed_precision=precision)
        if size:
            values.append(trainer.gradients(1))
        else:
            batch = trainer.sampler(0)
            with trainer.accelerator.autocast():
                vectors = trainer.model.vectors_by_length(trainer.model.token_ids(batch.pairs)).float()
            value = trainer.loss(vectors[batch.row], batch)
            value.backward()
            values.append(float(value.detach()))
        gradients.append({n: w.grad.clone() for n, w in trainer.weights.items() if w.grad is not None})
    assert values == pytest.approx([values[0]] * 3, rel=1e-5 if precision == "no" else 0.05)
    largest = max(float(gradient.abs().max()) for gradient in gradients[0].values())
    tolerance = 1e-5 if precision == "no" else 0.05 * largest
    for found in gradients[1:]:
        assert found.keys() == gradients[0].keys()
        for name, plain in gradients[0].items():
            torch.testing.assert_close(found[name], plain, atol=tolerance, rtol=1e-3)


def test_with_dropout_a_step_is_one_pass_from_a_seed_of_its_own(
    make_trainer: MakeTrainer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch, "get_num_threads", lambda: 2)
    trainer = make_trainer(dropout=True)
    value = trainer.gradients(1)
    found = {name: weight.grad for name, weight in trainer.weights.items()}
    for weight in trainer.weights.values():
        weight.grad = None
    batch = trainer.sampler(0)
    torch.manual_seed(1000)
    vectors = trainer.model.vectors_by_length(trainer.model.token_ids(batch.pairs))
    plain = trainer.loss(vectors[batch.row], batch)
    plain.backward()
    assert value == float(plain.detach())
    for name, weight in trainer.weights.items():
        torch.testing.assert_close(found[name], weight.grad, atol=0, rtol=0)


@pytest.mark.parametrize(("asked", "used"), [(0, 6), (1, 1), (4, 4), (5, 5), (6, 6), (9, 6)])
def test_the_validation_loss_uses_as_many_relations_as_asked_for(
    make_trainer: MakeTrainer, asked: int, used: int
) -> None:
    validation = make_trainer(validation_relations=asked).validation
    assert len(validation.relation.unique()) == used
    assert len(validation.pairs) == 4 * used


def test_frozen_layers_stay_as_they_are(make_trainer: MakeTrainer) -> None:
    trainer = make_trainer(frozen_layers=1)
    before = {name: weight.clone() for name, weight in trainer.model.encoder.state_dict().items()}
    take_steps(trainer)
    changed = {n for n, weight in trainer.model.encoder.state_dict().items() if not torch.equal(weight, before[n])}
    assert not any("layer.0." in name or "word_embeddings" in name for name in changed)
    assert any("layer.1." in name for name in changed)


def test_too_many_frozen_layers_are_refused(make_trainer: MakeTrainer) -> None:
    for count in (2, 9):
        with pytest.raises(RelvecError, match=f"Cannot freeze {count} layers of roberta, which has 2; use a smaller"):
            make_trainer(frozen_layers=count)


def test_a_full_disk_is_noticed_before_training(make_trainer: MakeTrainer, monkeypatch: pytest.MonkeyPatch) -> None:
    class Usage:
        free = 10

    monkeypatch.setattr("shutil.disk_usage", lambda _: Usage)
    with pytest.raises(RelvecError, match=r"has 10 bytes free and the run needs \d+\.\d\d [kM]B; free some"):
        make_trainer().fit()


def test_the_plan_counts_without_changing_anything(make_trainer: MakeTrainer, tmp_path: Path) -> None:
    trainer = make_trainer(loss="triplet+classification", epochs=1.0)
    before = copied_weights(trainer.weights)
    plan = trainer.plan()
    assert (plan["relations"], plan["categories"], plan["steps"]) == (6, 3, 450)
    assert plan["triples_per_step"] > 0
    assert plan["seconds"] > 0
    assert all(torch.equal(weight, before[name]) for name, weight in trainer.weights.items())
    assert not (tmp_path / "trained").exists()


def test_a_saved_model_holds_no_path_of_this_machine(make_trainer: MakeTrainer, tmp_path: Path) -> None:
    for rank in (0, 2):
        trainer = make_trainer(f"rank{rank}", lora_rank=rank)
        trainer.fit()
        assert str(tmp_path.parent) not in (tmp_path / f"rank{rank}" / "config.json").read_text().replace(
            trainer.recipe.base, ""
        )


def test_half_precision_trains(make_trainer: MakeTrainer) -> None:
    course = make_trainer(mixed_precision="bf16").fit()
    assert all(np.isfinite(loss) for loss in course.loss.values())

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import AutoModel

from relvec import RelvecError
from relvec.distillation.distiller import Distiller
from relvec.model.torch_backend import TorchRelBERT
from relvec.training.loop import CHECKPOINT_NAME

MakeDistiller = Callable[..., Distiller]


def test_the_student_comes_to_give_the_teachers_vectors(make_distiller: MakeDistiller) -> None:
    course = make_distiller(steps=60, evaluate_every=60, learning_rate=1e-2).fit()
    assert course.scores[60]["cosine"] > course.first["cosine"]  # on held-out pairs
    losses = list(course.loss.values())
    assert np.mean(losses[-10:]) < 0.9 * np.mean(losses[:10])


def test_the_saved_student_loads_as_relbert_and_as_a_plain_encoder(
    make_distiller: MakeDistiller, tmp_path: Path
) -> None:
    distiller = make_distiller()
    distiller.fit()
    loaded = TorchRelBERT.from_pretrained(tmp_path / "student")
    pairs = distiller.pool.held_out
    np.testing.assert_allclose(loaded.encode(pairs), distiller.model.encode(pairs), atol=1e-6)
    assert (loaded.dim, loaded.pooling, loaded.template.text) == (8, "mask", "[h] <mask> [t]")
    assert AutoModel.from_pretrained(tmp_path / "student").config.hidden_size == 8


def test_a_student_may_be_an_adapter_of_its_base(make_distiller: MakeDistiller, tmp_path: Path) -> None:
    distiller = make_distiller(lora_rank=2, learning_rate=1e-2)
    before = {name: weight.clone() for name, weight in distiller.model.encoder.named_parameters()}
    distiller.fit()
    for name, weight in distiller.model.encoder.named_parameters():
        assert weight.requires_grad == ("lora_" in name)
        if "lora_" not in name:
            assert torch.equal(weight, before[name])
    assert (tmp_path / "student" / "adapter_config.json").is_file()
    assert not (tmp_path / "student" / "model.safetensors").exists()
    loaded = TorchRelBERT.from_pretrained(tmp_path / "student")
    pairs = distiller.pool.held_out
    np.testing.assert_allclose(loaded.encode(pairs), distiller.model.encode(pairs), atol=2e-3)  # half precision


def test_an_adapter_never_replaces_its_base(make_distiller: MakeDistiller, small_folder: Path) -> None:
    with pytest.raises(RelvecError, match="holds the base that the adapter needs; choose another output"):
        make_distiller(str(small_folder), lora_rank=2)


def test_another_model_is_not_replaced(make_distiller: MakeDistiller, small_folder: Path, tmp_path: Path) -> None:
    shutil.copytree(small_folder, tmp_path / "mine")
    with pytest.raises(RelvecError, match="mine belongs to a run with another base"):
        make_distiller("mine").fit()


def test_the_card_names_teacher_data_settings_and_scores(make_distiller: MakeDistiller, tmp_path: Path) -> None:
    distiller = make_distiller()
    distiller.fit()
    card = (tmp_path / "student" / "README.md").read_text()
    parts = (
        "| base | small-bert |",
        "my pairs",
        f"| teacher | {distiller.teacher.name} |",
        f"| teacher_fingerprint | {distiller.teacher.fingerprint} |",
        "| steps | 6 |",
        "| correlation with the teacher's cosines |",
    )
    for part in parts:
        assert part in card
    assert str(tmp_path) not in card


def kill(distiller: Distiller, at: int, monkeypatch: pytest.MonkeyPatch) -> None:
    original = distiller.step

    def step(number: int) -> float:
        if number == at:
            raise KeyboardInterrupt
        return original(number)

    monkeypatch.setattr(distiller, "step", step)
    with pytest.raises(KeyboardInterrupt):
        distiller.fit()


def test_a_killed_run_resumes_to_the_same_weights(
    make_distiller: MakeDistiller, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    whole = make_distiller("whole")
    expected = whole.fit()
    kill(make_distiller("killed"), 6, monkeypatch)
    assert (tmp_path / "killed" / CHECKPOINT_NAME).is_file()
    resumed = make_distiller("killed")
    steps: list[int] = []
    original = resumed.step
    monkeypatch.setattr(resumed, "step", lambda number: (steps.append(number), original(number))[1])  # type: ignore[func-returns-value]
    progress = resumed.fit()
    assert steps == [5, 6]
    assert progress == expected
    state = whole.model.encoder.state_dict()
    for name, weight in resumed.model.encoder.state_dict().items():
        assert torch.equal(weight, state[name]), name
    assert not (tmp_path / "killed" / CHECKPOINT_NAME).exists()


def test_the_teacher_encodes_each_pair_once_ever(
    make_distiller: MakeDistiller, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_distiller("first", steps=1).fit()
    again = make_distiller("second", steps=1)
    monkeypatch.setattr(again.teacher.model, "encode", None)
    again.fit()


def test_the_plan_counts_without_changing_anything(make_distiller: MakeDistiller, tmp_path: Path) -> None:
    distiller = make_distiller(steps=0, epochs=2.0)
    before = distiller.model.fingerprint
    plan = distiller.plan()
    assert plan["steps"] == 2 * -(-plan["training_pairs"] // 16)
    assert plan["to_encode"] == plan["training_pairs"] + plan["held_out_pairs"]
    assert (plan["teacher_dim"], plan["student_dim"]) == (16, 8)
    assert distiller.model.fingerprint == before
    assert not (tmp_path / "student").exists()
    distiller.teacher.prepare([*distiller.pool.train, *distiller.pool.held_out])
    assert distiller.plan()["to_encode"] == 0


def test_the_plan_counts_only_weights_that_are_trained(make_distiller: MakeDistiller) -> None:
    distiller = make_distiller(lora_rank=2)
    weights = distiller.model.encoder.named_parameters()
    assert distiller.plan()["trainable_parameters"] == sum(w.numel() for name, w in weights if "lora_" in name)


def test_the_plan_of_few_pairs_takes_the_time_they_took(
    make_distiller: MakeDistiller, monkeypatch: pytest.MonkeyPatch
) -> None:
    distiller = make_distiller()
    distiller.teacher.prepare(distiller.pool.train)
    clock = iter(range(0, 100, 10))
    monkeypatch.setattr("relvec.training.model_training.time.perf_counter", lambda: next(clock))
    plan = distiller.plan()
    assert 0 < plan["to_encode"] < 64
    assert plan["encoding_seconds"] == 10

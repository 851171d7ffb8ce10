from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from relvec import RelBERT, RelvecError
from relvec.data.overlap import inflected
from relvec.data.rated import RatedRelation, split
from relvec.model.cached_vectors import ModelVectors
from relvec.model.torch_backend import TorchRelBERT
from relvec.similarity import normalized
from relvec.training import Recipe, train
from relvec.training.run import make_teacher, make_trainer
from relvec.training.teacher import SideBySide, Teacher, neighbour_loss, wccn_map
from relvec.training.trainer import Trainer

PAIRS = [("hot", "cold"), ("baker", "bread"), ("oak", "tree"), ("cup", "tea"), ("poet", "poem")]
QUICK: dict[str, Any] = {
    "template": "[h] is the <mask> of [t]",
    "pooling": "average",
    "relations_per_batch": 4,
    "positives_per_relation": 3,
    "steps": 30,
    "learning_rate": 3e-3,
    "lora_rank": 0,
    "dropout": False,
}


@pytest.fixture
def model_vectors(tiny_folder: Path) -> ModelVectors:
    return ModelVectors(RelBERT.from_pretrained(tiny_folder, template="[t] makes [h] : <mask>", pooling="mask"))


@pytest.fixture
def teacher(model_vectors: ModelVectors) -> SideBySide:
    return SideBySide([model_vectors])


def test_the_loss_is_the_mean_divergence_of_the_neighbours_of_each_pair() -> None:
    student, teacher = torch.randn(5, 8), torch.randn(5, 3)
    expected = 0.0
    for i in range(5):
        others = [k for k in range(5) if k != i]
        p, q = (
            torch.stack([torch.cosine_similarity(v[i], v[k], dim=0) / 0.1 for k in others]).softmax(0)
            for v in (teacher, student)
        )
        expected += float((p * (p / q).log()).sum()) / 5
    assert float(neighbour_loss(student, teacher, temperature=0.1)) == pytest.approx(expected, rel=1e-4)


def test_the_weight_multiplies_the_loss(teacher: SideBySide) -> None:
    student = torch.randn(len(PAIRS), 8)
    once, thrice = (float(Teacher(teacher, weight).loss(student, PAIRS)) for weight in (1.0, 3.0))
    assert once > 0
    assert thrice == pytest.approx(3 * once)


def test_the_loss_has_a_gradient_for_the_student_alone() -> None:
    student, teacher = torch.randn(4, 8, requires_grad=True), torch.randn(4, 8, requires_grad=True)
    neighbour_loss(student, teacher.detach()).backward()
    assert student.grad is not None
    assert torch.isfinite(student.grad).all()


def test_added_pairs_depend_on_seed_and_step_alone(teacher: SideBySide) -> None:
    def added(seed: int, step: int) -> list[tuple[str, str]]:
        return Teacher(teacher, unlabelled=PAIRS, pairs_per_batch=4, seed=seed).added_pairs(step)

    assert added(0, 7) == added(0, 7)
    assert len({tuple(added(seed, step)) for seed in range(3) for step in range(3)}) > 1


def test_half_of_the_added_pairs_are_reversed(teacher: SideBySide) -> None:
    added = Teacher(teacher, unlabelled=PAIRS, pairs_per_batch=6).added_pairs(1)
    assert all(pair in PAIRS for pair in added[:3])
    assert all((tail, head) in PAIRS for head, tail in added[3:])


def test_without_unlabelled_pairs_none_is_added(teacher: SideBySide) -> None:
    assert Teacher(teacher, pairs_per_batch=6).added_pairs(1) == []


def test_training_brings_the_neighbours_nearer_to_those_of_the_teacher(
    tiny_folder: Path, tmp_path: Path, relations: list[RatedRelation], teacher: SideBySide
) -> None:
    recipe = Recipe().changed(QUICK | {"base": str(tiny_folder)})
    model = TorchRelBERT.from_pretrained(tiny_folder, template=recipe.template, pooling=recipe.pooling)
    pairs = [pair for relation in split(relations, "train") for pair in relation.pairs]
    target = torch.from_numpy(teacher.vectors(pairs)[0])

    def distance() -> float:
        return float(neighbour_loss(torch.from_numpy(model.encode(pairs)), target))

    taught_by = Teacher(teacher, weight=1000.0, unlabelled=PAIRS, pairs_per_batch=5)
    parts = split(relations, "train"), split(relations, "valid")
    trainer = Trainer(model, *parts, recipe, tmp_path / "trained", teacher=taught_by)
    before = distance()
    for step in range(1, trainer.steps + 1):
        trainer.step(step)
    assert distance() < before


def test_of_several_models_the_vectors_lie_side_by_side(tiny_folder: Path, model_vectors: ModelVectors) -> None:
    other = ModelVectors(RelBERT.from_pretrained(tiny_folder, template="[h] <mask> [t]", pooling="mask"))
    both = SideBySide([model_vectors, other]).vectors(PAIRS)[0]
    assert both == pytest.approx(np.hstack([normalized(each.vectors(PAIRS)[0]) for each in (model_vectors, other)]))


def test_wccn_lets_a_teachers_vectors_vary_less_within_relations_than_between_them(
    model_vectors: ModelVectors, relations: list[RatedRelation]
) -> None:
    def share_within(vectors: SideBySide) -> float:
        vectors.prepare()
        found = [vectors.vectors(relation.positives)[0] for relation in relations]
        means = [each.mean(axis=0) for each in found]
        within = sum(float(((each - mean) ** 2).sum()) for each, mean in zip(found, means, strict=True))
        return within / float(((np.vstack(found) - np.vstack(found).mean(axis=0)) ** 2).sum())

    plain, normal = (share_within(SideBySide([model_vectors], relations, wccn)) for wccn in (0.0, 0.4))
    assert normal < 0.99 * plain


def test_wccn_to_the_power_of_nothing_changes_no_vector() -> None:
    vectors = np.random.default_rng(0).normal(size=(6, 4)).astype(np.float32)
    assert vectors @ wccn_map(vectors, np.array([0, 0, 1, 1, 2, 2]), 0.0) == pytest.approx(vectors, abs=1e-5)


def test_a_student_can_learn_the_vectors_of_its_teacher(
    tiny_folder: Path, tmp_path: Path, relations: list[RatedRelation], teacher: SideBySide
) -> None:
    recipe = Recipe().changed(QUICK | {"base": str(tiny_folder)})
    model = TorchRelBERT.from_pretrained(tiny_folder, template=recipe.template, pooling=recipe.pooling)
    parts = split(relations, "train"), split(relations, "valid")
    pairs = [pair for relation in parts[0] for pair in relation.pairs]
    taught_by = Teacher(teacher, weight=1000.0, to_fit=pairs)
    taught_by.prepare(model)

    def distance() -> float:
        return float(taught_by.loss(torch.from_numpy(model.encode(pairs)), pairs))

    trainer = Trainer(model, *parts, recipe, tmp_path / "trained", teacher=taught_by)
    before = distance()
    for step in range(1, trainer.steps + 1):
        trainer.step(step)
    assert distance() < 0.8 * before


def test_a_recipe_with_another_teacher_is_another_job(
    tiny_folder: Path, tmp_path: Path, relations: list[RatedRelation], teacher: SideBySide
) -> None:
    recipe = Recipe().changed(QUICK | {"base": str(tiny_folder)})
    parts = split(relations, "train"), split(relations, "valid")

    def job(taught_by: Teacher | None) -> str:
        model = TorchRelBERT.from_pretrained(tiny_folder, template=recipe.template, pooling=recipe.pooling)
        return Trainer(model, *parts, recipe, tmp_path / "trained", teacher=taught_by).job

    assert len({job(None), job(Teacher(teacher)), job(Teacher(teacher, unlabelled=PAIRS))}) == 3


def test_no_unlabelled_pair_is_an_excluded_one(tiny_folder: Path, tmp_path: Path) -> None:
    (tmp_path / "pairs.tsv").write_text("head\ttail\ncups\tteas\npoet\tpoem\npoet\tpoem\n")
    recipe = Recipe(teacher=[str(tiny_folder)], unlabelled=[str(tmp_path / "pairs.tsv")], unlabelled_per_batch=2)
    made = make_teacher(recipe, excluded={inflected(("cup", "tea"))})
    assert made is not None
    assert list(made.unlabelled) == [("poet", "poem")]


def test_a_teacher_has_the_weight_of_the_recipe(tiny_folder: Path) -> None:
    made = make_teacher(Recipe(teacher=[str(tiny_folder)], teacher_weight=3.0))
    assert made is not None
    assert made.weight == 3.0


@pytest.mark.parametrize("settings", [{"mixed_precision": "bf16", "lora_rank": 0}, {"base_dtype": "bfloat16"}])
def test_the_teacher_computes_in_the_precision_of_the_training(tiny_folder: Path, settings: dict[str, Any]) -> None:
    made = make_teacher(Recipe(teacher=[str(tiny_folder)], **settings))
    assert made is not None
    coarse = RelBERT.from_pretrained(tiny_folder, dtype="bfloat16")
    assert made.vectors.fingerprint == SideBySide([ModelVectors(coarse)]).fingerprint


@pytest.mark.parametrize("how", [{}, {"teacher_targets": "vectors", "teacher_wccn": 0.3}])
def test_a_run_with_a_teacher_resumes_and_ends_as_an_undisturbed_one(
    tiny_folder: Path, tmp_path: Path, how: dict[str, Any]
) -> None:
    (tmp_path / "pairs.tsv").write_text("head\ttail\ncup\ttea\npoet\tpoem\nhot\tcold\n")
    settings = QUICK | {"base": str(tiny_folder), "teacher": str(tiny_folder), "steps": 4, "evaluate_every": 2}
    settings |= {"unlabelled": [str(tmp_path / "pairs.tsv")], "unlabelled_per_batch": 2, "relations_per_batch": 3}
    settings |= how
    recipe = Recipe().changed(settings)
    whole = train(recipe, tmp_path / "whole", show_progress=False)
    stopped = make_trainer(recipe, tmp_path / "stopped")
    stopped.steps = 2
    stopped.run(show_progress=False)
    resumed = train(recipe, tmp_path / "stopped", show_progress=False)
    assert resumed.loss == pytest.approx(whole.loss)


def test_unlabelled_pairs_need_a_teacher() -> None:
    with pytest.raises(RelvecError, match="teacher"):
        Recipe(unlabelled=["pairs.tsv"])

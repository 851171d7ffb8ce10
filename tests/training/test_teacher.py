import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch

from relvec import RelBERT, RelvecError
from relvec.data.overlap import inflected
from relvec.data.rated import RatedRelation, split
from relvec.model.cached_vectors import ModelVectors
from relvec.model.torch_backend import TorchRelBERT
from relvec.training import Recipe, train
from relvec.training.run import check_exclusions, make_teacher, make_trainer
from relvec.training.teacher import Teacher, neighbour_loss
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
def teacher(tiny_folder: Path) -> ModelVectors:
    return ModelVectors(RelBERT.from_pretrained(tiny_folder, template="[t] makes [h] : <mask>", pooling="mask"))


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


def test_the_weight_multiplies_the_loss(teacher: ModelVectors) -> None:
    student = torch.randn(len(PAIRS), 8)
    once, thrice = (float(Teacher(teacher, weight).loss(student, PAIRS)) for weight in (1.0, 3.0))
    assert once > 0
    assert thrice == pytest.approx(3 * once)


def test_the_loss_has_a_gradient_for_the_student_alone() -> None:
    student, teacher = torch.randn(4, 8, requires_grad=True), torch.randn(4, 8, requires_grad=True)
    neighbour_loss(student, teacher.detach()).backward()
    assert student.grad is not None
    assert torch.isfinite(student.grad).all()


def test_added_pairs_depend_on_seed_and_step_alone(teacher: ModelVectors) -> None:
    def added(seed: int, step: int) -> list[tuple[str, str]]:
        return Teacher(teacher, unlabelled=PAIRS, pairs_per_batch=4, seed=seed).added_pairs(step)

    assert added(0, 7) == added(0, 7)
    assert len({tuple(added(seed, step)) for seed in range(3) for step in range(3)}) > 1


def test_half_of_the_added_pairs_are_reversed(teacher: ModelVectors) -> None:
    added = Teacher(teacher, unlabelled=PAIRS, pairs_per_batch=6).added_pairs(1)
    assert all(pair in PAIRS for pair in added[:3])
    assert all((tail, head) in PAIRS for head, tail in added[3:])


def test_without_unlabelled_pairs_none_is_added(teacher: ModelVectors) -> None:
    assert Teacher(teacher, pairs_per_batch=6).added_pairs(1) == []


def test_training_brings_the_neighbours_nearer_to_those_of_the_teacher(
    tiny_folder: Path, tmp_path: Path, relations: list[RatedRelation], teacher: ModelVectors
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


def test_a_recipe_with_another_teacher_is_another_job(
    tiny_folder: Path, tmp_path: Path, relations: list[RatedRelation], teacher: ModelVectors
) -> None:
    recipe = Recipe().changed(QUICK | {"base": str(tiny_folder)})
    parts = split(relations, "train"), split(relations, "valid")

    def job(taught_by: Teacher | None) -> str:
        model = TorchRelBERT.from_pretrained(tiny_folder, template=recipe.template, pooling=recipe.pooling)
        return Trainer(model, *parts, recipe, tmp_path / "trained", teacher=taught_by).job

    assert len({job(None), job(Teacher(teacher)), job(Teacher(teacher, unlabelled=PAIRS))}) == 3


def test_no_unlabelled_pair_is_an_excluded_one(tiny_folder: Path, tmp_path: Path) -> None:
    (tmp_path / "pairs.tsv").write_text("head\ttail\ncups\tteas\npoet\tpoem\npoet\tpoem\n")
    recipe = Recipe(teacher=str(tiny_folder), unlabelled=[str(tmp_path / "pairs.tsv")], unlabelled_per_batch=2)
    made = make_teacher(recipe, RelBERT.from_pretrained(tiny_folder), excluded={inflected(("cup", "tea"))})
    assert made is not None
    assert list(made.unlabelled) == [("poet", "poem")]


def test_a_teacher_has_the_weight_of_the_recipe(tiny_folder: Path) -> None:
    made = make_teacher(Recipe(teacher=str(tiny_folder), teacher_weight=3.0), RelBERT.from_pretrained(tiny_folder))
    assert made is not None
    assert made.weight == 3.0


@pytest.mark.parametrize("settings", [{"mixed_precision": "bf16", "lora_rank": 0}, {"base_dtype": "bfloat16"}])
def test_the_teacher_computes_in_the_precision_of_the_training(tiny_folder: Path, settings: dict[str, Any]) -> None:
    made = make_teacher(Recipe(teacher=str(tiny_folder), **settings), RelBERT.from_pretrained(tiny_folder))
    assert made is not None
    assert made.vectors.fingerprint == RelBERT.from_pretrained(tiny_folder, dtype="bfloat16").fingerprint


def test_a_run_with_a_teacher_resumes_and_ends_as_an_undisturbed_one(tiny_folder: Path, tmp_path: Path) -> None:
    (tmp_path / "pairs.tsv").write_text("head\ttail\ncup\ttea\npoet\tpoem\nhot\tcold\n")
    settings = QUICK | {"base": str(tiny_folder), "teacher": str(tiny_folder), "steps": 4, "evaluate_every": 2}
    settings |= {"unlabelled": [str(tmp_path / "pairs.tsv")], "unlabelled_per_batch": 2, "relations_per_batch": 3}
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


def trained_before(folder: Path, source: Path, **recipe: Any) -> str:
    """A copy of a model whose record says how it was trained."""
    shutil.copytree(source, folder)
    config = json.loads((folder / "config.json").read_text())
    config["relbert_config"]["training"] = {"recipe": {"data": ["semeval2012"], **recipe}}
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "checksums.sha256").unlink(missing_ok=True)
    return str(folder)


@pytest.mark.parametrize(
    ("left_out", "message"),
    [
        ({"exclude_benchmark_pairs": True}, "was trained on benchmark pairs, which the recipe leaves out"),
        ({"exclude_categories": ["1"]}, "was trained on the category 1, which the recipe leaves out"),
    ],
)
def test_a_teacher_or_base_that_saw_what_the_recipe_leaves_out_is_refused(
    tiny_folder: Path, tmp_path: Path, left_out: dict[str, Any], message: str
) -> None:
    recipe = Recipe().changed(left_out)
    for number, (trained, is_fair) in enumerate((({}, False), (left_out, True))):
        model = RelBERT.from_pretrained(trained_before(tmp_path / str(number), tiny_folder, **trained))
        if is_fair:
            check_exclusions(recipe, "teacher", model)
        else:
            with pytest.raises(RelvecError, match=f"^The teacher 0 {message}"):
                check_exclusions(recipe, "teacher", model)
    check_exclusions(recipe, "base", RelBERT.from_pretrained(tiny_folder))  # a language model saw no relations


def test_unlabelled_pairs_that_a_model_cannot_encode_are_left_out(tiny_folder: Path, tmp_path: Path) -> None:
    model = RelBERT.from_pretrained(tiny_folder)
    (tmp_path / "pairs.tsv").write_text(f"head\ttail\npoet\tpoem\nthe <mask>\tpoem\n{'cup ' * 400}\ttea\n")
    recipe = Recipe(teacher=str(tiny_folder), unlabelled=[str(tmp_path / "pairs.tsv")])
    made = make_teacher(recipe, model)
    assert made is not None
    assert [head[:4] for head, _ in made.unlabelled] == ["poet", "cup "]  # one that is too long is cut


def test_the_plan_counts_what_the_teacher_adds_and_is_the_same_again(tiny_folder: Path, tmp_path: Path) -> None:
    (tmp_path / "pairs.tsv").write_text("".join(f"a{number}\tb{number}\n" for number in range(50)))
    settings = QUICK | {"base": str(tiny_folder), "teacher": str(tiny_folder), "relations_per_batch": 2}
    unlabelled = {"unlabelled": [str(tmp_path / "pairs.tsv")], "unlabelled_per_batch": 40}
    bare = make_trainer(Recipe().changed(settings), tmp_path / "bare").plan()
    plans = [make_trainer(Recipe().changed(settings | unlabelled), tmp_path / "more").plan() for _ in range(2)]
    assert bare["pairs_per_step"] + 10 < plans[0]["pairs_per_step"] == plans[1]["pairs_per_step"]

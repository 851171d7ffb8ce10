from dataclasses import replace
from pathlib import Path

import pytest

from relvec import RelBERT, RelvecError
from relvec.data.rated import RatedRelation, split
from relvec.evaluation import evaluate
from relvec.evaluation.systems import loaded_system
from relvec.evaluation.validation_loss import LossTask, validation_loss
from relvec.model.torch_backend import TorchRelBERT
from relvec.training.losses import LOSSES
from relvec.training.recipe import Recipe
from relvec.training.run import load_relations
from relvec.training.samplers import validation_batch
from relvec.training.trainer import Trainer

WORDS = {
    "opposites/hot": "hot:cold big:small up:down old:young wet:dry",
    "opposites/buyer": "buyer:seller host:guest giver:taker doctor:patient boss:worker",
    "kinds/oak": "oak:tree rose:flower cat:animal tea:drink car:vehicle",
    "kinds/tree": "tree:pine flower:lily animal:dog drink:milk vehicle:bus",
}
WITH_WEIGHTS = ("classification", "triplet+classification")


@pytest.fixture
def relations() -> list[RatedRelation]:
    made = []
    for name, text in WORDS.items():
        positives = tuple((head, tail) for head, tail in (pair.split(":") for pair in text.split()))
        negatives = tuple((tail, head) for head, tail in positives)
        made.append(RatedRelation(name, name.split("/")[0], positives, negatives))
    return made


@pytest.mark.parametrize("loss", [name for name in LOSSES if name not in WITH_WEIGHTS])
def test_the_loss_equals_that_of_the_trainer(
    tiny: RelBERT, relations: list[RatedRelation], tmp_path: Path, loss: str
) -> None:
    recipe = Recipe().changed({"loss": loss, "lora_rank": 0})
    trainer = Trainer(
        TorchRelBERT.of(tiny), split(relations, "train"), split(relations, "valid"), recipe, tmp_path / "model"
    )
    assert validation_loss(tiny, relations, loss)["loss"] == trainer.evaluate()["valid loss"]


@pytest.mark.parametrize("loss", WITH_WEIGHTS)
def test_a_loss_whose_weights_no_model_keeps_is_refused(
    tiny: RelBERT, relations: list[RatedRelation], loss: str
) -> None:
    with pytest.raises(RelvecError, match="has weights of its own, which no model keeps; choose one of triplet"):
        validation_loss(tiny, relations, loss)


def test_triples_in_order_are_those_of_a_plain_loop(tiny: RelBERT, relations: list[RatedRelation]) -> None:
    batch = validation_batch(split(relations, "train"), split(relations, "valid"))
    pair_of = [batch.pairs[row] for row in batch.row.tolist()]
    right = [
        tiny.similarity(pair_of[anchor], pair_of[positive]) > tiny.similarity(pair_of[anchor], pair_of[negative])
        for anchor, positive, negative in batch.triples.tolist()
    ]
    found = validation_loss(tiny, relations)
    assert found["in_order"] == pytest.approx(100 * sum(right) / len(right))
    assert (found["triples"], found["relations"]) == (len(right), 4)


def test_relations_without_negatives_still_have_a_loss_between_relations(
    tiny: RelBERT, relations: list[RatedRelation]
) -> None:
    bare = [replace(relation, negatives=()) for relation in relations]
    found = validation_loss(tiny, bare, "infonce")
    assert found["loss"] > 0
    assert found["in_order"] is None
    with pytest.raises(RelvecError, match="no triples"):
        validation_loss(tiny, bare, "triplet")


def test_one_relation_with_nothing_to_compare_is_refused(tiny: RelBERT, relations: list[RatedRelation]) -> None:
    with pytest.raises(RelvecError, match="nothing to tell apart"):
        validation_loss(tiny, [replace(relations[0], negatives=())])


def test_the_relations_are_those_that_training_validates_on() -> None:
    assert LossTask().load(["bundled"]) == {"bundled": load_relations(Recipe(data=["bundled"]))}


def test_a_model_is_scored_on_the_pairs_that_its_own_recipe_held_out(tiny: RelBERT, tmp_path: Path) -> None:
    (tmp_path / "mine.csv").write_text("relation,head,tail,score\n" + "".join(f"r,a{n},b{n},{n}\n" for n in range(12)))
    data = str(tmp_path / "mine.csv")
    tiny.training_record = {"recipe": {"data": [data], "top": 10, "bottom": 10, "threshold": 4.0}}
    with pytest.raises(RelvecError, match=r"with threshold=4.0, so other pairs were held out"):
        evaluate(tiny, "loss", datasets=data)
    task = LossTask(threshold=4.0)
    assert [len(relation.positives) for relation in task.load([data])[data]] == [8]
    task.check(loaded_system(tiny), task.load([data]))


def test_a_model_of_all_pairs_is_scored_with_all_pairs(tiny: RelBERT) -> None:
    tiny.training_record = {"recipe": {"data": ["bundled"], "train_on_held_out": True}}
    with pytest.raises(RelvecError, match="with train_on_held_out=True, so other pairs were held out"):
        evaluate(tiny, "loss", datasets="bundled")

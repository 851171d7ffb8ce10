from collections import Counter
from dataclasses import replace

import pytest
import torch

from relvec import RelBERT, RelvecError
from relvec.data.rated import RatedRelation, split
from relvec.evaluation.validation_loss import validation_loss
from relvec.learned_prompts.objective import PromptObjective


@pytest.fixture
def objective(relations: list[RatedRelation]) -> PromptObjective:
    return PromptObjective(relations, "train")


def test_each_distinct_training_pair_is_there_once(objective: PromptObjective, relations: list[RatedRelation]) -> None:
    train = {pair for relation in split(relations, "train") for pair in (*relation.positives, *relation.negatives)}
    assert len(objective.pairs) == len(train)
    assert set(objective.pairs) == train


def test_the_loss_is_the_weighted_mean_over_every_triple_by_itself(objective: PromptObjective) -> None:
    vectors = torch.randn(len(objective.pairs), 4, generator=torch.Generator().manual_seed(0))
    batch = objective._batch
    losses = []
    for (anchor, positive, negative), weight in zip(
        batch.row[batch.triples].tolist(), objective._weights.tolist(), strict=True
    ):
        near = torch.dist(vectors[anchor], vectors[positive])
        far = torch.dist(vectors[anchor], vectors[negative])
        losses.append(weight * max(0.0, float(near - far) + 1))
    assert len(losses) == objective.triples
    assert objective.triple_encodings == 3 * len(losses)
    assert float(objective.loss(vectors)) == pytest.approx(sum(losses) / len(losses), rel=1e-5)


def test_negatives_are_bad_pairs_or_positives_of_others(
    objective: PromptObjective, relations: list[RatedRelation]
) -> None:
    batch = objective._batch
    known = {r.name: set(r.positives) for r in split(relations, "train")}
    for anchor, positive, negative in batch.triples.tolist():
        first, second = relations[int(batch.relation[anchor])], relations[int(batch.relation[positive])]
        assert batch.is_positive[anchor]
        assert batch.is_positive[positive]
        assert first.category == second.category
        if first is second:
            assert batch.pairs[batch.row[negative]] not in known[first.name]


def test_every_two_positives_meet_every_negative(relations: list[RatedRelation]) -> None:
    batch = PromptObjective(relations[:2], "train")._batch
    met = {
        (frozenset((anchor, positive)), negative)
        for anchor, positive, negative in batch.triples.tolist()
        if not batch.is_positive[negative]
    }
    expected = [
        (len(r.positives) * (len(r.positives) - 1) // 2) * len(r.negatives) for r in split(relations[:2], "train")
    ]
    assert len(met) == sum(expected)


def test_the_validation_loss_is_the_one_that_evaluation_reports(tiny: RelBERT, relations: list[RatedRelation]) -> None:
    assert PromptObjective(relations, "valid").of_model(tiny) == validation_loss(tiny, relations)["loss"]


def test_triples_depend_on_the_seed_alone(relations: list[RatedRelation]) -> None:
    first, again, other = (PromptObjective(relations, "train", seed)._batch.triples for seed in (0, 0, 1))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_a_larger_share_has_the_pairs_of_a_smaller_one(objective: PromptObjective) -> None:
    few, more = objective.subset(2), objective.subset(5)
    assert set(few.pairs) < set(more.pairs) < set(objective.pairs)


def test_the_number_of_triples_is_bounded(relations: list[RatedRelation], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("relvec.learned_prompts.objective.MOST_TRIPLES", 300)
    assert PromptObjective(relations[:3], "train").triples < 500


def test_relations_without_bad_pairs_have_the_others_as_negatives(relations: list[RatedRelation]) -> None:
    bare = [replace(relation, negatives=()) for relation in relations]
    assert PromptObjective(bare, "train").triples > 0
    with pytest.raises(RelvecError, match="valid part of the data has no triples; rate more pairs"):
        PromptObjective(bare, "valid")


def test_a_relation_without_bad_pairs_weighs_no_more_than_others(relations: list[RatedRelation]) -> None:
    many = tuple((f"part {number}", f"whole {number}") for number in range(60))
    batch = PromptObjective([*relations, RatedRelation("bare", "category 9", many, ())], "train")._batch
    of_bare = batch.relation[batch.triples[:, 0]] == len(relations)
    assert int(of_bare.sum()) == 13_500  # as many as the paper says


def test_the_kinds_of_triples_weigh_as_much_as_in_the_paper(relations: list[RatedRelation]) -> None:
    objective = PromptObjective(relations, "train")
    batch, train = objective._batch, split(relations, "train")
    weights = dict.fromkeys(("own", "others", "category"), 0.0)
    for (anchor, positive, negative), weight in zip(batch.triples.tolist(), objective._weights.tolist(), strict=True):
        is_own = batch.relation[anchor] == batch.relation[positive]
        kind = "category" if not is_own else "others" if batch.is_positive[negative] else "own"
        weights[kind] += weight
    sizes = Counter(relation.category for relation in train if relation.category)
    shared = sum(size > 1 for size in sizes.values())
    expected = {"own": 450 * len(train), "others": 13_500 * len(train), "category": 5_040 * shared}
    for kind, count in expected.items():
        assert weights[kind] / objective.triples == pytest.approx(count / sum(expected.values()), rel=1e-3)

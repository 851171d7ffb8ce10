from dataclasses import replace
from typing import Any

import pytest
import torch

from relvec.data.rated import RatedRelation, split
from relvec.training.batch import known_positives
from relvec.training.recipe import Recipe
from relvec.training.samplers import RelationBatches, Scrambler, TripleBatches, validation_batch, with_parents


def by_relation(relations: list[RatedRelation], size: int, positives: int, negatives: int, seed: int = 0) -> Any:
    counts: dict[str, Any] = {"positives_per_relation": positives, "negatives_per_relation": negatives}
    return RelationBatches(relations, Recipe(relations_per_batch=size, seed=seed, **counts), Scrambler(relations))


def test_a_batch_holds_r_relations_with_k_positives_and_hard_negatives(relations: list[RatedRelation]) -> None:
    batch = by_relation(relations, 3, 4, 2)(0)
    for number in batch.relation.unique():
        of_relation = batch.relation == number
        assert int((of_relation & batch.is_positive).sum()) == 4
        assert int((of_relation & ~batch.is_positive).sum()) == 2
    assert len(batch.relation.unique()) == 3
    assert len(set(batch.pairs)) == len(batch.pairs)


def test_items_point_at_pairs_of_their_relation(relations: list[RatedRelation]) -> None:
    for sampler in (by_relation(relations, 6, 4, 2), TripleBatches(relations, 4, seed=0)):
        batch = sampler(0)
        for row, number, is_positive in zip(batch.row, batch.relation, batch.is_positive, strict=True):
            relation = relations[int(number)]
            assert batch.pairs[int(row)] in (relation.positives if is_positive else relation.negatives)


def test_an_epoch_meets_every_relation_once(relations: list[RatedRelation]) -> None:
    sampler = by_relation(relations, 2, 2, 0, seed=3)
    met = [number for step in range(sampler.steps_per_epoch) for number in sampler(step).relation.unique().tolist()]
    assert sorted(met) == list(range(6))


def test_batches_depend_on_seed_and_step_alone(relations: list[RatedRelation]) -> None:
    for kind in (
        lambda seed: by_relation(relations, 3, 4, 1, seed),
        lambda seed: TripleBatches(relations, 4, seed),
    ):
        walked = kind(1)
        for step in range(5):
            last = walked(step)
        assert kind(1)(4).pairs == last.pairs
        assert torch.equal(kind(1)(4).triples, last.triples)
        assert kind(2)(4).pairs != last.pairs


def test_an_epoch_of_triples_has_the_papers_counts(
    relations: list[RatedRelation], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("relvec.training.samplers.RELATION_TRIPLES", 45)
    monkeypatch.setattr("relvec.training.samplers.CATEGORY_TRIPLES", 60)
    sampler = TripleBatches(relations, 3, seed=0)
    own = in_batch = of_categories = 0
    for step in range(sampler.steps_per_epoch):
        batch = sampler(step)
        anchor, positive, negative = batch.triples.unbind(dim=1)
        across = batch.relation[anchor] != batch.relation[positive]
        hard = ~batch.is_positive[negative]
        own += int(hard.sum())
        of_categories += int(across.sum())
        in_batch += int((~hard & ~across).sum())
    assert own == 45 * 6
    assert of_categories == 60 * 3
    assert in_batch == 2 * 3 * 2 * sampler.steps_per_epoch


def test_no_triple_takes_a_negative_of_its_own_relation(relations: list[RatedRelation]) -> None:
    sampler = TripleBatches(relations, 6, seed=0)
    for step in range(20):
        batch = sampler(step)
        anchor, positive, negative = batch.triples.unbind(dim=1)
        same = batch.relation[anchor] == batch.relation[positive]
        assert not (same & batch.is_positive[negative] & (batch.relation[anchor] == batch.relation[negative])).any()
        assert (batch.category[anchor] == batch.category[positive]).all()
        assert (batch.category[anchor] != batch.category[negative])[~same].all()


def test_parents_are_relations_of_their_childrens_pairs(relations: list[RatedRelation]) -> None:
    parents = with_parents(relations)[len(relations) :]
    assert [parent.name for parent in parents] == ["parent opposites", "parent kinds", "parent makers"]
    assert set(parents[0].positives) == {*relations[0].positives, *relations[1].positives}
    assert with_parents(relations[::2]) == relations[::2]  # categories of one relation add nothing


def test_a_positive_of_a_relation_is_known_as_one_though_drawn_for_another_one(relations: list[RatedRelation]) -> None:
    both = with_parents([replace(relations[0], is_symmetric=True), *relations[1:]])
    recipe = Recipe(relations_per_batch=9, positives_per_relation=2, flip_relations=True)
    sampler = RelationBatches(both, recipe, Scrambler(both))
    validation = validation_batch(with_parents(split(relations, "train")), with_parents(split(relations, "valid")))
    for batch, data in ((sampler(0), both), (sampler(1), both), (validation, with_parents(relations))):
        anchors = torch.arange(len(batch.row))
        for anchor, found in enumerate(known_positives(batch, batch.relation, anchors)):
            turned, number = divmod(int(batch.relation[anchor]), len(data))
            pairs = [batch.pairs[row] for row in batch.row]
            as_rated = [(tail, head) if turned else (head, tail) for head, tail in pairs]
            known = set(data[number].positives)
            if data[number].is_symmetric:
                known |= {(tail, head) for head, tail in known}
            assert found.tolist() == [pair in known for pair in as_rated]


def test_a_last_batch_is_filled_up(relations: list[RatedRelation]) -> None:
    sampler = by_relation(relations, 4, 2, 0)
    met = [sampler(step).relation.unique().tolist() for step in range(sampler.steps_per_epoch)]
    assert [len(batch) for batch in met] == [4, 4]
    assert {number for batch in met for number in batch} == set(range(6))


def test_validation_compares_children_of_a_parent_with_each_other(relations: list[RatedRelation]) -> None:
    (parent, *_) = with_parents(relations)[len(relations) :]
    first, second = relations[0].positives, relations[1].positives
    assert parent.positives[:4] == (first[0], second[0], first[1], second[1])

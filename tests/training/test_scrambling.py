"""What the sampler promises of scrambled negatives and flipped relations, on the bundled relations and made-up ones."""

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from relvec.data.overlap import inflected, pairs_for_testing, without_testing
from relvec.data.rated import RatedRelation, split
from relvec.data.sources import load
from relvec.training.recipe import Recipe
from relvec.training.samplers import RelationBatches, Scrambler, with_parents

CHANGED: dict[str, Any] = {"scrambled_negatives_per_relation": 2, "flip_relations": True}

words = st.sampled_from(["oak", "tree", "rose", "flower", "cat", "animal", "tea", "drink", "car", "vehicle"])
pairs = st.lists(st.tuples(words, words), min_size=2, max_size=8, unique=True).map(tuple)
made_up = st.builds(RatedRelation, st.text("abc", min_size=1), st.just(""), pairs, pairs, is_symmetric=st.booleans())


@given(st.lists(made_up, min_size=1, max_size=4), st.sets(st.tuples(words, words)), st.integers(0, 99))
@settings(max_examples=200, deadline=None)
def test_a_scrambled_negative_is_new_and_made_of_the_relations_words(
    relations: list[RatedRelation], excluded: set[tuple[str, str]], seed: int
) -> None:
    keys = {inflected(pair) for pair in excluded}
    scrambler = Scrambler(relations, keys)
    for relation in relations:
        found = scrambler(relation, 3, torch.Generator().manual_seed(seed))
        assert len(found) == len(set(found)) <= 3
        for head, tail in found:
            assert head != tail
            assert inflected((head, tail)) not in keys
            assert {head, tail} <= {word for pair in relation.positives for word in pair}
            for other in relations:
                assert (head, tail) not in other.positives
                assert not (other.is_symmetric and (tail, head) in other.positives)


def test_the_kinds_are_as_frequent_as_they_should_be() -> None:
    relation = RatedRelation("a", "", tuple((f"h{i}", f"t{i}") for i in range(200)), ())
    for is_symmetric, expected in ((False, (0.4, 0.2, 0.2, 0.2)), (True, (0.5, 0.25, 0.25, 0.0))):
        found = Scrambler([relation])(
            replace(relation, is_symmetric=is_symmetric), 2000, torch.Generator().manual_seed(0)
        )
        kinds = Counter(head[0] + tail[0] for head, tail in found)
        shares = [kinds[kind] / len(found) for kind in ("ht", "hh", "tt", "th")]
        # Reversed pairs are few, 200 at most: they run out and the shares are of what is left.
        assert shares[3] == 0 if is_symmetric else shares[3] > 0.05
        assert shares[0] / shares[1] == pytest.approx(expected[0] / expected[1], rel=0.2)
        assert shares[1] == pytest.approx(shares[2], rel=0.2)


@pytest.fixture(scope="module")
def bundled() -> list[RatedRelation]:
    return split(without_testing(load("bundled")), "train")


def test_batches_of_the_bundled_relations_hold_no_known_positive_as_scrambled_negative(
    bundled: list[RatedRelation],
) -> None:
    tested = pairs_for_testing(load("bundled"))
    sampler = RelationBatches(bundled, Recipe(**CHANGED), Scrambler(bundled, tested))
    positives = {pair for relation in bundled for pair in relation.positives}
    for step in range(30):
        batch = sampler(step)
        for row, number, is_positive in zip(batch.row, batch.relation, batch.is_positive, strict=True):
            is_flipped = int(number) >= len(bundled)
            relation = bundled[int(number) % len(bundled)]
            head, tail = batch.pairs[int(row)]
            pair = (tail, head) if is_flipped else (head, tail)
            assert inflected(pair) not in tested
            assert not (is_flipped and relation.is_symmetric)
            assert (pair in relation.positives) == bool(is_positive)
            assert is_positive or pair in relation.negatives or pair not in positives


def test_half_of_the_asymmetric_relations_are_flipped_whole(relations: list[RatedRelation]) -> None:
    relations = [replace(relation, is_symmetric=place < 2) for place, relation in enumerate(relations)]
    sampler = RelationBatches(relations, Recipe(**CHANGED), Scrambler(relations))
    flipped = Counter(number - 6 for step in range(200) for number in sampler(step).relation.unique().tolist())
    assert all(flipped[number] == 0 for number in (0, 1))
    assert all(80 < flipped[number] < 120 for number in (2, 3, 4, 5))
    for step in range(20):
        numbers = sampler(step).relation.unique() % 6
        assert len(numbers) == len(numbers.unique()) == 6  # never both ways at once


def test_scrambled_and_flipped_batches_depend_on_seed_and_step_alone(relations: list[RatedRelation]) -> None:
    def sampler(seed: int) -> RelationBatches:
        return RelationBatches(relations, Recipe(**CHANGED, seed=seed), Scrambler(relations))

    walked = sampler(1)
    batches = [walked(step) for step in range(4)]
    assert sampler(1)(3).pairs == batches[3].pairs
    assert torch.equal(sampler(1)(3).relation, batches[3].relation)
    assert sampler(2)(3).pairs != batches[3].pairs


def test_a_parent_of_a_symmetric_relation_is_not_flipped(relations: list[RatedRelation]) -> None:
    marked = [replace(relations[0], is_symmetric=True), *relations[1:]]
    assert [parent.is_symmetric for parent in with_parents(marked)[6:]] == [True, False, False]

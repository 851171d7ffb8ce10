"""The bundled relations and their supplement: enough of them, and nothing wrong in them."""

import re
from collections import Counter

import pytest

from relvec.data.overlap import audit, inflected, pairs_for_testing, without_testing
from relvec.data.rated import RatedRelation, check_relations
from relvec.data.sources import load


@pytest.fixture(scope="module")
def bundled() -> list[RatedRelation]:
    return load("bundled")


@pytest.fixture(scope="module")
def written(bundled: list[RatedRelation]) -> list[RatedRelation]:
    return [*bundled, *load("supplement")]


def test_there_are_enough_relations_and_categories(bundled: list[RatedRelation]) -> None:
    assert len(bundled) >= 500
    assert len({relation.category for relation in bundled}) >= 15
    assert sum(len(relation.positives) for relation in bundled) >= 25_000


def test_every_relation_has_enough_pairs_and_a_definition(written: list[RatedRelation]) -> None:
    poor = [
        relation.name
        for relation in written
        if len(relation.positives) < 30
        or len(relation.negatives) < 8
        or not relation.definition
        or not relation.category
    ]
    assert poor == []


def test_every_relation_has_a_sentence_with_a_place_for_head_and_tail(written: list[RatedRelation]) -> None:
    slots = {relation.name: sorted(re.findall(r"\b[XY]\b", relation.sentence)) for relation in written}
    assert {name: found for name, found in slots.items() if found != ["X", "Y"]} == {}
    assert [relation.name for relation in written if "(" in relation.sentence] == []


def test_no_pair_is_repeated_or_both_positive_and_negative_in_a_relation(written: list[RatedRelation]) -> None:
    assert audit(written) == []


def test_no_pair_is_positive_in_two_relations(written: list[RatedRelation]) -> None:
    uses = Counter(pair for relation in written for pair in relation.positives)
    assert [pair for pair, count in uses.items() if count > 1] == []


def test_it_can_be_used_for_every_loss(written: list[RatedRelation]) -> None:
    check_relations(written)


def test_at_least_60_relations_of_all_large_categories_are_kept_for_testing(bundled: list[RatedRelation]) -> None:
    kept = [relation for relation in bundled if relation.is_for_testing]
    assert len(kept) >= 60
    sizes = Counter(relation.category for relation in bundled)
    assert {relation.category for relation in kept} >= {category for category, size in sizes.items() if size >= 4}


def test_training_has_no_pair_kept_for_testing_in_any_order_or_form(written: list[RatedRelation]) -> None:
    tested, trained = pairs_for_testing(written), without_testing(written)
    assert not any(relation.is_for_testing for relation in trained)
    assert not any(inflected(pair) in tested for relation in trained for pair in relation.pairs)


def test_the_supplement_keeps_nothing_for_testing_and_has_no_pair_of_a_relation_that_is(
    written: list[RatedRelation],
) -> None:
    names = Counter(relation.name for relation in written)
    assert [name for name, count in names.items() if count > 1] == []
    supplement, tested = load("supplement"), pairs_for_testing(written)
    assert len(supplement) >= 350
    assert not any(relation.is_for_testing for relation in supplement)
    assert not any(inflected(pair) in tested for relation in supplement for pair in relation.pairs)

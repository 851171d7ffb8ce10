"""The bundled relations themselves: enough of them, and nothing wrong in them."""

from collections import Counter

import pytest

from relvec.data.overlap import audit
from relvec.data.rated import RatedRelation, check_categories, check_relations
from relvec.data.sources import load


@pytest.fixture(scope="module")
def bundled() -> list[RatedRelation]:
    return load("bundled")


def test_there_are_enough_relations_and_categories(bundled: list[RatedRelation]) -> None:
    assert len(bundled) >= 250
    assert len({relation.category for relation in bundled}) >= 15


def test_every_relation_has_enough_pairs_and_a_definition(bundled: list[RatedRelation]) -> None:
    poor = [
        relation.name
        for relation in bundled
        if len(relation.positives) < 30
        or len(relation.negatives) < 8
        or not relation.definition
        or not relation.category
    ]
    assert poor == []


def test_no_pair_is_repeated_or_both_positive_and_negative_in_a_relation(bundled: list[RatedRelation]) -> None:
    assert audit(bundled) == []


def test_no_pair_is_positive_in_two_relations(bundled: list[RatedRelation]) -> None:
    uses = Counter(pair for relation in bundled for pair in relation.positives)
    assert [pair for pair, count in uses.items() if count > 1] == []


def test_it_can_be_used_for_every_loss(bundled: list[RatedRelation]) -> None:
    check_relations(bundled)
    check_categories(bundled)

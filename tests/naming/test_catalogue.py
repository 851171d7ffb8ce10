"""A catalogue over vectors that are known: relations are directions, and unrelated words lie elsewhere."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from relvec.data.rated import RatedRelation, split
from relvec.naming import Catalogue
from relvec.naming.building import build_catalogue, calibrated, held_out
from relvec.pairs import Pair
from relvec.similarity import Vectors

DIM = 24
RELATIONS = [
    RatedRelation(
        f"relation{number}",
        "",
        tuple((f"head{number}_{place}", f"tail{number}_{place}") for place in range(14)),
        (),
        sentence=f"X stands to Y in way {number}",
        is_symmetric=number == 0,
    )
    for number in range(6)
]
KNOWN = {pair: number for number, relation in enumerate(RELATIONS) for pair in relation.positives}


def encode(pairs: Sequence[Pair]) -> Vectors:
    """A direction for each relation and way round; pairs that are in none have one more in common."""
    return np.stack([_vector(pair) for pair in pairs]).astype(np.float32)


def _vector(pair: Pair) -> NDArray[np.float64]:
    noise = np.random.default_rng(abs(hash_of(pair))).normal(size=DIM) * 0.12
    noise[KNOWN[pair] if pair in KNOWN else 8 + KNOWN[pair[::-1]] if pair[::-1] in KNOWN else 20] += 1
    if KNOWN.get(pair[::-1]) == 0:
        noise[[0, 8]] = noise[[8, 0]]
    return noise


def hash_of(pair: Pair) -> int:
    return int.from_bytes("\t".join(pair).encode()[-8:], "big") % 2**31


@pytest.fixture(scope="module")
def catalogue() -> Catalogue:
    return build_catalogue(RELATIONS, encode)


@pytest.fixture(scope="module")
def pairs() -> list[Pair]:
    return [relation.positives[1] for relation in split(RELATIONS, "valid")]


def test_held_out_pairs_are_named_in_a_sentence(catalogue: Catalogue, pairs: list[Pair]) -> None:
    found = [best for (best,) in catalogue.explain(pairs, encode(pairs), top=1)]
    assert [best.relation for best in found] == [relation.name for relation in RELATIONS]
    assert found[3].sentence == f"{pairs[3][0]} stands to {pairs[3][1]} in way 3"
    assert not any(best.is_reversed for best in found)


def test_a_relation_that_holds_the_other_way_round_is_said_so(catalogue: Catalogue, pairs: list[Pair]) -> None:
    turned = [pair[::-1] for pair in pairs]
    found = [best for (best,) in catalogue.explain(turned, encode(turned), top=1)]
    assert [best.relation for best in found] == [relation.name for relation in RELATIONS]
    assert [best.is_reversed for best in found] == [not relation.is_symmetric for relation in RELATIONS]
    assert found[3].sentence == f"{pairs[3][0]} stands to {pairs[3][1]} in way 3"


def test_pairs_of_one_relation_have_it_in_common_and_pairs_of_two_have_none(catalogue: Catalogue) -> None:
    alike, unlike = RELATIONS[1].positives[:3], (RELATIONS[1].positives[0], RELATIONS[2].positives[0])
    best = catalogue.in_common(encode(alike), top=1)[0]
    assert best.relation == RELATIONS[1].name
    assert best.sentence == "X stands to Y in way 1"
    assert catalogue.in_common(encode(unlike), top=1)[0].probability < 0.1 < best.probability


def test_probabilities_are_those_of_one_relation_or_none(catalogue: Catalogue, pairs: list[Pair]) -> None:
    (found,) = catalogue.explain(pairs[:1], encode(pairs[:1]), top=99)
    total = sum(each.probability for each in found)
    assert total == pytest.approx(float(catalogue.related(encode(pairs[:1]))[0]), abs=1e-5)
    assert [each.probability for each in found] == sorted((each.probability for each in found), reverse=True)


def test_calibration_undoes_what_makes_a_catalogue_more_or_less_sure(catalogue: Catalogue) -> None:
    asked, weights = held_out(RELATIONS, 0), catalogue.relatedness.weights / np.float32(10)
    timid = replace(catalogue, temperature=50.0, relatedness=replace(catalogue.relatedness, weights=weights))
    again = calibrated(timid, RELATIONS, encode)
    assert again.temperature == catalogue.temperature != timid.temperature
    certainty = [float(np.ptp(each.related(encode([*asked.related, *asked.random])))) for each in (timid, again)]
    assert certainty[0] < certainty[1]


def test_related_pairs_are_told_from_scrambled_and_random_ones(catalogue: Catalogue) -> None:
    asked = held_out(RELATIONS, 1)
    assert not set(asked.scrambled + asked.random) & KNOWN.keys()
    related, others = (catalogue.related(encode(each)) for each in (asked.related, asked.scrambled + asked.random))
    assert related.min() > others.max()


def test_no_held_out_pair_is_an_example(catalogue: Catalogue) -> None:
    held = {pair for relation in split(RELATIONS, "valid") for pair in relation.positives}
    assert not held & {pair for relation in catalogue.relations for pair in relation.examples}


def test_a_stored_catalogue_names_alike(catalogue: Catalogue, pairs: list[Pair]) -> None:
    again = Catalogue.from_bytes(catalogue.to_bytes())
    assert again.relations == catalogue.relations
    np.testing.assert_allclose(again.names(encode(pairs)), catalogue.names(encode(pairs)), atol=0.05)
    np.testing.assert_allclose(again.related(encode(pairs)), catalogue.related(encode(pairs)), atol=0.05)


def test_what_fewer_pairs_show_is_less_sure(catalogue: Catalogue, pairs: list[Pair]) -> None:
    prototypes, between = catalogue.prototypes, catalogue.space.between
    points = catalogue.space(encode(pairs[1:2]))
    sure = prototypes.log_likelihoods(points, between)[0]
    once = replace(prototypes, counts=prototypes.counts * 0 + 1)
    unsure = once.log_likelihoods(points, between)[0]
    assert np.ptp(unsure) < np.ptp(sure)


def test_relations_that_say_the_same_are_one_answer(catalogue: Catalogue, pairs: list[Pair]) -> None:
    group = {"name": "either", "sentence": "X or Y", "definition": "", "relations": ["relation1"]}
    grouped = build_catalogue(RELATIONS, encode, groups=[{**group, "reversed": ["relation2"]}])
    assert [relation.name for relation in grouped.relations[:3]] == ["relation0", "either", "relation3"]
    found = [best for (best,) in grouped.explain(pairs[1:3], encode(pairs[1:3]), top=1)]
    assert [(best.relation, best.is_reversed) for best in found] == [("either", False), ("either", True)]
    np.testing.assert_allclose(grouped.names(encode(pairs)).sum(axis=1), 1, atol=1e-5)
    assert all(KNOWN.get(pair, KNOWN.get(pair[::-1])) in {1, 2} for pair in grouped.relations[1].examples)


def test_a_sure_relation_of_an_entry_is_said_in_its_own_sentence(pairs: list[Pair]) -> None:
    group = {"name": "either", "sentence": "X or Y", "definition": "", "relations": ["relation1"]}
    grouped = build_catalogue(RELATIONS, encode, groups=[{**group, "reversed": ["relation2"]}])
    of_group = [*pairs[1:3], *(pair[::-1] for pair in pairs[1:3])]
    sure = [best.sentence for (best,) in grouped.explain(of_group, encode(of_group), top=1)]
    said = [f"{pairs[1][0]} stands to {pairs[1][1]} in way 1", f"{pairs[2][0]} stands to {pairs[2][1]} in way 2"]
    assert sure == said * 2
    (found,) = replace(grouped, temperature=1e6).explain(pairs[1:2], encode(pairs[1:2]), top=1)
    assert sorted(found[0].sentence.split(" or ")) == sorted(pairs[1])

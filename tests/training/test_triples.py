from collections import Counter

import pytest
import torch

from relvec.data.rated import RatedRelation
from relvec.pairs import Pair
from relvec.training.batch import Batch, category_triples, in_batch_triples, relation_triples


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def tuples(triples: torch.Tensor) -> list[tuple[int, ...]]:
    return [tuple(triple) for triple in triples.tolist()]


def unordered(triples: torch.Tensor) -> Counter[tuple[frozenset[int], int]]:
    return Counter((frozenset((anchor, positive)), negative) for anchor, positive, negative in triples.tolist())


def one_triple_a_relation(relations: int) -> Batch:
    """Relation r has the items 3r (anchor), 3r + 1 (positive) and 3r + 2 (hard negative), all different pairs."""
    items = torch.arange(3 * relations)
    pairs = tuple((f"h{item}", f"t{item}") for item in items.tolist())
    return Batch(pairs, items, items // 3, torch.zeros_like(items), items % 3 < 2, items.reshape(-1, 3))


def test_ten_positives_and_ten_negatives_give_each_of_the_papers_450_triples_once() -> None:
    triples = relation_triples(10, 10, generator=seeded())
    assert triples.shape == (450, 3)
    assert set(unordered(triples).values()) == {1}
    assert (triples[:, 0] != triples[:, 1]).all()


def test_fewer_triples_are_repeated_evenly_and_swapped_on_the_second_pass() -> None:
    triples = relation_triples(8, 8, generator=seeded())
    first, second, rest = triples[:224], triples[224:448], triples[448:]
    assert len(rest) == 2
    assert set(unordered(triples).values()) == {2, 3}
    assert set(tuples(first[:, [1, 0, 2]])) == set(tuples(second))


def test_more_triples_than_asked_for_are_a_random_subset() -> None:
    triples = relation_triples(10, 20, 450, seeded())
    assert len(unordered(triples)) == 450
    assert set(triples[:, 2].tolist()) == set(range(20))


@pytest.mark.parametrize(("positives", "negatives"), [(1, 10), (10, 0)])
def test_a_relation_without_triples_gives_an_empty_tensor(positives: int, negatives: int) -> None:
    assert relation_triples(positives, negatives).shape == (0, 3)


@pytest.mark.parametrize("m", [2, 5, 64])
def test_m_triples_of_different_relations_give_2m_times_m_minus_1_in_batch(m: int) -> None:
    batch = one_triple_a_relation(m)
    triples = in_batch_triples(batch, batch.triples)
    assert triples.shape == (2 * m * (m - 1), 3)
    assert len(set(tuples(triples))) == len(triples)


def test_sixteen_triples_a_batch_give_the_papers_13500_in_batch_triples_a_relation() -> None:
    batch = one_triple_a_relation(16)
    of_each_triple = Counter(in_batch_triples(batch, batch.triples)[:, 0].tolist())
    own_triples = len(relation_triples(10, 10))
    assert {own_triples * in_batch for in_batch in of_each_triple.values()} == {13_500}


def test_no_in_batch_negative_shares_the_relation() -> None:
    batch = one_triple_a_relation(6)
    relation = batch.relation % 3
    batch = Batch(batch.pairs, batch.row, relation, batch.category, batch.is_positive, batch.triples)
    triples = in_batch_triples(batch, batch.triples)
    assert len(triples) == 6 * 2 * 4
    assert (relation[triples[:, 0]] == relation[triples[:, 1]]).all()
    assert (relation[triples[:, 0]] != relation[triples[:, 2]]).all()


def test_no_in_batch_negative_is_a_positive_of_the_relation_under_another_item() -> None:
    batch = one_triple_a_relation(3)
    row = batch.row.clone()
    row[3] = row[0]  # the anchor of relation 1 is the pair of the anchor of relation 0
    batch = Batch(batch.pairs, row, batch.relation, batch.category, batch.is_positive, batch.triples)
    triples = tuples(in_batch_triples(batch, batch.triples))
    assert (0, 1, 3) not in triples
    assert (3, 4, 0) not in triples
    assert (0, 1, 4) in triples
    assert len(triples) == 2 * 3 * 2 - 2


def related(pairs: list[Pair], relation: list[int], category: list[str]) -> list[RatedRelation]:
    """Each pair as a positive of the relation with that number."""
    return [
        RatedRelation(str(number), name, tuple(p for p, of in zip(pairs, relation, strict=True) if of == number), ())
        for number, name in enumerate(category)
    ]


CATEGORY = ["kinds"] * 4 + ["parts"] * 4 + ["lone", ""]
RELATION = [relation for relation in range(len(CATEGORY)) for _ in range(8)]
PAIRS: list[Pair] = [(f"h{item}", f"t{item}") for item in range(len(RELATION))]
RELATIONS = related(PAIRS, RELATION, CATEGORY)


def test_each_category_of_several_relations_has_the_papers_5040_distinct_triples() -> None:
    triples = tuples(category_triples(RELATIONS, generator=seeded()))
    assert Counter(CATEGORY[RELATION[anchor]] for anchor, _, _ in triples) == {"kinds": 5040, "parts": 5040}
    assert len(set(triples)) == len(triples)


def test_a_category_triple_joins_two_relations_of_a_category_against_another_category() -> None:
    relation = torch.tensor(RELATION)[category_triples(RELATIONS, generator=seeded())]
    for anchor, positive, negative in relation.tolist():
        assert anchor != positive
        assert CATEGORY[anchor] == CATEGORY[positive] != CATEGORY[negative]


def test_a_category_with_fewer_triples_than_asked_for_gives_all() -> None:
    triples = category_triples(related(PAIRS[:4], [0, 0, 1, 2], ["kinds", "kinds", "parts"]))
    assert sorted(tuples(triples)) == [(0, 2, 3), (1, 2, 3), (2, 0, 3), (2, 1, 3)]


def test_a_pair_of_two_relations_is_neither_its_own_positive_nor_its_own_negative() -> None:
    pairs: list[Pair] = [("oak", "tree"), ("oak", "tree"), ("rose", "flower"), ("oak", "tree"), ("hot", "cold")]
    triples = category_triples(related(pairs, [0, 1, 1, 2, 2], ["kinds", "kinds", "opposites"]))
    assert sorted(tuples(triples)) == [(0, 2, 4), (2, 0, 4)]


def test_the_generator_alone_decides_which_triples_are_drawn() -> None:
    def both(seed: int) -> torch.Tensor:
        generator = seeded(seed)
        own = relation_triples(8, 8, generator=generator)
        return torch.cat([own, category_triples(RELATIONS, generator=generator)])

    assert torch.equal(both(1), both(1))
    assert not torch.equal(both(1), both(2))

from collections.abc import Sequence
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from relvec import RelBERT
from relvec.data.benchmarks.mapping import MappingProblem, shuffled
from relvec.evaluation import mapping
from relvec.evaluation.mapping import Mapping, best_order, metrics, solve
from relvec.model.cached_vectors import ModelVectors
from relvec.pairs import Pair
from relvec.similarity import Vectors


class PlantedVectors:
    """The relation of two terms depends on their numbers: `s3:s5` is as `t3:t5`, up to noise; x is unknown."""

    name = "planted"
    has_direction = True
    fingerprint = "planted"

    def __init__(self, noise: float = 0.0) -> None:
        self.asked: list[list[Pair]] = []
        self._noise = noise

    def vectors(self, pairs: Sequence[Pair]) -> tuple[Vectors, NDArray[np.bool_]]:
        self.asked.append(list(pairs))
        rows = []
        for head, tail in pairs:
            relation = np.random.default_rng([int(head[1:]), int(tail[1:])]).normal(size=8)
            own = np.random.default_rng([ord(letter) for letter in head + tail]).normal(size=8)
            rows.append(relation + self._noise * own)
        known = np.array(["x" not in head + tail for head, tail in pairs])
        return (np.array(rows) * known[:, None]).astype(np.float32), known


def planted(count: int, source: str = "s", target: str = "t") -> MappingProblem:
    right = [f"{target}{number}" for number in range(count)]
    terms = tuple(f"{source}{number}" for number in range(count))
    shown = shuffled(right, terms)
    return MappingProblem(terms, shown, tuple(shown.index(term) for term in right))


def gains(size: int, seed: int) -> NDArray[np.float64]:
    """Those of a problem with no sense: cosines of random vectors."""
    source, target = np.random.default_rng(seed).normal(size=(2, size * (size - 1), 4))
    return mapping._gains(size, source @ target.T)


@pytest.mark.parametrize("count", [2, 5, 8, 12])
def test_the_mapping_that_keeps_relations_is_found(count: int) -> None:
    (solved,) = solve([planted(count)], PlantedVectors(noise=0.3))
    assert solved.predicted == solved.answer == tuple(f"t{number}" for number in range(count))
    assert solved.credit == 1


def test_the_score_is_that_of_a_plain_loop_over_all_mappings(tiny: RelBERT, tmp_path: Path) -> None:
    source, target = ("sun", "planet", "gravity", "heat"), ("atom", "electron", "charge", "force")
    problem = MappingProblem(source, target, (0, 1, 2, 3))
    best = max(
        permutations(target),
        key=lambda chosen: sum(
            tiny.similarity((source[i], source[j]), (chosen[i], chosen[j])) for i, j in permutations(range(4), 2)
        ),
    )
    (solved,) = solve([problem], ModelVectors(tiny, tmp_path))
    assert solved.predicted == best
    score = sum(tiny.similarity((source[i], source[j]), (best[i], best[j])) for i, j in permutations(range(4), 2))
    assert solved.score == pytest.approx(score, abs=1e-4)


@pytest.mark.parametrize("seed", range(5))
def test_the_search_finds_what_trying_all_orders_finds(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    table = gains(7, seed)
    exact = max(
        sum(table[i, j, order[i], order[j]] for i in range(7) for j in range(7)) for order in permutations(range(7))
    )
    assert best_order(table)[1] == pytest.approx(exact)
    monkeypatch.setattr(mapping, "EXHAUSTIVE_TERMS", 6)
    assert best_order(table)[1] == pytest.approx(exact)


def test_the_search_is_repeatable() -> None:
    first, second = (best_order(gains(11, seed=3)) for _ in range(2))
    assert first[0].tolist() == second[0].tolist()
    assert sorted(first[0]) == list(range(11))


def test_each_distinct_pair_of_all_problems_is_encoded_in_one_call() -> None:
    vectors = PlantedVectors()
    solve([planted(3), planted(3, target="u")], vectors)
    (asked,) = vectors.asked
    assert len(asked) == len(set(asked)) == 3 * 3 * 2


def test_unknown_pairs_add_nothing_and_are_counted() -> None:
    solved = solve([planted(4, source="x"), planted(3)], PlantedVectors())
    assert solved[0].score == 0
    assert sorted(solved[0].predicted) == ["t0", "t1", "t2", "t3"]
    assert [(mapping.pairs, mapping.unknown) for mapping in solved] == [(24, 12), (12, 0)]
    assert (metrics(solved)["pairs"], metrics(solved)["out_of_vocabulary"]) == (36, 12)


def test_metrics_count_terms_and_whole_problems() -> None:
    def solved(kind: str, credit: float) -> Mapping:
        return Mapping("", kind, ("a", "b"), ("c", "d"), ("c", "d"), 1.0, credit, pairs=4, unknown=0)

    found = metrics([solved("science", 1.0), solved("science", 0.5), solved("", 0.0), solved("", 1.0)])
    assert (found["accuracy"], found["solved"], found["problems"]) == (62.5, 50.0, 4)
    assert found["interval"][0] < 62.5 < found["interval"][1]
    assert found["by_type"] == {"science": {"accuracy": 75.0, "solved": 50.0, "problems": 2}}

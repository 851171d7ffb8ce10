"""Relation mapping: which term of one field plays the part of which term of another (Turney 2008; SCAN, 2022)?

The sun is to the planet as the nucleus is to the electron: of all ways to map the source terms onto the target
terms, the best is the one under which the relations between terms are most alike.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from itertools import combinations, permutations
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from relvec.data.benchmarks.mapping import DEFAULT_DATASET, MappingProblem, load_problems
from relvec.data.benchmarks.registry import benchmark_name
from relvec.evaluation.records import Record
from relvec.evaluation.systems import System
from relvec.evaluation.task import Outcome, Task, percent_interval, vectors_of
from relvec.model.cached_vectors import PairVectors
from relvec.pairs import Pair
from relvec.similarity import normalized

EXHAUSTIVE_TERMS = 9  # Turney's longest problems: 362,880 orders, half a second
RESTARTS = 200
_ORDERS_AT_ONCE = 8192

Orders = NDArray[np.intp]
Gains = NDArray[np.float64]


@dataclass(frozen=True)
class Mapping:
    """A solved problem: the target of each source term, the right ones, the score and the share that is right.

    `pairs` are the ordered pairs of terms that were compared, `unknown` those of them without a vector.
    """

    name: str
    kind: str
    source: tuple[str, ...]
    predicted: tuple[str, ...]
    answer: tuple[str, ...]
    score: float
    credit: float
    pairs: int
    unknown: int


def solve(problems: Sequence[MappingProblem], vectors: PairVectors) -> list[Mapping]:
    """Map the source terms of each problem; every distinct pair of all problems is encoded in one call.

        score of a mapping m = sum over i != j of cosine(vector(s_i, s_j), vector(m(s_i), m(s_j)))

    A pair without a vector adds nothing.
    """
    distinct = list(dict.fromkeys(pair for p in problems for side in (p.source, p.target) for pair in _pairs(side)))
    found, known = vectors.vectors(distinct)
    rows = normalized(found)
    row = {pair: number for number, pair in enumerate(distinct)}
    solved = []
    for problem in problems:
        source, target = ([row[pair] for pair in _pairs(side)] for side in (problem.source, problem.target))
        order, score = best_order(_gains(len(problem.source), rows[source] @ rows[target].T))
        right = order == np.array(problem.answer)
        predicted, answer = (tuple(problem.target[place] for place in chosen) for chosen in (order, problem.answer))
        solved.append(
            Mapping(
                problem.name,
                problem.kind,
                problem.source,
                predicted,
                answer,
                score,
                credit=float(right.mean()),
                pairs=len(source) + len(target),
                unknown=int(np.sum(~known[source + target])),
            )
        )
    return solved


def _pairs(terms: Sequence[str]) -> list[Pair]:
    return list(permutations(terms, 2))


def _gains(size: int, cosines: NDArray[np.floating]) -> Gains:
    """The cosines of ordered pairs, spread to [size, size, size, size]: source i, source j, target k, target l."""
    off_diagonal = np.flatnonzero(~np.eye(size, dtype=bool))
    gains = np.zeros((size * size, size * size))
    gains[np.ix_(off_diagonal, off_diagonal)] = cosines
    return gains.reshape(size, size, size, size)


def best_order(gains: Gains) -> tuple[Orders, float]:
    """The order p with the highest sum over i, j of gains[i, j, p(i), p(j)], and that sum.

    Gains are zero where i = j or k = l: a term has no relation to itself. The problem is one of quadratic assignment.
    Exact by trying all orders of up to 9 terms; a seeded search with restarts for more.

    >>> gains = np.zeros((2, 2, 2, 2))
    >>> gains[0, 1, 1, 0] = 0.5
    >>> best_order(gains)
    (array([1, 0]), 0.5)
    """
    size = len(gains)
    orders = _all_orders(size) if size <= EXHAUSTIVE_TERMS else _local_optima(gains)
    chunks = [orders[start : start + _ORDERS_AT_ONCE] for start in range(0, len(orders), _ORDERS_AT_ONCE)]
    sums = np.concatenate([_sums(gains, chunk) for chunk in chunks])
    best = int(np.argmax(sums))
    return orders[best], float(sums[best])


@cache
def _all_orders(size: int) -> Orders:
    return np.array(list(permutations(range(size))), dtype=np.intp)


def _sums(gains: Gains, orders: Orders) -> NDArray[np.float64]:
    """The score of each of several orders [n, size]."""
    size = len(gains)
    by_pairs = gains.reshape(size * size, size * size)
    places = (orders[:, :, None] * size + orders[:, None, :]).reshape(len(orders), -1)
    return by_pairs[np.arange(size * size), places].sum(axis=1)


def _local_optima(gains: Gains) -> Orders:
    """From many random orders, swap the two targets that gain most until no swap gains anything."""
    random = np.random.default_rng(0)
    return np.stack([_hill_climb(gains, random.permutation(len(gains))) for _ in range(RESTARTS)])


def _hill_climb(gains: Gains, order: Orders) -> Orders:
    swaps = np.array(list(combinations(range(len(order)), 2)))
    while True:
        orders = np.vstack([order, np.repeat(order[None], len(swaps), axis=0)])
        np.put_along_axis(orders[1:], swaps, order[swaps[:, ::-1]], axis=1)
        sums = _sums(gains, orders)
        best = int(np.argmax(sums))
        if sums[best] <= sums[0] + 1e-9:
            return order
        order = orders[best]


def metrics(mappings: Sequence[Mapping]) -> dict[str, Any]:
    """Accuracy (%): the share of terms mapped right, averaged over problems; its interval; problems wholly right.

    Counted too are the pairs of terms, and those out of vocabulary, which added nothing to any score.
    """
    earned = np.array([mapping.credit for mapping in mappings])
    kinds = np.array([mapping.kind for mapping in mappings])
    return {
        **_counts(earned),
        "interval": percent_interval(earned),
        "pairs": sum(mapping.pairs for mapping in mappings),
        "out_of_vocabulary": sum(mapping.unknown for mapping in mappings),
        "by_type": {str(kind): _counts(earned[kinds == kind]) for kind in np.unique(kinds) if kind},
    }


def _counts(earned: NDArray[np.float64]) -> dict[str, float]:
    return {
        "accuracy": 100 * float(earned.mean()),
        "solved": 100 * float((earned == 1).mean()),
        "problems": len(earned),
    }


@dataclass(frozen=True)
class MappingTask(Task[list[MappingProblem]]):
    """Relation mapping problems."""

    name = "mapping"
    columns: ClassVar[dict[str, Callable[[Record], str]]] = {
        "dataset": lambda record: record.dataset,
        "terms right": lambda record: f"{record.metrics['accuracy']:.1f}",
        "problems right": lambda record: f"{record.metrics['solved']:.1f}",
        "pairs": lambda record: str(record.metrics["pairs"]),
        "unknown": lambda record: str(record.metrics["out_of_vocabulary"]),
    }

    def load(self, datasets: Sequence[str], data_dir: str | Path | None = None) -> dict[str, list[MappingProblem]]:
        chosen = [benchmark_name("mapping", dataset) for dataset in datasets or [DEFAULT_DATASET]]
        return {dataset: load_problems(dataset, data_dir) for dataset in chosen}

    def pairs(self, data: list[MappingProblem]) -> Iterable[Pair]:
        return (pair for problem in data for side in (problem.source, problem.target) for pair in _pairs(side))

    def check(self, system: System, data: object) -> None:
        vectors_of(system)

    def run(self, system: System, dataset: str, data: list[MappingProblem], work: Path) -> Outcome:
        vectors = vectors_of(system)
        solved = solve(data, vectors)
        return Outcome(metrics(solved), vectors.fingerprint, [asdict(mapping) for mapping in solved])

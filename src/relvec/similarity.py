"""What is done with relation vectors: cosine similarity, ranking, analogy questions."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, Literal, NamedTuple, TypeVar, get_args

import numpy as np
from numpy.typing import NDArray

from relvec.errors import RelvecError, one_of
from relvec.pairs import Pair

Vectors = NDArray[np.float32]
Scoring = Literal["forward", "reverse", "bidirectional"]
Item = TypeVar("Item")


class Ranked(NamedTuple, Generic[Item]):
    """A candidate and its relational similarity to the query."""

    item: Item
    score: float


@dataclass(frozen=True)
class Solution:
    """The answer to an analogy question: the index of the best choice, the choice, and every choice's score."""

    answer: int
    choice: Pair
    scores: tuple[float, ...]


def normalized(vectors: Vectors) -> Vectors:
    """Rows of length 1 (a zero row stays zero).

    >>> normalized(np.array([[3.0, 4.0]], dtype=np.float32)).round(1).tolist()
    [[0.6000000238418579, 0.800000011920929]]
    """
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return vectors / np.maximum(lengths, np.finfo(np.float32).tiny)


def cosine(left: Vectors, right: Vectors) -> Vectors:
    """The matrix of cosines between the rows of `left` [m, dim] and of `right` [n, dim]."""
    return np.clip(normalized(left) @ normalized(right).T, -1.0, 1.0)


def check_scoring(scoring: str) -> Scoring:
    """
    >>> check_scoring("forward")
    'forward'
    """
    return one_of("scoring", scoring, get_args(Scoring))


def check_top(top: int | None) -> None:
    """None stands for all."""
    if top is not None and top < 1:
        raise RelvecError(f"top is {top}; use 1 or more.")


def ranked(items: Sequence[Item], scores: NDArray[np.floating], top: int | None = None) -> list[Ranked[Item]]:
    """Items by falling score, ties in the given order.

    >>> ranked(["low", "high"], np.array([0.1, 0.9]))
    [Ranked(item='high', score=0.9), Ranked(item='low', score=0.1)]
    """
    check_top(top)
    order = np.argsort(-scores, kind="stable")[:top]
    return [Ranked(items[index], float(scores[index])) for index in order]


def principal_axes(sample: Vectors, count: int) -> Vectors:
    """The directions that keep most of the inner products: [count, dim], orthonormal.

    A A' x is the best approximation of x among all projections to so many dimensions, on average over the sample.
    Nothing is moved to the mean, unlike in principal component analysis: cosines are measured from the origin.

    >>> sample = np.array([[3, 0, 4], [4, 0, -3]], dtype=np.float32)
    >>> small = sample @ principal_axes(sample, 2).T
    >>> bool(np.allclose(small @ small.T, sample @ sample.T))
    True
    """
    _, axes = np.linalg.eigh(sample.T.astype(np.float64) @ sample)
    return np.ascontiguousarray(axes[:, ::-1][:, :count].T, dtype=np.float32)

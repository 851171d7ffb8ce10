"""The space in which relations are told apart: a model's vectors, turned so that pairs of one relation are close.

Linear discriminant analysis over many relations: the spread of pairs within a relation becomes 1 in every direction,
and the directions in which relations differ most are kept.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np

from relvec.similarity import Vectors, normalized

DIRECTIONS = 256
RIDGE = 1.0
"""How much of the mean variance is added to every direction: few pairs do not show the spread of all."""


@dataclass(frozen=True)
class RelationSpace:
    """Where relation vectors x go: z = (x / |x| - center) projection."""

    center: Vectors
    projection: Vectors
    between: Vectors
    """The variance of the means of relations in each direction; that of the pairs of a relation is 1."""

    @classmethod
    def fit(cls, vectors: Vectors, labels: np.ndarray) -> Self:
        """The space of vectors [pairs, dim] whose relations are numbered from 0.

        >>> random = np.random.default_rng(0)
        >>> labels = np.repeat(np.arange(20), 30)
        >>> means = random.normal(size=(20, 8))
        >>> vectors = (means[labels] + 0.1 * random.normal(size=(600, 8))).astype(np.float32)
        >>> space = RelationSpace.fit(vectors, labels)
        >>> projected = space(vectors)
        >>> spread = projected - means_of(projected, labels)[labels]
        >>> bool(space.between.mean() > 10 * spread.var())
        True
        """
        units = normalized(vectors)
        center = units.mean(axis=0)
        means = means_of(units, labels)
        spread = units - means[labels]
        within = spread.T @ spread / len(units)
        within += RIDGE * float(np.trace(within)) / len(within) * np.eye(len(within), dtype=np.float32)
        values, directions = np.linalg.eigh(within)
        whitening = directions / np.sqrt(values)
        of_means = (means - center) @ whitening
        _, sizes, kept = np.linalg.svd(of_means, full_matrices=False)
        kept, sizes = kept[:DIRECTIONS], sizes[:DIRECTIONS]
        # The mean of n pairs has a spread of 1/n of its own.
        noise = float(np.mean(1 / np.bincount(labels)))
        between = np.maximum(sizes**2 / len(means) - noise, 1e-3)
        return cls(center, (whitening @ kept.T).astype(np.float32), between.astype(np.float32))

    def __call__(self, vectors: Vectors) -> Vectors:
        centered: Vectors = normalized(vectors) - self.center
        return centered @ self.projection


def means_of(vectors: Vectors, labels: np.ndarray) -> Vectors:
    """The mean of the vectors of each label, which are numbered from 0."""
    sums = np.zeros((int(labels.max()) + 1, vectors.shape[1]), dtype=np.float32)
    np.add.at(sums, labels, vectors)
    counts = np.bincount(labels).astype(np.float32)
    return np.divide(sums, counts[:, None], dtype=np.float32)

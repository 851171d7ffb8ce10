"""The targets of a student, the teacher's vectors in its dimension, and the losses that compare it with them."""

import random
from collections.abc import Sequence

import numpy as np
from torch import Tensor
from torch.nn.functional import cosine_similarity, normalize

from relvec.model.cached_vectors import ModelVectors
from relvec.model.relation_model import RelBERT
from relvec.pairs import Pair
from relvec.similarity import Vectors, cosine, normalized, principal_axes

# Enough to know the directions of vectors with some hundred dimensions; more pairs would only need more memory.
FITTED_PAIRS = 20_000
COMPARED_PAIRS = 2000


class Targets:
    """Called on pairs, gives the teacher's vectors and the student's target vectors, all of length 1.

    A target is the teacher's vector times `projection` [teacher dim, student dim].
    """

    def __init__(self, teacher: ModelVectors, projection: Vectors) -> None:
        self.teacher, self.projection = teacher, projection

    @classmethod
    def fit(cls, teacher: ModelVectors, student: RelBERT, pairs: Sequence[Pair], seed: int = 0) -> "Targets":
        """Reduce the teacher's vectors to the student's dimension, and turn them as near to its own as can be."""
        sample = random.Random(seed).sample(list(pairs), min(FITTED_PAIRS, len(pairs)))
        vectors, few = normalized(teacher.vectors(sample)[0]), sample[:COMPARED_PAIRS]
        start = student.encode(few, normalize=True, truncate=True)
        reduced = cls(teacher, reduction(vectors, student.dim))
        return cls(teacher, reduced.projection @ rotation(reduced(few)[1], start))

    def __call__(self, pairs: Sequence[Pair]) -> tuple[Vectors, Vectors]:
        vectors = normalized(self.teacher.vectors(pairs)[0])
        return vectors, normalized(vectors @ self.projection)

    def correlation_kept(self, pairs: Sequence[Pair]) -> float:
        """How much of the teacher's similarities the targets keep: the correlation of the cosines among the pairs."""
        return cosine_correlation(*self(pairs))


def reduction(vectors: Vectors, dim: int) -> Vectors:
    """The linear map [teacher dim, dim] that keeps the inner products of the rows as well as any can.

    A `dim` above the teacher's is filled up with zeros.

    >>> reduction(np.eye(2, dtype=np.float32), 3).shape
    (2, 3)
    """
    axes = principal_axes(vectors, dim)
    return np.pad(axes, ((0, dim - len(axes)), (0, 0))).T


def rotation(vectors: Vectors, toward: Vectors) -> Vectors:
    """The orthogonal map R [dim, dim] with the least |V R - W|^2 for the rows V and W (orthogonal Procrustes).

    With V'W = A diag(s) B' it is R = A B'. It changes no cosine among the rows.

    >>> vectors = np.array([[1, 0], [0, 1]], dtype=np.float32)
    >>> (vectors @ rotation(vectors, toward=vectors[::-1])).round().tolist()
    [[0.0, 1.0], [1.0, 0.0]]
    """
    left, _, right = np.linalg.svd(vectors.astype(np.float64).T @ toward.astype(np.float64))
    return (left @ right).astype(np.float32)


def cosine_correlation(left: Vectors, right: Vectors) -> float:
    """Pearson's correlation between cos(l_i, l_j) and cos(r_i, r_j) over all i < j; 0 if either never varies.

    >>> vectors = np.array([[1, 0], [0, 1], [1, 1]], dtype=np.float32)
    >>> round(cosine_correlation(vectors, 2 * vectors), 4)
    1.0
    """
    is_below = np.tri(len(left), k=-1, dtype=bool)
    cosines = [cosine(vectors, vectors)[is_below].astype(np.float64) for vectors in (left, right)]
    if any(values.size < 2 or values.std() == 0 for values in cosines):
        return 0.0
    return float(np.corrcoef(*cosines)[0, 1])


def vector_loss(student: Tensor, target: Tensor) -> Tensor:
    """1 - cos(s_i, t_i), the mean over the pairs of a batch; both [batch, dim].

    >>> import torch
    >>> vector_loss(torch.tensor([[2.0, 0.0]]), torch.tensor([[0.0, 1.0]])).item()
    1.0
    """
    return (1 - cosine_similarity(student, target, dim=-1)).mean()


def similarity_loss(student: Tensor, teacher: Tensor) -> Tensor:
    """(cos(s_i, s_j) - cos(t_i, t_j))^2, the mean over all i and j of a batch: relations between pairs are kept.

    Student [batch, dim] and teacher [batch, teacher dim] need not have the same dimension.

    >>> import torch
    >>> similarity_loss(torch.eye(2), torch.tensor([[1.0, 0.0, 0.0], [1.0, 0.0, 0.0]])).item()
    0.5
    """
    student, teacher = normalize(student, dim=-1), normalize(teacher, dim=-1)
    return (student @ student.T - teacher @ teacher.T).square().mean()

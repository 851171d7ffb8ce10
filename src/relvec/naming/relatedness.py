"""Do two words stand in any relation at all? A model of its own: the nearest relation is near for any two words."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from relvec.similarity import Vectors

RIDGE = 0.003
"""How strongly each vector holds the weights to zero."""

STEPS = 8


@dataclass(frozen=True)
class Relatedness:
    """The probability of a vector x of length 1 to be that of a related pair: sigmoid(w x + b).

    Related pairs and others count alike, however many there are of each: it is the probability of a pair that is as
    likely to be related as not.
    """

    weights: NDArray[np.float32]
    bias: NDArray[np.float32]

    @classmethod
    def fit(cls, related: Vectors, unrelated: Vectors) -> Self:
        """Logistic regression by Newton's method.

        >>> random = np.random.default_rng(0)
        >>> related, unrelated = random.normal(size=(2, 500, 3)).astype(np.float32)
        >>> related[:, 0] += 3
        >>> relatedness = Relatedness.fit(related, unrelated)
        >>> bool(relatedness(related).mean() > 0.8 > 0.2 > relatedness(unrelated).mean())
        True
        """
        vectors = np.vstack([related, unrelated])
        spread = np.maximum(vectors.std(axis=0), 1e-6)
        weights, bias = _regression(vectors / spread, len(related), RIDGE * len(vectors))
        return cls((weights / spread).astype(np.float32), np.array(bias, dtype=np.float32))

    def __call__(self, vectors: Vectors) -> NDArray[np.float32]:
        return 1 / (1 + np.exp(-(vectors @ self.weights + self.bias)))

    def calibrated(self, related: Vectors, unrelated: Vectors) -> Self:
        """The same order, with the probabilities that held-out pairs call for."""
        scores = np.vstack([related, unrelated]) @ self.weights + self.bias
        (slope,), shift = _regression(scores[:, None], len(related), 1.0)
        return type(self)(
            (self.weights * slope).astype(np.float32), np.array(self.bias * slope + shift, dtype=np.float32)
        )

    def arrays(self) -> dict[str, NDArray[np.float32]]:
        return {"weights": self.weights, "bias": self.bias}


def _regression(points: Vectors, related: int, ridge: float) -> tuple[NDArray[np.float64], float]:
    """Weights and bias; the first rows, so many, are the related ones."""
    features = np.hstack([points, np.ones((len(points), 1), dtype=np.float32)]).astype(np.float64)
    is_related = np.arange(len(points)) < related
    counted = np.where(is_related, 0.5 / related, 0.5 / (len(points) - related)) * len(points)
    penalty = np.full(features.shape[1], ridge)
    penalty[-1] = 1e-6
    solution = np.zeros(features.shape[1])
    for _ in range(STEPS):
        said = 1 / (1 + np.exp(-features @ solution))
        gradient = features.T @ (counted * (said - is_related)) + penalty * solution
        curvature = (features * (counted * said * (1 - said))[:, None]).T @ features + np.diag(penalty)
        solution -= np.linalg.solve(curvature, gradient)
    return solution[:-1], float(solution[-1])

"""Probabilities that mean something: of what is said with 0.8, four fifths should be true."""

import numpy as np
from numpy.typing import NDArray

TEMPERATURES = np.geomspace(0.3, 30, 60)


def softmax(scores: NDArray[np.floating]) -> NDArray[np.float32]:
    """Each row of scores as probabilities.

    >>> softmax(np.array([[0.0, 0.0]])).tolist()
    [[0.5, 0.5]]
    """
    raised = np.exp(scores - scores.max(axis=1, keepdims=True))
    return (raised / raised.sum(axis=1, keepdims=True)).astype(np.float32)


def best_temperature(scores: NDArray[np.floating], is_right: NDArray[np.bool_]) -> float:
    """What to divide the scores by so that the right rows get the most likelihood: [pairs, relations] both.

    >>> random = np.random.default_rng(0)
    >>> probabilities = softmax(random.normal(size=(2000, 4)))
    >>> right = np.array([random.multinomial(1, row / row.sum()) for row in probabilities.astype(float)]) > 0
    >>> 2.5 < best_temperature(3 * np.log(probabilities), right) < 3.5
    True
    """
    losses = [-np.log(np.maximum(_probability_of_right(scores / t, is_right), 1e-12)).mean() for t in TEMPERATURES]
    return float(TEMPERATURES[int(np.argmin(losses))])


def _probability_of_right(scores: NDArray[np.floating], is_right: NDArray[np.bool_]) -> NDArray[np.floating]:
    return (softmax(scores) * is_right).sum(axis=1)

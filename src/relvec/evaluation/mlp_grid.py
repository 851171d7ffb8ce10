"""The paper's classifier on frozen vectors: a multi-layer perceptron, its settings chosen on validation pairs.

Nothing here imports torch, so that the processes that share the grid start quickly.
"""

import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from relvec.errors import needed_for
from relvec.progress import progress_bar
from relvec.similarity import Vectors
from relvec.storage.cache import Cache

Labels = NDArray[np.str_]


class GridPoint(NamedTuple):
    """One setting of the perceptron."""

    learning_rate: float
    hidden_size: int


GRID = tuple(GridPoint(rate, size) for rate in (0.001, 0.0001, 0.00001) for size in (100, 150, 200))
DEFAULT_POINT = GridPoint(0.001, 100)  # scikit-learn's own


@dataclass(frozen=True)
class GridData:
    """Features [pairs, columns] and labels to train on, to choose settings by, and to test on."""

    train: Vectors
    train_labels: Labels
    valid: Vectors
    valid_labels: Labels
    test: Vectors


@dataclass(frozen=True)
class GridResult:
    """One setting's validation score in per cent, and its predictions for the test pairs."""

    learning_rate: float
    hidden_size: int
    iterations: int
    converged: bool
    valid_micro_f1: float | None
    predicted: list[str]


def check_scikit_learn() -> None:
    """Raise an error if it is missing: before hours of encoding, not after."""
    with needed_for("Classification"):
        import joblib  # noqa: F401
        import sklearn  # noqa: F401


def fit_grid(
    data: GridData, seed: int, jobs: int | None, key: str, points: Sequence[GridPoint] = GRID
) -> list[GridResult]:
    """The result of every point, in their order; without validation pairs, of the default setting alone.

    `jobs` settings are fitted at a time, each in a process of its own. Finished settings are kept in the cache by
    `key`, a checksum of all that decides the results, so a killed run resumes.
    """
    from joblib import Parallel, cpu_count, delayed

    points = points if len(data.valid) else (DEFAULT_POINT,)
    cache = Cache("fitted classifiers")
    key_of = {point: f"{key} {point.learning_rate:g} {point.hidden_size}" for point in points}
    found = cache.get_json(key_of.values())
    # Small rates and large layers take longest: begun first, they leave no process idle at the end.
    missing = sorted((point for point in points if key_of[point] not in found), key=lambda each: (each[0], -each[1]))
    # joblib maps large arrays into every process instead of copying them.
    parallel = Parallel(n_jobs=min(jobs or cpu_count(), max(1, len(missing))), return_as="generator_unordered")
    with progress_bar(len(points), "Fitting classifiers", "fit", initial=len(found)) as bar:
        for point, result in parallel(delayed(_fit)(point, data, seed) for point in missing):
            cache.add_json({key_of[point]: result})
            found[key_of[point]] = result
            bar.update()
    return [GridResult(**found[key_of[point]]) for point in points]


def _fit(point: GridPoint, data: GridData, seed: int) -> tuple[GridPoint, dict[str, Any]]:
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.neural_network import MLPClassifier
    from threadpoolctl import threadpool_limits

    model = MLPClassifier(
        hidden_layer_sizes=(point.hidden_size,), learning_rate_init=point.learning_rate, random_state=seed
    )
    # One thread: the processes fill the cores, and the result does not depend on how many there are.
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        # scikit-learn makes a warning of Ctrl-C and keeps the half-trained model: that must not pass for a result.
        warnings.filterwarnings("error", message="Training interrupted")
        try:
            model.fit(data.train, data.train_labels)
        except UserWarning as error:
            raise KeyboardInterrupt from error
        score = 100 * float(np.mean(model.predict(data.valid) == data.valid_labels)) if len(data.valid) else None
        predicted = model.predict(data.test).tolist()
    result = GridResult(*point, model.n_iter_, model.n_iter_ < model.max_iter, score, predicted)
    return point, asdict(result)

"""How sure a measured share is."""

import numpy as np
from numpy.typing import NDArray

RESAMPLES = 10_000


def bootstrap_interval(
    values: NDArray[np.floating], level: float = 0.95, resamples: int = RESAMPLES, seed: int = 0
) -> tuple[float, float]:
    """The percentile bootstrap interval of the mean of `values`.

    >>> low, high = bootstrap_interval(np.array([1.0, 0.0] * 50))
    >>> round(low, 2), round(high, 2)
    (0.4, 0.6)
    """
    distinct, counts = np.unique(values, return_counts=True)
    # A resample is how often each distinct value is drawn: one multinomial draw, whatever the number of values.
    drawn = np.random.default_rng(seed).multinomial(len(values), counts / len(values), size=resamples)
    means = drawn @ distinct / len(values)
    low, high = np.quantile(means, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)

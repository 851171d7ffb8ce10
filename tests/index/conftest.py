"""Planted clusters, and models that tests of the index share."""

import numpy as np
import pytest

from relvec.pairs import Pair
from relvec.similarity import Vectors


@pytest.fixture(autouse=True, scope="session")
def _one_thread() -> None:
    import faiss

    faiss.omp_set_num_threads(1)  # small searches only lose by sharing their work


@pytest.fixture(scope="session")
def clusters() -> Vectors:
    """3,000 vectors of 16 dimensions around 60 centres that lie far from the origin, as those of language models do."""
    random = np.random.default_rng(0)
    centres = random.normal(size=(60, 16))
    return (centres[np.arange(3000) % 60] + 0.3 * random.normal(size=(3000, 16)) + 1).astype(np.float32)


@pytest.fixture(scope="session")
def cluster_pairs() -> list[Pair]:
    return [(f"head {row}", f"tail_{row}") for row in range(3000)]

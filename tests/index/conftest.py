"""Planted clusters, a full disk, and models that tests of the index share."""

import resource
import signal
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

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


@pytest.fixture
def full_disk() -> Callable[[], AbstractContextManager[None]]:
    """Blocks in which no file can be written beyond 64 bytes."""

    @contextmanager
    def full() -> Iterator[None]:
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (64, before[1]))
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
            signal.signal(signal.SIGXFSZ, handler)

    return full

"""A stopwatch for the training runs; both packages' environments import it."""

import time
from collections.abc import Iterator
from contextlib import contextmanager


class Stopwatch:
    """Seconds since it was made, less its pauses."""

    def __init__(self) -> None:
        self._started = time.perf_counter()
        self._paused = 0.0

    def seconds(self) -> float:
        return time.perf_counter() - self._started - self._paused

    @contextmanager
    def pause(self) -> Iterator[None]:
        started = time.perf_counter()
        try:
            yield
        finally:
            self._paused += time.perf_counter() - started

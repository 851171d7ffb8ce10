"""How many threads encode without torch, and how many share a matrix product: never more than one."""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_here = threading.local()


def thread_count() -> int:
    """How many threads encode without torch: what OMP_NUM_THREADS says, as torch understands it, else all cores."""
    if getattr(_here, "is_one_of_many", False):
        return 1
    wanted = os.environ.get("OMP_NUM_THREADS", "")
    return max(1, int(wanted)) if wanted.isdecimal() else os.cpu_count() or 1


@contextmanager
def one_thread() -> Iterator[None]:
    """For a thread that is one of many which encode: what it encodes starts no threads.

    >>> with one_thread():
    ...     thread_count()
    1
    """
    _here.is_one_of_many = True
    try:
        yield
    finally:
        _here.is_one_of_many = False


class OneBlasThread:
    """One thread in each matrix product: several would wait for each other, and for ours.

    The limit holds for the process. So the first who needs it sets it, and the last lifts it.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = 0
        self._limit: Any = None

    def __enter__(self) -> None:
        if os.environ.get("OPENBLAS_NUM_THREADS") == "1":
            return
        with self._lock:
            self._users += 1
            if self._users == 1:
                from threadpoolctl import threadpool_limits

                self._limit = threadpool_limits(1, "blas")

    def __exit__(self, *_: object) -> None:
        with self._lock:
            if self._users == 0:
                return
            self._users -= 1
            if self._users == 0:
                self._limit.restore_original_limits()


one_blas_thread = OneBlasThread()

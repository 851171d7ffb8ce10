"""Batches side by side on a CPU: threads with a batch each need not wait for each other in every matrix product."""

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import torch

Batch = TypeVar("Batch")
Result = TypeVar("Result")

_only_one = threading.Lock()  # torch's number of threads belongs to the whole process


def side_by_side(encode: Callable[[Batch], Result], batches: Sequence[Batch]) -> Iterator[Result]:
    """The result of each batch, in order; with fewer batches than threads, torch shares out each product as it would.

    >>> list(side_by_side(len, ["a", "bc"]))
    [1, 2]
    """
    threads = torch.get_num_threads()
    if threads < 2 or len(batches) < threads or not _only_one.acquire(blocking=False):
        yield from map(encode, batches)
        return
    try:
        torch.set_num_threads(1)
        with ThreadPoolExecutor(threads) as pool:
            yield from pool.map(encode, batches)
    finally:
        torch.set_num_threads(threads)
        _only_one.release()

"""Batches side by side on a CPU: threads with a batch each need not wait for each other in every matrix product."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import TypeVar

import torch

Batch = TypeVar("Batch")
Result = TypeVar("Result")


def side_by_side(encode: Callable[[Batch], Result], batches: Sequence[Batch]) -> Iterator[Result]:
    """The result of each batch, in order; with fewer batches than threads, torch shares out each product as it would.

    >>> list(side_by_side(len, ["a", "bc"]))
    [1, 2]
    """
    threads = torch.get_num_threads()
    if threads < 2 or len(batches) < threads or torch.is_autocast_enabled("cpu"):  # which threads do not take over
        yield from map(encode, batches)
        return
    all_started = Barrier(threads + 1)
    with ThreadPoolExecutor(threads, initializer=_alone, initargs=(all_started,)) as pool:
        results = pool.map(encode, batches)
        all_started.wait()
        torch.set_num_threads(threads)  # what a thread sets for itself is also what threads to come begin with
        yield from results


def _alone(all_started: Barrier) -> None:
    torch.get_num_threads()  # a thread that has not asked yet would later begin with what all begin with
    torch.set_num_threads(1)
    all_started.wait()

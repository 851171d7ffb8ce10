"""Threads that have a batch each, and what they leave behind."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch

from relvec import RelBERT
from relvec.model.torch_backend import in_parallel_threads

PAIRS = [(f"head{number}", "tail" * (number % 3 + 1)) for number in range(12)]


@pytest.fixture(autouse=True)
def two_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


def threads_of_a_new_thread() -> int:
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(torch.get_num_threads).result()


def test_two_batches_are_at_work_at_once_with_one_thread_each() -> None:
    meeting = threading.Barrier(2, timeout=10)

    def meet(number: int) -> tuple[int, int]:
        meeting.wait()
        return number, torch.get_num_threads()

    assert list(in_parallel_threads(meet, range(4))) == [(0, 1), (1, 1), (2, 1), (3, 1)]


def test_meanwhile_other_threads_keep_all_of_torchs() -> None:
    results = in_parallel_threads(abs, [-1, -2, -3])
    assert next(results) == 1
    assert threads_of_a_new_thread() == torch.get_num_threads() == 2
    assert list(results) == [2, 3]


def test_an_error_is_passed_on_and_the_number_of_threads_is_as_before() -> None:
    with pytest.raises(ZeroDivisionError):
        list(in_parallel_threads(lambda number: 1 // number, [1, 0, 1]))
    assert threads_of_a_new_thread() == torch.get_num_threads() == 2


def test_a_caller_who_stops_early_leaves_no_thread_behind() -> None:
    before = threading.active_count()
    results = in_parallel_threads(abs, [-1, -2, -3])
    assert next(results) == 1
    del results
    assert threading.active_count() == before


def test_a_single_batch_keeps_torchs_own_threads() -> None:
    assert list(in_parallel_threads(lambda _: torch.get_num_threads(), [0])) == [2]


def test_autocast_holds_for_every_batch() -> None:
    with torch.autocast("cpu"):
        assert list(in_parallel_threads(lambda _: torch.is_autocast_enabled("cpu"), range(3))) == [True] * 3


def test_the_vectors_are_those_of_one_batch_after_the_other(tiny: RelBERT) -> None:
    expected = np.concatenate([tiny.encode([pair]) for pair in PAIRS])
    np.testing.assert_allclose(tiny.encode(PAIRS, batch_size=4), expected, atol=1e-6)


def test_several_threads_may_encode_at_once(tiny: RelBERT) -> None:
    expected = tiny.encode(PAIRS, batch_size=4)
    with ThreadPoolExecutor(4) as pool:
        for vectors in pool.map(lambda _: tiny.encode(PAIRS, batch_size=4), range(8)):
            np.testing.assert_allclose(vectors, expected, atol=1e-6)

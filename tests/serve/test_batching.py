"""Requests in flight at once are encoded together, and do not disturb each other."""

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from relvec import RelBERT
from relvec.pairs import Pair
from relvec.serve import batching
from relvec.serve.batching import Batcher, Batching, deadline
from relvec.serve.errors import RefusedError
from relvec.serve.metrics import Metrics

WORDS = ["Paris", "France", "tea", "cup", "bread", "baker", "ice cream", "the capital of Japan"]


@pytest.fixture
def batcher(watched: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Batcher]:
    """With one worker, so that batches follow each other."""
    yield from started(watched, monkeypatch, workers=1)


@pytest.fixture
def shared_batcher(watched: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Batcher]:
    """With two workers."""
    yield from started(watched, monkeypatch, workers=2)


def started(watched: Any, monkeypatch: pytest.MonkeyPatch, workers: int) -> Iterator[Batcher]:
    monkeypatch.setenv("OMP_NUM_THREADS", str(workers))
    monkeypatch.setattr(batching, "_cores", threading.Semaphore(workers))
    batcher = Batcher(watched.model, Metrics(), Batching(size=8, wait_seconds=0.003))
    yield batcher
    watched.may_go_on.set()
    batcher.close()


def test_every_request_gets_the_vectors_that_encode_gives(shared_batcher: Batcher, model: RelBERT) -> None:
    requests = [[(head, tail) for tail in WORDS[: 1 + size]] for size, head in enumerate(WORDS)]
    with ThreadPoolExecutor(8) as clients:
        found = list(clients.map(lambda pairs: shared_batcher.submit(pairs).result(20), requests * 3))
    for pairs, vectors in zip(requests * 3, found, strict=True):
        np.testing.assert_allclose(vectors, model.encode(pairs), atol=1e-5)


@pytest.mark.parametrize("backend", ["numpy", "onnx", "torch"])
@pytest.mark.parametrize("size", [1, 5, 64])
def test_every_backend_encodes_in_its_workers(tiny_folders: Callable[[str], Path], backend: str, size: int) -> None:
    model = RelBERT.from_pretrained(tiny_folders("mpnet"), backend=backend)
    batcher = Batcher(model, Metrics(), Batching(size, wait_seconds=0.003))
    pairs = [(head, tail) for head in WORDS for tail in WORDS]
    found = batcher.submit(pairs).result(20)
    batcher.close()
    np.testing.assert_allclose(found, model.encode(pairs), atol=1e-5)


def test_the_library_reaches_the_queue_through_the_shared_model(batcher: Batcher, model: RelBERT, watched: Any) -> None:
    shared = batcher.shared_model()
    assert shared.solve(("a", "b"), [("c", "d"), ("a", "b")]).answer == 1
    assert watched.encoded == [[("a", "b"), ("c", "d")]]
    assert shared.similarity(("a", "b"), ("c", "d")) == pytest.approx(
        model.similarity(("a", "b"), ("c", "d")), abs=1e-5
    )


def test_pairs_that_arrive_during_a_batch_make_one_batch(batcher: Batcher, watched: Any) -> None:
    hold(batcher, watched)
    later = [batcher.submit([("cup", str(number))]) for number in range(8)]
    watched.may_go_on.set()
    assert all(future.result(20).shape == (1, 16) for future in later)
    assert sorted(watched.encoded[1]) == [("cup", str(number)) for number in range(8)]


def test_a_batch_has_the_pair_whose_turn_it_is_and_pairs_of_its_length(batcher: Batcher, watched: Any) -> None:
    hold(batcher, watched)
    long = [("the capital of Japan", f"the product of bread {number}") for number in range(8)]
    short = [("cup", str(number)) for number in range(8)]
    mixed = [pair for both in zip(long, short, strict=True) for pair in both]
    futures = [batcher.submit([pair]) for pair in mixed]
    watched.may_go_on.set()
    for future in futures:
        future.result(20)
    assert [set(batch) for batch in watched.encoded[1:]] == [set(long), set(short)]


def test_a_pair_of_rare_length_is_not_overtaken_for_ever(batcher: Batcher, watched: Any) -> None:
    hold(batcher, watched)
    long = ("the capital of Japan", "the product of bread")
    short = [("cup", str(number)) for number in range(10, 26)]
    futures = [batcher.submit([pair]) for pair in [short[0], long, *short[1:]]]
    watched.may_go_on.set()
    for future in futures:
        future.result(20)
    assert long in watched.encoded[2]


def test_a_small_request_does_not_wait_for_the_whole_of_a_large_one(batcher: Batcher, watched: Any) -> None:
    hold(batcher, watched)
    large = batcher.submit([("cup", str(number)) for number in range(64)])
    small = batcher.submit([("tea", "1")])
    watched.may_go_on.set()
    small.result(20), large.result(20)
    assert ("tea", "1") in watched.encoded[1]


def test_what_one_request_breaks_no_other_feels(batcher: Batcher, watched: Any) -> None:
    hold(batcher, watched)
    good, bad, other = (batcher.submit([(word, "tea")]) for word in ("cup", "poison", "pot"))
    watched.may_go_on.set()
    assert good.result(20).shape == other.result(20).shape == (1, 16)
    with pytest.raises(MemoryError):
        bad.result(20)
    assert batcher.submit([("the", "next")]).result(20).shape == (1, 16)


def test_a_pair_that_is_being_encoded_for_another_request_is_not_encoded_again(batcher: Batcher, watched: Any) -> None:
    hold(batcher, watched)
    later = batcher.submit([("held", "pair"), ("cup", "tea"), ("held", "pair")])
    watched.may_go_on.set()
    found = later.result(20)
    np.testing.assert_array_equal(found[0], found[2])
    assert watched.encoded == [[("held", "pair")], [("cup", "tea")]]
    again = batcher.submit([("held", "pair"), ("cup", "tea")]).result(20)
    np.testing.assert_array_equal(again, found[:2])


def test_a_request_that_was_given_up_is_not_encoded(batcher: Batcher, watched: Any) -> None:
    hold(batcher, watched)
    given_up, kept = batcher.submit([("given", "up")]), batcher.submit([("cup", "tea")])
    assert given_up.cancel()
    watched.may_go_on.set()
    kept.result(20)
    assert watched.encoded[1:] == [[("cup", "tea")]]


def test_nothing_is_encoded_for_a_request_whose_time_is_over(batcher: Batcher, watched: Any) -> None:
    def late() -> None:
        deadline.set(time.monotonic() - 1)
        batcher.shared_model().encode([("given", "up")])

    with pytest.raises(TimeoutError):
        copy_context().run(late)
    assert batcher.shared_model().encode([("cup", "tea")]).shape[0] == 1
    assert watched.encoded == [[("cup", "tea")]]


def test_what_the_library_waits_for_too_long_is_not_encoded(batcher: Batcher, watched: Any) -> None:
    hold(batcher, watched)

    def solve() -> None:
        deadline.set(time.monotonic() + 0.05)
        batcher.shared_model().solve(("given", "up"), [("a", "b"), ("c", "d")])

    with pytest.raises(TimeoutError):
        copy_context().run(solve)
    kept = batcher.submit([("cup", "tea")])
    watched.may_go_on.set()
    kept.result(20)
    assert watched.encoded[1:] == [[("cup", "tea")]]


def test_the_latest_vectors_are_kept_and_no_more(model: RelBERT, watched: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batching, "KEPT_VECTORS", 2)
    batcher = Batcher(watched.model, Metrics(), Batching(size=8, wait_seconds=0.0))
    for number in (1, 2, 1, 3, 1, 2):  # when 3 comes, 2 is the one that was asked for longest ago
        found = batcher.submit([("cup", str(number))]).result(20)
        np.testing.assert_allclose(found[0], model.encode(("cup", str(number))), atol=1e-5)
    batcher.close()
    assert [tail for ((_, tail),) in watched.encoded] == ["1", "2", "3", "2"]


def test_a_canary_comes_before_all_that_waits_and_is_really_encoded(batcher: Batcher, watched: Any) -> None:
    hold(batcher, watched)
    waiting = batcher.submit([("cup", str(number)) for number in range(40)])
    canary = batcher.submit([("first", "pair")], is_canary=True)
    watched.may_go_on.set()
    canary.result(20), waiting.result(20)
    assert ("first", "pair") in watched.encoded[1]


def test_closing_answers_what_waits(batcher: Batcher, watched: Any) -> None:
    hold(batcher, watched)
    waiting = [batcher.submit([("cup", word)]) for word in WORDS]
    closing = threading.Thread(target=batcher.close)
    closing.start()
    watched.may_go_on.set()
    closing.join(20)
    assert all(future.done() for future in waiting)


def test_what_comes_after_closing_is_refused_at_once(batcher: Batcher) -> None:
    batcher.submit([("cup", "tea")]).result(20)
    batcher.close()
    for pair in [("cup", "tea"), ("the", "next")]:  # the first has a kept vector
        with pytest.raises(RefusedError, match=r"^The server is stopping; try again later\.$") as refused:
            batcher.submit([pair])
        assert refused.value.status == 503


def test_a_batch_that_is_a_quarter_full_ends_where_the_length_changes(batcher: Batcher, watched: Any) -> None:
    hold(batcher, watched)
    long = [("the capital of Japan", f"the product of bread {number}") for number in range(2)]
    short = [("cup", str(number)) for number in range(3)]
    futures = [batcher.submit([pair]) for pair in [*long, *short]]
    watched.may_go_on.set()
    for future in futures:
        future.result(20)
    assert [set(batch) for batch in watched.encoded[1:]] == [set(long), set(short)]


def test_a_worker_encodes_while_another_is_busy(shared_batcher: Batcher, watched: Any, model: RelBERT) -> None:
    watched.slow = {("slow", "pair")}
    hold(shared_batcher, watched, ("slow", "pair"))
    found = shared_batcher.submit([("cup", "tea")]).result(20)
    np.testing.assert_allclose(found, model.encode([("cup", "tea")]), atol=1e-5)


def test_workers_share_out_a_request(shared_batcher: Batcher, watched: Any, model: RelBERT) -> None:
    watched.may_go_on.clear()
    pairs = [("cup", str(number)) for number in range(16)]
    future = shared_batcher.submit(pairs)
    wait_for_batches(watched, 2)  # both are at it, though neither is done
    watched.may_go_on.set()
    np.testing.assert_allclose(future.result(20), model.encode(pairs), atol=1e-5)
    assert sorted(watched.encoded[0] + watched.encoded[1]) == sorted(pairs)


def test_what_one_worker_encodes_no_other_does_at_the_same_time(shared_batcher: Batcher, watched: Any) -> None:
    watched.slow = {("slow", "pair")}
    hold(shared_batcher, watched, ("slow", "pair"))
    again, other = shared_batcher.submit([("slow", "pair")]), shared_batcher.submit([("cup", "tea")])
    other.result(20)
    assert not again.done()
    watched.may_go_on.set()
    again.result(20)
    assert watched.encoded == [[("slow", "pair")], [("cup", "tea")]]


def test_a_canary_does_not_wait_for_a_busy_worker(shared_batcher: Batcher, watched: Any) -> None:
    watched.slow = {("slow", "pair")}
    hold(shared_batcher, watched, ("slow", "pair"))
    watched.slow = {("another", "pair")}
    assert shared_batcher.submit([("slow", "pair")], is_canary=True).result(20).shape == (1, 16)


def test_a_request_that_fails_in_two_workers_stops_neither(shared_batcher: Batcher, watched: Any) -> None:
    watched.may_go_on.clear()
    bad = shared_batcher.submit([("poison", str(number)) for number in range(16)])
    wait_for_batches(watched, 2)
    watched.may_go_on.set()
    with pytest.raises(MemoryError):
        bad.result(20)
    pairs = [("cup", str(number)) for number in range(16)]
    watched.slow = set(pairs)  # the second worker may still be at the bad ones
    watched.may_go_on.clear()
    good = shared_batcher.submit(pairs)
    wait_for_batches(watched, 6)  # each of the two once with its request alone
    watched.may_go_on.set()
    assert good.result(20).shape == (16, 16)


def test_closing_waits_for_all_workers(shared_batcher: Batcher, watched: Any) -> None:
    watched.may_go_on.clear()
    futures = [shared_batcher.submit([(head, tail)]) for head in WORDS for tail in WORDS]
    wait_for_batches(watched, 2)
    futures.append(shared_batcher.submit([watched.encoded[0][0]]))  # which is under way
    closing = threading.Thread(target=shared_batcher.close)
    closing.start()
    watched.may_go_on.set()
    closing.join(20)
    assert all(future.done() for future in futures)


def hold(batcher: Batcher, watched: Any, pair: Pair = ("held", "pair")) -> None:
    """Let a worker begin with a pair of its own and wait there, so that others gather."""
    watched.may_go_on.clear()
    batcher.submit([pair])
    wait_for_batches(watched, 1)


def wait_for_batches(watched: Any, count: int) -> None:
    deadline = time.monotonic() + 20
    while len(watched.encoded) < count:
        assert time.monotonic() < deadline, "it did not happen within 20 seconds"
        time.sleep(0.001)

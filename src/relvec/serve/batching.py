"""Pairs of requests in flight at once are encoded together.

A model has a worker for each core, and each worker a batch of its own. While they work, pairs of other requests gather;
what has gathered is the next batch, so that many clients with a pair each reach nearly the rate of one client with all
of them. No worker waits for another: while one gives its answers, the others encode.
"""

import copy
import math
import threading
import time
from collections import OrderedDict
from collections.abc import Sequence
from concurrent.futures import Future
from contextvars import ContextVar
from dataclasses import dataclass, field

import numpy as np

from relvec.model.relation_model import RelBERT
from relvec.model.threads import one_thread, thread_count
from relvec.pairs import Pair
from relvec.serve.errors import RefusedError
from relvec.serve.metrics import Metrics
from relvec.similarity import Vectors

LOOKED_AT = 4
"""Among how many batches of waiting pairs those of one length are looked for."""

PAIRS_PER_WORKER = 16
"""With fewer, a batch is not shared out: reading the weights takes most of its time."""

KEPT_VECTORS = 8192
"""Vectors of the latest pairs, which are not encoded again: 25 MB at 768 dimensions."""

CANARY_TURN = -1
"""Before all others."""

deadline: ContextVar[float] = ContextVar("deadline", default=math.inf)
"""When the client of this request stops waiting, by `time.monotonic`; threads that work for it inherit it."""

_cores = threading.Semaphore(thread_count())  # the workers of all models share them
_all_cores = threading.Lock()  # a lone worker's model uses all: such models take turns


@dataclass(frozen=True)
class Batching:
    """How many pairs are encoded at once, and for how long an idle server lets them gather."""

    size: int
    wait_seconds: float


@dataclass
class _Job:
    """The pairs of one request: their vectors so far, and how many are missing; several workers may encode them."""

    vectors: Vectors
    missing: int
    has_failed: bool = False
    future: Future[Vectors] = field(default_factory=Future)
    since: float = field(default_factory=time.perf_counter)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def put(self, row: int, vector: Vectors) -> None:
        """Take a vector, and answer once nothing is missing."""
        with self.lock:
            self.vectors[row] = vector
            self.missing -= 1
            is_complete = self.missing == 0
        if is_complete and self.future.set_running_or_notify_cancel():
            self.future.set_result(self.vectors)

    def fail(self, error: Exception) -> None:
        """Answer with an error, the first if there are several."""
        with self.lock:
            is_first, self.has_failed = not self.has_failed, True
        if is_first and self.future.set_running_or_notify_cancel():
            self.future.set_exception(error)


@dataclass(order=True)
class _Waiting:
    """A pair in the queue. Turns are fair: the first pairs of a new request come before the last of a long one."""

    turn: int
    length: int = field(compare=False)
    pair: Pair = field(compare=False)
    row: int = field(compare=False)
    job: _Job = field(compare=False)

    @property
    def is_canary(self) -> bool:
        return self.turn == CANARY_TURN

    def answer(self, vector: Vectors) -> None:
        self.job.put(self.row, vector)


class KeptVectors:
    """The vectors of the latest pairs, in memory that is taken once, so that a server does not grow while it works.

    >>> kept = KeptVectors(2, 1)
    >>> for number, word in enumerate("abc"):
    ...     kept.put((word, word), np.array([number], dtype=np.float32))
    >>> [kept.get((word, word)) for word in "abc"]
    [None, array([1.], dtype=float32), array([2.], dtype=float32)]
    """

    def __init__(self, most: int, dim: int) -> None:
        self._vectors = np.full((most, dim), np.nan, dtype=np.float32)  # written, not only asked for
        self._row_of: OrderedDict[Pair, int] = OrderedDict()

    def get(self, pair: Pair) -> Vectors | None:
        row = self._row_of.get(pair)
        if row is None:
            return None
        self._row_of.move_to_end(pair)
        return self._vectors[row]

    def put(self, pair: Pair, vector: Vectors) -> None:
        row = self._row_of.pop(pair, None)
        if row is None:
            is_full = len(self._row_of) == len(self._vectors)
            row = self._row_of.popitem(last=False)[1] if is_full else len(self._row_of)
        self._row_of[pair] = row
        self._vectors[row] = vector


class Batcher:
    """The queue of a model, and the workers that empty it."""

    def __init__(self, model: RelBERT, metrics: Metrics, batching: Batching) -> None:
        self.model = model
        self._metrics = metrics
        self._batching = batching
        self._queue: list[_Waiting] = []
        self._under_way: set[Pair] = set()
        self._turn = 0
        self._kept = KeptVectors(KEPT_VECTORS, model.dim)
        self._changed = threading.Condition()
        self._is_closed = False
        metrics.queue_pairs.labels(model.name).set_function(lambda: len(self._queue))
        self._workers = [
            threading.Thread(target=self._run, name=f"encode {model.name} {number}", daemon=True)
            for number in range(model.workers)
        ]
        for worker in self._workers:
            worker.start()

    def submit(self, pairs: Sequence[Pair], *, truncate: bool = False, is_canary: bool = False) -> Future[Vectors]:
        """The vectors of pairs, one row each; one too long for the model is an error here, unless `truncate` cuts it.

        A canary comes before all that wait, and is encoded even if its vector is kept.
        """
        lengths = [len(tokens) for tokens in self.model.token_ids(pairs, truncate)]
        job = _Job(np.empty((len(pairs), self.model.dim), dtype=np.float32), missing=len(pairs))
        with self._changed:
            if self._is_closed:
                raise RefusedError(503, "The server is stopping; try again later.", retry_after=5)
            for row, (pair, length) in enumerate(zip(pairs, lengths, strict=True)):
                kept = None if is_canary else self._kept.get(pair)
                if kept is None:
                    turn = CANARY_TURN if is_canary else self._turn + row
                    self._queue.append(_Waiting(turn, length, pair, row, job))
                else:
                    job.vectors[row] = kept
                    job.missing -= 1
            if job.missing == 0:
                job.future.set_result(job.vectors)
            self._changed.notify()
        return job.future

    def encode(
        self, pairs: Sequence[Pair], timeout_seconds: float, *, truncate: bool = False, is_canary: bool = False
    ) -> Vectors:
        """The same for threads that may wait; what is late is given up."""
        future = self.submit(pairs, truncate=truncate, is_canary=is_canary)
        try:
            return future.result(timeout_seconds)
        except TimeoutError:
            future.cancel()  # else the pairs would still be encoded, for nobody
            raise

    def shared_model(self) -> RelBERT:
        """The model as the library knows it, whose pairs go through this queue until the deadline; for threads."""

        def encode_distinct(pairs: list[Pair], batch_size: int, truncate: bool, show_progress: bool | None) -> Vectors:
            left = deadline.get() - time.monotonic()
            if left <= 0:
                raise TimeoutError
            return self.encode(pairs, min(left, threading.TIMEOUT_MAX), truncate=truncate)

        shared = copy.copy(self.model)
        shared._encode_distinct = encode_distinct  # type: ignore[method-assign]
        return shared

    def close(self) -> None:
        """Encode what waits, then stop."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
        for worker in self._workers:
            worker.join()

    def _run(self) -> None:
        with one_thread():
            while batch := self._next_batch():
                self._work(batch)

    def _work(self, batch: Sequence[_Waiting]) -> None:
        started = time.perf_counter()
        for waiting in batch:
            self._metrics.queue_seconds.observe(started - waiting.job.since)
        self._metrics.batch_pairs.observe(len(batch))
        try:
            self._encode(batch)
        except Exception:  # one of the requests has what the model cannot take: each by itself
            for job in {id(waiting.job): waiting.job for waiting in batch}.values():
                self._encode_alone(job, [waiting for waiting in batch if waiting.job is job])
        with self._changed:
            self._under_way.difference_update(waiting.pair for waiting in batch)
        self._metrics.encoding_seconds.observe(time.perf_counter() - started)

    def _next_batch(self) -> list[_Waiting]:
        """The pair whose turn it is, and others of about its length; nothing when closed and empty."""
        size = self._batching.size
        with self._changed:
            while True:
                self._changed.wait_for(lambda: self._is_closed or any(map(self._is_ready, self._queue)))
                if len(self._queue) < size and not self._is_closed:
                    since = min(each.job.since for each in self._queue)
                    left = since + self._batching.wait_seconds - time.perf_counter()
                    self._changed.wait_for(lambda: len(self._queue) >= size, left)
                self._queue = sorted(each for each in self._queue if not self._is_settled(each))
                ready = [each for each in self._queue if self._is_ready(each)]
                if ready or self._is_closed:
                    break
            batch = self._batch_of(ready)
            taken = {id(each) for each in batch}
            self._under_way.update(each.pair for each in batch)
            # in the order of arrival, else a pair of rare length would wait for ever
            self._queue = [each for each in self._queue if id(each) not in taken]
            if len(batch) < len(ready):
                self._changed.notify()  # another worker, which may be idle
        return batch

    def _batch_of(self, ready: Sequence[_Waiting]) -> list[_Waiting]:
        """A worker's share, the nearest lengths first; a batch a quarter full ends where the length changes."""
        batch: list[_Waiting] = []
        if ready:
            self._turn = max(self._turn, ready[0].turn)
            share = max(PAIRS_PER_WORKER, -(-len(ready) // len(self._workers)))
            size, length = min(share, self._batching.size), ready[0].length
            looked_at = ready[: LOOKED_AT * self._batching.size]
            for each in sorted(looked_at, key=lambda each: abs(each.length - length))[:size]:
                if 4 * len(batch) >= self._batching.size and each.length != batch[-1].length:
                    break
                batch.append(each)
        return batch

    def _is_ready(self, waiting: _Waiting) -> bool:
        """Whether it may be encoded: not while the same pair is, whose vector will be kept."""
        return waiting.is_canary or waiting.pair not in self._under_way

    def _is_settled(self, waiting: _Waiting) -> bool:
        """Whether its request was given up, or the same pair has been encoded for another while it waited."""
        if waiting.job.future.done():
            return True
        kept = None if waiting.is_canary else self._kept.get(waiting.pair)
        if kept is not None:
            waiting.answer(kept)
        return kept is not None

    def _encode(self, batch: Sequence[_Waiting]) -> None:
        pairs = [waiting.pair for waiting in batch]
        is_alone = len(self._workers) == 1  # its model may have threads of its own, for several batches
        size = max(PAIRS_PER_WORKER, self._batching.size // 2) if is_alone else len(pairs)
        with _all_cores if is_alone else _cores:
            vectors = self.model.encode(pairs, batch_size=size, truncate=True)  # those too long were refused before
        with self._changed:
            for pair, vector in zip(pairs, vectors, strict=True):
                self._kept.put(pair, vector)
        for waiting, vector in zip(batch, vectors, strict=True):
            waiting.answer(vector)

    def _encode_alone(self, job: _Job, batch: Sequence[_Waiting]) -> None:
        try:
            self._encode(batch)
        except Exception as error:
            job.fail(error)

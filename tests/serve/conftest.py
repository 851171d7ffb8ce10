"""A server in a thread, around a tiny model, and a client for it."""

import contextlib
import copy
import http.client
import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import uvicorn

from relvec import PairIndex, RelBERT
from relvec.data.sources import load
from relvec.naming import Catalogue
from relvec.naming.building import build_catalogue
from relvec.pairs import Pair
from relvec.serve.app import Limits, create_app
from relvec.serve.batching import Batching
from relvec.serve.metrics import Metrics
from relvec.serve.models import Served
from relvec.similarity import Vectors

LIMITS = Limits(max_pairs=256, max_bytes=256 * 1024, queue_pairs=4096, timeout_seconds=60)
BATCHING = Batching(size=64, wait_seconds=0.003)
INDEXED = [("Paris", "France"), ("Tokyo", "Japan"), ("cup", "tea"), ("cats", "dogs"), ("baker", "bread")]


@dataclass
class Answer:
    status: int
    headers: dict[str, str]
    text: str

    @property
    def json(self) -> Any:
        return json.loads(self.text)

    @property
    def problem(self) -> tuple[int, str, str | None]:
        error = self.json["error"]
        assert error["message"].endswith(".")
        return self.status, error["type"], error["field"]


@dataclass
class Client:
    port: int

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def ask(self, path: str, body: Any = None, *, method: str = "", headers: dict[str, str] | None = None) -> Answer:
        """A body that is no text or bytes is sent as JSON."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        data = body if body is None or isinstance(body, str | bytes) else json.dumps(body)
        with contextlib.closing(connection):
            connection.request(
                method or ("GET" if body is None else "POST"),
                path,
                data,
                {"content-type": "application/json", **(headers or {})},
            )
            found = connection.getresponse()
            return Answer(found.status, {k.lower(): v for k, v in found.getheaders()}, found.read().decode())

    def metric(self, name: str) -> float:
        lines = self.ask("/metrics").text.splitlines()
        return sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith(name))


@pytest.fixture(scope="session")
def catalogue(tiny_folders: Callable[[str], Path]) -> Catalogue:
    """Names of a few relations for the tiny model."""
    model = RelBERT.from_pretrained(tiny_folders("mpnet"), backend="numpy")
    return build_catalogue(load("bundled")[:12], lambda pairs: model.encode(pairs, truncate=True))


@pytest.fixture
def model(tiny_folders: Callable[[str], Path], catalogue: Catalogue) -> RelBERT:
    model = RelBERT.from_pretrained(tiny_folders("mpnet"), backend="numpy")
    model.catalogue = catalogue
    return model


@dataclass
class Watched:
    """A model that tells which pairs it encodes together, and that can be made to wait, or to fail at a word.

    It waits at all pairs, or only at those that are `slow`.
    """

    model: RelBERT
    encoded: list[list[Pair]]
    may_go_on: threading.Event
    slow: set[Pair] = field(default_factory=set)


@pytest.fixture
def watched(model: RelBERT) -> Watched:
    may_go_on = threading.Event()
    may_go_on.set()
    found = Watched(copy.copy(model), [], may_go_on)

    def encode(pairs: list[Pair], *options: Any) -> Vectors:
        found.encoded.append(list(pairs))
        assert (found.slow and found.slow.isdisjoint(pairs)) or may_go_on.wait(20)
        if any("poison" in pair for pair in pairs):
            raise MemoryError
        return model._encode_distinct(pairs, *options)

    found.model._encode_distinct = encode  # type: ignore[method-assign, assignment]
    return found


@pytest.fixture
def limits() -> Limits:
    return LIMITS


Serving = Callable[..., AbstractContextManager[Client]]


@pytest.fixture
def serving() -> Serving:
    """Serve models in a thread, as long as the block runs."""

    @contextmanager
    def run(
        *models: RelBERT, index: PairIndex | None = None, limits: Limits = LIMITS, **options: Any
    ) -> Iterator[Client]:
        metrics = Metrics()
        served = [Served(model, index, metrics, BATCHING, timeout_seconds=limits.timeout_seconds) for model in models]
        app = create_app(served, metrics, limits, **options)
        server = uvicorn.Server(uvicorn.Config(app, port=0, log_config=None, access_log=False))
        thread = threading.Thread(target=server.run)
        thread.start()
        try:
            while not server.started:
                time.sleep(0.005)
            yield Client(server.servers[0].sockets[0].getsockname()[1])
        finally:
            server.should_exit = True
            thread.join()

    return run


@pytest.fixture
def index(model: RelBERT) -> PairIndex:
    return PairIndex.of(model, INDEXED, relations=["capital", "capital", "", "", "product"])


@pytest.fixture
def client(serving: Serving, model: RelBERT, index: PairIndex) -> Iterator[Client]:
    with serving(model, index=index) as client:
        yield client


@pytest.fixture
def wait_until() -> Callable[[Callable[[], bool]], None]:
    def wait(condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + 20
        while not condition():
            assert time.monotonic() < deadline, "it did not happen within 20 seconds"
            time.sleep(0.005)

    return wait

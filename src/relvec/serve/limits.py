"""What stands around every request: key, limits of size, number and time, log and metrics."""

import asyncio
import hmac
import json
import logging
import math
import time
import traceback
from collections.abc import MutableMapping
from dataclasses import dataclass
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from relvec.serve.batching import deadline
from relvec.serve.errors import TYPES, RefusedError
from relvec.serve.metrics import Metrics

log = logging.getLogger("relvec.serve")

OPEN_PATHS = ("/", "/docs", "/openapi.json", "/health", "/ready")
"""They need no key, and nor do the files of the page: they give no answer about words."""

MOST_REQUESTS = 512
"""Requests that may be under way at once, so that their bodies fit into memory."""

PART_BYTES = 64 * 1024
"""Of an answer, sent at once: the next waits until the client has read, so that the server does not hold the whole."""

POLICY = (
    b"default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
    b"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = [
    (b"content-security-policy", POLICY),
    (b"referrer-policy", b"no-referrer"),
    (b"x-content-type-options", b"nosniff"),
]


@dataclass
class Admission:
    """The pairs that are under way: from when a request is taken until its answer is sent."""

    most_pairs: int
    pairs: int = 0
    pairs_per_second: float = 100.0

    def enter(self, count: int) -> None:
        """Take some more pairs, or refuse; where nothing is under way, any request has room."""
        if self.pairs and self.pairs + count > self.most_pairs:
            raise RefusedError(
                429, "The server has all the pairs that it can take; try again later.", retry_after=self._wait()
            )
        self.pairs += count

    def leave(self, count: int, seconds: float) -> None:
        if count and seconds > 0:
            # what was under way took about so long
            self.pairs_per_second += 0.1 * (self.pairs / seconds - self.pairs_per_second)
        self.pairs -= count

    def _wait(self) -> int:
        return min(60, max(1, math.ceil(self.pairs / max(self.pairs_per_second, 1.0))))


class Guard:
    """The middleware around the application."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        admission: Admission,
        metrics: Metrics,
        max_bytes: int,
        timeout_seconds: float,
        api_key: str = "",
        log_words: bool = False,
    ) -> None:
        self.app = app
        self.admission = admission
        self.metrics = metrics
        self.max_bytes = max_bytes
        self.timeout_seconds = timeout_seconds
        self.api_key = api_key.encode()
        self.log_words = log_words
        self.requests = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        request = _Request(self, scope, receive, send)
        self.requests += 1
        self.metrics.requests_in_flight.inc()
        try:
            await request.run()
        finally:
            self.requests -= 1
            self.metrics.requests_in_flight.dec()
            request.finish()

    def check(self, scope: Scope) -> None:
        """Refuse what need not be read."""
        headers = dict(scope["headers"])
        path = scope["path"]
        if self.api_key and path not in OPEN_PATHS and not path.startswith("/page/"):
            given = headers.get(b"authorization", b"")
            if not hmac.compare_digest(given, b"Bearer " + self.api_key):
                raise RefusedError(401, "The key is missing or wrong; send it as 'Authorization: Bearer KEY'.")
        length = headers.get(b"content-length", b"0")
        if length.isdigit() and int(length) > self.max_bytes:
            raise self.too_large()
        if self.requests > MOST_REQUESTS and path not in ("/health", "/ready", "/metrics"):
            raise RefusedError(429, "The server has all the requests that it can take; try again later.", retry_after=1)

    def too_large(self) -> RefusedError:
        return RefusedError(413, f"The request is larger than {self.max_bytes:,} bytes; send fewer pairs at once.")


class _Request:
    """One request on its way through the application."""

    def __init__(self, guard: Guard, scope: Scope, receive: Receive, send: Send) -> None:
        self.guard, self.scope, self._receive, self._send = guard, scope, receive, send
        self.started = time.perf_counter()
        self.status = 0
        self.is_cut_off = False
        self.body: bytes | None = None
        self.state: MutableMapping[str, Any] = scope.setdefault("state", {})

    async def run(self) -> None:
        deadline.set(time.monotonic() + self.guard.timeout_seconds)
        try:
            self.guard.check(self.scope)
            async with asyncio.timeout(self.guard.timeout_seconds):
                self.body = await self._read()
                await self.guard.app(self.scope, self._replayed(self.body), self.send)
        except RefusedError as refusal:
            await self._refuse(refusal)
        except TimeoutError:
            await self._refuse(self._timed_out())
        except Exception:
            log.exception("a request failed")
            await self._refuse(RefusedError(500, "The server failed to answer this; its log says why."))

    def _timed_out(self) -> RefusedError:
        seconds = f"{self.guard.timeout_seconds:g} seconds"
        if self.body is None:
            return RefusedError(408, f"The request did not arrive within {seconds}; send it faster.")
        return RefusedError(503, f"There was no answer within {seconds}; try again later.", retry_after=5)

    async def _refuse(self, refusal: RefusedError) -> None:
        if self.status:  # the answer has begun; all that can be done is to break it off
            self.is_cut_off = True
            raise ConnectionAbortedError(str(refusal))
        async with asyncio.timeout(self.guard.timeout_seconds):
            await refusal.response()(self.scope, self._receive, self.send)

    async def _read(self) -> bytes:
        """The body, which is refused as soon as it is too large, whatever length it announced."""
        parts: list[bytes] = []
        more, size = True, 0
        while more:
            message = await self._receive()
            parts.append(message.get("body", b""))
            size += len(parts[-1])
            if size > self.guard.max_bytes:
                raise self.guard.too_large()
            more = message.get("more_body", False)
        return b"".join(parts)

    def _replayed(self, body: bytes) -> Receive:
        messages: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

        async def receive() -> Message:
            return messages.pop() if messages else await self._receive()

        return receive

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            message = {**message, "headers": [*message.get("headers", []), *HEADERS]}
        body = message.get("body", b"")
        last = max(0, len(body) - 1) // PART_BYTES * PART_BYTES
        for first in range(0, last, PART_BYTES):
            await self._send({**message, "body": body[first : first + PART_BYTES], "more_body": True})
        await self._send({**message, "body": body[last:]} if last else message)

    def finish(self) -> None:
        """Give back what the request held, and log it."""
        seconds = time.perf_counter() - self.started
        pairs = self.state.get("pairs", 0)
        self.guard.admission.leave(pairs, seconds)
        route = self.scope.get("route")
        path = getattr(route, "path", "other")  # of unknown paths there is no end
        metrics = self.guard.metrics
        metrics.requests.labels(path, str(self.status)).inc()
        metrics.request_seconds.labels(path).observe(seconds)
        if self.status >= 400 or self.is_cut_off:
            metrics.failures.labels("cut_off" if self.is_cut_off else TYPES.get(self.status, "server_error")).inc()
        fields = {
            "method": self.scope["method"],
            "path": path,
            "status": self.status,
            "milliseconds": round(1000 * seconds, 1),
            "pairs": pairs,
        }
        if self.is_cut_off:
            fields["cut_off"] = True
        if self.guard.log_words:
            fields["body"] = (self.body or b"").decode("utf-8", "replace")
        log.info("request", extra={"fields": fields})


class JsonLines(logging.Formatter):
    """A line of JSON for each record."""

    def format(self, record: logging.LogRecord) -> str:
        when = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        line = {
            "time": f"{when}.{int(record.msecs):03}Z",
            "level": record.levelname.lower(),
            "event": record.getMessage(),
        }
        line.update(getattr(record, "fields", {}))
        if record.exc_info and record.exc_info[0]:  # without the message, which may hold a client's words
            line["traceback"] = "".join(traceback.format_tb(record.exc_info[2])) + record.exc_info[0].__name__
        return json.dumps(line)

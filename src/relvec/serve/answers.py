"""What threads have found, for the requests that wait for it in the event loop."""

import asyncio
from collections import deque
from concurrent.futures import Future
from typing import Generic, TypeVar

Result = TypeVar("Result")


class Answers(Generic[Result]):
    """Results of futures for coroutines, as `asyncio.wrap_future` gives them, but many with one waking of the loop.

    To wake it for each answer of a batch would let thread and loop take turns at every one.
    """

    def __init__(self) -> None:
        self._done: deque[asyncio.Future[None]] = deque()
        self._is_waking = False

    async def of(self, future: Future[Result]) -> Result:
        """The result; a coroutine that is cancelled gives the future up."""
        loop = asyncio.get_running_loop()
        waiter = loop.create_future()

        def tell(_: Future[Result]) -> None:
            self._done.append(waiter)
            if not self._is_waking:
                self._is_waking = True
                loop.call_soon_threadsafe(self._wake)

        if not future.done():
            future.add_done_callback(tell)
            try:
                await waiter
            except asyncio.CancelledError:
                future.cancel()
                raise
        return future.result()

    def _wake(self) -> None:
        self._is_waking = False  # before the look, so that no answer comes after it unseen
        while self._done:
            waiter = self._done.popleft()
            if not waiter.done():
                waiter.set_result(None)

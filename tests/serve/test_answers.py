"""Coroutines get what threads find, as soon as it is there."""

import asyncio
import threading
from concurrent.futures import Future

import pytest

from relvec.serve.answers import Answers


def test_many_coroutines_each_get_their_own_result() -> None:
    futures: list[Future[int]] = [Future() for _ in range(200)]

    def answer(start: int) -> None:
        for number in range(start, 200, 2):
            futures[number].set_result(number)

    async def ask() -> list[int]:
        answers = Answers[int]()
        asked = [asyncio.create_task(answers.of(future)) for future in futures]
        await asyncio.sleep(0)
        threads = [threading.Thread(target=answer, args=(start,)) for start in (0, 1)]
        for thread in threads:
            thread.start()
        return await asyncio.wait_for(asyncio.gather(*asked), 20)

    assert asyncio.run(ask()) == list(range(200))


def test_a_result_that_is_there_already_needs_no_waking() -> None:
    future: Future[int] = Future()
    future.set_result(3)
    assert asyncio.run(Answers[int]().of(future)) == 3


def test_an_error_reaches_the_coroutine() -> None:
    async def ask() -> None:
        future: Future[int] = Future()
        asked = asyncio.create_task(Answers[int]().of(future))
        await asyncio.sleep(0)
        threading.Thread(target=future.set_exception, args=(MemoryError(),)).start()
        await asyncio.wait_for(asked, 20)

    with pytest.raises(MemoryError):
        asyncio.run(ask())


def test_a_coroutine_that_is_cancelled_gives_its_future_up() -> None:
    async def ask() -> bool:
        future: Future[int] = Future()
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(Answers[int]().of(future), 0.01)
        return future.cancelled()

    assert asyncio.run(ask())

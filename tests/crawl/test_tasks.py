"""Tasks, and what they wait for: with asyncio's objects and with Twisted's."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from harness.loops import Loop
from twisted.internet.defer import CancelledError, Deferred
from twisted.python.failure import Failure

from scrapy_koster.crawl.engine import tasks
from scrapy_koster.crawl.engine.tasks import Told, begin, when_ended


@pytest.fixture(params=["asyncio", "Twisted"])
def turn(
    request: pytest.FixtureRequest, loop: Loop, monkeypatch: pytest.MonkeyPatch
) -> Callable[[], Any]:
    """Let the loop turn. Without asyncio there is nothing to turn: each step follows at once."""
    if request.param == "asyncio" and not loop.has_asyncio:
        pytest.skip("needs another kind of loop")
    monkeypatch.setattr(tasks, "is_asyncio_available", lambda: request.param == "asyncio")

    async def turn() -> None:
        for _ in range(4 * loop.has_asyncio):
            await asyncio.sleep(0)

    return turn


async def what(told: Told[str]) -> str:
    return await told


async def test_who_waits_is_told_once(turn: Callable[[], Any]) -> None:
    told, found = Told[str](), list[Any]()
    when_ended(begin(what(told)), found.append)
    await turn()
    assert (told.is_over, found) == (False, [])
    told.tell("first")
    told.tell("second")
    await turn()
    assert (told.is_over, found) == (True, ["first"])


async def test_a_failure_is_raised(turn: Callable[[], Any]) -> None:
    told, found = Told[str](), list[Any]()
    when_ended(begin(what(told)), found.append)
    await turn()
    told.tell(Failure(KeyError("it")))
    await turn()
    assert isinstance(found[0], Failure)
    assert isinstance(found[0].value, KeyError)


async def test_one_that_is_cancelled_is_not_told(turn: Callable[[], Any]) -> None:
    told, found = Told[str](), list[Any]()
    task = begin(what(told))
    when_ended(task, found.append)
    await turn()
    task.cancel()
    await turn()
    assert told.is_over
    told.tell("late")
    assert isinstance(found[0], Failure)
    assert found[0].check(CancelledError, asyncio.CancelledError)


async def test_a_task_that_has_ended_says_so(turn: Callable[[], Any]) -> None:
    told, found = Told[str](), list[Any]()
    task = begin(what(told))
    told.tell("it")
    await turn()
    when_ended(task, found.append)
    await turn()
    assert found == ["it"]


async def test_where_there_is_a_loop_of_asyncio_nothing_is_a_deferred(loop: Loop) -> None:
    if not loop.has_asyncio:
        pytest.skip("needs another kind of loop")
    told = Told[str]()
    task = begin(what(told))
    assert isinstance(task, asyncio.Task)
    assert not isinstance(told._told, Deferred)
    told.tell("it")
    await task

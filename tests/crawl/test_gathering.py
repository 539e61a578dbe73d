"""Calls that go on together."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from harness.clocks import HandClock
from scrapy.utils.defer import deferred_from_coro, maybe_deferred_to_future
from twisted.internet.defer import CancelledError, Deferred

from scrapy_koster.crawl.clock import Clock
from scrapy_koster.crawl.fetching.gathering import EAGER, GATHER_SECS, Gathering


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
def gathering(clock: HandClock) -> Iterator[Gathering]:
    """One of which the first calls have been made."""
    opened = Gathering(clock)
    for _ in range(EAGER):
        with pytest.raises(StopIteration):
            opened.wait().send(None)
    yield opened
    opened.close()
    assert not clock.waiting


Begin = Callable[[str], Deferred[Any]]


@pytest.fixture
def made() -> list[str]:
    return []


@pytest.fixture
def begin(gathering: Gathering, made: list[str]) -> Begin:
    async def call(name: str) -> None:
        await gathering.wait()
        made.append(name)

    return lambda name: deferred_from_coro(call(name))


async def begun(count: int, gathering: Gathering) -> None:
    """Wait until so many calls wait: each is a task of its own."""
    for _ in range(3):
        await Clock().sleep(0.0)
    assert len(gathering._waiting) == count


async def test_calls_of_10_ms_go_on_together(
    gathering: Gathering, clock: HandClock, begin: Begin, made: list[str]
) -> None:
    first = begin("first")
    await begun(1, gathering)
    clock.go_on(GATHER_SECS / 2)
    second = begin("second")
    await begun(2, gathering)
    assert not made
    clock.go_on(GATHER_SECS / 2)
    for call in (first, second):
        await maybe_deferred_to_future(call)
    assert made == ["first", "second"]
    third = begin("third")
    await begun(1, gathering)
    assert made == ["first", "second"]
    clock.go_on(GATHER_SECS)
    await maybe_deferred_to_future(third)
    assert made == ["first", "second", "third"]


async def test_one_that_is_cancelled_does_not_keep_the_others(
    gathering: Gathering, clock: HandClock, begin: Begin, made: list[str]
) -> None:
    gone, call = begin("gone"), begin("call")
    await begun(2, gathering)
    gone.cancel()
    with pytest.raises((CancelledError, asyncio.CancelledError)):
        await maybe_deferred_to_future(gone)
    clock.go_on(GATHER_SECS)
    await maybe_deferred_to_future(call)
    assert made == ["call"]


async def test_a_close_lets_all_go_on(
    gathering: Gathering, clock: HandClock, begin: Begin, made: list[str]
) -> None:
    call = begin("call")
    await begun(1, gathering)
    gathering.close()
    await maybe_deferred_to_future(call)
    assert made == ["call"]
    assert not clock.waiting

"""Whose robots.txt is asked for next, and how many at the same time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

import pytest
from harness.clocks import sleep
from harness.crawling import Crawl
from scrapy.utils.defer import deferred_from_coro, maybe_deferred_to_future
from twisted.internet.defer import Deferred

from scrapy_koster.crawl.clock import Clock
from scrapy_koster.crawl.fetching.permits import NoPermitError, Order, Permits, socket_limit

FIRST, AGAIN = Order.FIRST, Order.AGAIN
LONG_SECS = 60.0


class Fetches:
    """Fetches that last until they are told to end."""

    def __init__(self, **limits: Any) -> None:
        self.permits = Permits(
            Clock(), **{"at_once": 8, "sockets": 16, "secs": LONG_SECS, **limits}
        )
        self.begun: list[str] = []
        self.late: list[str] = []
        self._ends: dict[str, Deferred[None]] = {}
        self.tasks: dict[str, Deferred[None]] = {}

    def begin(self, order: Order, *names: str, **within: float) -> None:
        for name in names:
            self.tasks[name] = deferred_from_coro(self._fetch(order, name, **within))

    async def _fetch(self, order: Order, name: str, **within: float) -> None:
        try:
            async with self.permits.permit(order, **within):
                self.begun.append(name)
                end = self._ends[name] = Deferred()
                await maybe_deferred_to_future(end)
        except NoPermitError:
            self.late.append(name)

    def end(self, *names: str) -> None:
        for name in names:
            self._ends.pop(name).callback(None)

    def end_all(self) -> None:
        self.end(*list(self._ends))


def names(prefix: str, count: int) -> list[str]:
    return [f"{prefix}{number}" for number in range(count)]


Begun: TypeAlias = Callable[[Fetches, int], Awaitable[None]]
"""Waits until so many have begun, and no more."""


@pytest.fixture
def begun(crawl: Crawl) -> Begun:
    async def wait(fetches: Fetches, count: int) -> None:
        await crawl.until(lambda: len(fetches.begun) >= count)
        for _ in range(5):  # nothing more comes
            await sleep(0)
        assert len(fetches.begun) == count, fetches.begun

    return wait


async def test_so_many_at_once_the_first_that_came_first(begun: Begun) -> None:
    fetches = Fetches()
    fetches.begin(FIRST, *names("f", 10))
    await begun(fetches, 7)  # the eighth is kept for those that failed
    fetches.end("f0", "f1")
    await begun(fetches, 9)
    assert fetches.begun == names("f", 9)
    fetches.end_all()
    await begun(fetches, 10)
    fetches.end_all()


async def test_who_never_failed_goes_first(begun: Begun) -> None:
    fetches = Fetches()
    fetches.begin(FIRST, *names("f", 7))
    await begun(fetches, 7)
    fetches.begin(AGAIN, "a0", "a1", "a2")
    await begun(fetches, 8)
    fetches.begin(FIRST, "f7", "f8")
    fetches.end("f0", "f1")
    await begun(fetches, 10)
    assert fetches.begun[7:] == ["a0", "f7", "f8"]
    fetches.end_all()
    await begun(fetches, 12)
    fetches.end_all()


async def test_retries_take_half_at_most(begun: Begun) -> None:
    fetches = Fetches()
    fetches.begin(AGAIN, *names("a", 10))
    await begun(fetches, 4)
    fetches.begin(FIRST, *names("f", 10))
    await begun(fetches, 8)
    assert Counter(name[0] for name in fetches.begun) == {"a": 4, "f": 4}
    for _ in range(5):
        fetches.end_all()
        await sleep(0.01)
    assert len(fetches.begun) == 20
    fetches.end_all()


async def test_what_lasts_gives_its_turn_back_up_to_the_sockets(begun: Begun) -> None:
    fetches = Fetches(secs=0.01)
    fetches.begin(FIRST, *names("f", 30))
    fetches.begin(AGAIN, *names("a", 30))
    await begun(fetches, 16)
    assert Counter(name[0] for name in fetches.begun) == {"f": 14, "a": 2}
    for _ in range(10):
        fetches.end_all()
        await sleep(0.02)
    assert sorted(fetches.begun) == sorted([*names("f", 30), *names("a", 30)])
    fetches.end_all()


async def test_a_turn_that_comes_too_late(begun: Begun, crawl: Crawl) -> None:
    fetches = Fetches(at_once=1, sockets=1)
    fetches.begin(FIRST, "f0")
    await begun(fetches, 1)
    fetches.begin(AGAIN, "a0", within_secs=0.01)
    fetches.begin(AGAIN, "a1", within_secs=LONG_SECS)
    await crawl.until(lambda: fetches.late)
    fetches.end("f0")
    await begun(fetches, 2)
    assert (fetches.late, fetches.begun) == (["a0"], ["f0", "a1"])
    fetches.end("a1")


async def test_one_that_is_given_up_leaves_the_queue(begun: Begun) -> None:
    fetches = Fetches(at_once=1, sockets=1)
    fetches.begin(FIRST, "f0", "f1", "f2")
    await begun(fetches, 1)
    fetches.tasks["f1"].addErrback(lambda _: None)
    fetches.tasks["f1"].cancel()
    fetches.end("f0")
    await begun(fetches, 2)
    assert fetches.begun == ["f0", "f2"]
    fetches.end("f2")


@pytest.mark.parametrize(
    ("files", "sockets"), [(256, 128), (1024, 512), (100_000, 1000), (-1, 1000), (1, 1)]
)
def test_half_of_the_files_may_be_sockets(
    monkeypatch: pytest.MonkeyPatch, files: int, sockets: int
) -> None:
    resource = pytest.importorskip("resource", reason="Windows has no limit of files")
    monkeypatch.setattr(resource, "getrlimit", lambda _: (files, files))
    assert socket_limit() == sockets


def test_where_no_limit_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "resource", None)
    assert socket_limit() == 256

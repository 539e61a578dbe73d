"""How many sites wait before the scheduler takes no more requests, and how many are asked."""

from __future__ import annotations

from collections.abc import Callable
from unittest.mock import Mock

import pytest
from harness.clocks import HandClock, set_clock, sleep
from scrapy import Request, Spider
from scrapy.utils.defer import deferred_from_coro, maybe_deferred_to_future
from scrapy.utils.test import get_crawler
from twisted.internet.defer import Deferred

from scrapy_koster.crawl.assembly import assembly_of
from scrapy_koster.crawl.fetching.lookahead import FetchLimiter, LookaheadLimit, socket_limit
from scrapy_koster.crawl.states import SiteState, Waiting
from scrapy_koster.protocol.access import Failure
from scrapy_koster.protocol.site import Site


def sites(count: int) -> list[SiteState]:
    return [SiteState(Site("http", f"{n}.example", 80)) for n in range(count)]


def failed(state: SiteState) -> SiteState:
    state.learn(state.facts._replace(known=Failure("503", 1, 0.0, 0.0, 10.0, None)))
    return state


def test_a_site_that_may_hang_is_young_for_half_a_second() -> None:
    clock, room = HandClock(), Mock()
    limit = LookaheadLimit(clock, room, lambda: True, 1, 5, waiting=())
    limit.begins(sites(1)[0])
    clock.go_on(0.45)
    assert (limit.is_full, room.called) == (True, False)
    clock.go_on(0.1)
    assert (limit.is_full, room.called) == (False, True)


@pytest.mark.parametrize(("places", "first", "waiting"), [(8, 100, 10_000), (64, 128, 10_000)])
def test_the_limits_of_a_crawl(places: int, first: int, waiting: int) -> None:
    def taken(state_of: Callable[[SiteState], SiteState]) -> int:
        clock = HandClock()
        crawler = get_crawler(Spider, {"CONCURRENT_REQUESTS": places})
        set_clock(crawler, clock)
        ahead, served = assembly_of(crawler).sites.ahead, assembly_of(crawler).sites.served
        for count, state in enumerate(sites(20_000)):
            if ahead.is_full:
                return count
            served[state_of(state)] = Waiting(Request("http://a.example/"))
            ahead.begins(state)
        raise AssertionError("it has no limit")

    assert taken(lambda state: state) == first
    assert taken(failed) == waiting


# Fetches.


class Fetches:
    """Fetches that hang until they are told to end."""

    def __init__(self, young: int, most: int) -> None:
        self.clock = HandClock()
        self.limiter = FetchLimiter(self.clock, young, most)
        self.begun: list[SiteState] = []
        self.ends: list[Deferred[None]] = []

    def begin(self, *states: SiteState) -> None:
        for state in states:
            self.running = deferred_from_coro(self._fetch(state))

    async def _fetch(self, state: SiteState) -> None:
        async with self.limiter.fetching(state):
            self.begun.append(state)
            self.ends.append(Deferred())
            await maybe_deferred_to_future(self.ends[-1])

    async def settle(self) -> None:
        for _ in range(20):
            await sleep(0)


async def test_a_quarter_of_the_fetches_is_for_failed_sites() -> None:
    """Of each kind, the first that came is the first that is asked."""
    fetches = Fetches(young=100, most=8)
    new, old = sites(10), [failed(state) for state in sites(10)]
    fetches.begin(*old, *new)
    await fetches.settle()
    assert fetches.begun == [*old[:2], *new[:6]]
    while fetches.ends:
        fetches.ends.pop(0).callback(None)
        await fetches.settle()
    assert set(fetches.begun) == {*old, *new}
    fetches.limiter.close()


async def test_few_fetches_begin_in_a_second_unless_they_end() -> None:
    """So a crawl with CONCURRENT_REQUESTS = 2 does not open hundreds of connections at once."""
    fetches = Fetches(young=4, most=10)
    fetches.begin(*sites(12))
    await fetches.settle()
    assert len(fetches.begun) == 4
    fetches.ends.pop().callback(None)
    await fetches.settle()
    assert len(fetches.begun) == 5
    for _ in range(2):
        fetches.clock.go_on(1.01)
        await fetches.settle()
        assert len(fetches.begun) == 9  # eight run, and two are left for failed sites
    while fetches.ends:
        fetches.ends.pop().callback(None)
        await fetches.settle()
    assert len(fetches.begun) == 12
    fetches.limiter.close()


async def test_a_fetch_that_is_cancelled_in_the_line_takes_no_place() -> None:
    fetches = Fetches(young=1, most=1)
    fetches.begin(*sites(2))
    await fetches.settle()
    fetches.running.addErrback(lambda _: None).cancel()
    last = sites(3)[2]
    fetches.begin(last)
    fetches.ends.pop().callback(None)
    await fetches.settle()
    assert fetches.begun[1:] == [last]
    fetches.ends.pop().callback(None)
    await fetches.settle()
    fetches.limiter.close()


@pytest.mark.parametrize(("files", "sockets"), [(256, 128), (100_000, 1000), (-1, 1000), (1, 1)])
def test_half_of_the_files_may_be_sockets(
    monkeypatch: pytest.MonkeyPatch, files: int, sockets: int
) -> None:
    monkeypatch.setattr("resource.getrlimit", lambda _: (files, files))
    assert socket_limit() == sockets

"""How many sites wait before the scheduler takes no more requests, and how many are asked."""

from __future__ import annotations

from collections.abc import Callable
from unittest.mock import Mock

import pytest
from harness.clocks import HandClock, set_clock, sleep
from harness.crawling import Crawl
from scrapy import Request, Spider
from scrapy.utils.defer import deferred_from_coro, maybe_deferred_to_future
from scrapy.utils.test import get_crawler
from twisted.internet.defer import Deferred

from scrapy_koster.crawl.assembly import assembly_of
from scrapy_koster.crawl.fetching.lookahead import LookaheadLimit, Sockets, socket_limit
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
    limit = LookaheadLimit(clock, room, 1, 5, waiting=())
    limit.begins(sites(1)[0])
    clock.go_on(0.45)
    assert (limit.is_full, room.called) == (True, False)
    clock.go_on(0.1)
    assert (limit.is_full, room.called) == (False, True)


@pytest.mark.parametrize(
    ("places", "memory", "first", "waiting"), [(8, 10, 100, 1000), (64, 10_000, 128, 10_000)]
)
def test_the_limits_of_a_crawl(places: int, memory: int, first: int, waiting: int) -> None:
    def taken(state_of: Callable[[SiteState], SiteState]) -> int:
        clock = HandClock()
        settings = {"CONCURRENT_REQUESTS": places, "KOSTER_MEMORY_SITES": memory}
        crawler = get_crawler(Spider, settings)
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


# Sockets.


async def test_new_and_failed_sites_take_no_sockets_from_each_other(crawl: Crawl) -> None:
    """Failed sites have a quarter of them; the first that came is the first that is asked."""
    sockets = Sockets(8)
    new, old = sites(10), [failed(state) for state in sites(10)]
    begun: list[SiteState] = []
    ends: list[Deferred[None]] = []

    async def fetch(state: SiteState) -> None:
        async with sockets.hold(state):
            begun.append(state)
            ends.append(Deferred())
            await maybe_deferred_to_future(ends[-1])

    fetches = [deferred_from_coro(fetch(state)) for state in (*old, *new)]
    await crawl.until(lambda: len(begun) >= 8)
    for _ in range(5):  # nothing more comes
        await sleep(0)
    assert begun == [*old[:2], *new[:6]]
    while ends:
        ends.pop(0).callback(None)
        await sleep(0.01)
    assert set(begun) == {*old, *new}
    for each in fetches:
        await maybe_deferred_to_future(each)


@pytest.mark.parametrize(("files", "sockets"), [(256, 128), (100_000, 1000), (-1, 1000), (1, 1)])
def test_half_of_the_files_may_be_sockets(
    monkeypatch: pytest.MonkeyPatch, files: int, sockets: int
) -> None:
    monkeypatch.setattr("resource.getrlimit", lambda _: (files, files))
    assert socket_limit() == sockets

"""Which requests the scheduler takes from the queue, and when it looks for new sites."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from harness.clocks import HandClock, set_clock
from scrapy import Request, Spider
from scrapy.core.scheduler import BaseScheduler
from scrapy.crawler import Crawler
from scrapy.statscollectors import MemoryStatsCollector
from scrapy.utils.defer import maybe_deferred_to_future
from twisted.internet.defer import Deferred

from scrapy_koster import DeferringScheduler
from scrapy_koster.crawl.assembly import Assembly, Parts, assembly_of
from scrapy_koster.crawl.fetching.lookahead import LookaheadLimit


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


class SlowQueue(BaseScheduler):
    """As Scrapy's with many hosts in it: what it hands out takes its time."""

    clock: HandClock
    secs = 0.0014
    number = 0

    def has_pending_requests(self) -> bool:
        return True

    def enqueue_request(self, request: Request) -> bool:
        return True

    def next_request(self) -> Request:
        self.clock.timers.rightNow += self.secs
        type(self).number += 1
        return Request(f"http://{self.number}.example/")


class Never:
    """No site answers."""

    async def fetch(self, *_: object, **__: object) -> Any:
        return await maybe_deferred_to_future(Deferred())


def opened(
    queue: type[BaseScheduler],
    clock: HandClock,
    woken: Callable[[], object],
    *,
    taken: int = 2,
    first: int = 10,
) -> tuple[DeferringScheduler, Assembly]:
    """A scheduler that wraps *queue*; of its 4 places some are *taken*."""
    settings = {
        "ROBOTSTXT_OBEY": True,
        "CONCURRENT_REQUESTS": 4,
        "KOSTER_STORAGE": "scrapy_koster.storage.memory.MemoryStorage",
        "KOSTER_FALLBACK_SCHEDULER": queue,
    }
    crawler = Crawler(Spider, settings)
    crawler.spider = Spider("slow")
    crawler.stats = MemoryStatsCollector(crawler)
    wakes = SimpleNamespace(schedule=woken)
    crawler.engine = SimpleNamespace(  # type: ignore[assignment]
        _slot=SimpleNamespace(nextcall=wakes),
        downloader=SimpleNamespace(active=[Request("http://taken.example/")] * taken),
    )
    set_clock(crawler, clock)

    def limited(clock: Any, has_room: Any, *_: int) -> LookaheadLimit:
        return LookaheadLimit(clock, has_room, first, 100, sockets=100)

    never: Any = Never()
    assembly = assembly_of(crawler, Parts(fetcher=lambda *_, **__: never, lookahead=limited))
    scheduler = DeferringScheduler.from_crawler(crawler)
    assembly.parked.open(is_kept=False)
    return scheduler, assembly


async def test_the_scheduler_takes_requests_for_milliseconds_and_until_enough_wait(
    clock: HandClock,
) -> None:
    class Queue(SlowQueue):
        pass

    Queue.clock = clock
    woken: list[bool] = []
    scheduler, assembly = opened(Queue, clock, lambda: woken.append(True))
    taken = []
    while not assembly.sites.ahead.is_full:
        before = Queue.number
        assert scheduler.next_request() is None
        taken.append(Queue.number - before)
    assert taken == [3, 3, 3, 1]
    assert len(woken) == 3  # when enough sites wait an answer wakes it
    assert scheduler.next_request() is None
    assert Queue.number == 10
    await assembly.sites.close()


class Few(BaseScheduler):
    """Of a queue that has some requests."""

    urls: list[str]

    def has_pending_requests(self) -> bool:
        return bool(self.urls)

    def enqueue_request(self, request: Request) -> bool:
        self.urls.append(request.url)
        return True

    def next_request(self) -> Request | None:
        return decided(self.urls.pop(0)) if self.urls else None


def decided(url: str) -> Request:
    """A request that can be decided at once, unless it is to a new site."""
    return Request(url, meta={"dont_obey_robotstxt": not url.endswith("/new")})


def taken_by(scheduler: DeferringScheduler) -> list[str]:
    """The URLs that come out."""
    found = []
    while (request := scheduler.next_request()) is not None:
        found.append(request.url)
    return found


async def test_new_requests_and_those_that_are_ready_come_by_turns(clock: HandClock) -> None:
    class Queue(Few):
        urls = ["http://a.example/known"] * 4

    scheduler, assembly = opened(Queue, clock, int, taken=4)
    for number in range(2):
        url = f"http://ready{number}.example/"
        assembly.parked.push(url, decided(url))
        assembly.parked.let_out(url)
    known, *ready = "http://a.example/known", "http://ready0.example/", "http://ready1.example/"
    assert taken_by(scheduler) == [known, ready[0], known, ready[1], known, known]
    await assembly.sites.close()

"""Which requests the scheduler takes from the queue, and in which order."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace

import pytest
from harness.clocks import HandClock, set_clock
from scrapy import Request, Spider
from scrapy.core.scheduler import BaseScheduler
from scrapy.crawler import Crawler
from scrapy.statscollectors import MemoryStatsCollector

from scrapy_koster import DeferringScheduler
from scrapy_koster.crawl.assembly import Assembly, assembly_of


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


def opened(
    queue: type[BaseScheduler], clock: HandClock, woken: Callable[[], object] = int
) -> tuple[DeferringScheduler, Assembly]:
    """A scheduler that wraps *queue*. All places of the downloader are taken."""
    settings = {
        "ROBOTSTXT_OBEY": True,
        "CONCURRENT_REQUESTS": 4,
        "KOSTER_STORAGE": "scrapy_koster.storage.memory.MemoryStorage",
        "KOSTER_FALLBACK_SCHEDULER": queue,
    }
    crawler = Crawler(Spider, settings)
    crawler.spider = Spider("slow")
    crawler.stats = MemoryStatsCollector(crawler)
    crawler.engine = SimpleNamespace(  # type: ignore[assignment]
        _slot=SimpleNamespace(closing=None, nextcall=SimpleNamespace(schedule=woken)),
        downloader=SimpleNamespace(active=[Request("http://taken.example/")] * 4),
    )
    set_clock(crawler, clock)
    assembly = assembly_of(crawler)
    scheduler = DeferringScheduler.from_crawler(crawler)
    assembly.parked.open(is_kept=False)
    return scheduler, assembly


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

    scheduler, assembly = opened(Queue, clock)
    for number in range(2):
        url = f"http://ready{number}.example/"
        assembly.parked.push(url, decided(url))
        assembly.parked.let_out(url)
    known, *ready = "http://a.example/known", "http://ready0.example/", "http://ready1.example/"
    assert taken_by(scheduler) == [known, ready[0], known, ready[1], known, known]
    await assembly.sites.close()


async def test_the_scheduler_takes_requests_for_milliseconds_and_until_enough_wait(
    clock: HandClock,
) -> None:
    class Queue(Few):
        urls = [f"http://{n}.example/new" for n in range(200)]

        def next_request(self) -> Request | None:
            clock.timers.rightNow += 0.0014
            return super().next_request()

    woken: list[int] = []
    scheduler, assembly = opened(Queue, clock, lambda: woken.append(len(Queue.urls)))
    while not assembly.sites.ahead.is_full:
        assert scheduler.next_request() is None
    assert woken == list(range(197, 100, -3))
    assert scheduler.next_request() is None
    assert len(Queue.urls) == 100
    await assembly.sites.close()

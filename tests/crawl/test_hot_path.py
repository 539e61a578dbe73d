"""What runs for every request, and nothing else: the calls are counted, by name."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pytest
from harness.crawling import Crawl
from scrapy import Request, Spider
from scrapy.core.scheduler import BaseScheduler
from scrapy.crawler import Crawler
from scrapy.statscollectors import MemoryStatsCollector

import scrapy_koster
from scrapy_koster import DeferringScheduler, KosterMiddleware
from scrapy_koster.crawl.assembly import Assembly, Parts, assembly_of
from scrapy_koster.protocol.access import Answer, Copy
from scrapy_koster.protocol.site import Site

PACKAGE = str(Path(scrapy_koster.__file__).parent)
BODY = b"User-agent: *\nDisallow: /private\n"
SITE = "http://a.example"


class Queue(BaseScheduler):
    """What is wrapped: requests in a list."""

    def __init__(self, _crawler: Crawler) -> None:
        self.requests: list[Request] = []

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Queue:
        return cls(crawler)

    def open(self, spider: Spider) -> None:
        pass

    def has_pending_requests(self) -> bool:
        return bool(self.requests)

    def enqueue_request(self, request: Request) -> bool:
        self.requests.append(request)
        return True

    def next_request(self) -> Request | None:
        return self.requests.pop() if self.requests else None


class Fetch:
    """Every site has the same file."""

    async def fetch(self, site: Site, _page: Request, _stale: Copy | None, **_: object) -> Answer:
        return Answer(site.robots_url, 200, {}, BODY)

    def cancel(self) -> None:
        """Nothing of it lasts."""


@contextmanager
def counted() -> Iterator[Counter[str]]:
    """The functions of the package that are called meanwhile, by name."""
    calls: Counter[str] = Counter()

    def profile(frame: FrameType, event: str, _: Any) -> None:
        code: CodeType = frame.f_code
        if event == "call" and code.co_filename.startswith(PACKAGE):
            calls[f"{Path(code.co_filename).stem}.{code.co_name}"] += 1

    sys.setprofile(profile)
    try:
        yield calls
    finally:
        sys.setprofile(None)


@pytest.fixture
def parts() -> Callable[[], tuple[Crawler, Assembly]]:
    def build() -> tuple[Crawler, Assembly]:
        settings = {
            "ROBOTSTXT_OBEY": True,
            "KOSTER_STORAGE": "scrapy_koster.storage.memory.MemoryStorage",
            "KOSTER_FALLBACK_SCHEDULER": Queue,
        }
        crawler = Crawler(Spider, settings)
        crawler.spider = Spider("hot")
        crawler.stats = MemoryStatsCollector(crawler)
        return crawler, assembly_of(crawler, Parts(fetch=Fetch()))

    return build


async def known(parts: Assembly, *urls: str) -> None:
    for url in urls:
        state = parts.keeper.state_of(url)
        assert state is not None
        await parts.keeper.wait(state, Request(url))


async def test_an_allowed_request(
    crawl: Crawl, parts: Callable[[], tuple[Crawler, Assembly]]
) -> None:
    crawler, assembly = parts()
    middleware = KosterMiddleware.from_crawler(crawler)
    await known(assembly, SITE)
    assert middleware.process_request(Request(f"{SITE}/first")) is None
    request = Request(f"{SITE}/second")
    with counted() as calls:
        assert middleware.process_request(request) is None
    assert calls == {
        "downloadermiddleware.process_request": 1,
        "reading.allowed": 1,
        "rewriting.is_plain": 1,
    }
    await assembly.keeper.close()


async def test_a_request_to_another_site(
    crawl: Crawl, parts: Callable[[], tuple[Crawler, Assembly]]
) -> None:
    crawler, assembly = parts()
    middleware = KosterMiddleware.from_crawler(crawler)
    await known(assembly, SITE, "http://b.example")
    for site in (SITE, "http://b.example"):
        assert middleware.process_request(Request(f"{site}/first")) is None
    request = Request(f"{SITE}/second")
    with counted() as calls:
        assert middleware.process_request(request) is None
    assert calls == {
        "downloadermiddleware.process_request": 1,
        "sites.state_of": 1,
        "reading.allowed": 1,
        "rewriting.is_plain": 1,
    }
    await assembly.keeper.close()


async def test_a_request_that_the_scheduler_hands_out(
    crawl: Crawl, parts: Callable[[], tuple[Crawler, Assembly]]
) -> None:
    crawler, assembly = parts()
    scheduler = DeferringScheduler.from_crawler(crawler)
    assembly.keeper.ahead.begun()
    await known(assembly, SITE)
    assembly.waiting.open(is_kept=False)
    for path in ("/first", "/second"):
        scheduler.enqueue_request(Request(f"{SITE}{path}"))
    assert scheduler.next_request() is not None
    with counted() as calls:
        assert scheduler.next_request() is not None
    assert set(calls.values()) == {1}
    assert set(calls) == {
        "scheduler.next_request", "choosing.next_request", "choosing._next", "choosing._may_go",
        "choosing._held_back", "sites.state_of", "wrapped.next_request",
    }  # fmt: skip
    await assembly.keeper.close()

"""Every request ends, however slow or broken what others wrote for a crawl is."""

from __future__ import annotations

import time
from typing import Any
from weakref import ref

import pytest
from harness.crawling import Crawl, RecordingSpider, Running
from harness.replies import Hang, Reply
from harness.server import Server
from pydispatch import dispatcher
from pydispatch.saferef import BoundMethodWeakref
from scrapy import Request, signals

from scrapy_koster import KosterRobotParser, RobotsUnavailable
from scrapy_koster.protocol.access import Known
from scrapy_koster.protocol.site import Site
from scrapy_koster.storage.memory import MemoryStorage

# A check on the virtual time of the others: how crawls end, by the clock on the wall.
pytestmark = pytest.mark.real_time

WITHOUT_STORAGE = {"KOSTER_STORAGE": MemoryStorage}
SCHEDULERS = {
    "parked": {},
    "in place": {
        "ADDONS": {},
        "ROBOTSTXT_OBEY": True,
        "DOWNLOADER_MIDDLEWARES": {
            "scrapy.downloadermiddlewares.robotstxt.RobotsTxtMiddleware": None,
            "scrapy_koster.KosterMiddleware": 100,
        },
    },
}
in_both = pytest.mark.parametrize("scheduler", SCHEDULERS.values(), ids=SCHEDULERS)


class Slow(MemoryStorage):
    """Needs longer than what it stores lives."""

    blocking = True

    def put(self, site: Site, copy: Known) -> None:
        time.sleep(1.1)
        super().put(site, copy)


@in_both
async def test_a_copy_that_is_stale_once_it_is_stored(
    crawl: Crawl, server: Server, scheduler: dict[str, Any]
) -> None:
    site = server.site()
    site.robots = Reply(headers={"Cache-Control": "max-age=0"})
    settings = {**scheduler, "KOSTER_STORAGE": Slow, "KOSTER_EXPIRY_MIN_SECS": 0}
    result = await crawl(urls=site.urls(5), settings=settings)
    assert len(result.fetched) == 5
    assert site.asked("/robots.txt") == 1


@in_both
@pytest.mark.parametrize("secs", [0.000_001, 0.001, 0.01])
async def test_a_failure_that_may_be_retried_once_it_is_known(
    crawl: Crawl, server: Server, scheduler: dict[str, Any], secs: float
) -> None:
    names = ("KOSTER_DEFER_FIRST_SECS", "KOSTER_DEFER_MAX_SECS")
    settings = {**scheduler, **dict.fromkeys(names, secs), "KOSTER_DEFER_LIMIT_SECS": 0.3}
    result = await crawl(urls=server.down().urls(3), settings=settings)
    assert [type(error) for _, error in result.refused] == [RobotsUnavailable] * 3
    assert 0.3 <= result.seconds < 30


class OfAnotherKind(KosterRobotParser):
    """Not what it makes for a site."""

    @classmethod
    def from_crawler(cls, crawler: Any, robotstxt_body: bytes) -> Any:
        return "parsed" if robotstxt_body else super().from_crawler(crawler, robotstxt_body)


class Broken(KosterRobotParser):
    """Raises where it is not yet asked for a page."""

    is_read = False

    @classmethod
    def from_crawler(cls, crawler: Any, robotstxt_body: bytes) -> Any:
        made = super().from_crawler(crawler, robotstxt_body)
        made.is_read = bool(robotstxt_body)  # not where the start of the crawl tries it
        return made

    def __getattribute__(self, name: str) -> Any:
        if name == "allowed" and super().__getattribute__("is_read"):
            raise RuntimeError("broken")
        return super().__getattribute__(name)


@in_both
@pytest.mark.parametrize("parser", [OfAnotherKind, Broken])
@pytest.mark.parametrize("unavailable", ["defer", "allow", "disallow"])
async def test_a_parser_that_cannot_be_asked(
    crawl: Crawl, server: Server, scheduler: dict[str, Any], parser: type, unavailable: str
) -> None:
    site = server.site()
    site.robots = "User-agent: *\nAllow: /"
    settings = {"KOSTER_PARSER": parser, "KOSTER_DEFER_LIMIT_SECS": 0}
    running = crawl.start(
        urls=site.urls(3),
        settings={**scheduler, **settings, "KOSTER_UNAVAILABLE": unavailable},
    )
    await crawl.until(lambda: len(refusals(running)) == 3)
    with pytest.raises(AssertionError, match="Error while fetching or reading"):
        await running.result()
    assert site.pages_asked == []


def refusals(running: Running) -> list[tuple[str, BaseException]]:
    return getattr(running.crawler.spider, "refused", [])


class TryingAgain:
    """As those do that change the proxy."""

    def process_exception(self, request: Request, exception: Exception) -> Request | None:
        return None if isinstance(exception, RobotsUnavailable) else request.copy()


async def test_a_middleware_that_tries_again_has_no_more_time(crawl: Crawl, server: Server) -> None:
    site = server.site()
    site.robots = Hang()
    settings = {
        "DOWNLOADER_MIDDLEWARES": {TryingAgain: 200},
        "KOSTER_TIMEOUT_SECS": 0.5,
        "KOSTER_DEFER_LIMIT_SECS": 0,
    }
    running = crawl.start(urls=site.urls(1), settings=settings)
    await crawl.until(lambda: site.asked("/robots.txt"))
    await crawl.until(lambda: refusals(running))
    await running.stop()
    assert site.asked("/robots.txt") == 1


class Counting(RecordingSpider):
    """Knows how many sites had been asked when it was closed: it is told first."""

    @classmethod
    def from_crawler(cls, crawler: Any, *args: Any, **kwargs: Any) -> Any:
        spider = super().from_crawler(crawler, *args, **kwargs)
        crawler.signals.connect(spider.count, signals.spider_closed)
        return spider

    def count(self) -> None:
        self.asked = self.crawler.stats.get_value("robotstxt/request_count")


async def test_who_waits_for_a_turn_does_not_ask_when_the_crawl_is_stopped(
    crawl: Crawl, server: Server
) -> None:
    sites = [server.site(host=f"127.0.1.{number + 1}") for number in range(80)]
    for site in sites:
        site.robots = Hang()
    urls = [site.url() for site in sites]
    running = crawl.start(Counting, urls=urls, settings=WITHOUT_STORAGE)
    await crawl.until(lambda: any(site.asked("/robots.txt") for site in sites))
    result = await running.stop()
    spider: Any = result.crawler.spider
    assert result.stats["robotstxt/request_count"] == spider.asked


async def test_a_name_that_is_none_is_told_to_its_own_request_alone(
    crawl: Crawl, server: Server
) -> None:
    site = server.site()
    site.robots = "User-agent: *\nDisallow: /*.pdf$"
    result = await crawl(urls=site.urls(1), meta={"robotstxt_user_agent": "(no name)"})
    [(_, error)] = result.refused
    assert isinstance(error, ValueError)
    assert site.pages_asked == []


async def test_no_signal_keeps_a_crawl_that_has_ended(crawl: Crawl, server: Server) -> None:
    """Signals are connected for the whole process: one that holds its receiver holds the crawl."""
    site = server.site()
    result = await crawl(urls=[site.url("/")])
    assert site.asked("/robots.txt") == 1
    connected = dispatcher.connections[id(result.crawler)].values()
    receivers = [receiver for several in connected for receiver in several]
    assert receivers
    assert not [held for held in receivers if not isinstance(held, (BoundMethodWeakref, ref))]

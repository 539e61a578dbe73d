"""Faults of the moment: what a crawl is just doing when something changes, or is asked of it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from scrapy import Request, signals
from scrapy.crawler import Crawler
from typing_extensions import Self

from harness.crawling import Crawl
from harness.replies import Reply
from harness.server import Server, Site
from scrapy_koster import RobotsForbidden, RobotsUnavailable

OPEN = "User-agent: *\nDisallow:\n"
CLOSED = "User-agent: *\nDisallow: /\n"
LIMIT_SECS = 3.0
SOON: dict[str, Any] = {
    "KOSTER_DEFER_FIRST_SECS": 0.5,
    "KOSTER_DEFER_MAX_SECS": 0.5,
    "KOSTER_DEFER_LIMIT_SECS": LIMIT_SECS,
    "KOSTER_IDLE_LIMIT_SECS": LIMIT_SECS,
    "RETRY_ENABLED": False,
}


@dataclass(frozen=True)
class CrawlFault:
    name: str
    promised: str
    run: Callable[[Crawl, Server], Awaitable[None]]
    group: str = "the course of the crawl"


# What is fetched while the spider opens.


class Opening:
    """Fetches a page before the crawl begins."""

    def __init__(self, crawler: Crawler) -> None:
        self.crawler = crawler
        self.got: list[str] = []
        crawler.signals.connect(self.fetch, signal=signals.spider_opened)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(crawler)

    async def fetch(self) -> None:
        try:
            first = Request(self.crawler.settings["FIRST"])
            self.got.append((await self.crawler.engine.download_async(first)).url)
        except RobotsUnavailable as error:
            self.got.append(type(error).__name__)


async def _opened(crawl: Crawl, server: Server, robots: Reply) -> tuple[Site, list[str]]:
    site, first = server.site(), server.site(host="127.0.0.2")
    first.robots = robots
    settings = SOON | {"EXTENSIONS": {Opening: 1}, "FIRST": first.url("/first")}
    result = await crawl(urls=site.urls(3), settings=settings)
    assert len(result.fetched) == 3
    opening = result.crawler.get_extension(Opening)
    assert isinstance(opening, Opening)
    return first, opening.got


async def _opening_slowly(crawl: Crawl, server: Server) -> None:
    first, got = await _opened(crawl, server, Reply(200, OPEN, delay=1))
    assert got == [first.url("/first")]


async def _opening_of_none(crawl: Crawl, server: Server) -> None:
    first, got = await _opened(crawl, server, Reply(503))
    assert got == ["RobotsUnavailable"]
    assert first.pages_asked == []


# What changes between the decision and the sending.


async def _renewed(crawl: Crawl, server: Server) -> None:
    site = server.site()
    first = Reply(200, OPEN, headers={"Cache-Control": "max-age=2"})
    site.robots = [first, Reply(200, CLOSED, headers={"Cache-Control": "max-age=1000"})]
    settings = {"DOWNLOAD_DELAY": 0.5, "CONCURRENT_REQUESTS": 6, "KOSTER_EXPIRY_MIN_SECS": 0}
    result = await crawl(urls=site.urls(12), settings=settings)
    asked = [request.path for request in site.requests]
    renewed = len(asked) - 1 - asked[::-1].index("/robots.txt")
    assert renewed > 0
    assert len(asked) - 1 - renewed <= 1  # one may be under way
    assert len(result.refused) == 12 - len(site.pages_asked)
    assert {type(error) for _, error in result.refused} == {RobotsForbidden}


class NamesAnother:
    """A downloader middleware that sets the Host header once the request has been decided on."""

    def process_request(self, request: Request) -> None:
        if "late" in request.url:
            request.headers["Host"] = "b.example"


def _host(path: str, **settings: Any) -> Callable[[Crawl, Server], Awaitable[None]]:
    """Request *path*, with another site's name as its Host header, and a page without."""

    async def run(crawl: Crawl, server: Server) -> None:
        site = server.site()
        named = Request(site.url(path), headers={} if "late" in path else {"Host": "b.example"})
        given = {"DOWNLOADER_MIDDLEWARES": {NamesAnother: 900}, **settings}
        result = await crawl(urls=[named, site.url("/y")], settings=given)
        assert site.pages_asked == ["/y"]
        [(url, error)] = result.refused
        assert url == named.url
        assert isinstance(error, RobotsUnavailable)
        assert "put that name into the URL" in str(error)

    return run


# Pauses.


async def _paused(crawl: Crawl, server: Server) -> None:
    failing = server.site(host="127.0.0.2")
    failing.robots = Reply(503)
    running = crawl.start(urls=failing.urls(5), settings=SOON)
    await crawl.until(lambda: failing.asked("/robots.txt") == 2, seconds=10)
    engine: Any = running.crawler.engine
    engine.pause()
    await crawl.sleep(2 * LIMIT_SECS)
    assert engine.running
    engine.unpause()
    result = await running.result()
    assert failing.pages_asked == []
    assert len(result.refused) == 5
    assert all(isinstance(error, RobotsUnavailable) for _, error in result.refused)


_FIRST = "the page waits and is fetched; then the crawl begins"
_NO_FIRST = "refused (RobotsUnavailable) after KOSTER_IDLE_LIMIT_SECS; then the crawl begins"
_NOT_SENT = "refused (RobotsUnavailable) with advice"
_RUNS_ON = (
    "the crawl does not end in the pause; afterwards requests are refused (RobotsUnavailable)"
)
FAULTS = (
    CrawlFault(
        "a page is downloaded while the spider opens: its robots.txt takes 1 s",
        _FIRST,
        _opening_slowly,
    ),
    CrawlFault(
        "a page is downloaded while the spider opens: its robots.txt fails",
        _NO_FIRST,
        _opening_of_none,
    ),
    CrawlFault(
        "the robots.txt is renewed while pages wait for DOWNLOAD_DELAY",
        "the new file decides",
        _renewed,
    ),
    CrawlFault(
        'a Host header names another site, KOSTER_UNAVAILABLE = "allow"',
        _NOT_SENT,
        _host("/x", KOSTER_UNAVAILABLE="allow"),
    ),
    CrawlFault(
        'a later middleware sets such a Host header, KOSTER_UNAVAILABLE = "allow"',
        _NOT_SENT,
        _host("/late", KOSTER_UNAVAILABLE="allow"),
    ),
    CrawlFault("a pause of 2 times KOSTER_DEFER_LIMIT_SECS", _RUNS_ON, _paused),
)

"""Download handlers of others that Scrapy runs: they work, and obey. Defects open no site."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import pytest
from harness.comparison import RULES
from harness.crawling import Crawl, RecordingSpider, Running, kept_log
from harness.faults_of_sites import ALLOWED, FORBIDDEN
from harness.handlers import loaded
from harness.replies import Asked, Hang, Reply
from harness.server import Server, Site
from harness.virtual import TIME
from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.exceptions import (
    NotConfigured,
    NotSupported,
    UnsupportedURLSchemeError,
)
from scrapy.http import Response
from scrapy.utils.defer import deferred_from_coro
from scrapy.utils.misc import build_from_crawler, load_object

from scrapy_koster import RobotsForbidden

PAGES = (*ALLOWED, *FORBIDDEN)
# What is deprecated is a warning of Scrapy, once for each handler.
pytestmark = pytest.mark.filterwarnings("ignore::scrapy.exceptions.ScrapyDeprecationWarning")


def of_old_interface(kind: Any) -> Any:
    """That of Scrapy 2.13: a Deferred, and a spider."""

    class Old(kind):  # type: ignore[misc]
        def download_request(self, request: Request, spider: RecordingSpider) -> Any:
            assert spider.name
            return deferred_from_coro(super().download_request(request))

        def close(self) -> Any:
            return deferred_from_coro(super().close())

    return Old


def around_another(kind: Any) -> Any:
    """It has no pool or session of its own."""

    class Around(kind):  # type: ignore[misc]
        def __init__(self, crawler: Crawler) -> None:
            self._inner = build_from_crawler(kind, crawler)

        async def download_request(self, request: Request) -> Any:
            return await self._inner.download_request(request)

        async def close(self) -> None:
            await self._inner.close()

    return Around


@pytest.mark.parametrize("kind", ["http11.HTTP11", "_aiohttp.Aiohttp", "_httpx.Httpx"])
@pytest.mark.parametrize("make", [of_old_interface, around_another])
async def test_it_works_and_obeys(crawl: Crawl, server: Server, kind: str, make: Any) -> None:
    site = server.site()
    site.robots = RULES
    settings = {"DOWNLOAD_HANDLERS": {"http": make(loaded(kind))}}
    result = await crawl(urls=[site.url(path) for path in PAGES], settings=settings)
    assert sorted(site.pages_asked) == sorted(ALLOWED)
    assert {type(error) for _, error in result.refused} == {RobotsForbidden}
    assert site.asked("/robots.txt") == 1


@pytest.mark.promise("docs/reliability.md", "hanging sites take no connections from pages")
@pytest.mark.parametrize("kind", ["http11.HTTP11", "_aiohttp.Aiohttp", "_httpx.Httpx"])
async def test_sites_that_hang_take_no_connections_from_pages(
    crawl: Crawl, server: Server, kind: str
) -> None:
    hanging = [server.site(host=f"127.4.0.{n + 1}") for n in range(40)]
    healthy = [server.site(host=f"127.5.0.{n + 1}") for n in range(30)]
    for site in hanging:
        site.robots = Hang()
    for site in healthy:
        site.robots = RULES
    began = TIME.now()
    urls = [site.url("/page") for site in (*hanging, *healthy)]
    handlers = dict.fromkeys(("http", "https"), loaded(kind))
    running = crawl.start(urls=urls, settings={"DOWNLOAD_HANDLERS": handlers})
    await crawl.until(lambda: all(site.pages_asked for site in healthy))
    assert TIME.now() - began <= 3
    await running.stop()


def failing(error: Exception) -> Any:
    class Failing:
        """Sends pages as the crawl's own handler does."""

        lazy = False

        def __init__(self, crawler: Crawler) -> None:
            path = crawler.settings["DOWNLOAD_HANDLERS_BASE"]["http"]
            self._inner = build_from_crawler(load_object(path), crawler)

        @classmethod
        def from_crawler(cls, crawler: Crawler) -> Any:
            return cls(crawler)

        async def download_request(self, request: Request) -> Any:
            if request.url.endswith("/robots.txt"):
                raise error
            return await self._inner.download_request(request)

        async def close(self) -> None:
            await self._inner.close()

    return Failing


async def asked_of(crawl: Crawl, site: Site, settings: dict[str, Any], match: str) -> Any:
    running = crawl.start(
        urls=[site.url(path) for path in PAGES],
        settings={
            "KOSTER_UNAVAILABLE": "allow",
            "KOSTER_DEFER_FIRST_SECS": 0.1,
            "KOSTER_DEFER_LIMIT_SECS": 0.3,
            **settings,
        },
    )
    with pytest.raises(AssertionError, match=match):  # it is logged, with a traceback
        await running.result()
    return running.crawler.spider


@pytest.mark.promise("docs/access.md", "an error of a download handler closes the site")
@pytest.mark.parametrize(
    "error",
    [TypeError, NotSupported, NotConfigured, UnsupportedURLSchemeError],
)
async def test_a_defect_of_a_handler_opens_no_site(
    crawl: Crawl, server: Server, error: type[Exception]
) -> None:
    site = server.site()
    site.robots = RULES
    settings = {"DOWNLOAD_HANDLERS": {"http": failing(error("it does not fit"))}}
    spider = await asked_of(crawl, site, settings, "it does not fit")
    assert site.pages_asked == []
    assert [type(raised) for _, raised in spider.refused] == [error] * len(PAGES)


def in_part(request: Asked) -> Reply:
    """Answer with as much of a robots.txt as is asked for: what forbids stands in the rest."""
    if not request.header("Range"):
        return Reply(200, RULES)
    return Reply(206, RULES[:13], headers={"Content-Range": f"bytes 0-12/{len(RULES)}"})


class InPart:
    """A middleware that has only the beginning of everything sent."""

    def process_request(self, request: Request) -> None:
        request.headers["Range"] = "bytes=0-12"


@pytest.mark.parametrize(
    "settings",
    [
        {"DEFAULT_REQUEST_HEADERS": {"Range": "bytes=0-12"}},
        {"DOWNLOADER_MIDDLEWARES": {InPart: 950}},
    ],
    ids=["headers", "middleware"],
)
async def test_a_part_is_not_asked_for(
    crawl: Crawl, server: Server, settings: dict[str, Any]
) -> None:
    """Of pages the settings may ask for the beginning only."""
    site = server.site()
    site.robots = in_part
    await crawl(urls=[site.url("/page"), site.url("/secret")], settings=settings)
    assert site.pages_asked == ["/page"]


# What a handler does at a robots.txt in place of answering it: each ends in its time.


def _returns(value: object) -> Callable[[], Awaitable[Any]]:
    async def does() -> Any:
        return value

    return does


def _raises(error: BaseException) -> Callable[[], Awaitable[Any]]:
    async def does() -> Any:
        raise error

    return does


"""As if the site had failed."""
DEFECTS = {
    "returns None": _returns(None),
    "returns text": _returns("User-agent: *"),
    "returns a class": _returns(Response),
    "raises StopIteration": _raises(StopIteration()),
}


def doing(does: Callable[[], Awaitable[Any]]) -> Any:
    class Odd(failing(OSError())):  # type: ignore[misc]
        async def download_request(self, request: Request) -> Any:
            if "/robots.txt" in request.url and request.url.startswith(self.odd):
                return await does()
            return await self._inner.download_request(request)

    return Odd


async def crawled(
    crawl: Crawl, server: Server, does: Callable[[], Awaitable[Any]], unavailable: str
) -> tuple[Running, Site, list[str]]:
    """Crawl a site at which the handler is odd, and a healthy one that it is asked for later."""
    odd, site = server.site(), server.site(host="127.0.0.2")
    odd.robots = site.robots = RULES
    site.page("/", Reply(200, "page", delay=3))
    handler = doing(does)
    handler.odd = odd.url("")
    late = server.site(host="127.0.0.3")
    late.robots = RULES

    class Spider(RecordingSpider):
        def page(self, response: Response) -> Any:
            if response.url == site.url("/"):
                yield self.ask(late.url("/page"))

    urls = [each.url(path) for each in (odd, site) for path in PAGES]
    settings = {
        "DOWNLOAD_HANDLERS": {"http": handler},
        "KOSTER_UNAVAILABLE": unavailable,
        "KOSTER_TIMEOUT_SECS": 1,
        "KOSTER_DEFER_FIRST_SECS": 0.2,
        "KOSTER_DEFER_LIMIT_SECS": 0.5,
    }
    running = crawl.start(Spider, urls=urls, settings=settings)
    with kept_log() as log, suppress(AssertionError):  # of errors in the log
        await running.result()
    spider: Any = running.crawler.spider
    assert not running.crawler.crawling
    ended = [*spider.fetched, *(url for url, _ in spider.refused)]
    assert sorted(ended) == sorted([*urls, late.url("/page")])
    assert sorted(site.pages_asked) == sorted(ALLOWED)
    assert late.pages_asked == ["/page"]
    return running, odd, [logging.Formatter().format(record) for record in log]


@pytest.mark.promise("docs/reliability.md", "download handlers with wrong answers open no page")
@pytest.mark.parametrize("does", DEFECTS.values(), ids=DEFECTS)
async def test_a_handler_that_is_odd_opens_no_site(
    crawl: Crawl, server: Server, does: Callable[[], Awaitable[Any]]
) -> None:
    running, odd, log = await crawled(crawl, server, does, "allow")
    assert odd.pages_asked == []
    spider: Any = running.crawler.spider
    refused = [error for url, error in spider.refused if url.startswith(odd.url(""))]
    is_stop = does is DEFECTS["raises StopIteration"]  # a coroutine makes RuntimeError of it
    assert {type(error) for error in refused} == {RuntimeError if is_stop else TypeError}
    said = "\n".join(
        line for line in log if "Error while fetching or reading the robots.txt of" in line
    )
    assert "Odd returned" in said or "StopIteration" in said

"""Download handlers of others that Scrapy runs: they work, and obey. Defects open no site."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from harness.comparison import RULES
from harness.crawling import Crawl, RecordingSpider, Running, kept_log
from harness.faults_around import StopsAll
from harness.faults_of_sites import ALLOWED, FORBIDDEN
from harness.handlers import loaded
from harness.replies import Asked, Hang, Reply, redirect
from harness.server import Server, Site
from harness.virtual import TIME
from scrapy import Request, signals
from scrapy.crawler import Crawler
from scrapy.exceptions import (
    NotConfigured,
    NotSupported,
    StopDownload,
    UnsupportedURLSchemeError,
)
from scrapy.http import Response
from scrapy.utils.defer import deferred_from_coro, maybe_deferred_to_future
from scrapy.utils.misc import build_from_crawler, load_object
from twisted.internet import defer

from scrapy_koster import RobotsForbidden
from scrapy_koster.crawl.clock import Clock
from scrapy_koster.crawl.engine.private import CANCELLED

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


def built_once(kind: Any) -> Any:
    """As one that listens at a port: there cannot be another, or a copy."""

    class Once(kind):  # type: ignore[misc]
        crawlers: list[Crawler]

        def __init__(self, crawler: Crawler) -> None:
            if self.crawlers:
                raise RuntimeError("there is one already")
            self.crawlers.append(crawler)
            super().__init__(crawler)

        def __copy__(self) -> Any:
            raise RuntimeError("there is one already")

    Once.crawlers = []
    return Once


@pytest.mark.parametrize("kind", ["http11.HTTP11", "_aiohttp.Aiohttp", "_httpx.Httpx"])
@pytest.mark.parametrize("make", [of_old_interface, around_another, built_once])
@pytest.mark.parametrize("unavailable", ["defer", "allow"])
async def test_it_works_and_obeys(
    crawl: Crawl, server: Server, kind: str, make: Any, unavailable: str
) -> None:
    site = server.site()
    site.robots = RULES
    settings = {
        "DOWNLOAD_HANDLERS": {"http": make(loaded(kind))},
        "KOSTER_UNAVAILABLE": unavailable,
        "KOSTER_DEFER_FIRST_SECS": 0.1,
        "KOSTER_DEFER_LIMIT_SECS": 0.3,
    }
    result = await crawl(urls=[site.url(path) for path in PAGES], settings=settings)
    assert sorted(site.pages_asked) == sorted(ALLOWED)
    assert {type(error) for _, error in result.refused} == {RobotsForbidden}
    assert site.asked("/robots.txt") == 1


@pytest.mark.parametrize("kind", ["http11.HTTP11", "_aiohttp.Aiohttp", "_httpx.Httpx"])
async def test_a_long_file_is_read_to_its_end(crawl: Crawl, server: Server, kind: str) -> None:
    """What has come on the wire before a handler reads it is not taken for headers."""
    site = server.site()
    site.robots = "User-agent: *\n" + "# 16 octets here\n" * 29_000 + "Disallow: /secret\n"
    settings = {"DOWNLOAD_HANDLERS": {"http": loaded(kind)}, "KOSTER_DEFER_LIMIT_SECS": 0.1}
    await crawl(urls=[site.url("/page"), site.url("/secret")], settings=settings)
    assert site.pages_asked == ["/page"]


@pytest.mark.parametrize("is_lazy", [False, True])
async def test_it_is_built_before_there_is_a_request_unless_it_is_lazy(
    crawl: Crawl, is_lazy: bool
) -> None:
    built: list[Crawler] = []

    class Counted(loaded("_aiohttp.Aiohttp")):  # type: ignore[misc]
        lazy = is_lazy

        def __init__(self, crawler: Crawler) -> None:
            built.append(crawler)
            super().__init__(crawler)

    await crawl(urls=[], settings={"DOWNLOAD_HANDLERS": {"http": Counted}})
    assert len(built) == (0 if is_lazy else 1)


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


@pytest.mark.parametrize(
    "error",
    [
        TypeError,
        AttributeError,
        NameError,
        NotImplementedError,
        AssertionError,
        KeyError,
        NotSupported,
        NotConfigured,
        UnsupportedURLSchemeError,
    ],
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


async def test_a_scheme_without_a_handler_opens_no_site(crawl: Crawl, server: Server) -> None:
    """Its robots.txt redirects to https, of which the crawl has no handler."""
    site, secure = server.site(), server.site("https")
    site.robots = redirect(secure.url("/robots.txt"))
    settings = {"DOWNLOAD_HANDLERS": {"https": None}}
    spider = await asked_of(crawl, site, settings, "Error while fetching or reading the robots.txt")
    assert site.pages_asked == []
    assert secure.requests == ()
    assert [type(error) for _, error in spider.refused] == [NotSupported] * len(PAGES)
    assert all("Unsupported URL scheme 'https'" in str(error) for _, error in spider.refused)


class Misfit:
    """A middleware that was written for other requests."""

    def process_request(self, request: Request) -> None:
        if request.url.endswith("/robots.txt"):
            request.cb_kwargs.it_does_not_fit()  # type: ignore[attr-defined]


async def test_a_defect_of_a_middleware_opens_no_site(crawl: Crawl, server: Server) -> None:
    site = server.site()
    site.robots = RULES
    settings = {"DOWNLOADER_MIDDLEWARES": {Misfit: 50}}
    await asked_of(crawl, site, settings, "it_does_not_fit")
    assert site.pages_asked == []


class Stopping(StopsAll):
    """Stops each download at its first piece, as an example in Scrapy's documentation."""

    signal = signals.bytes_received


class Failing(Stopping):
    """As StopDownload does by itself."""

    def stop(self) -> None:
        raise StopDownload


class Sparing(StopsAll):
    """Ignores requests for a robots.txt, as the message of the log says."""

    def stop(self, request: Request) -> None:  # type: ignore[override]
        if "koster_robotstxt" in request.meta:
            return
        raise StopDownload(fail=False)


@pytest.mark.parametrize("kind", ["http11.HTTP11", "_aiohttp.Aiohttp", "_httpx.Httpx"])
async def test_a_handler_that_stops_pages_only(crawl: Crawl, server: Server, kind: str) -> None:
    site, other = server.site(), server.site()
    site.robots = redirect(other.url("/rules"))
    other.page("/rules", RULES)
    result = await crawl(
        urls=[site.url("/page"), site.url("/secret")],
        settings={"EXTENSIONS": {Sparing: 0}, "DOWNLOAD_HANDLERS": {"http": loaded(kind)}},
    )
    assert result.fetched == (site.url("/page"),)
    assert site.pages_asked == ["/page"]


async def test_a_file_that_has_come_may_be_stopped(crawl: Crawl, server: Server) -> None:
    site = server.site()
    site.robots = RULES
    await crawl(
        urls=[site.url("/page"), site.url("/secret")],
        settings={"EXTENSIONS": {Stopping: 0}, "KOSTER_UNAVAILABLE": "allow"},
    )
    assert site.pages_asked == ["/page"]


@pytest.mark.parametrize("kind", ["http11.HTTP11", "_aiohttp.Aiohttp", "_httpx.Httpx"])
@pytest.mark.parametrize("extension", [Stopping, StopsAll, Failing])
async def test_a_file_that_somebody_else_has_cut_opens_no_site(
    crawl: Crawl, server: Server, extension: type, kind: str
) -> None:
    """What forbids may stand in the rest of it."""
    site = server.site()
    site.robots = "User-agent: *\n" + "# 16 octets here\n" * 20_000 + "Disallow: /secret\n"
    settings = {"EXTENSIONS": {extension: 0}, "DOWNLOAD_HANDLERS": {"http": loaded(kind)}}
    told = r"a component of this crawl failed \(.* raised StopDownload .*'koster_robotstxt' is in"
    await asked_of(crawl, site, settings, told)
    assert site.pages_asked == []


def in_part(request: Asked) -> Reply:
    """Answer with as much of a robots.txt as is asked for: what forbids stands in the rest."""
    if not request.header("Range"):
        return Reply(200, RULES)
    return Reply(206, RULES[:13], headers={"Content-Range": f"bytes 0-12/{len(RULES)}"})


async def test_a_part_is_not_asked_for(crawl: Crawl, server: Server) -> None:
    """Of pages the settings may ask for the beginning only."""
    site = server.site()
    site.robots = in_part
    settings = {"DEFAULT_REQUEST_HEADERS": {"Range": "bytes=0-12"}}
    await crawl(urls=[site.url("/page"), site.url("/secret")], settings=settings)
    assert site.pages_asked == ["/page"]


class InPart:
    """A middleware that has only the beginning of everything sent."""

    def process_request(self, request: Request) -> None:
        request.headers["Range"] = "bytes=0-12"


async def test_a_part_opens_no_site(crawl: Crawl, server: Server) -> None:
    site = server.site()
    site.robots = in_part
    settings = {"DOWNLOADER_MIDDLEWARES": {InPart: 950}}
    await asked_of(crawl, site, settings, "asks for a part of the robots.txt")
    assert site.pages_asked == []


async def test_a_failure_of_the_site_opens_it(crawl: Crawl, server: Server) -> None:
    site = server.site()
    settings = {
        "DOWNLOAD_HANDLERS": {"http": failing(OSError("it is away"))},
        "KOSTER_UNAVAILABLE": "allow",
    }
    await crawl(urls=[site.url(path) for path in PAGES], settings=settings)
    assert sorted(site.pages_asked) == sorted(PAGES)


# What a handler does at a robots.txt in place of answering it: each ends in its time.


async def _for_ever() -> Any:
    await Clock().sleep(3600)


async def _whatever_happens() -> Any:
    """Hang, and go on for a while when it is cancelled."""
    with suppress(*CANCELLED):
        await Clock().sleep(3600)
    await Clock().sleep(0.3)


def _returns(value: object) -> Callable[[], Awaitable[Any]]:
    async def does() -> Any:
        return value

    return does


def _raises(error: BaseException) -> Callable[[], Awaitable[Any]]:
    async def does() -> Any:
        raise error

    return does


FAILS = {
    "hangs": _for_ever,
    "hangs and cannot be cancelled": _whatever_happens,
    "raises CancelledError of asyncio": _raises(asyncio.CancelledError()),
    "raises CancelledError of Twisted": _raises(defer.CancelledError()),
}
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


@pytest.mark.parametrize("does", FAILS.values(), ids=FAILS)
@pytest.mark.parametrize("unavailable", ["defer", "allow"])
async def test_a_handler_that_fails_at_a_site(
    crawl: Crawl, server: Server, does: Callable[[], Awaitable[Any]], unavailable: str
) -> None:
    _, odd, _ = await crawled(crawl, server, does, unavailable)
    assert sorted(odd.pages_asked) == (sorted(PAGES) if unavailable == "allow" else [])


@pytest.mark.parametrize("does", DEFECTS.values(), ids=DEFECTS)
@pytest.mark.parametrize("unavailable", ["defer", "allow"])
async def test_a_handler_that_is_odd_opens_no_site(
    crawl: Crawl, server: Server, does: Callable[[], Awaitable[Any]], unavailable: str
) -> None:
    running, odd, log = await crawled(crawl, server, does, unavailable)
    assert odd.pages_asked == []
    spider: Any = running.crawler.spider
    refused = [error for url, error in spider.refused if url.startswith(odd.url(""))]
    is_stop = does is DEFECTS["raises StopIteration"]  # a coroutine makes RuntimeError of it
    assert {type(error) for error in refused} == {RuntimeError if is_stop else TypeError}
    said = "\n".join(
        line for line in log if "Error while fetching or reading the robots.txt of" in line
    )
    assert "Odd returned" in said or "StopIteration" in said


# What a handler does when it is closed. Scrapy waits for that without a limit; by then all is done.


class Gone(Exception):
    pass


def closing(kind: Any, does: Callable[[], Awaitable[Any]]) -> Any:
    class Odd(kind):  # type: ignore[misc]
        closed = 0

        async def close(self) -> None:
            type(self).closed += 1
            await super().close()
            await does()

    return Odd


def ended(running: Running) -> list[str]:
    spider: Any = running.crawler.spider
    return sorted([*spider.fetched, *(url for url, _ in spider.refused)])


AWAY: dict[str, Any] = {"KOSTER_DEFER_FIRST_SECS": 0.1, "KOSTER_DEFER_LIMIT_SECS": 0.3}
KINDS = ["http11.HTTP11", "_aiohttp.Aiohttp", "_httpx.Httpx", "of nobody"]


def handler_of(kind: str) -> Any:
    return failing(OSError("it is away")) if kind == "of nobody" else loaded(kind)


@pytest.mark.parametrize("kind", KINDS)
async def test_a_handler_that_cannot_be_closed(crawl: Crawl, server: Server, kind: str) -> None:
    """The crawl ends, with one error for each time that it was closed."""
    site = server.site()
    site.robots = RULES
    handler = closing(handler_of(kind), _raises(Gone("cannot be closed")))
    # Scrapy closes no handler after one that raises: there is none.
    settings = AWAY | {"DOWNLOAD_HANDLERS": {"http": handler, "https": None}}
    running = crawl.start(urls=[site.url(path) for path in PAGES], settings=settings)
    with pytest.raises(AssertionError) as raised:  # they are logged, with tracebacks
        await running.result()
    said = str(raised.value)
    assert said.count("Error caught on signal handler") == handler.closed
    assert said.count("Gone: cannot be closed") == handler.closed
    assert ended(running) == sorted(site.url(path) for path in PAGES)


@pytest.mark.parametrize("kind", KINDS)
async def test_a_handler_that_hangs_when_it_is_closed(
    crawl: Crawl, server: Server, tmp_path: Path, kind: str
) -> None:
    """Scrapy waits for it; each request has ended by then, and the report is written."""
    site = server.site()
    site.robots = RULES
    gone_on: defer.Deferred[None] = defer.Deferred()

    async def hangs() -> None:
        mine: defer.Deferred[None] = defer.Deferred()
        gone_on.addBoth(lambda _: mine.callback(None))
        await maybe_deferred_to_future(mine)

    handler = closing(handler_of(kind), hangs)
    report = tmp_path / "report.html"
    settings = AWAY | {"DOWNLOAD_HANDLERS": {"http": handler}, "KOSTER_REPORT": str(report)}
    running = crawl.start(urls=[site.url(path) for path in PAGES], settings=settings)
    await crawl.until(lambda: handler.closed and report.exists())
    assert ended(running) == sorted(site.url(path) for path in PAGES)
    assert running.crawler.stats.get_value("finish_reason") == "finished"
    gone_on.callback(None)
    await running.result()

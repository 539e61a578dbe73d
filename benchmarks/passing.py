"""(c) A request to a site that is known, as Scrapy's middleware manager passes it on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

from report import Table
from scrapy import Request, Spider
from scrapy.core.downloader.middleware import DownloaderMiddlewareManager
from scrapy.crawler import Crawler
from scrapy.downloadermiddlewares.robotstxt import RobotsTxtMiddleware
from scrapy.http import Response
from scrapy.robotstxt import ProtegoRobotParser
from scrapy.statscollectors import MemoryStatsCollector
from timing import Times, by_turns, micros

from scrapy_koster import KosterMiddleware
from scrapy_koster.crawl.context import Parts, context_of
from scrapy_koster.protocol.access import Answer

SITE = "http://www.fict.org"
BODY = b"""User-agent: *
Disallow: /wp-admin/
Disallow: /wp-includes/
Disallow: /cgi-bin/
Disallow: /author/
Disallow: /category/
Disallow: /images/
Disallow: /backup/
Disallow: /archives/
Disallow: /trackback/
Disallow: /feed/
Disallow: /search?q=
Disallow: /tmp/
Allow: /wp-content/uploads/
"""
REQUESTS = 5_000
WATCHED = BODY.replace(b"Disallow: /feed/", b"Disallow: /*/feed/")
"""A file of which RFC 9309 may forbid pages that the draft allows."""
NOTHING, OURS, SCRAPYS = "does nothing", "ours", "Scrapy's"
HAZARDS = "ours, a file that can have hazards"


class Nothing:
    """The least that a downloader middleware can be."""

    def process_request(self, request: Request) -> None:  # noqa: ARG002
        return None


def tables(rounds: int) -> Iterator[Table]:
    middlewares = {
        NOTHING: Nothing(), OURS: _ours(BODY), HAZARDS: _ours(WATCHED), SCRAPYS: _scrapys()
    }  # fmt: skip
    jobs = {name: _pass_on(middleware) for name, middleware in middlewares.items()}
    times = by_turns(jobs, rounds)
    to_nothing = times[NOTHING].ratio(times[OURS])
    to_scrapys = times[SCRAPYS].ratio(times[OURS])
    yield Table(
        "Warm process_request, us a request",
        ("middleware", "us", "spread", "times that which does nothing"),
        [_row(name, taken, times[NOTHING]) for name, taken in times.items()],
        "Through DownloaderMiddlewareManager, with one middleware and a download that is there at"
        " once; the file has 13 rules, as the median of real ones. Ours takes"
        f" {to_scrapys:.2f} times the time of Scrapy's (with Protego).",
        [
            *(["at most a quarter of Scrapy's"] if to_scrapys > 0.25 else []),
            *(["at most twice that which does nothing"] if to_nothing > 2 else []),
        ],
    )


def _row(name: str, taken: Times, nothing: Times) -> tuple[str, str, str, str]:
    each = micros(taken.median / REQUESTS)
    return name, each, f"{taken.spread:.0%}", f"{nothing.ratio(taken):.2f}"


def _pass_on(middleware: Any) -> Callable[[], None]:
    manager = DownloaderMiddlewareManager(middleware, crawler=_crawler())
    requests = [Request(f"{SITE}/page/{n}/index.html?q={n}") for n in range(REQUESTS)]
    responses = {request: Response(request.url) for request in requests}

    async def download(request: Request) -> Response:
        return responses[request]

    def run() -> None:
        for request in requests:
            _finish(manager.download_async(download, request))

    return run


def _finish(coroutine: Any) -> None:
    """Run a coroutine that waits for nothing."""
    try:
        coroutine.send(None)
    except StopIteration:
        return
    raise RuntimeError("it waits")


def _crawler() -> Crawler:
    settings = {
        "ROBOTSTXT_OBEY": True,
        "DOWNLOADER_MIDDLEWARES": {RobotsTxtMiddleware: None},
        "KOSTER_STORAGE": "scrapy_koster.storage.memory.MemoryStorage",
        "LOG_LEVEL": "ERROR",
    }
    crawler = Crawler(Spider, settings)
    crawler.spider = Spider("benchmark")
    crawler.stats = MemoryStatsCollector(crawler)
    return crawler


class _Fetch:
    def __init__(self, body: bytes) -> None:
        self._body = body

    async def fetch(self, *_: object) -> Answer:
        return Answer(f"{SITE}/robots.txt", 200, {}, self._body)

    def cancel(self) -> None:
        """Nothing of it lasts."""


def _ours(body: bytes) -> KosterMiddleware:
    crawler = _crawler()
    fetch: Any = _Fetch(body)
    context_of(crawler, Parts(fetcher=lambda *_, **__: fetch))
    middleware = KosterMiddleware(crawler)
    waiting = middleware.process_request(Request(SITE))
    assert waiting is not None
    asyncio.run(waiting)
    return middleware


def _scrapys() -> RobotsTxtMiddleware:
    middleware = RobotsTxtMiddleware.from_crawler(_crawler())
    middleware._parsers["www.fict.org"] = ProtegoRobotParser(BODY, None)  # noqa: SLF001
    return middleware

"""Download handlers of others that Scrapy runs: they work, and obey. Defects open no site."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from harness.comparison import RULES
from harness.crawling import Crawl, RecordingSpider
from harness.faults_of_sites import ALLOWED, FORBIDDEN
from harness.handlers import Around, loaded
from harness.replies import Asked, Hang, Reply
from harness.server import Server, Site
from harness.virtual import TIME
from scrapy import Request
from scrapy.exceptions import (
    NotConfigured,
    NotSupported,
    UnsupportedURLSchemeError,
)
from scrapy.http import Response
from scrapy.utils.defer import deferred_from_coro

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
    return type("Around", (Around,), {"kind": kind})


@pytest.mark.parametrize(
    ("kind", "make"),
    [("http11.HTTP11", of_old_interface), ("_httpx.Httpx", around_another)],
)
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
    class Failing(Around):
        """Sends pages as the crawl's own handler does."""

        async def download_request(self, request: Request) -> Any:
            if request.url.endswith("/robots.txt"):
                raise error
            return await super().download_request(request)

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


# What a handler does at a robots.txt in place of answering it.


def _stops() -> None:
    raise StopIteration


def doing(does: Callable[[], Any]) -> Any:
    class Odd(Around):
        async def download_request(self, request: Request) -> Any:
            if request.url.endswith("/robots.txt"):
                return does()
            return await super().download_request(request)

    return Odd


@pytest.mark.promise("docs/reliability.md", "download handlers with wrong answers open no page")
@pytest.mark.parametrize(
    ("does", "error", "said"),
    [
        (lambda: None, TypeError, "Odd returned"),
        (lambda: "User-agent: *", TypeError, "Odd returned"),
        (lambda: Response, TypeError, "Odd returned"),
        (_stops, RuntimeError, "StopIteration"),  # as a coroutine raises it
    ],
    ids=["returns None", "returns text", "returns a class", "raises StopIteration"],
)
async def test_a_handler_that_is_odd_opens_no_site(
    crawl: Crawl, server: Server, does: Callable[[], Any], error: type[Exception], said: str
) -> None:
    site = server.site()
    site.robots = RULES
    settings = {"DOWNLOAD_HANDLERS": {"http": doing(does)}}
    spider = await asked_of(crawl, site, settings, said)
    assert site.pages_asked == []
    assert [type(raised) for _, raised in spider.refused] == [error] * len(PAGES)

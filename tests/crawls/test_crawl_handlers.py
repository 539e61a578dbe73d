"""Download handlers of others: sites that hang take no connections, and defects open no site."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

import pytest
from harness.comparison import RULES
from harness.crawling import Crawl
from harness.faults_of_sites import ALLOWED, FORBIDDEN
from harness.handlers import Around, loaded
from harness.replies import Hang
from harness.server import Server
from harness.virtual import TIME
from scrapy import Request
from scrapy.exceptions import NotConfigured, NotSupported
from scrapy.http import Response

PAGES = (*ALLOWED, *FORBIDDEN)
# What is deprecated is a warning of Scrapy, once for each handler.
pytestmark = pytest.mark.filterwarnings("ignore::scrapy.exceptions.ScrapyDeprecationWarning")


@pytest.mark.parametrize(
    "kind",
    [
        "http11.HTTP11",
        pytest.param("_aiohttp.Aiohttp", marks=pytest.mark.long),
        "_httpx.Httpx",
    ],
)
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


# What a handler does at a robots.txt in place of answering it.


def _raises(error: Exception) -> Callable[[], Any]:
    def call() -> Any:
        raise error

    return call


DOES: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "127.0.6.1": (lambda: None, TypeError, "Odd returned"),
    "127.0.6.2": (lambda: Response, TypeError, "Odd returned"),
    "127.0.6.3": (_raises(StopIteration()), RuntimeError, "StopIteration"),  # of a coroutine
    "127.0.6.4": (_raises(TypeError("no fit")), TypeError, "no fit"),
    "127.0.6.5": (_raises(NotSupported("no support")), NotSupported, "no support"),
    "127.0.6.6": (_raises(NotConfigured("no setting")), NotConfigured, "no setting"),
}
"""By host: what the handler does, the error of the errback, and what the log has of it."""


class Odd(Around):
    """Sends pages as the crawl's own handler does."""

    async def download_request(self, request: Request) -> Any:
        if request.url.endswith("/robots.txt"):
            return DOES[urlsplit(request.url).hostname or ""][0]()
        return await super().download_request(request)


async def test_a_defect_of_a_handler_opens_no_site(crawl: Crawl, server: Server) -> None:
    sites = {host: server.site(host=host) for host in DOES}
    running = crawl.start(
        urls=[site.url(path) for site in sites.values() for path in PAGES],
        settings={
            "KOSTER_UNAVAILABLE": "allow",
            "KOSTER_DEFER_FIRST_SECS": 0.1,
            "KOSTER_DEFER_LIMIT_SECS": 0.3,
            "DOWNLOAD_HANDLERS": {"http": Odd},
        },
    )
    with pytest.raises(AssertionError) as logged:  # of the errors in the log, with tracebacks
        await running.result()
    spider: Any = running.crawler.spider
    assert len(spider.refused) == len(PAGES) * len(sites)
    errors = {urlsplit(url).hostname: type(error) for url, error in spider.refused}
    for host, (_, error, said) in DOES.items():
        assert sites[host].pages_asked == []
        assert errors[host] is error
        assert said in str(logged.value)

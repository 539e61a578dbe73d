"""Section 6: an answer without an end opens no site, and ends after few bytes."""

from __future__ import annotations

from typing import Any

import pytest
from harness.comparison import SETTINGS
from harness.crawling import Crawl
from harness.floods import CHUNKED, FLOODS, INTERIM, STATUS
from harness.replies import Flood, Reply, redirect
from harness.server import Server
from scrapy import Request
from scrapy.http import Response
from scrapy.utils.reactor import is_reactor_installed

from scrapy_koster import RobotsForbidden, RobotsUnavailable
from scrapy_koster.crawl.engine.answer_limit import HEADERS_MAX_BYTES, HEADERS_TOO_LONG

MAX_BYTES = 100_000
# What the parsers of HTTP take in one go, and buffers at both ends, are some hundred kB.
SENT_AT_MOST = HEADERS_MAX_BYTES + 2 * MAX_BYTES + 1_000_000
# A flood over TLS is work: how long it takes says more of the machine.
PATIENT = {**SETTINGS, "KOSTER_TIMEOUT_SECS": 50}


def is_limited() -> bool:
    """Whether Scrapy's default handler is that of Twisted, whose connections are counted."""
    return is_reactor_installed()


def settings_of_floods() -> dict[str, Any]:
    """With the handler of aiohttp, the time-out ends some floods."""
    secs = 50 if is_limited() else 1
    settings = {**SETTINGS, "KOSTER_TIMEOUT_SECS": secs, "KOSTER_DEFER_LIMIT_SECS": 0.1}
    return {**settings, "KOSTER_MAX_BYTES": MAX_BYTES}


REASONS = {
    "interim answers": HEADERS_TOO_LONG,
    "continuations": HEADERS_TOO_LONG,
    "extensions of small chunks": "its answer is longer than 265536 bytes",
}
LONG_ON_THE_WIRE = "extensions of small chunks"
"""Its body is a file, which a handler without a limit may receive in time."""
# A body without end is cut (test_crawl_fetch.py); what comes after the end of one is not read.


async def refused(crawl: Crawl, server: Server, flood: Flood, scheme: str = "http") -> str:
    """The reason why the page of a site was not fetched that floods."""
    site = server.site(scheme)
    site.robots = flood
    result = await crawl(urls=[site.url("/page")], settings=settings_of_floods())
    if not is_limited() and result.fetched and flood is FLOODS[LONG_ON_THE_WIRE]:
        return "its body is cut at the limit"
    [(_, error)] = result.refused
    assert isinstance(error, RobotsUnavailable)
    assert site.pages_asked == []
    assert not is_limited() or site.sent("/robots.txt") < SENT_AT_MOST
    return str(error)


@pytest.mark.promise("docs/access.md", "Headers of more than 65,536 bytes are a failure")
@pytest.mark.parametrize("flood", FLOODS)
async def test_an_attempt_ends_at_once(crawl: Crawl, server: Server, flood: str) -> None:
    reason = await refused(crawl, server, FLOODS[flood])
    assert not is_limited() or "no answer within" not in reason
    assert not is_limited() or REASONS.get(flood, "") in reason


async def test_it_does_over_tls(crawl: Crawl, server: Server) -> None:
    reason = await refused(crawl, server, FLOODS["interim answers"], "https")
    assert not is_limited() or "no answer within" not in reason


async def test_behind_a_redirect(crawl: Crawl, server: Server) -> None:
    """Over a connection that may have been kept from the first request."""
    site = server.site()
    site.robots = redirect("/moved")
    site.page("/moved", FLOODS["interim answers"])
    result = await crawl(urls=[site.url("/page")], settings=settings_of_floods())
    [(_, error)] = result.refused
    assert isinstance(error, RobotsUnavailable)
    if is_limited():
        assert HEADERS_TOO_LONG in str(error)
        assert site.sent("/moved") < SENT_AT_MOST


async def test_from_a_proxy(crawl: Crawl, server: Server) -> None:
    proxy = server.proxy()
    proxy.page("http://example.org/robots.txt", FLOODS["interim answers"])
    result = await crawl(
        urls=["http://example.org/page"],
        meta={"proxy": proxy.url()},
        settings=settings_of_floods(),
    )
    [(_, error)] = result.refused
    assert isinstance(error, RobotsUnavailable)
    if is_limited():
        assert HEADERS_TOO_LONG in str(error)
        assert proxy.sent("http://example.org/robots.txt") < SENT_AT_MOST


RULES = b"User-agent: *\nDisallow: /secret\n"
LONG_RULES = RULES + b"# %b\n" % (b"x" * 98) * 4990
SMALL_CHUNKS = b"".join(b"8\r\n%b\r\n" % LONG_RULES[i : i + 8] for i in range(0, 160_000, 8))
WELL_MEANT = {
    "long": Reply(200, LONG_RULES),
    "with many headers": Reply(200, LONG_RULES, headers=[("X", "x" * 400)] * 120),
    "in small chunks": Flood(200, CHUNKED + SMALL_CHUNKS + b"0\r\n\r\n"),
    "after an interim answer": Flood(
        200, INTERIM + STATUS + b"Content-Length: %d\r\n\r\n" % len(LONG_RULES) + LONG_RULES
    ),
}


@pytest.mark.parametrize("answer", WELL_MEANT)
async def test_what_is_long_and_has_an_end_is_obeyed(
    crawl: Crawl, server: Server, answer: str
) -> None:
    site = server.site("https")
    site.robots = WELL_MEANT[answer]
    urls = [site.url("/page"), site.url("/secret")]
    result = await crawl(urls=urls, settings=PATIENT)
    assert result.fetched == (site.url("/page"),)
    assert [type(error) for _, error in result.refused] == [RobotsForbidden]
    assert site.pages_asked == ["/page"]


class Headers:
    """Stands for a download handler whose connections are not counted."""

    def process_response(self, request: Request, response: Response) -> Response:
        if not request.url.endswith("/robots.txt"):
            return response
        return response.replace(headers={"X": ["x" * 1000] * 70})


async def test_headers_of_a_handler_without_a_limit(crawl: Crawl, server: Server) -> None:
    site = server.site()
    settings = {**settings_of_floods(), "DOWNLOADER_MIDDLEWARES": {Headers: 1000}}
    result = await crawl(urls=[site.url("/page")], settings=settings)
    [(_, error)] = result.refused
    assert HEADERS_TOO_LONG in str(error)

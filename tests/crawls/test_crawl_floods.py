"""Section 6: an answer without an end opens no site, and ends after few bytes."""

from __future__ import annotations

from typing import Any

import pytest
from harness.comparison import SETTINGS
from harness.crawling import Crawl
from harness.floods import CHUNKED, FLOODS, INTERIM, STATUS
from harness.replies import Raw, Reply, redirect
from harness.server import Server, Site
from scrapy import Request
from scrapy.http import Response
from scrapy.utils.reactor import is_reactor_installed

from scrapy_koster import RobotsForbidden, RobotsUnavailable
from scrapy_koster.crawl.engine.answer_limit import HEADERS_MAX_BYTES, HEADERS_TOO_LONG

MAX_BYTES = 100_000
# What the parsers of HTTP take in one go, and buffers at both ends, are some hundred kB.
SENT_AT_MOST = HEADERS_MAX_BYTES + 2 * MAX_BYTES + 1_000_000


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
    "over TLS": HEADERS_TOO_LONG,
    "behind a redirect": HEADERS_TOO_LONG,
    "from a proxy": HEADERS_TOO_LONG,
    "extensions of small chunks": "its answer is longer than 265536 bytes",
}
LONG_ON_THE_WIRE = "extensions of small chunks"
"""Its body is a file, which a handler without a limit may receive in time."""
# A body without end is cut (test_crawl_fetch.py); what comes after the end of one is not read.


def flooding(server: Server) -> dict[str, tuple[Request, Site, str]]:
    """Return for each flood a request for a page, the site that floods, and its URL there."""
    found, interim = {}, FLOODS["interim answers"]
    for name in (*FLOODS, "over TLS"):
        site = server.site("https" if name == "over TLS" else "http")
        site.robots = FLOODS.get(name, interim)
        found[name] = (Request(site.url("/page")), site, "/robots.txt")
    site, proxy = server.site(), server.proxy()
    site.robots = redirect("/moved")
    site.page("/moved", interim)
    found["behind a redirect"] = (Request(site.url("/page")), site, "/moved")
    proxy.page("http://example.org/robots.txt", interim)
    page = Request("http://example.org/page", meta={"proxy": proxy.url()})
    found["from a proxy"] = (page, proxy, "http://example.org/robots.txt")
    return found


@pytest.mark.promise("docs/access.md", "Headers of more than 65,536 bytes are a failure")
async def test_an_attempt_ends_at_once(crawl: Crawl, server: Server) -> None:
    """A flood can also come over TLS, behind a redirect or from a proxy."""
    floods = flooding(server)
    urls = [page for page, _, _ in floods.values()]
    result = await crawl(urls=urls, settings=settings_of_floods())
    refused = dict(result.refused)
    for name, (page, site, path) in floods.items():
        if not is_limited() and name == LONG_ON_THE_WIRE and page.url in result.fetched:
            continue  # its body is cut at the limit
        reason = refused[page.url]
        assert isinstance(reason, RobotsUnavailable)
        assert site.asked("/page") == 0
        if is_limited():
            assert site.sent(path) < SENT_AT_MOST
            assert "no answer within" not in str(reason)
            assert REASONS.get(name, "") in str(reason)


RULES = b"User-agent: *\nDisallow: /secret\n"
LONG_RULES = RULES + b"# %b\n" % (b"x" * 98) * 4990
SMALL_CHUNKS = b"".join(b"8\r\n%b\r\n" % LONG_RULES[i : i + 8] for i in range(0, 160_000, 8))
WELL_MEANT = (
    Reply(200, LONG_RULES),
    Reply(200, LONG_RULES, headers=[("X", "x" * 400)] * 120),
    Raw(200, CHUNKED + SMALL_CHUNKS + b"0\r\n\r\n"),
    Raw(200, INTERIM + STATUS + b"Content-Length: %d\r\n\r\n" % len(LONG_RULES) + LONG_RULES),
)


async def test_what_is_long_and_has_an_end_is_obeyed(crawl: Crawl, server: Server) -> None:
    sites = [server.site("https") for _ in WELL_MEANT]
    for site, answer in zip(sites, WELL_MEANT, strict=True):
        site.robots = answer
    urls = [site.url(path) for site in sites for path in ("/page", "/secret")]
    # A flood over TLS is work: how long it takes says more of the machine.
    result = await crawl(urls=urls, settings={**SETTINGS, "KOSTER_TIMEOUT_SECS": 50})
    assert result.errors == {site.url("/secret"): RobotsForbidden for site in sites}
    assert [site.pages_asked for site in sites] == [["/page"]] * 4


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

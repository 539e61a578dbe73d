"""One site for each kind of answer to GET /robots.txt, and what two middlewares make of it.

    PYTHONPATH=tests python -m harness.comparison

prints the table that docs/access.md shows between its markers. What an answer means is asserted in
test_crawl_access.py, which also asserts that the table is what a run gives.
"""

from __future__ import annotations

import asyncio
import gzip
import sys
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, TypeAlias

import brotli  # type: ignore[import-untyped]
from scrapy.exceptions import IgnoreRequest
from scrapy.http import Response
from twisted.python.failure import Failure

from harness.challenge_pages import ANUBIS
from harness.crawling import Crawl, CrawlResult, RecordingSpider, Robots
from harness.documents import crawled, marked
from harness.replies import (
    Handler,
    Hang,
    Raw,
    Reply,
    Reset,
    Trickle,
    endless,
    gzip_bomb,
    redirect,
    truncated,
)
from harness.server import Server, Site
from scrapy_koster import RobotsUnavailable

RULES = "User-agent: *\nDisallow: /secret\n"
PADDED = RULES + "# padding\n" * 20
HTML = "<!DOCTYPE html><html><body><h1>Not found</h1><p>Disallow: /secret</p></body></html>"
TEXT = {"Content-Type": "text/plain"}
LINE = "# 40 octets and on and on and on and on\n"
OTHER_HOST = "127.0.0.2"
COMPARISON = ("<!-- comparison -->", "<!-- /comparison -->")


class Means(Enum):
    """What a site's answer comes to, seen from outside."""

    RULES = "its rules are obeyed"
    UNRESTRICTED = "everything may be fetched"
    RESTRICTED = "nothing may be fetched"
    DEFERRED = "the site is deferred"
    NEITHER = "something else"


Build: TypeAlias = "Callable[[Server], Site]"


@dataclass(frozen=True)
class Row:
    """One kind of answer."""

    answer: str
    means: Means
    build: Build
    settings: Mapping[str, Any] = field(default_factory=dict)
    """What makes the test of this row quick."""


def answering(handler: Handler, scheme: str = "http") -> Build:
    def build(server: Server) -> Site:
        site = server.site(scheme)
        site.robots = handler
        return site

    return build


def coded(coding: str, body: bytes) -> Build:
    return answering(Reply(200, body, headers={**TEXT, "Content-Encoding": coding}))


def chain(hops: int) -> Build:
    """So many redirects before the file."""

    def build(server: Server) -> Site:
        site = server.site()
        site.robots = redirect("/hop1", 302) if hops else RULES
        for hop in range(1, hops):
            site.page(f"/hop{hop}", redirect(f"/hop{hop + 1}", 302))
        site.page(f"/hop{hops}", RULES)
        return site

    return build


def to(handler: Handler, scheme: str = "http", host: str = "127.0.0.1") -> Build:
    """A redirect to another site, where this is the answer."""

    def build(server: Server) -> Site:
        site, target = server.site(), server.site(scheme, host=host)
        target.page("/moved.txt", handler)
        site.robots = redirect(target.url("/moved.txt"))
        return site

    return build


class NoTls(Site):
    """Listens where https is expected, and has never heard of TLS."""

    def _tls(self) -> None:
        pass

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
        await writer.drain()
        writer.close()


QUICK = {"KOSTER_TIMEOUT_SECS": 0.5}

ROWS: Sequence[Row] = (
    # 2xx: "the robot must read the content, parse it, and follow any instructions"
    Row("200 with rules", Means.RULES, answering(RULES)),
    Row("203 with rules", Means.RULES, answering(Reply(203, RULES))),
    Row("204", Means.UNRESTRICTED, answering(Reply(204))),
    Row("206 with rules", Means.RULES, answering(Reply(206, RULES))),
    Row("200 without a body", Means.UNRESTRICTED, answering(Reply(200))),
    Row(
        "200 with an HTML page",
        Means.UNRESTRICTED,
        answering(Reply(200, HTML, headers={"Content-Type": "text/html"})),
    ),
    Row(
        "200 with an HTML page that only refreshes to /moved",
        Means.DEFERRED,
        answering(
            Reply(
                200,
                '<html><head><meta http-equiv="refresh" content="0; url=/moved"></head></html>',
                headers={"Content-Type": "text/html"},
            )
        ),
    ),
    Row(
        "200 with a challenge page (Anubis, Cloudflare, ...)",
        Means.DEFERRED,
        answering(Reply(200, ANUBIS, headers={"Content-Type": "text/html"})),
    ),
    Row("200, gzip", Means.RULES, coded("gzip", gzip.compress(PADDED.encode()))),
    Row("200, deflate", Means.RULES, coded("deflate", zlib.compress(PADDED.encode()))),
    Row("200, br", Means.RULES, coded("br", brotli.compress(PADDED.encode()))),
    Row("200 over https, self-signed certificate", Means.RULES, answering(RULES, "https")),
    Row("200, 600 kB", Means.RULES, answering(RULES + LINE * 15_000)),
    Row("200 without end", Means.RULES, answering(endless(RULES * 1000))),
    # 4xx
    Row("400", Means.UNRESTRICTED, answering(Reply(400, RULES))),
    Row("401", Means.RESTRICTED, answering(Reply(401, RULES))),
    Row("402", Means.UNRESTRICTED, answering(Reply(402))),
    Row("403", Means.RESTRICTED, answering(Reply(403))),
    Row("404", Means.UNRESTRICTED, answering(Reply(404))),
    Row("404 with a body that says Disallow", Means.UNRESTRICTED, answering(Reply(404, RULES))),
    Row("407", Means.DEFERRED, answering(Reply(407))),
    Row("408", Means.DEFERRED, answering(Reply(408))),
    Row("410", Means.UNRESTRICTED, answering(Reply(410))),
    Row("425", Means.DEFERRED, answering(Reply(425))),
    Row(
        "429 with Retry-After", Means.DEFERRED, answering(Reply(429, headers={"Retry-After": "1"}))
    ),
    Row("451", Means.UNRESTRICTED, answering(Reply(451))),
    # 5xx, and what is no answer to the question
    Row("500", Means.DEFERRED, answering(Reply(500))),
    Row("503", Means.DEFERRED, answering(Reply(503))),
    Row("503 with a body that says Disallow", Means.DEFERRED, answering(Reply(503, RULES))),
    Row("999", Means.DEFERRED, answering(Reply(999))),
    Row("304 to a request without conditions", Means.DEFERRED, answering(Reply(304))),
    # 3xx: "a robot should follow the redirects until a resource can be found"
    Row("5 redirects to rules", Means.RULES, chain(5)),
    Row("6 redirects to rules", Means.DEFERRED, chain(6)),
    Row("a redirect to itself", Means.DEFERRED, answering(redirect("/robots.txt"))),
    Row("a redirect without a Location", Means.DEFERRED, answering(Reply(301))),
    Row("a redirect to rules over https", Means.RULES, to(RULES, "https")),
    Row("a redirect to rules on another host", Means.RULES, to(RULES, host=OTHER_HOST)),
    Row("a redirect to ftp:", Means.DEFERRED, answering(redirect("ftp://127.0.0.1/robots.txt"))),
    Row("a redirect to a 404", Means.UNRESTRICTED, to(Reply(404, RULES))),
    Row("a redirect to a 403", Means.RESTRICTED, to(Reply(403))),
    Row("a redirect to a 503", Means.DEFERRED, to(Reply(503))),
    # no answer, or none that can be read
    Row("connection refused", Means.DEFERRED, Server.down),
    Row("connection reset", Means.DEFERRED, answering(Reset())),
    Row("connection reset in the body", Means.DEFERRED, answering(Reset(200, PADDED, sent=150))),
    Row("connection closed without a response", Means.DEFERRED, answering(Raw())),
    Row(
        "https, but the server speaks no TLS",
        Means.DEFERRED,
        lambda server: server.opened(NoTls, "https"),
    ),
    Row("garbage instead of HTTP", Means.DEFERRED, answering(Raw(body=b"\x00garbage\r\n\r\n"))),
    Row(
        "2 MB of header",
        Means.DEFERRED,
        answering(Reply(200, RULES, headers={"X-Bomb": "x" * 2_000_000})),
    ),
    Row("a body cut short", Means.DEFERRED, answering(truncated(PADDED))),
    Row("gzip, but the body is not", Means.DEFERRED, coded("gzip", PADDED.encode())),
    Row("an unknown Content-Encoding", Means.DEFERRED, coded("x-nobody", PADDED.encode())),
    Row(
        "a decompression bomb",
        Means.DEFERRED,
        answering(gzip_bomb(2_000_000, b"# and on and on and on\n")),
    ),
    Row("no answer at all", Means.DEFERRED, answering(Hang()), QUICK),
    Row(
        "an answer slower than KOSTER_TIMEOUT_SECS",
        Means.DEFERRED,
        answering(Trickle(200, RULES, pause=0.1)),
        QUICK,
    ),
)


@dataclass(frozen=True)
class Seen:
    """What a crawl made of one site."""

    row: Row
    site: Site
    passed: frozenset[str]
    """The pages that were let through, whether they could be had or not."""
    errors: tuple[BaseException, ...]
    """What the others were refused with."""

    @property
    def means(self) -> Means:
        if self.passed == {"/", "/secret"}:
            return Means.UNRESTRICTED
        if self.passed == {"/"}:
            return Means.RULES
        if self.passed or not self.errors:
            return Means.NEITHER
        gave_up = all(isinstance(error, RobotsUnavailable) for error in self.errors)
        return Means.DEFERRED if gave_up else Means.RESTRICTED


class OneByOne(RecordingSpider):
    """Asks each of its sites for a page that is allowed and, when that has ended, for a secret.

    So no two requests wait for one robots.txt, which Scrapy's own middleware has a defect with.
    """

    allowed_domains = ("127.0.0.1",)

    def page(self, response: Response) -> Iterator[Any]:
        yield from self._then(response.url)

    def fail(self, failure: Failure) -> Iterator[Any]:
        super().fail(failure)
        yield from self._then(failure.request.url)  # type: ignore[attr-defined]  # set by Scrapy

    def _then(self, url: str) -> Iterator[Any]:
        if url.endswith("/"):
            yield self.ask(f"{url}secret")


def seen(row: Row, site: Site, result: CrawlResult) -> Seen:
    home = site.url("")
    refused = [
        (url, error)
        for url, error in result.refused
        if url.startswith(f"{home}/") and isinstance(error, IgnoreRequest)
    ]
    asked = {home + path for path in ("/", "/secret")}
    passed = frozenset(url.removeprefix(home) for url in asked - {url for url, _ in refused})
    return Seen(row, site, passed, tuple(error for _, error in refused))


SETTINGS: Mapping[str, Any] = {
    "KOSTER_DEFER_FIRST_SECS": 0.1,
    "KOSTER_DEFER_LIMIT_SECS": 0.3,
    "KOSTER_TIMEOUT_SECS": 5,
}


async def comparison(crawl: Crawl, server: Server) -> str:
    """Return the table: a row has the answers that mean the same to each of the middlewares.

    What scrapy-koster makes of each is asserted in test_faults.py.
    """
    sites = [row.build(server) for row in ROWS]
    settings = {**SETTINGS, "KOSTER_TIMEOUT_SECS": 2, "DOWNLOAD_TIMEOUT": 2, "RETRY_TIMES": 0}
    urls = [site.url() for site in sites]
    result = await crawl(OneByOne, urls=urls, robots="scrapy", settings=settings)
    forty = [
        f"{await forbidden(crawl, server, robots)} are fetched" for robots in ("koster", "scrapy")
    ]
    answers: dict[tuple[str, str], list[str]] = {}
    for row, site in zip(ROWS, sites, strict=True):
        means = seen(row, site, result).means
        answers.setdefault((row.means.value, means.value), []).append(row.answer)
    lines = [
        ("answers to GET /robots.txt", "scrapy-koster", "Scrapy's own middleware"),
        ("---", "---", "---"),
        *(("; ".join(same), *means) for means, same in answers.items()),
        ("200, slow, for which 40 requests wait that it forbids", *forty),
    ]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def shown(page: str) -> str:
    """The table that *page*, of Markdown, has between the marks."""
    return marked(page, COMPARISON).strip()


async def forbidden(crawl: Crawl, server: Server, robots: Robots) -> int:
    """How many forbidden pages are fetched when 40 requests wait for a robots.txt."""
    site = server.site()
    site.robots = Reply(200, "User-agent: *\nDisallow: /", delay=0.5)
    await crawl(urls=site.urls(40), robots=robots, settings={"CONCURRENT_REQUESTS": 16})
    return len(site.pages_asked)


if __name__ == "__main__":
    sys.stdout.write(f"{crawled(comparison)}\n")

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
from dataclasses import dataclass
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
REFRESHING = '<html><head><meta http-equiv="refresh" content="0; url=/moved"></head></html>'
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


def answering(handler: Handler, scheme: str = "http") -> Build:
    def build(server: Server) -> Site:
        site = server.site(scheme)
        site.robots = handler
        return site

    return build


def paged(body: str) -> Build:
    return answering(Reply(200, body, headers={"Content-Type": "text/html"}))


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


_ANSWERS: Mapping[Means, Mapping[str, Build]] = {
    Means.RULES: {
        "200 with rules": answering(RULES),
        "203 with rules": answering(Reply(203, RULES)),
        "206 with rules": answering(Reply(206, RULES)),
        "200, gzip": coded("gzip", gzip.compress(PADDED.encode())),
        "200, deflate": coded("deflate", zlib.compress(PADDED.encode())),
        "200, br": coded("br", brotli.compress(PADDED.encode())),
        "200 over https, self-signed certificate": answering(RULES, "https"),
        "200, 600 kB": answering(RULES + LINE * 15_000),
        "200 without end": answering(endless(RULES * 1000)),
        "5 redirects to rules": chain(5),
        "a redirect to rules over https": to(RULES, "https"),
        "a redirect to rules on another host": to(RULES, host=OTHER_HOST),
    },
    Means.UNRESTRICTED: {
        "204": answering(Reply(204)),
        "200 without a body": answering(Reply(200)),
        "200 with an HTML page": paged(HTML),
        "400": answering(Reply(400, RULES)),
        "402": answering(Reply(402)),
        "404": answering(Reply(404)),
        "404 with a body that says Disallow": answering(Reply(404, RULES)),
        "410": answering(Reply(410)),
        "451": answering(Reply(451)),
        "a redirect to a 404": to(Reply(404, RULES)),
    },
    Means.DEFERRED: {
        "200 with an HTML page that only refreshes to /moved": paged(REFRESHING),
        "200 with a challenge page (Anubis, Cloudflare, ...)": paged(ANUBIS),
        "407": answering(Reply(407)),
        "408": answering(Reply(408)),
        "425": answering(Reply(425)),
        "429 with Retry-After": answering(Reply(429, headers={"Retry-After": "1"})),
        "500": answering(Reply(500)),
        "503": answering(Reply(503)),
        "503 with a body that says Disallow": answering(Reply(503, RULES)),
        "999": answering(Reply(999)),
        "304 to a request without conditions": answering(Reply(304)),
        "6 redirects to rules": chain(6),
        "a redirect to itself": answering(redirect("/robots.txt")),
        "a redirect without a Location": answering(Reply(301)),
        "a redirect to ftp:": answering(redirect("ftp://127.0.0.1/robots.txt")),
        "a redirect to a 503": to(Reply(503)),
        "connection refused": Server.down,
        "connection reset": answering(Reset()),
        "connection reset in the body": answering(Reset(200, PADDED, sent=150)),
        "connection closed without a response": answering(Raw()),
        "https, but the server speaks no TLS": lambda server: server.opened(NoTls, "https"),
        "garbage instead of HTTP": answering(Raw(body=b"\x00garbage\r\n\r\n")),
        "2 MB of header": answering(Reply(200, RULES, headers={"X-Bomb": "x" * 2_000_000})),
        "a body cut short": answering(truncated(PADDED)),
        "gzip, but the body is not": coded("gzip", PADDED.encode()),
        "an unknown Content-Encoding": coded("x-nobody", PADDED.encode()),
        "a decompression bomb": answering(
            lambda _asked: gzip_bomb(2_000_000, b"# and on and on and on\n")
        ),
        "no answer at all": answering(Hang()),
        "an answer slower than KOSTER_TIMEOUT_SECS": answering(Trickle(200, RULES, pause=0.1)),
    },
    Means.RESTRICTED: {
        "401": answering(Reply(401, RULES)),
        "403": answering(Reply(403)),
        "a redirect to a 403": to(Reply(403)),
    },
}
ROWS: Sequence[Row] = tuple(
    Row(answer, means, build)
    for means, answers in _ANSWERS.items()
    for answer, build in answers.items()
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

"""One site for each kind of answer to GET /robots.txt, and what it means.

test_faults.py asserts that. docs/access.md compares it with what Scrapy's own middleware makes of
the answers: test_crawl_access.py asserts that its table is what a run gives.
"""

from __future__ import annotations

import asyncio
import gzip
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, TypeAlias

import brotli  # type: ignore[import-untyped]

from harness.challenge_pages import ANUBIS
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

RULES = "User-agent: *\nDisallow: /secret\n"
PADDED = RULES + "# padding\n" * 20
HTML = "<!DOCTYPE html><html><body><h1>Not found</h1><p>Disallow: /secret</p></body></html>"
REFRESHING = '<html><head><meta http-equiv="refresh" content="0; url=/moved"></head></html>'
TEXT = {"Content-Type": "text/plain"}
LINE = "# 40 octets and on and on and on and on\n"
OTHER_HOST = "127.0.0.2"


class Means(Enum):
    """What a site's answer comes to, seen from outside."""

    RULES = "its rules are obeyed"
    UNRESTRICTED = "everything may be fetched"
    RESTRICTED = "nothing may be fetched"
    DEFERRED = "the site is deferred"


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


SETTINGS: Mapping[str, Any] = {
    "KOSTER_DEFER_FIRST_SECS": 0.1,
    "KOSTER_DEFER_LIMIT_SECS": 0.3,
    "KOSTER_TIMEOUT_SECS": 5,
}

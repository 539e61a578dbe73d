"""Faults of single sites: one crawl has them all, and healthy sites beside them."""

from __future__ import annotations

import gzip
import re
import socket
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any
from unittest.mock import patch

from scrapy.utils.reactor import is_reactor_installed

from harness.certificate import tls_context
from harness.comparison import PADDED, ROWS, RULES, Build, Means, Row, answering, coded
from harness.replies import Hang, Raw, Reply, Trickle, redirect
from harness.server import Server, Site

ALLOWED = ("/", "/page")
FORBIDDEN = ("/secret", "/secret/page")
_OF_ROBOTS = re.compile(r"/(robots\.txt|hop\d)$").match
NAMES = ("late.invalid", "failing.invalid")
"""Hosts of which `resolving` knows."""
LATE_SECS = 0.2
_GROUPS = (
    "the answer to GET /robots.txt",
    "the connection",
    "the name of the host",
    "the proxy",
)


@dataclass(frozen=True)
class Place:
    """A faulty site as a crawl sees it."""

    site: Site
    origin: str
    meta: Mapping[str, Any] = field(default_factory=dict)

    def urls(self, paths: Sequence[str]) -> list[str]:
        return [self.origin + path for path in paths]

    def asked(self) -> list[str]:
        """The paths of pages that were asked for, in whichever way."""
        if self.site.scheme == "https" and self.origin.startswith("http:"):
            return []
        targets = [asked.target.removeprefix(self.origin) for asked in self.site.requests]
        return [each for each in targets if each.startswith("/") and not _OF_ROBOTS(each)]


@dataclass(frozen=True)
class SiteFault:
    group: str
    name: str
    means: Means
    place: Callable[[Server], Place]


def _at(build: Build) -> Callable[[Server], Place]:
    def place(server: Server) -> Place:
        site = build(server)
        return Place(site, site.url(""))

    return place


def _compared(row: Row) -> SiteFault:
    connection = any(
        word in row.answer for word in ("connection", "TLS", "no HTTP", "no answer", "slower")
    )
    return SiteFault(_GROUPS[connection], row.answer, row.means, _at(row.build))


def _answer(name: str, means: Means, handler: Any) -> SiteFault:
    return SiteFault(_GROUPS[0], name, means, _at(answering(handler)))


def _into_what_is_forbidden(server: Server) -> Site:
    """3.1 has a robot follow redirects: what is asked for is the robots.txt, and no page."""
    site, target = server.site(), server.site()
    target.robots = "User-agent: *\nDisallow: /\n"
    target.page("/moved.txt", RULES)
    site.robots = redirect(target.url("/moved.txt"))
    return site


class NeverAccepted(Site):
    """The system has the connections; the server never looks at them."""

    async def _listen(self) -> None:
        self.reserved.listen(100)


class SaysNoTls(Site):
    """Accepts a connection, and never answers the first octets of TLS."""

    def _tls(self) -> None:
        """What TLS begins with is no request, and has no end."""


class OtherName(Site):
    def _tls(self) -> Any:
        return tls_context("192.0.2.1")


def _of(kind: type[Site], scheme: str = "http") -> Callable[[Server], Place]:
    def build(server: Server) -> Site:
        site = server.opened(kind, scheme)
        site.robots = RULES
        return site

    return _at(build)


def _tls_on_the_plain_port(server: Server) -> Place:
    site = server.site("https")
    return Place(site, f"http://{site.authority}")


def _named(host: str) -> Callable[[Server], Place]:
    """The site has rules, and this name."""

    def place(server: Server) -> Place:
        site = server.site()
        site.robots = RULES
        return Place(site, f"http://{host}:{site.port}")

    return place


def _proxied(handler: Any, scheme: str = "http") -> Callable[[Server], Place]:
    """A proxy, which answers the request for the robots.txt; of None: it is down."""

    def place(server: Server) -> Place:
        proxy = server.down() if handler is None else server.site()
        host = f"site-{proxy.port}.example"
        if handler is not None:
            proxy.page(f"http://{host}/robots.txt", handler)
            proxy.page(f"{host}:443", handler)
        return Place(proxy, f"{scheme}://{host}", {"proxy": proxy.url("")})

    return place


def _proxy(name: str, means: Means, handler: Any, scheme: str = "http") -> SiteFault:
    return SiteFault(_GROUPS[3], name, means, _proxied(handler, scheme))


_DEFERRED, _RULES = Means.DEFERRED, Means.RULES
_ODD_FIELDS = Reply(
    200,
    RULES,
    headers=[
        ("Content-Type", "text/plain; charset=no such"),
        ("Date", "yesterday"),
        ("Expires", "-1"),
        ("Age", "-9" * 50),
        ("Cache-Control", '="max-age,,;'),
        ("Retry-After", "never"),
    ],
)
_GZIP = gzip.compress(PADDED.encode())
_ANSWERS: Sequence[SiteFault] = (
    *(_compared(row) for row in ROWS),
    _answer("598, an unknown status", _DEFERRED, Reply(598, RULES)),
    _answer("200 with a byte order mark", _RULES, b"\xef\xbb\xbf" + RULES.encode()),
    _answer("200 with malformed header fields", _RULES, _ODD_FIELDS),
    _answer("200 with 500 kB in one line", _RULES, RULES + "#" * 500_000),
    SiteFault(_GROUPS[0], "gzip that is cut", _DEFERRED, _at(coded("gzip", _GZIP[:-30]))),
    _answer("a gzip file without Content-Encoding", _RULES, _GZIP),
    SiteFault(_GROUPS[0], "gzip in two parts", _DEFERRED, _at(coded("x-gzip", _GZIP + _GZIP))),
    _answer("a redirect to file:", _DEFERRED, redirect("file:///etc/hosts")),
    _answer("a redirect to a Location of garbage", _DEFERRED, redirect("http://[\xff\x01:x/")),
    SiteFault(
        _GROUPS[0],
        "a redirect to rules at a URL that the robots.txt of its host forbids",
        _RULES,
        _at(_into_what_is_forbidden),
    ),
    _answer("200 that arrives byte by byte, in time", _RULES, Trickle(200, RULES, pause=0.005)),
)
_HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n"
_WHOLE = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(RULES), RULES.encode())
_CHUNK = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nUser"
_CONNECTIONS = (
    SiteFault(_GROUPS[1], "never accepted", _DEFERRED, _of(NeverAccepted)),
    *(
        SiteFault(_GROUPS[1], name, means, _at(answering(handler)))
        for name, means, handler in (
            ("closed in a chunk", _DEFERRED, Raw(200, _CHUNK)),
            ("silent in the body", _DEFERRED, Hang(body=_HEAD + b"User-agent: *\n")),
            (
                "a second response after the rules",
                _RULES,
                Raw(200, _WHOLE + b"HTTP/1.1 403 No\r\n\r\n"),
            ),
        )
    ),
    SiteFault(_GROUPS[1], "TLS: silence", _DEFERRED, _of(SaysNoTls, "https")),
    SiteFault(
        _GROUPS[1],
        "TLS: the certificate of another host, which Scrapy accepts for pages, too",
        _RULES,
        _of(OtherName, "https"),
    ),
    SiteFault(_GROUPS[1], "TLS on the port of http", _DEFERRED, _tls_on_the_plain_port),
)
_HOSTS = (
    SiteFault(_GROUPS[2], "does not exist", _DEFERRED, _named("nowhere.invalid")),
    SiteFault(_GROUPS[2], "is impossible", _DEFERRED, _named("a..b")),
    SiteFault(_GROUPS[2], "is resolved late", _RULES, _named("late.invalid")),
    SiteFault(_GROUPS[2], "the resolver fails", _DEFERRED, _named("failing.invalid")),
)
_PROXIES = (
    _proxy("refuses the connection", _DEFERRED, None),
    _proxy("407", _DEFERRED, Reply(407, headers={"Proxy-Authenticate": "Basic"})),
    _proxy("502", _DEFERRED, Reply(502)),
    _proxy("never answers", _DEFERRED, Hang()),
    _proxy("403 to CONNECT", _DEFERRED, Reply(403), "https"),
)
FAULTS: Sequence[SiteFault] = sorted(
    (*_ANSWERS, *_CONNECTIONS, *_HOSTS, *_PROXIES), key=lambda fault: _GROUPS.index(fault.group)
)
SETTINGS: Mapping[str, Any] = {
    "KOSTER_DEFER_FIRST_SECS": 0.1,
    "KOSTER_DEFER_LIMIT_SECS": 0.3,
    "KOSTER_MAX_BYTES": 100_000,
    # The time-outs below are for sites: on a busy machine a call of SQLite may take as long.
    "KOSTER_STORAGE": "scrapy_koster.storage.memory.MemoryStorage",
    "RETRY_ENABLED": False,
    "CONCURRENT_REQUESTS": 64,
}

TIMEOUTS = {True: 1.5, False: 20.0}
"""For sites that cannot be asked, and for the others: these answer, however slow the machine is."""


@contextmanager
def resolving() -> Iterator[None]:
    """Have all that looks up names know of those in `NAMES`, up to the end of the block."""
    real = socket.getaddrinfo

    def lookup(host: Any, *arguments: Any, **named: Any) -> Any:
        name = host.decode() if isinstance(host, bytes) else host
        if name not in NAMES:
            return real(host, *arguments, **named)
        if name == "late.invalid":
            time.sleep(LATE_SECS)
            return real("127.0.0.1", *arguments, **named)
        raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")

    with ExitStack() as patched:
        patched.enter_context(patch.object(socket, "getaddrinfo", lookup))
        if is_reactor_installed():
            from twisted.internet import reactor

            names = getattr(reactor, "nameResolver")  # noqa: B009  # which not every reactor has
            patched.enter_context(patch.object(names, "_getaddrinfo", lookup))
        yield

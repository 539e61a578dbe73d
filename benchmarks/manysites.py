"""Thousands of sites with the failures of the real web, on one port, and what they were asked.

    with ManySites(sites=600, pages=6) as web:
        web.url(number)       # of a page; so many there are: web.count
        web.hits[number]      # how often it was asked for

Of 100 sites 4 never answer /robots.txt, 2 refuse connections, 2 reset them, 3 answer 503, 5 403,
25 404; the others have rules, which forbid one page of five. Each is an address of 127/8, which
Linux listens at by itself. It is made to be faster than a crawl: `server.py` is for all else.
"""

from __future__ import annotations

import asyncio
import re
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from enum import Enum

from typing_extensions import Self

BOUND_SECS = 10.0


class Kind(Enum):
    """What a site does when it is asked for its robots.txt."""

    HANGS = "never answers"
    REFUSES = "refuses the connection"
    RESETS = "resets the connection"
    FAILS = "503"
    CLOSED = "403"
    HAS_NONE = "404"
    HAS_RULES = "200, with rules"

    @property
    def fails(self) -> bool:
        """Whether the site cannot be asked."""
        return self in (Kind.HANGS, Kind.REFUSES, Kind.RESETS, Kind.FAILS)


_SHARES = {
    Kind.HANGS: 4,
    Kind.REFUSES: 2,
    Kind.RESETS: 2,
    Kind.FAILS: 3,
    Kind.CLOSED: 5,
    Kind.HAS_NONE: 25,
    Kind.HAS_RULES: 59,
}
_FORBIDDEN_OF = 5
_TARGET = re.compile(rb"GET /(?:no/)?(\d+) ")


_HUNDRED = [kind for kind, share in _SHARES.items() for _ in range(share)]


def kind_of(site: int) -> Kind:
    """Return what the site of this number does: any hundred in a row have their shares."""
    return _HUNDRED[site * 37 % 100]


def _response(status: str, body: bytes = b"") -> bytes:
    return b"HTTP/1.1 %b\r\nContent-Type: text/%b\r\nContent-Length: %d\r\n\r\n%b" % (
        status.encode(),
        b"plain" if status.startswith("200 R") else b"html",
        len(body),
        body,
    )


_PAGE = _response("200 OK", b"<html><title>A page</title><p>" + b"text " * 200)
_ROBOTS = {
    Kind.FAILS: _response("503 Busy"),
    Kind.CLOSED: _response("403 Forbidden"),
    Kind.HAS_NONE: _response("404 Not Found", b"<title>Not Found</title>"),
    Kind.HAS_RULES: _response("200 Rules", b"User-agent: *\nDisallow: /no/\nDisallow: /tmp\n"),
}
_LINGER_NOT = struct.pack("ii", 1, 0)


class ManySites:
    """A server in a thread of its own."""

    def __init__(self, *, sites: int, pages: int, answer_secs: float = 0.0) -> None:
        """*pages* of each; an answer takes *answer_secs*."""
        self.pages = pages
        self.count = sites * pages
        self.hits = bytearray(self.count)
        """How often each page was asked for, by its number."""
        self.answered = 0
        """How many requests for pages there were."""
        self.connections = 0
        """How many are open."""
        self.answer_secs = answer_secs
        self.port = self.refusing_port = 0
        self._closing = ExitStack()

    def __enter__(self) -> Self:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        # Bound and not listened at: who connects is refused, and nobody else gets the port.
        nobody = self._closing.enter_context(socket.socket())
        nobody.bind(("0.0.0.0", 0))  # noqa: S104  # on each address of 127/8
        self.refusing_port = nobody.getsockname()[1]
        self._thread.start()
        future = asyncio.run_coroutine_threadsafe(
            self.loop.create_server(lambda: _Talk(self), "0.0.0.0", 0, backlog=4000),  # noqa: S104
            self.loop,
        )
        self._server = future.result(BOUND_SECS)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    def __exit__(self, *_error: object) -> None:
        self.loop.call_soon_threadsafe(self._server.close)
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(BOUND_SECS)
        assert not self._thread.is_alive()
        self.loop.close()
        self._closing.close()

    def kind(self, number: int) -> Kind:
        """Return what the site of this page does."""
        return kind_of(number // self.pages)

    def is_forbidden(self, number: int) -> bool:
        """Return whether the rules of its site forbid this page."""
        return number % _FORBIDDEN_OF == 0

    def may_be_fetched(self, number: int) -> bool:
        kind = self.kind(number)
        return kind is Kind.HAS_NONE or (kind is Kind.HAS_RULES and not self.is_forbidden(number))

    def url(self, number: int) -> str:
        """Return the URL of a page."""
        site = number // self.pages
        port = self.refusing_port if kind_of(site) is Kind.REFUSES else self.port
        host = f"127.{site // 62_500 + 1}.{site // 250 % 250}.{site % 250 + 1}"
        return f"http://{host}:{port}/{'no/' * self.is_forbidden(number)}{number}"

    def numbers(self, page: int) -> Iterator[int]:
        """Yield the number of this page of each site."""
        yield from range(page, self.count, self.pages)


class _Talk(asyncio.Protocol):
    """One connection."""

    def __init__(self, web: ManySites) -> None:
        self._web = web
        self._rest = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._web.connections += 1
        _, b, c, d = (int(part) for part in transport.get_extra_info("sockname")[0].split("."))
        self._site = (b - 1) * 62_500 + c * 250 + d - 1

    def connection_lost(self, error: Exception | None) -> None:  # noqa: ARG002
        self._web.connections -= 1

    def data_received(self, data: bytes) -> None:
        *heads, self._rest = (self._rest + data).split(b"\r\n\r\n")
        for head in heads:
            found = _TARGET.match(head)
            if found is None:
                self._answer_robots()
            else:
                self._answer_page(int(found[1]))

    def _answer_robots(self) -> None:
        kind = kind_of(self._site)
        if kind is Kind.RESETS:
            sock = self._transport.get_extra_info("socket")
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER_NOT)
            self._transport.abort()
        elif kind is not Kind.HANGS:
            self._write(_ROBOTS[kind])

    def _answer_page(self, number: int) -> None:
        self._web.hits[number] += 1
        self._web.answered += 1
        self._write(_PAGE)

    def _write(self, data: bytes) -> None:
        if self._web.answer_secs:
            self._web.loop.call_later(self._web.answer_secs, self._transport.write, data)
        else:
            self._transport.write(data)

"""Sites on 127.0.0.1 that answer as well, or as badly, as a test wants them to.

    def test_x(server):
        site = server.site()                             # a port of its own
        site.robots = "User-agent: *\nDisallow: /"       # or any other handler
        site.page("/page", Reply(503, headers={"Retry-After": "3"}))
        ...                                              # crawl site.url("/page")
        assert site.asked("/robots.txt") == 1
        assert site.requests[0].header("Accept") == "text/plain, */*;q=0.1"

A handler is one of:

- a `Reply` (see replies.py), or text or bytes, which stand for a 200 of type text/plain;
- a list or any iterator of those, given in turn; the last one repeats;
- a function which is called, in the server's thread, with the request (`Asked`) and returns one of
  those.

Without handlers a site has no robots.txt (404) and answers every other path with a page of HTML.

- `server.site(host="127.0.0.2")`: another host, for the crawler's limits per domain. All of 127/8
  works on Linux.
- `server.site("https")`: with a certificate of its own making.
- `server.down()`: refuses connections until `site.come_up()`.
- `server.proxy()`: a forward proxy; see `Proxy`.
- `server.http2()`: an https site that speaks HTTP/2 alone.
- `server.gate()`: see `Reply.gate`.

The server has a thread and an event loop of its own, so that it does not depend on what the crawl's
loop or reactor does.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
import threading
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

import h2.config
import h2.connection
import h2.events

from harness.certificate import tls_context
from harness.replies import Asked, Chooser, Gate, Handler, Reply, Wire, chooser
from harness.virtual import TIME, Loop

HEAD_LIMIT_BYTES = 1 << 20
CALL_LIMIT_SECS = 10.0

if TYPE_CHECKING:
    from typing_extensions import Self

T = TypeVar("T")


class Site:
    """One scheme, host and port, and what it has been asked."""

    def __init__(self, server: Server, scheme: str, host: str) -> None:
        self.scheme = scheme
        self.host = host
        self.connections = 0
        """How many have been accepted."""
        self.reserved = _reserve(host)
        self.port: int = self.reserved.getsockname()[1]
        self._server = server
        self._handlers: dict[str, Chooser] = {}
        self._default: Chooser = _page
        self._requests: list[Asked] = []
        self._sent: dict[str, int] = {}
        self._talks: set[asyncio.Task[None]] = set()
        self._listener: asyncio.Server | None = None
        self.page("/robots.txt", Reply(404))

    @property
    def authority(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    def url(self, path: str = "/") -> str:
        return f"{self.scheme}://{self.authority}{path}"

    def urls(self, count: int, path: str = "/page{}") -> list[str]:
        """So many URLs, numbered from 0."""
        return [self.url(path.format(number)) for number in range(count)]

    @property
    def robots(self) -> Handler:
        return self._handlers["/robots.txt"]

    @robots.setter
    def robots(self, handler: Handler) -> None:
        self.page("/robots.txt", handler)

    def page(self, path: str, handler: Handler) -> None:
        """Decide what this path answers; with its query (`/a?b`) it goes before that without."""
        self._handlers[path] = chooser(handler)

    def pages(self, handler: Handler) -> None:
        """Decide what all paths answer that have no handler of their own."""
        self._default = chooser(handler)

    @property
    def requests(self) -> tuple[Asked, ...]:
        return tuple(self._requests)

    @property
    def pages_asked(self) -> list[str]:
        """What was asked for, in order, robots.txt aside."""
        return [asked.target for asked in self.requests if asked.path != "/robots.txt"]

    def asked(self, path: str) -> int:
        """How often this path (with any query) or target was asked for."""
        return sum(path in (asked.path, asked.target) for asked in self.requests)

    def sent(self, path: str) -> int:
        """Octets sent in answer to requests for this path, headers included."""
        return self._sent.get(path, 0)

    def come_up(self) -> None:
        """Listen at its port."""
        self._server.call(self._listen())

    async def _listen(self) -> None:
        self._listener = await asyncio.start_server(
            self._talk,
            self.host,
            self.port,
            limit=HEAD_LIMIT_BYTES,
            backlog=1000,
            ssl=self._tls(),
        )

    def _tls(self) -> ssl.SSLContext | None:
        return tls_context(self.host) if self.scheme == "https" else None

    async def close(self) -> None:
        """Close the port and all connections: who connects is refused."""
        if self._listener is not None:
            self._listener.close()
            self._listener = None
        for talk in self._talks:
            talk.cancel()
        await asyncio.gather(*self._talks, return_exceptions=True)

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """All that is said over one connection."""
        self.connections += 1
        talk = asyncio.current_task()
        assert talk is not None
        self._talks.add(talk)
        try:
            while await self._exchange(reader, writer):
                pass
        except asyncio.CancelledError:
            writer.transport.abort()
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, NotHttp):
            pass  # the client has gone, or was no HTTP client
        except Exception as error:  # noqa: BLE001  # a handler's, for the fixture to report
            self._server.errors.append(error)
        finally:
            self._talks.discard(talk)
            writer.close()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        asked = await _read(reader)
        self._requests.append(asked)
        return await self._answer(asked, reader, writer)

    async def _answer(
        self, asked: Asked, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bool:
        reply = (self._handler(asked) or self._default)(asked)
        await reply.wait()
        return await reply.send(Wire(asked, writer, self._count_sent))

    def _handler(self, asked: Asked) -> Chooser | None:
        return self._handlers.get(asked.target) or self._handlers.get(asked.path)

    def _count_sent(self, path: str, octets: int) -> None:
        self._sent[path] = self._sent.get(path, 0) + octets


class Proxy(Site):
    """A forward proxy: `meta={"proxy": proxy.url()}`. The targets of its requests are whole URLs.

    It forwards that for which it has no handler. A handler of its own:
    `proxy.page("http://example.org/robots.txt", Reply(...))`.
    """

    async def _answer(
        self, asked: Asked, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bool:
        if self._handler(asked) is not None:
            return await super()._answer(asked, reader, writer)
        await self._forward(asked, writer)
        return False

    def _handler(self, asked: Asked) -> Chooser | None:
        return self._handlers.get(asked.target)

    @staticmethod
    async def _forward(asked: Asked, writer: asyncio.StreamWriter) -> None:
        url = urlsplit(asked.target)
        far_reader, far_writer = await asyncio.open_connection(url.hostname, url.port or 80)
        path = (url.path or "/") + (f"?{url.query}" if url.query else "")
        lines = [f"{asked.method} {path} HTTP/1.1", "Connection: close"]
        for name, value in asked.headers:
            if not name.lower().startswith(("proxy-", "connection")):
                lines.append(f"{name}: {value}")
        far_writer.write(("\r\n".join(lines) + "\r\n\r\n").encode("latin-1") + asked.body)
        await far_writer.drain()
        far_writer.write_eof()
        await _relay(far_reader, writer)
        far_writer.close()


class Http2Site(Site):
    """A site that speaks HTTP/2 alone, and answers with `Reply` at once."""

    def _tls(self) -> ssl.SSLContext:
        return tls_context(self.host, "h2")

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        config = h2.config.H2Configuration(client_side=False, validate_inbound_headers=False)
        talk = h2.connection.H2Connection(config)
        talk.initiate_connection()
        writer.write(talk.data_to_send())
        while data := await reader.read(1 << 16):
            for event in talk.receive_data(data):
                if isinstance(event, h2.events.RequestReceived):
                    self._reply(talk, event)
            writer.write(talk.data_to_send())
            await writer.drain()
        return False

    def _reply(self, talk: h2.connection.H2Connection, event: h2.events.RequestReceived) -> None:
        fields = [(name.decode(), value.decode("latin-1")) for name, value in event.headers]
        given = dict(fields)
        asked = Asked(given[":method"], given[":path"], tuple(fields), b"", TIME.now())
        self._requests.append(asked)
        reply = (self._handler(asked) or self._default)(asked)
        talk.send_headers(event.stream_id, [(":status", str(reply.status))])
        talk.send_data(event.stream_id, reply.octets, end_stream=True)


SiteT = TypeVar("SiteT", bound=Site)


class Server:
    """The thread in which all sites of one test run."""

    def __init__(self) -> None:
        self.errors: list[Exception] = []
        """What handlers raised."""
        self._sites: list[Site] = []
        self._loop = Loop()
        self._thread = threading.Thread(target=self._run, name="test server", daemon=True)
        self._thread.start()

    def site(self, scheme: str = "http", *, host: str = "127.0.0.1") -> Site:
        return self.opened(Site, scheme, host)

    def proxy(self) -> Proxy:
        return self.opened(Proxy)

    def http2(self) -> Http2Site:
        return self.opened(Http2Site, "https")

    def opened(self, kind: type[SiteT], scheme: str = "http", host: str = "127.0.0.1") -> SiteT:
        site = kind(self, scheme, host)
        self._sites.append(site)
        site.come_up()
        return site

    def down(self) -> Site:
        """A site that refuses connections until `come_up()`; nobody else gets its port."""
        site = Site(self, "http", "127.0.0.1")
        self._sites.append(site)
        return site

    gate = Gate

    def call(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run it in the server's thread and wait. Not for handlers: they are in that thread."""
        assert threading.current_thread() is not self._thread
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(CALL_LIMIT_SECS)

    def close(self) -> None:
        """Close all that is open, within bounds, and release what hangs."""
        if self._loop.is_closed():
            return
        try:
            for site in self._sites:
                self.call(site.close())
        finally:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(CALL_LIMIT_SECS)
            for site in self._sites:
                site.reserved.close()
        assert not self._thread.is_alive(), "the test server does not end: does a handler block?"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.set_exception_handler(_silence)
        try:
            self._loop.run_forever()
        finally:
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
            self._loop.close()


def _silence(_loop: asyncio.AbstractEventLoop, _context: dict[str, Any]) -> None:
    """Clients of these sites go in the middle of a sentence; no need to report that."""


def _reserve(host: str) -> socket.socket:
    """A port that nobody else gets, nobody listens at, and this process may listen at."""
    reserved = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    reserved.bind((host, 0))
    return reserved


class NotHttp(Exception):
    pass


async def _read(reader: asyncio.StreamReader) -> Asked:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    request_line, *fields = head.rstrip("\r\n").split("\r\n")
    method, _, rest = request_line.partition(" ")
    target, _, version = rest.rpartition(" ")  # with its spaces, where a client sends some
    if not target or not version.startswith("HTTP/"):
        raise NotHttp(request_line)
    headers = tuple(
        (name, value.strip()) for name, _, value in (line.partition(":") for line in fields)
    )
    length = next((int(value) for name, value in headers if name.lower() == "content-length"), 0)
    body = await reader.readexactly(length)
    return Asked(method, target, headers, body, TIME.now())


async def _relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()
    writer.close()


def _page(asked: Asked) -> Reply:
    return Reply(
        200, f"<title>{asked.path}</title>", headers={"Content-Type": "text/html; charset=utf-8"}
    )


__all__ = ["Asked", "Gate", "Http2Site", "Proxy", "Server", "Site"]

"""Section 6: "place limits on the resources spent": what an answer is on the wire.

Scrapy tells of the octets of a body as they come, and of headers once they have ended. Whatever
has no end before that, or around it, is read on: header lines, folded lines, interim answers
(1xx), chunk extensions, trailers. So the octets are counted where a connection hands them to the
reader of HTTP, and one that sends too many is dropped.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from functools import partial
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from scrapy.exceptions import DownloadCancelledError
from twisted.web.client import HTTPConnectionPool

if TYPE_CHECKING:
    from collections.abc import Hashable
    from contextvars import Token

    from twisted.internet.defer import Deferred
    from twisted.internet.interfaces import IStreamClientEndpoint
    from twisted.web._newclient import HTTP11ClientProtocol

HEADERS_MAX_BYTES = 65536
"""Real ones have 1 to 4 kB. That of KOSTER_MAX_BYTES is of the file, whatever its headers are."""

# So long a connection waits for the first page of its site, and so many do: a site may have none
# that may be fetched.
_SPARE_SECS = 10
_SPARE_MOST = 200

HEADERS_TOO_LONG = f"its headers are longer than {HEADERS_MAX_BYTES} octets"


class Meter:
    """Counts the octets of one answer, from the first on."""

    def __init__(self, body_max_bytes: int) -> None:
        self._body_max_bytes = body_max_bytes
        self._limit = HEADERS_MAX_BYTES
        self._received = 0
        self._complaint: str | None = None
        self._drop: Callable[[], None] | None = None
        self._token: Token[Meter | None]

    def headers_ended(self) -> None:
        """From now on a body comes; its chunks' framing may be as long as itself."""
        self._limit = HEADERS_MAX_BYTES + 2 * self._body_max_bytes

    def watch(self, protocol: Any, receive: str, drop: Callable[[], None]) -> None:
        """Count what *protocol* is given by its method *receive*; *drop* ends its connection."""
        self._drop = drop
        # That of the class: another meter may have watched a connection that is used again.
        pass_on = partial(getattr(type(protocol), receive), protocol)
        setattr(protocol, receive, partial(self._pass_on, pass_on))

    def _pass_on(self, receive: Callable[[bytes], None], data: bytes) -> None:
        try:
            self.count(data)
        except DownloadCancelledError:
            self.end()
        else:
            receive(data)

    def count(self, data: bytes) -> None:
        """Add *data*, which has not been read yet, to what has.

        Raises DownloadCancelledError if that was too much already. (Headers
        may end within *data*: whether they were too long is known afterwards.)
        """
        if self._received > self._limit:
            too_long = f"its answer is longer than {self._limit} octets"
            in_headers = self._limit == HEADERS_MAX_BYTES
            self._complaint = HEADERS_TOO_LONG if in_headers else too_long
        self.check()
        self._received += len(data)

    def check(self) -> None:
        """Raise DownloadCancelledError if too much came."""
        if self._complaint is not None:
            raise DownloadCancelledError(self._complaint)

    def let_go(self, protocol: Any, receive: str) -> None:
        """Count no more what *protocol* is given, and leave its connection open."""
        delattr(protocol, receive)
        self._drop = None

    def end(self) -> None:
        """Drop the connection, unless it was let go."""
        if self._drop is not None:
            self._drop()

    def __enter__(self) -> None:
        """Count on the connection that is opened, or used again, within."""
        self._token = _METER.set(self)

    def __exit__(self, *_: object) -> None:
        _METER.reset(self._token)


_METER: ContextVar[Meter | None] = ContextVar("meter", default=None)
"""None in a handler that sends in a context of its own: it is not metered."""


class MeteredPool(HTTPConnectionPool):
    """For Twisted's agents: each robots.txt comes over a new connection, which is counted.

    One that is kept may be replaced behind the pool's back when it fails. When its answer has come
    whole, it is a connection like any other, and goes to the pool of the crawl: the site's first
    page is sent over it, without another handshake.
    """

    def __init__(self, pages: HTTPConnectionPool) -> None:
        """*pages* is the pool of the crawl."""
        super().__init__(pages._reactor, persistent=pages.persistent)  # type: ignore[no-untyped-call]  # noqa: SLF001
        self._factory = pages._factory  # noqa: SLF001
        self._pages = pages
        self._meters: WeakKeyDictionary[HTTP11ClientProtocol, Meter] = WeakKeyDictionary()
        self._spare: set[HTTP11ClientProtocol] = set()
        """Those that no page has used yet."""

    def getConnection(  # noqa: N802  # Twisted's name
        self, key: Hashable, endpoint: IStreamClientEndpoint
    ) -> Deferred[HTTP11ClientProtocol]:
        """Return a new connection."""
        meter = _METER.get()
        connecting: Deferred[HTTP11ClientProtocol] = super().getConnection(key, endpoint)
        if meter is None:
            return connecting

        def watch(connection: HTTP11ClientProtocol) -> HTTP11ClientProtocol:
            transport: Any = connection.transport

            def drop() -> None:
                if connection.state != "CONNECTION_LOST":
                    transport.abortConnection()

            meter.watch(connection, "dataReceived", drop)
            self._meters[connection] = meter
            return connection

        return connecting.addCallback(watch)

    def _putConnection(self, key: Hashable, connection: HTTP11ClientProtocol) -> None:  # noqa: N802
        # Twisted's name. A connection tells the pool that opened it whenever an answer has ended,
        # be it that of a page.
        pages, secs = self._pages, self._pages.cachedConnectionTimeout
        self._spare.discard(connection)
        meter = self._meters.pop(connection, None)
        if meter is not None:
            meter.let_go(connection, "dataReceived")
            pages.cachedConnectionTimeout = _SPARE_SECS
        pages._putConnection(key, connection)  # type: ignore[no-untyped-call]  # noqa: SLF001
        pages.cachedConnectionTimeout = secs
        if meter is not None:
            self._keep(key, connection)

    def _keep(self, key: Hashable, connection: HTTP11ClientProtocol) -> None:
        """Keep *connection* for the first page of its site, unless too many are kept."""
        timeouts = self._pages._timeouts  # noqa: SLF001
        if connection not in timeouts:
            return
        if len(self._spare) >= _SPARE_MOST:
            # The others are in use, or closed. There are far more timeouts than spare connections.
            self._spare = {each for each in self._spare if each in timeouts}
        if len(self._spare) < _SPARE_MOST:
            self._spare.add(connection)
        else:  # those that came before are used first
            timeouts[connection].cancel()
            self._pages._removeConnection(key, connection)  # type: ignore[no-untyped-call]  # noqa: SLF001


def meter_connector(connector: Any, pages: Any) -> None:
    """Count on the connections of an ``aiohttp.TCPConnector``.

    When a robots.txt has come whole, its connection goes to that of the *pages*: see
    ``MeteredPool``.
    """
    connect = connector.connect
    meters: WeakKeyDictionary[Any, Meter] = WeakKeyDictionary()

    async def metered(*args: Any, **kwargs: Any) -> Any:
        meter = _METER.get()
        if meter is None:
            return await connect(*args, **kwargs)
        meter.check()  # a request whose connection was dropped is sent again
        connection = await connect(*args, **kwargs)
        meter.watch(connection.protocol, "data_received", connection.transport.abort)
        meters[connection.protocol] = meter
        return connection

    connector.connect = metered
    if all(hasattr(each, name) for each in (connector, pages) for name in ("_conns", "_release")):
        _hand_over(connector, pages, meters)


def _hand_over(connector: Any, pages: Any, meters: WeakKeyDictionary[Any, Meter]) -> None:
    """Have *connector* give what it would keep to *pages*, which count it no more."""
    release = connector._release  # noqa: SLF001
    kept = pages._conns  # noqa: SLF001
    spare: dict[tuple[Any, float], Any] = {}
    """The connections that no page has used yet, as *pages* keep them: each with the time when it
    was released, which a page changes. The values are their keys there.
    """

    def released(key: Any, protocol: Any, *, should_close: bool = False) -> None:
        release(key, protocol, should_close=should_close)
        if key not in connector._conns or pages.closed:  # noqa: SLF001
            return
        del connector._conns[key]  # noqa: SLF001  # it has no other: none is used again
        if (meter := meters.pop(protocol, None)) is not None:
            meter.let_go(protocol, "data_received")
        if len(spare) >= _SPARE_MOST:
            used = [each for each, key in spare.items() if each not in kept.get(key, ())]
            for each in used:
                del spare[each]
        has_room = len(spare) < _SPARE_MOST
        pages._release(key, protocol, should_close=not has_room)  # noqa: SLF001
        if has_room and (waiting := kept.get(key)):
            spare[waiting[-1]] = key

    connector._release = released  # noqa: SLF001


def meter_backend(backend: Any) -> None:
    """Count on the connections of an ``AsyncNetworkBackend`` of httpcore."""
    connect = backend.connect_tcp

    async def metered(*args: Any, **kwargs: Any) -> Any:
        return _metered(await connect(*args, **kwargs))

    backend.connect_tcp = metered


def _metered(stream: Any) -> Any:
    read, start_tls = stream.read, stream.start_tls

    async def metered(*args: Any, **kwargs: Any) -> bytes:
        data: bytes = await read(*args, **kwargs)
        if (meter := _METER.get()) is not None:
            meter.count(data)
        return data

    async def over_tls(*args: Any, **kwargs: Any) -> Any:
        return _metered(await start_tls(*args, **kwargs))

    stream.read, stream.start_tls = metered, over_tls
    return stream

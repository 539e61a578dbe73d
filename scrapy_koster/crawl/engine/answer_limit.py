"""Section 6: "place limits on the resources spent": the bytes of an answer on a connection.

Scrapy's handler for HTTP/1.1 reports headers when they are complete. Twisted reads header lines and
interim answers (1xx) without a limit before that, and one robots.txt could take all memory. So the
bytes are counted before they are parsed. Nothing of Twisted is replaced: a copy of the handler has
a pool that opens connections through an endpoint and a factory of its own.
"""

from __future__ import annotations

from contextlib import contextmanager
from copy import copy
from typing import TYPE_CHECKING, Any

from scrapy.exceptions import DownloadCancelledError
from twisted.protocols.policies import ProtocolWrapper, WrappingFactory
from twisted.web.client import HTTPConnectionPool

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator

    from twisted.internet.defer import Deferred

HEADERS_MAX_BYTES = 65536
"""Real headers have 1 to 4 kB. KOSTER_MAX_BYTES limits the file, whatever its headers are."""
HEADERS_TOO_LONG = f"its headers are longer than {HEADERS_MAX_BYTES} bytes"


class AnswerLimit:
    """The limit of one answer: of its headers, and from their end on of its body as it is sent."""

    def __init__(self, body_max_bytes: int) -> None:
        self._whole = HEADERS_MAX_BYTES + 2 * body_max_bytes
        self._limit = HEADERS_MAX_BYTES
        self._received = 0
        self._is_passed = False

    def headers_ended(self) -> None:
        """Allow a body. The framing of its chunks may be as long as the body itself."""
        self._limit = self._whole

    def is_passed_by(self, data: bytes) -> bool:
        """Count *data*, and return whether the limit was passed before it.

        Headers may end within *data*, so it is not known yet which limit it counts towards.
        """
        self._is_passed = self._received > self._limit
        self._received += len(data)
        return self._is_passed

    def check(self) -> None:
        """Raise DownloadCancelledError if the answer was too long."""
        if self._is_passed:
            is_header = self._limit < self._whole
            too_long = f"its answer is longer than {self._limit} bytes"
            raise DownloadCancelledError(HEADERS_TOO_LONG if is_header else too_long)


class LimitedConnections:
    """Gives requests for a robots.txt connections on which their answers have a limit.

    These are the crawl's own: a page may use one when the answer has ended, without a limit. A
    connection that a page has opened has none either, as Scrapy has it.
    """

    def __init__(self) -> None:
        self.sending: AnswerLimit | None = None
        """The limit of the request that is being written."""

    @contextmanager
    def writing(self, limit: AnswerLimit) -> Iterator[None]:
        """Give the request that is written within this a *limit*."""
        self.sending = limit
        try:
            yield
        finally:
            self.sending = None

    def handler(self, handler: Any, limit: AnswerLimit) -> Any:
        """Return a copy of *handler* for one request, whose answer has a *limit*.

        Returns *handler* itself if it has no pool of Twisted's.
        """
        pool = getattr(handler, "_pool", None)
        if not isinstance(pool, HTTPConnectionPool):
            return handler
        try:
            own_handler = copy(handler)
        except Exception:  # noqa: BLE001  # somebody's subclass may not be copied
            return handler
        own_handler._pool = _Pool(pool, self, limit)  # noqa: SLF001
        return own_handler


class _Pool:
    """The pool of the crawl, as one request uses it."""

    def __init__(self, pool: Any, connections: LimitedConnections, limit: AnswerLimit) -> None:
        self._pool = pool
        self._given = connections, limit

    def __getattr__(self, name: str) -> Any:
        return getattr(self._pool, name)

    def getConnection(self, key: Hashable, endpoint: Any) -> Deferred[Any]:  # noqa: N802
        """Return a connection; a new one has a limit from its first byte."""
        found: Deferred[Any] = self._pool.getConnection(key, _Endpoint(endpoint, *self._given))
        return found.addCallback(_Connection, *self._given)


class _Connection:
    """A connection that is about to send a request."""

    def __init__(
        self, connection: Any, connections: LimitedConnections, limit: AnswerLimit
    ) -> None:
        self._connection = connection
        self._connections = connections
        self._limit = limit

    def request(self, request: Any) -> Deferred[Any]:
        """Send *request*, which is written within this call."""
        with self._connections.writing(self._limit):
            answered: Deferred[Any] = self._connection.request(request)
        return answered


class _Endpoint:
    """An endpoint that opens connections with a limit."""

    def __init__(self, endpoint: Any, connections: LimitedConnections, limit: AnswerLimit) -> None:
        self._endpoint = endpoint
        self._given = connections, limit

    def connect(self, factory: Any) -> Deferred[Any]:
        """Connect, and return the protocol that *factory* builds."""
        connecting: Deferred[Any] = self._endpoint.connect(_Factory(factory, *self._given))
        return connecting.addCallback(lambda wire: wire.wrappedProtocol)


class _Factory(WrappingFactory[Any]):
    """Builds the protocols of another factory, each with a limit."""

    noisy = False

    def __init__(self, factory: Any, *given: Any) -> None:
        super().__init__(factory)  # type: ignore[no-untyped-call]
        self._given = given

    def buildProtocol(self, addr: Any) -> _Wire:  # noqa: N802
        """Return a protocol around that of the other factory."""
        return _Wire(self, self.wrappedFactory.buildProtocol(addr), *self._given)


class _Wire(ProtocolWrapper):
    """Counts the bytes that come before the connection's protocol parses them."""

    def __init__(
        self,
        factory: _Factory,
        protocol: Any,
        connections: LimitedConnections,
        limit: AnswerLimit,
    ) -> None:
        super().__init__(factory, protocol)
        self._connections = connections
        self._limit: AnswerLimit | None = limit
        self._is_used = False

    def writeSequence(self, data: Any) -> None:  # noqa: N802
        """Send a request; all but the first have the limit that they bring, a page has none."""
        if self._is_used:
            self._limit = self._connections.sending
        self._is_used = True
        super().writeSequence(data)  # type: ignore[no-untyped-call]

    def dataReceived(self, data: bytes) -> None:  # noqa: N802
        """Have *data* parsed, or close the connection."""
        if self._limit is not None and self._limit.is_passed_by(data):
            self.abortConnection()
        else:
            super().dataReceived(data)  # type: ignore[no-untyped-call]

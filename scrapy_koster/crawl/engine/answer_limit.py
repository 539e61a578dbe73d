"""Sends requests for a robots.txt like requests for pages, but with a limit and without a slot.

The limit is a number of bytes of the answer. Section 6: "place limits on the resources spent".

Scrapy's handler for HTTP/1.1 reports headers only when they are complete. Until then, Twisted reads
header lines and interim answers (1xx) without a limit, so an answer could fill the memory. To
prevent this, the bytes of a connection are counted before Twisted parses them. No method of Twisted
is replaced: a copy of the handler has a pool of ours, which opens connections through our endpoint
and factory.

Pages use these connections, too. After the robots.txt has come, its connection has no limit. A
connection that was opened for a page never has a limit, as in Scrapy.
"""

import math
from collections.abc import Callable, Coroutine, Hashable
from contextvars import ContextVar
from copy import copy
from functools import partial
from inspect import iscoroutinefunction
from typing import Any

from scrapy import Request
from scrapy.exceptions import DownloadCancelledError, StopDownload
from scrapy.http import Response
from twisted.internet.defer import Deferred
from twisted.protocols.policies import ProtocolWrapper, WrappingFactory
from twisted.web.client import HTTPConnectionPool

HEADERS_MAX_BYTES = 65536
"""The limit of the headers. Real headers have 1 to 4 kB. KOSTER_MAX_BYTES limits the body."""
HEADERS_TOO_LONG = f"its headers are longer than {HEADERS_MAX_BYTES} bytes"


class AnswerLimit:
    """The limit of an answer: first of the headers, then of headers and body together."""

    def __init__(self, body_max_bytes: int) -> None:
        self._body_max = body_max_bytes
        self._body = 0
        self._limit: float = HEADERS_MAX_BYTES
        self._received = 0
        self._is_passed = False

    @property
    def has_cut(self) -> bool:
        """Whether the body was cut at its limit."""
        return self._body > self._body_max

    def count_body(self, data: bytes) -> None:
        """Count *data*, a piece of the body. Raises StopDownload if the body is too long.

        The headers are complete when a body comes. So the limit of the whole answer applies from
        now on, with room for the framing of chunks.
        """
        self._limit = HEADERS_MAX_BYTES + 2 * self._body_max
        self._body += len(data)
        if self.has_cut:
            raise StopDownload(fail=False)

    def is_passed_by(self, data: bytes) -> bool:
        """Count *data*, and return whether the bytes before *data* exceed the limit.

        *data* itself is not compared: the headers may end within *data*.
        """
        self._is_passed = self._received > self._limit
        self._received += len(data)
        return self._is_passed

    def end(self) -> None:
        """Remove the limit, because the next answer on the connection may be a page.

        Raises DownloadCancelledError if the answer was too long.
        """
        limit, self._limit = self._limit, math.inf
        if self._is_passed:
            is_of_headers = limit == HEADERS_MAX_BYTES
            too_long = f"its answer is longer than {limit} bytes"
            raise DownloadCancelledError(HEADERS_TOO_LONG if is_of_headers else too_long)


_SENDING: ContextVar[AnswerLimit | None] = ContextVar("_SENDING", default=None)
"""The limit of the request that ``send_limited`` is sending. None outside of this function.

A connection that is used again gets its limit from here (``_Wire.writeSequence``), because Twisted
writes the request during the call of the handler.
"""


async def through_middlewares(
    crawler: Any, send: Callable[[Request], Coroutine[Any, Any, Response]], request: Request
) -> Response | Request:
    """Send *request* with *send*, within the downloader middlewares. Return their result."""
    middlewares = crawler.engine.downloader.middleware
    result: Response | Request = await middlewares.download_async(send, request)
    return result


async def send_limited(crawler: Any, request: Request, limit: AnswerLimit) -> Response:
    """Return the response to *request*. Raises TypeError if the handler returns another type.

    With Scrapy's handler for HTTP/1.1, too long headers or a too long answer raise
    DownloadCancelledError. A too long body is cut by ``count_bytes``, not here.
    """
    handler, handlers = _handler(crawler, request.url), crawler.engine.downloader.handlers
    pool, send = getattr(handler, "_pool", None), handlers.download_request_async
    # In a handler for Scrapy 2.13 or older, download_request is no coroutine function.
    is_coroutine = iscoroutinefunction(getattr(handler, "download_request", None))
    if is_coroutine and isinstance(pool, HTTPConnectionPool):
        own_handler = copy(handler)
        own_handler._pool = _Pool(pool, limit)  # noqa: SLF001
        send = own_handler.download_request
    token = _SENDING.set(limit)
    try:
        response: object = await send(request)
    finally:
        _SENDING.reset(token)
        limit.end()
    if not isinstance(response, Response):
        raise TypeError(
            f"download_request() of the download handler {type(handler).__qualname__} returned a"
            f" value of type {type(response).__name__}, not a Response"
        )
    return response


def is_zyte_api(crawler: Any, url: str) -> bool:
    """Return whether scrapy-zyte-api downloads *url*. This handler warns about some headers."""
    kinds = type(_handler(crawler, url)).__mro__
    return any(kind.__module__.startswith("scrapy_zyte_api") for kind in kinds)


def _handler(crawler: Any, url: str) -> Any:
    return crawler.engine.downloader.handlers._get_handler(url.partition(":")[0])  # noqa: SLF001


class _Pool:
    """The connection pool of the crawl, except that new connections have a limit."""

    def __init__(self, pool: Any, limit: AnswerLimit) -> None:
        self._pool = pool
        self._limit = limit

    def __getattr__(self, name: str) -> Any:
        return getattr(self._pool, name)

    def getConnection(self, key: Hashable, endpoint: Any) -> Deferred[Any]:  # noqa: N802
        """Return a connection for a request. A new connection is limited from the first byte."""
        found: Deferred[Any] = self._pool.getConnection(key, _Endpoint(endpoint, self._limit))
        return found


class _Endpoint:
    """An endpoint that opens connections with a limit."""

    def __init__(self, endpoint: Any, limit: AnswerLimit) -> None:
        self._endpoint = endpoint
        self._limit = limit

    def connect(self, factory: Any) -> Deferred[Any]:
        """Connect, and return a Deferred with the protocol that *factory* has built."""
        connecting: Deferred[Any] = self._endpoint.connect(_Factory(factory, self._limit))
        return connecting.addCallback(lambda wire: wire.wrappedProtocol)


class _Factory(WrappingFactory[Any]):
    """Wraps the protocols of another factory in ``_Wire``, with the limit."""

    noisy = False

    def __init__(self, factory: Any, limit: AnswerLimit) -> None:
        super().__init__(factory)  # type: ignore[no-untyped-call]
        self.protocol = partial(_Wire, limit)


class _Wire(ProtocolWrapper):
    """Counts received bytes before the connection's protocol parses the bytes."""

    def __init__(self, limit: AnswerLimit, *wrapped: Any) -> None:
        super().__init__(*wrapped)
        self._limit = limit

    def writeSequence(self, data: Any) -> None:  # noqa: N802
        """Send *data*, a request, with the limit in ``_SENDING``.

        For a page, ``_SENDING`` is None. Then the old limit stays, which ``end`` has made infinite.
        """
        self._limit = _SENDING.get() or self._limit
        super().writeSequence(data)  # type: ignore[no-untyped-call]

    def dataReceived(self, data: bytes) -> None:  # noqa: N802
        """Let the protocol parse *data*, or abort the connection if the limit is exceeded."""
        if self._limit.is_passed_by(data):
            self.abortConnection()
        else:
            super().dataReceived(data)  # type: ignore[no-untyped-call]

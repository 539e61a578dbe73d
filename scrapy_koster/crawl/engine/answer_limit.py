"""Sends requests for a robots.txt like requests for pages, but with a limit and without a slot.

The limit is a number of bytes of the answer. Section 6: "place limits on the resources spent".

Scrapy's handler for HTTP/1.1 reports headers only when they are complete. Until then, Twisted reads
header lines and interim answers (1xx) without a limit, so an answer could fill the memory. To
prevent this, the bytes of a connection are counted before Twisted parses them: a copy of the
handler has a pool of ours, which sets the attribute ``dataReceived`` of a connection until the
robots.txt has come. Pages use these connections, too, without a limit, as in Scrapy.
"""

from collections.abc import Callable, Coroutine, Hashable
from copy import copy
from functools import partial
from inspect import iscoroutinefunction
from typing import Any

from scrapy import Request
from scrapy.exceptions import DownloadCancelledError, StopDownload
from scrapy.http import Response
from twisted.internet.defer import Deferred
from twisted.web.client import HTTPConnectionPool

HEADERS_MAX_BYTES = 65536
"""The limit of the headers. Real headers have 1 to 4 kB. KOSTER_MAX_BYTES limits the body."""
HEADERS_TOO_LONG = f"its headers are longer than {HEADERS_MAX_BYTES} bytes"


class AnswerLimit:
    """The limit of an answer: first of the headers, then of headers and body together."""

    def __init__(self, body_max_bytes: int) -> None:
        self._body_max = body_max_bytes
        self._body = 0
        self._limit = HEADERS_MAX_BYTES
        self._received = 0
        self._is_passed = False
        self._connection: Any = None
        self._receive: Callable[[bytes], None] | None = None

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

    def begin(self, connection: Any) -> Any:
        """Limit the bytes that *connection* of Twisted receives, and return *connection*."""
        self._connection, self._receive = connection, partial(self._received_by, connection)
        connection.dataReceived = self._receive
        return connection

    def _received_by(self, connection: Any, data: bytes) -> None:
        """Let *connection* parse *data*, or abort it if the bytes before *data* are too many.

        *data* itself is not compared: the headers may end within *data*.
        """
        self._is_passed = self._received > self._limit
        self._received += len(data)
        if self._is_passed:
            connection.transport.abortConnection()
        else:
            type(connection).dataReceived(connection, data)

    def end(self) -> None:
        """Remove the limit, because the next answer on the connection may be a page.

        Raises DownloadCancelledError if the answer was too long.
        """
        # Another request for a robots.txt may use the connection already, with its own limit.
        if self._connection and self._connection.dataReceived is self._receive:
            del self._connection.dataReceived
        self._connection = self._receive = None
        if self._is_passed:
            is_of_headers = self._limit == HEADERS_MAX_BYTES
            too_long = f"its answer is longer than {self._limit} bytes"
            raise DownloadCancelledError(HEADERS_TOO_LONG if is_of_headers else too_long)


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
    try:
        response: object = await send(request)
    finally:
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
    """The connection pool of the crawl, with a limit of the bytes that are received."""

    def __init__(self, pool: Any, limit: AnswerLimit) -> None:
        self._pool = copy(pool)  # the copy has the same connections
        self._pool.retryAutomatically = False  # else another object stands for a connection
        self._limit = limit

    def __getattr__(self, name: str) -> Any:
        return getattr(self._pool, name)

    def getConnection(self, key: Hashable, endpoint: Any) -> Deferred[Any]:  # noqa: N802
        """Return a connection for a request, limited from the first byte."""
        found: Deferred[Any] = self._pool.getConnection(key, endpoint)
        return found.addCallback(self._limit.begin)

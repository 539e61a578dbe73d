"""One download of a robots.txt: the signals that Scrapy sends for it, and what came of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from scrapy import signals

from scrapy_koster.protocol.exchange import Exchange, digest_of

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.http import Response
    from scrapy.http.headers import Headers


class Transfer:
    """The part of a fetch that one request is: a hop, or an attempt of a middleware's own."""

    def __init__(self, exchanges: list[Exchange]) -> None:
        """Add to *exchanges*, which the hops of a fetch share."""
        self.exchanges = exchanges
        self._octets = 0

    def count(self, data: bytes) -> int:
        """Return how many octets of the body have come, with *data*."""
        self._octets += len(data)
        return self._octets

    @contextmanager
    def announced(self, crawler: Crawler, request: Request) -> Iterator[None]:
        """Send the signals of Scrapy's downloader for a request that begins, and that ends."""
        send, spider = crawler.signals.send_catch_log, crawler.spider
        send(signals.request_reached_downloader, request=request, spider=spider)
        try:
            yield
        finally:
            send(signals.request_left_downloader, request=request, spider=spider)

    def received(
        self, crawler: Crawler, request: Request, response: Response, *, began: float
    ) -> None:
        """Keep what was sent and received, and send the signal by which others do."""
        self.exchanges.append(_exchange(request, response, began))
        crawler.signals.send_catch_log(
            signals.response_downloaded, response=response, request=request, spider=crawler.spider
        )


def _exchange(request: Request, response: Response, began: float) -> Exchange:
    return Exchange(
        url=request.url,
        began=began,
        sent=_lines(request.headers),
        status=response.status,
        received=_lines(response.headers),
        body=response.body,
        is_cut="download_stopped" in response.flags,
        protocol=response.protocol,
        address=None if response.ip_address is None else str(response.ip_address),
        digest=digest_of(response.body),
    )


def _lines(headers: Headers) -> tuple[tuple[bytes, bytes], ...]:
    # As they are: Headers.items() looks each name up again.
    return tuple((name, value) for name, values in dict.items(headers) for value in values)

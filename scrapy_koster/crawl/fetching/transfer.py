"""One download of a robots.txt: the signals that Scrapy sends for it, and what came of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy import signals
from scrapy.exceptions import ResponseDataLossError, StopDownload

from scrapy_koster.crawl.engine.meter import Meter
from scrapy_koster.crawl.fetching.coding import is_whole
from scrapy_koster.protocol.exchange import Exchange, digest_of
from scrapy_koster.protocol.standing import Standing, standing_stated

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.http import Response
    from scrapy.http.headers import Headers

_PARTIAL = 206
_IN_PART = (
    "a middleware asks for a part of the robots.txt. Let it set no Range header if request.url ends"
    " with /robots.txt"
)
STOPPED = (
    "a handler of the signal bytes_received or headers_received stopped the download of the"
    " robots.txt before it was whole. Let it do nothing if request.url ends with /robots.txt"
)


class Transfer:
    """The part of a fetch that one request is: a hop, or an attempt of a middleware's own."""

    def __init__(self, max_bytes: int, exchanges: list[Exchange] | None) -> None:
        """*max_bytes* of a body are read. What is sent and received is added to *exchanges*, which
        the hops of a fetch share; None if nobody archives it.
        """
        self._max_bytes = max_bytes
        self._exchanges = exchanges
        self._begin()

    def _begin(self) -> None:
        self._octets = 0
        self._meter = Meter(self._max_bytes)
        self.digest = ""
        """Of the body as it was received; "" if the site sent none."""

    def begins(self, crawler: Crawler, request: Request) -> Meter:
        """Send the signal of Scrapy's downloader, and return what counts the answer on the wire.

        A middleware may have a request sent again: that is another answer.
        """
        self._begin()
        send = crawler.signals.send_catch_log
        send(signals.request_reached_downloader, request=request, spider=crawler.spider)
        return self._meter

    @staticmethod
    def ends(crawler: Crawler, request: Request) -> None:
        """Send the signal of Scrapy's downloader for a request that has ended."""
        send = crawler.signals.send_catch_log
        send(signals.request_left_downloader, request=request, spider=crawler.spider)

    def headers_ended(self) -> None:
        """From now on a body comes, for which the limit on the wire is another one."""
        self._meter.headers_ended()

    def count(self, data: bytes) -> None:
        """Count *data*, a piece of the body; raise StopDownload if there is enough of it."""
        self._octets += len(data)
        if self._octets > self._max_bytes:
            raise StopDownload(fail=False)

    def received(
        self, crawler: Crawler, request: Request, response: Response, *, began: float
    ) -> None:
        """Keep what was sent and received, and send the signal by which others do."""
        self.digest = digest_of(response.body)
        if self._exchanges is not None:
            self._exchanges.append(_exchange(request, response, began, self.digest))
        crawler.signals.send_catch_log(
            signals.response_downloaded, response=response, request=request, spider=crawler.spider
        )

    def check_whole(self, request: Request, response: Response) -> None:
        """Raise an error if *response* is not all of a file, and was not cut at the limit.

        That is ResponseDataLossError, and RuntimeError if it is the robot's own mistake.
        """
        if standing_stated(response.status) is not Standing.OBEYED:
            return
        if response.status == _PARTIAL and request.headers.get("Range"):
            raise RuntimeError(_IN_PART)
        length = response.headers.get("Content-Length")
        is_stopped = "download_stopped" in response.flags and self._octets <= self._max_bytes
        if is_stopped and length != b"%d" % len(response.body):
            raise RuntimeError(STOPPED)
        codings = response.headers.getlist("Content-Encoding")
        coding = b",".join(codings).decode("latin-1")
        if not is_whole(response.body, coding, self._max_bytes):
            raise ResponseDataLossError(f"its body is not whole: Content-Encoding {coding}")


def _exchange(request: Request, response: Response, began: float, digest: str) -> Exchange:
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
        digest=digest,
    )


def _lines(headers: Headers) -> tuple[tuple[bytes, bytes], ...]:
    # As they are: Headers.items() looks each name up again.
    return tuple((name, value) for name, values in dict.items(headers) for value in values)

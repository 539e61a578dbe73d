"""One download of a robots.txt: its limits, the signals that Scrapy sends, and its wholeness."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from scrapy import signals
from scrapy.exceptions import ResponseDataLossError, StopDownload

from scrapy_koster.crawl.engine.answer_limit import AnswerLimit
from scrapy_koster.crawl.engine.robots_mark import MARK
from scrapy_koster.crawl.fetching.coding import codings_in, decoded
from scrapy_koster.protocol.exchange import Exchange, digest_of
from scrapy_koster.protocol.standing import Standing, standing_stated

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.http import Response
    from scrapy.http.headers import Headers

    from scrapy_koster.crawl.clock import Clock
    from scrapy_koster.crawl.engine.robots_download import RobotsDownload

_PARTIAL = 206
_IN_PART = (
    f"a middleware asks for a part of the robots.txt. Let it set no Range header if {MARK!r} is in"
    " request.meta"
)
_STOPPED = (
    "a handler of the signal bytes_received or headers_received raised StopDownload for the"
    f" robots.txt. Let it return at once if {MARK!r} is in request.meta"
)


class Transfer:
    """The part of a fetch that one request is: a hop, or an attempt of a middleware's own."""

    def __init__(self, max_bytes: int, exchanges: list[Exchange] | None, *, plain: bool) -> None:
        """*max_bytes* of a body are read. *plain*: the file is asked for as it is.

        The hops of a fetch add what they sent and received to *exchanges*, None without an archive.
        """
        self._max_bytes = max_bytes
        self._exchanges = exchanges
        self._plain = plain
        self._limit = AnswerLimit(max_bytes)
        self._received = 0
        self.digest = ""
        """Of the body as it was received; "" if the site sent none."""
        self.address = ""
        """The address of the host; "" if it is not known, or that of a proxy."""

    async def run(
        self, crawler: Crawler, clock: Clock, download: RobotsDownload, request: Request
    ) -> Response:
        """Send *request*, and return the response. A middleware may have it sent again."""
        self._limit, self._received, began = AnswerLimit(self._max_bytes), 0, clock.epoch()
        tell = partial(crawler.signals.send_catch_log, request=request, spider=crawler.spider)
        tell(signals.request_reached_downloader)
        if self._plain:  # a middleware may set it for all requests
            request.headers["Accept-Encoding"] = "identity"
        try:
            try:
                response = await download.send(request, self._limit)
            except StopDownload as error:  # of a handler of the crawl: ours does not fail
                raise RuntimeError(_STOPPED) from error
            finally:
                self._limit.check()
            self.digest = digest_of(response.body)
            if "proxy" not in request.meta and response.ip_address is not None:
                self.address = str(response.ip_address)
            if self._exchanges is not None:
                self._exchanges.append(_exchange(request, response, began, self.digest))
            tell(signals.response_downloaded, response=response)
        finally:
            tell(signals.request_left_downloader)
        is_file = standing_stated(response.status) is Standing.OBEYED
        if is_file:
            self._check_whole(request, response)
        coding = b",".join(response.headers.getlist("Content-Encoding"))
        codings = codings_in(coding.decode("latin-1"))
        response.headers.pop("Content-Encoding", None)
        if not codings:
            return response
        body = b""
        try:
            body = decoded(response.body, codings, self._max_bytes)
        except ValueError as error:
            if is_file:
                raise ResponseDataLossError(str(error)) from None
        return response.replace(body=body)

    def headers_ended(self) -> None:
        """Allow a body from now on."""
        self._limit.headers_ended()

    def count(self, data: bytes) -> None:
        """Count *data*, a piece of the body; raise StopDownload if there is enough of it."""
        self._received += len(data)
        if self._received > self._max_bytes:
            raise StopDownload(fail=False)

    def _check_whole(self, request: Request, response: Response) -> None:
        """Raise RuntimeError if a mistake of the robot has cut *response*."""
        if response.status == _PARTIAL and request.headers.get("Range"):
            raise RuntimeError(_IN_PART)
        length = response.headers.get("Content-Length")
        is_stopped = "download_stopped" in response.flags and self._received <= self._max_bytes
        if is_stopped and length != b"%d" % len(response.body):
            raise RuntimeError(_STOPPED)


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

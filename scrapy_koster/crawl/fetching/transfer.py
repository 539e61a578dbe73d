"""The requests of one fetch: what is sent, the limits of the answers, and their wholeness."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from scrapy import signals
from scrapy.exceptions import DownloadTimeoutError, ResponseDataLossError, StopDownload
from scrapy.http import Response
from w3lib.url import safe_url_string

from scrapy_koster.crawl.engine.answer_limit import (
    HEADERS_MAX_BYTES,
    HEADERS_TOO_LONG,
    AnswerLimit,
)
from scrapy_koster.crawl.engine.robots_download import (
    is_zyte_api,
    send_limited,
    through_middlewares,
)
from scrapy_koster.crawl.engine.robots_mark import MARK
from scrapy_koster.crawl.fetching.coding import codings_in, decoded, gunzipped, is_gzip
from scrapy_koster.crawl.fetching.robots_request import robots_request
from scrapy_koster.protocol.access import Answer, NoAnswer
from scrapy_koster.protocol.exchange import Exchange, digest_of
from scrapy_koster.protocol.line import whole_lines
from scrapy_koster.protocol.printable import printable
from scrapy_koster.protocol.standing import Standing, standing_stated

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.http.headers import Headers

    from scrapy_koster.crawl.clock import Clock
    from scrapy_koster.crawl.config import Config
    from scrapy_koster.protocol.access import Copy

_STOPPED = (
    "a handler of the signal bytes_received or headers_received raised StopDownload for the"
    f" robots.txt. Let it return at once if {MARK!r} is in request.meta"
)


@dataclass(eq=False)
class Transfer:
    """Sends the requests of one fetch. Each of them has it in its meta."""

    crawler: Crawler
    config: Config
    clock: Clock
    page: Request
    """The request on whose behalf the site is asked."""
    stale: Copy | None
    """A copy that is revalidated."""
    is_over: bool = False
    """Whether its time is over, or the crawl closes."""
    is_proxied: bool = False
    """Whether the last request was sent to a proxy."""
    address: str = ""
    """The address of the host that answered last; "" if unknown, or that of a proxy."""
    exchanges: list[Exchange] = field(default_factory=list)
    """What was sent and received, if there is an archive."""
    _is_plain: bool = True
    """Whether the file is asked for as it is: as text, and not compressed."""
    _limit: AnswerLimit = field(init=False)
    _received: int = 0
    _digest: str = ""

    def end(self) -> None:
        """Send no further request. The one that is under way is cancelled by the caller."""
        self.is_over = True

    async def get(self, url: str) -> Answer | NoAnswer:
        """Return the answer to a request for *url*, or to one that a middleware has in its place.

        A middleware may answer in place of the site.
        """
        self._is_plain = not is_zyte_api(self.crawler, url)
        request = robots_request(
            url, self.page, self.stale, config=self.config, plain=self._is_plain
        )
        request.meta[MARK] = self
        for _ in range(self.config.redirect_max + 1):
            self._digest = self.address = ""
            try:
                result = await through_middlewares(self.crawler, self._send, request)
            finally:
                self.is_proxied = "proxy" in request.meta
            if isinstance(result, Response):
                return self._answer(result)
            if self.is_over:  # the middleware took that for a failure to retry
                raise DownloadTimeoutError("a downloader middleware would try again")
            request = result
        return NoAnswer("a downloader middleware replaces the request again and again")

    async def _send(self, request: Request) -> Response:
        """Return the decoded response to *request*. A middleware may have it sent again."""
        limit = self._limit = AnswerLimit(self.config.max_bytes)
        self._received, began = 0, self.clock.epoch()
        tell = partial(
            self.crawler.signals.send_catch_log, request=request, spider=self.crawler.spider
        )
        tell(signals.request_reached_downloader)
        # A middleware may have set these headers, as for all requests.
        request.headers.pop("Range", None)
        if self._is_plain:
            request.headers["Accept-Encoding"] = "identity"
        try:
            try:
                response = await send_limited(self.crawler, request, limit)
            except StopDownload as error:  # of a handler of the crawl: ours does not fail
                raise RuntimeError(_STOPPED) from error
            self._digest = digest_of(response.body)
            if "proxy" not in request.meta and response.ip_address is not None:
                self.address = str(response.ip_address)
            if self.config.archive:
                self.exchanges.append(_exchange(request, response, began, self._digest))
            tell(signals.response_downloaded, response=response)
        finally:
            tell(signals.request_left_downloader)
        is_file = standing_stated(response.status) is Standing.OBEYED
        if is_file:
            self._check_whole(response)
        return self._decoded(response, is_file=is_file)

    def count(self, data: bytes) -> None:
        """Count *data*, a piece of the body; raise StopDownload if there is enough of it."""
        self._limit.headers_ended()
        self._received += len(data)
        if self._received > self.config.max_bytes:
            raise StopDownload(fail=False)

    def _check_whole(self, response: Response) -> None:
        """Raise RuntimeError if a mistake of the robot has cut *response*."""
        length = response.headers.get("Content-Length")
        is_stopped = "download_stopped" in response.flags
        is_cut_here = self._received > self.config.max_bytes
        if is_stopped and not is_cut_here and length != b"%d" % len(response.body):
            raise RuntimeError(_STOPPED)

    def _decoded(self, response: Response, *, is_file: bool) -> Response:
        """Return *response* without its Content-Encoding, before a middleware decodes a part."""
        codings = codings_in(_joined(response.headers.getlist("Content-Encoding")))
        response.headers.pop("Content-Encoding", None)
        if not codings:
            return response
        body = b""
        try:
            body = decoded(response.body, codings, self.config.max_bytes)
        except ValueError as error:
            if is_file:
                raise ResponseDataLossError(str(error)) from None
        return response.replace(body=body)

    def _answer(self, response: Response) -> Answer | NoAnswer:
        """Return what *response* answers, within the limits of section 6."""
        lines = [(name, _joined(values)) for name, values in dict.items(response.headers)]
        # With most handlers this is the only limit.
        if sum(len(name) + len(value) for name, value in lines) > HEADERS_MAX_BYTES:
            return NoAnswer(HEADERS_TOO_LONG)
        headers = {name.decode("latin-1").lower(): value for name, value in lines}
        if codings := codings_in(headers.get("content-encoding", "")):
            return NoAnswer(f"its Content-Encoding is not decoded: {printable(', '.join(codings))}")
        if "location" in headers:
            headers["location"] = safe_url_string(response.headers["Location"] or b"")
        limit = self.config.max_bytes
        body: bytes | None = response.body
        if is_gzip(response.body) and standing_stated(response.status) is Standing.OBEYED:
            body = gunzipped(response.body, limit)
        if body is None:
            return NoAnswer("it is a gzip file that is broken or has no end")
        return Answer(
            response.url,
            response.status,
            headers,
            whole_lines(body, limit),
            cut_bytes=limit if len(body) > limit else None,
            digest=self._digest or digest_of(response.body),
        )


def _joined(values: list[bytes]) -> str:
    return b", ".join(values).decode("latin-1")


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

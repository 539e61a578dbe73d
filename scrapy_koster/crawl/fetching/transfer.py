"""Sends the requests of a fetch, and reads the answers in the responses."""

from dataclasses import dataclass, field
from functools import partial
from typing import Any

from scrapy import Request, signals
from scrapy.crawler import Crawler
from scrapy.exceptions import IgnoreRequest, StopDownload
from scrapy.http import Response
from scrapy.http.headers import Headers
from scrapy.http.request import NO_CALLBACK
from w3lib.url import safe_url_string

from scrapy_koster.crawl.clock import TimeLimit, clock_of
from scrapy_koster.crawl.config import Config
from scrapy_koster.crawl.engine.compat import ResponseDataLossError
from scrapy_koster.crawl.engine.private import (
    CANCELLED,
    MARK,
    Engine,
    is_zyte_api,
    send_without_slot,
    through_middlewares,
)
from scrapy_koster.crawl.fetching.decoding import decoded, unpacked
from scrapy_koster.protocol.access import Answer, CachedRobots, NoAnswer, conditional_headers
from scrapy_koster.protocol.exchange import Exchange, digest_of
from scrapy_koster.protocol.line import whole_lines
from scrapy_koster.protocol.printable import printable
from scrapy_koster.protocol.site import site_of
from scrapy_koster.protocol.site_status import SiteStatus, status_of_http

HEADERS_MAX_BYTES = 65536
"""The limit of the headers. Real headers have 1 to 4 kB. KOSTER_MAX_BYTES limits the body."""
# Only an uncompressed file can be cut at KOSTER_MAX_BYTES.
_PLAIN = {"Accept": "text/plain, */*;q=0.1", "Accept-Encoding": "identity"}
_REPLACED_MOST = 10
"""How often downloader middlewares can replace the request for a URL."""

_STOPPED = (
    "a handler of the signal bytes_received or headers_received raised StopDownload for the"
    f" robots.txt. Let it return at once if {MARK!r} is in request.meta"
)
_CREDENTIALS = {"http_user", "http_pass", "http_auth_domain"}
"""Meta keys that Scrapy turns into an Authorization header."""


class BodyLimit:
    """Counts the bytes of a body, and ends the download at the limit (section 6)."""

    def __init__(self, max_bytes: int) -> None:
        self._left = max_bytes

    @property
    def has_cut(self) -> bool:
        """Whether the body was cut at its limit."""
        return self._left < 0

    def count(self, data: bytes) -> None:
        """Count *data*, a piece of the body. Raises StopDownload if the body is too long."""
        self._left -= len(data)
        if self.has_cut:
            raise StopDownload(fail=False)


@dataclass(eq=False)
class Transfer:
    """Sends the requests of a fetch: the first request, and a request for each redirect."""

    crawler: Crawler
    config: Config
    page: Request
    """The request of the crawl that needs the robots.txt."""
    stale: CachedRobots | None
    """The expired copy to revalidate, or None."""
    is_proxied: bool = True
    """Whether the last request was sent to a proxy, or no request has been sent yet."""
    proxy: str = ""
    """The proxy to which the last request was sent, without credentials, or ""."""
    address: str = ""
    """The IP address from which the last response came; "" if unknown, or from a proxy."""
    exchanges: list[Exchange] = field(default_factory=list)
    """The requests and responses for the archive. Empty without KOSTER_ARCHIVE."""
    url: str = ""
    """The URL that was requested last."""
    is_of_site: bool = True
    """Whether an error is of the site or of the network, and not of a downloader middleware."""
    _digest: str = ""

    def __post_init__(self) -> None:
        """Begin with the whole time limit."""
        self._clock = clock_of(self.crawler)
        self.limit = TimeLimit(self._clock, self.config.timeout_secs)

    async def get(self, url: str) -> Answer | NoAnswer:
        """Return the answer to a request for *url*, or a NoAnswer.

        A downloader middleware can replace the request, or answer in place of the site. Errors of
        the download or of a middleware are raised. LateError is raised at the end of ``limit``.
        """
        return await self.limit.within(self._get(url))

    async def _get(self, url: str) -> Answer | NoAnswer:
        self.url = url
        request = robots_request(url, self.page, self.stale, config=self.config)
        for _ in range(_REPLACED_MOST + 1):
            self._digest = self.address = ""
            self.is_of_site = False
            try:
                result = await through_middlewares(self.crawler, self._send, request)
            except CANCELLED:  # by a handler, or by our own code, which ignores the result
                return NoAnswer("a download handler has cancelled its download")
            self.is_of_site = True
            if isinstance(result, Response):
                # ``_send`` has decoded a response of the site, but not a response of a middleware.
                digest = self._digest or digest_of(result.body)
                result = _without_coding(result, self.config.max_bytes)
                return _answer_of(result, self.config.max_bytes, digest)
            request = result
            if self.limit.is_over:  # do not send the replacement of a cancelled request
                break
        return NoAnswer("a downloader middleware replaces the request again and again")

    async def _send(self, request: Request) -> Response:
        """Return the decoded response to *request*. Middlewares can call this several times.

        Raises RuntimeError if a signal handler of the project raises StopDownload. With
        ``fail=False``, this is accepted if the body is whole, or is no robots.txt by its status.
        Also raises the errors of the download and of ``_without_coding``.
        """
        if Engine(self.crawler).is_closing:  # perhaps during a wait in a middleware
            raise IgnoreRequest("the crawl is closing")
        limit = request.meta[MARK] = BodyLimit(self.config.max_bytes)
        began, self.is_proxied = self._clock.epoch(), "proxy" in request.meta
        proxy = str(request.meta.get("proxy") or "").rpartition("@")[2].rpartition("//")[2]
        self.proxy = printable(proxy, 100)
        tell = partial(
            self.crawler.signals.send_catch_log, request=request, spider=self.crawler.spider
        )
        tell(signals.request_reached_downloader)
        # A middleware may set Range or Accept-Encoding for every request of the crawl.
        request.headers.pop("Range", None)
        if not is_zyte_api(self.crawler, request.url):
            request.headers.update(_PLAIN)
        self.is_of_site = True
        try:
            response = await send_without_slot(self.crawler, request)
            self._digest = digest_of(response.body)
            if not self.is_proxied and response.ip_address is not None:
                self.address = str(response.ip_address)
            if self.config.archive:
                exchange = _exchange_of(request, response, began, self._digest, self.address)
                self.exchanges.append(exchange)
            tell(signals.response_downloaded, response=response)
        except StopDownload as error:  # raised by a signal handler of the project
            raise RuntimeError(_STOPPED) from error
        finally:
            tell(signals.request_left_downloader)
        is_stopped = "download_stopped" in response.flags and not limit.has_cut
        length = b"%d" % len(response.body)
        if is_stopped and _is_file(response) and response.headers.get("Content-Length") != length:
            raise RuntimeError(_STOPPED)
        response = _without_coding(response, self.config.max_bytes)
        self.is_of_site = False
        return response


def count_bytes(data: bytes, request: Request) -> None:
    """Count *data*, a piece of a body, if *request* is for a robots.txt.

    Raises StopDownload if the body is longer than KOSTER_MAX_BYTES.
    """
    limit = request.meta.get(MARK)
    if isinstance(limit, BodyLimit):
        limit.count(data)


def robots_request(
    url: str, page: Request, stale: CachedRobots | None, *, config: Config
) -> Request:
    """Return a request for the robots.txt at *url*, sent like *page* (KOSTER_PAGE_META).

    A *stale* copy of *url* is revalidated (3.4). Credentials of *page* are sent only to the host
    of *page*, and not over http if *page* uses https.
    """
    meta = _meta(page, config)
    # No Cookie is sent: DEFAULT_REQUEST_HEADERS does not replace an empty header.
    headers: dict[str, Any] = {"Cookie": []}
    passed = [name for name in ("User-Agent", "Authorization") if name in page.headers]
    headers |= {name: page.headers.getlist(name) for name in passed}
    if ("Authorization" in headers or _CREDENTIALS & meta.keys()) and _is_elsewhere(url, page):
        headers.pop("Authorization", None)
        meta = {key: value for key, value in meta.items() if key not in _CREDENTIALS}
    if "_auth_proxy" in meta:
        headers["Proxy-Authorization"] = page.headers.get("Proxy-Authorization", [])
    if stale is not None and stale.url == url:
        headers |= conditional_headers(stale)
    return Request(url, headers=headers, meta=meta, callback=NO_CALLBACK, dont_filter=True)


def _is_elsewhere(url: str, page: Request) -> bool:
    """Return whether credentials of *page* must not be sent to *url*.

    True if *url* has another host, or is not https although *page* is.
    """
    there, here = site_of(url), site_of(page.url)
    if there is None or here is None:
        return True
    return there.host != here.host or there.scheme not in (here.scheme, "https")


def _meta(page: Request, config: Config) -> dict[str, Any]:
    """Return the meta of a request for a robots.txt, with the KOSTER_PAGE_META keys of *page*.

    The meta also disables retries, redirects, cookies, the HTTP cache and the offsite filter.
    """
    meta = {key: page.meta[key] for key in config.page_meta if key in page.meta}
    if "_scheme_proxy" in page.meta:  # from the environment, which can have a proxy per scheme
        meta.pop("proxy", None)
    if "proxy" in meta and "_auth_proxy" in page.meta:
        meta["_auth_proxy"] = page.meta["_auth_proxy"]
    return meta | {
        MARK: True,
        "dont_obey_robotstxt": True,
        "allow_offsite": True,
        "dont_retry": True,
        "dont_redirect": True,
        "dont_merge_cookies": True,
        "dont_cache": True,
        "handle_httpstatus_all": True,
        "autothrottle_dont_adjust_delay": True,
        "download_timeout": 10 * config.timeout_secs,  # the fetcher ends the fetch earlier
        "download_maxsize": 0,
        "download_warnsize": 0,
        "download_fail_on_dataloss": True,
    }


def _is_file(response: Response) -> bool:
    """Return whether the body of *response* is a robots.txt, by its status (2xx)."""
    return status_of_http(response.status) is SiteStatus.OBEYED


def _without_coding(response: Response, max_bytes: int) -> Response:
    """Return *response* with its body decoded, and without Content-Encoding.

    A robots.txt (2xx) that is a gzip file is unpacked, at most to some bytes more than *max_bytes*.
    ResponseDataLossError is raised for a robots.txt that cannot be decoded. For another status, the
    body is then made empty.
    """
    coding, is_file = _joined(response.headers.getlist("Content-Encoding")), _is_file(response)
    response.headers.pop("Content-Encoding", None)
    try:
        body = decoded(response.body, coding, max_bytes)
        if is_file and body.startswith(b"\x1f\x8b\x08"):
            body = unpacked(body, "gzip", max_bytes)
    except ValueError as error:
        if is_file:
            raise ResponseDataLossError(str(error)) from None
        body = b""
    return response if body is response.body else response.replace(body=body)


def _answer_of(response: Response, max_bytes: int, digest: str) -> Answer | NoAnswer:
    """Return the answer in *response*, with its body cut at *max_bytes* (section 6).

    Returns a NoAnswer if the headers are too long. *digest* is the digest of the body as received.
    """
    items = dict.items(response.headers)
    headers = {name.decode("latin-1").lower(): _joined(values) for name, values in items}
    if sum(len(name) + len(value) for name, value in headers.items()) > HEADERS_MAX_BYTES:
        return NoAnswer(f"its headers are longer than {HEADERS_MAX_BYTES} bytes")
    if "location" in headers:
        headers["location"] = safe_url_string(response.headers["Location"] or b"")
    return Answer(
        response.url,
        response.status,
        headers,
        whole_lines(response.body, max_bytes),
        cut_bytes=max_bytes if len(response.body) > max_bytes else None,
        digest=digest,
    )


def _exchange_of(
    request: Request, response: Response, began: float, digest: str, address: str
) -> Exchange:
    """Return *request* and *response* for the archive."""
    return Exchange(
        url=request.url,
        began=began,
        sent=_lines(request.headers),
        status=response.status,
        received=_lines(response.headers),
        body=response.body,
        is_cut="download_stopped" in response.flags,
        protocol=response.protocol,
        address=address or None,
        digest=digest,
    )


def _joined(values: list[bytes]) -> str:
    return b", ".join(values).decode("latin-1")


def _lines(headers: Headers) -> tuple[tuple[bytes, bytes], ...]:
    # Headers.items() is slower: it looks up every name again.
    return tuple((name, value) for name, values in dict.items(headers) for value in values)

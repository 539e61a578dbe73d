"""HTTP messages: the request for a robots.txt, and the answer in a response."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from scrapy import Request
from scrapy.exceptions import ResponseDataLossError
from scrapy.http.request import NO_CALLBACK
from w3lib.url import safe_url_string

from scrapy_koster.crawl.engine.answer_limit import HEADERS_MAX_BYTES, HEADERS_TOO_LONG
from scrapy_koster.crawl.fetching.coding import codings_in, decoded, gunzipped, is_gzip
from scrapy_koster.protocol.access import Answer, Copy, NoAnswer, conditional_headers
from scrapy_koster.protocol.exchange import Exchange
from scrapy_koster.protocol.line import whole_lines
from scrapy_koster.protocol.printable import printable
from scrapy_koster.protocol.site import site_of
from scrapy_koster.protocol.standing import Standing, standing_stated

if TYPE_CHECKING:
    from scrapy.http import Response
    from scrapy.http.headers import Headers

    from scrapy_koster.crawl.config import Config

_CREDENTIALS = {"http_user", "http_pass", "http_auth_domain"}
"""Meta keys that Scrapy turns into an Authorization header."""


def robots_request(
    url: str, page: Request, stale: Copy | None, *, config: Config, plain: bool
) -> Request:
    """Return a request for *url* that uses the connection of *page*.

    A *stale* copy of *url* is revalidated (3.4). With *plain* the request asks for uncompressed
    text. Credentials of *page* are sent only to the host of *page*.
    """
    meta = _meta(page, config)
    # If a header is set, even without a value, DEFAULT_REQUEST_HEADERS does not set it.
    headers: dict[str, Any] = {"Cookie": []}
    if plain:
        # An uncompressed file can be cut at KOSTER_MAX_BYTES.
        headers |= {"Accept": "text/plain, */*;q=0.1", "Accept-Encoding": "identity"}
    if "User-Agent" in page.headers:
        headers["User-Agent"] = page.headers.getlist("User-Agent")
    if "Authorization" in page.headers:
        headers["Authorization"] = page.headers.getlist("Authorization")
    if ("Authorization" in headers or _CREDENTIALS & meta.keys()) and _is_elsewhere(url, page):
        headers.pop("Authorization", None)
        for key in _CREDENTIALS:
            meta.pop(key, None)
    if "_auth_proxy" in meta:
        headers["Proxy-Authorization"] = page.headers.get("Proxy-Authorization", [])
    if stale is not None and stale.url == url:
        headers |= conditional_headers(stale)
    return Request(url, headers=headers, meta=meta, callback=NO_CALLBACK, dont_filter=True)


def _is_elsewhere(url: str, page: Request) -> bool:
    """Return whether *url* has another host than *page*, or leaves https."""
    there, here = site_of(url), site_of(page.url)
    if there is None or here is None:
        return True
    return there.host != here.host or there.scheme not in (here.scheme, "https")


def _meta(page: Request, config: Config) -> dict[str, Any]:
    """Return meta with the connection of *page*, which disables retries, redirects, cookies, ..."""
    meta = {key: page.meta[key] for key in config.page_meta if key in page.meta}
    if "_scheme_proxy" in page.meta:  # from the environment, where https can have another proxy
        meta.pop("proxy", None)
    if "proxy" in meta and "_auth_proxy" in page.meta:
        meta["_auth_proxy"] = page.meta["_auth_proxy"]
    return meta | {
        "dont_obey_robotstxt": True,
        "allow_offsite": True,
        "dont_retry": True,
        "dont_redirect": True,
        "dont_merge_cookies": True,
        "dont_cache": True,
        "handle_httpstatus_all": True,
        "autothrottle_dont_adjust_delay": True,
        "download_timeout": config.timeout_secs + 1,  # the fetcher ends the fetch before
        "download_maxsize": 0,
        "download_warnsize": 0,
        "download_fail_on_dataloss": True,
    }


def is_file(response: Response) -> bool:
    """Return whether the body of *response* is a robots.txt, by its status."""
    return standing_stated(response.status) is Standing.OBEYED


def without_coding(response: Response, max_bytes: int) -> Response:
    """Return *response* decoded and without Content-Encoding. Raises ResponseDataLossError.

    Scrapy's middleware would decode a cut body without an error.
    """
    codings = codings_in(_joined(response.headers.getlist("Content-Encoding")))
    response.headers.pop("Content-Encoding", None)
    if not codings:
        return response
    body = b""
    try:
        body = decoded(response.body, codings, max_bytes)
    except ValueError as error:
        if is_file(response):
            raise ResponseDataLossError(str(error)) from None
    return response.replace(body=body)


def answer_of(response: Response, max_bytes: int, digest: str) -> Answer | NoAnswer:
    """Return the answer in *response*, within the limits of section 6.

    *digest* is the digest of the received body.
    """
    lines = [(name, _joined(values)) for name, values in dict.items(response.headers)]
    # With most handlers this is the only limit.
    if sum(len(name) + len(value) for name, value in lines) > HEADERS_MAX_BYTES:
        return NoAnswer(HEADERS_TOO_LONG)
    headers = {name.decode("latin-1").lower(): value for name, value in lines}
    if codings := codings_in(headers.get("content-encoding", "")):
        return NoAnswer(f"its Content-Encoding is not decoded: {printable(', '.join(codings))}")
    if "location" in headers:
        headers["location"] = safe_url_string(response.headers["Location"] or b"")
    body: bytes | None = response.body
    if is_gzip(response.body) and is_file(response):
        body = gunzipped(response.body, max_bytes)
    if body is None:
        return NoAnswer("it is a gzip file that is broken or has no end")
    return Answer(
        response.url,
        response.status,
        headers,
        whole_lines(body, max_bytes),
        cut_bytes=max_bytes if len(body) > max_bytes else None,
        digest=digest,
    )


def exchange_of(request: Request, response: Response, began: float, digest: str) -> Exchange:
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
        address=None if response.ip_address is None else str(response.ip_address),
        digest=digest,
    )


def _joined(values: list[bytes]) -> str:
    return b", ".join(values).decode("latin-1")


def _lines(headers: Headers) -> tuple[tuple[bytes, bytes], ...]:
    # Headers.items() would look up the names again.
    return tuple((name, value) for name, values in dict.items(headers) for value in values)

"""The Request for a /robots.txt: what it has of the page that asks, and what of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from scrapy import Request
from scrapy.http.request import NO_CALLBACK

from scrapy_koster.protocol.access import Copy, conditional_headers
from scrapy_koster.protocol.site import site_of

if TYPE_CHECKING:
    from scrapy_koster.crawl.config import Config

_CREDENTIALS = {"http_user", "http_pass", "http_auth_domain"}
"""Meta keys from which Scrapy makes an Authorization header."""


def robots_request(
    url: str, page: Request, stale: Copy | None, *, config: Config, plain: bool
) -> Request:
    """Return the request for *url* on behalf of *page*.

    A *stale* copy of *url* is revalidated (3.4). With *plain* the file is asked
    for as it is: as text, and not compressed. Credentials of *page* go to its own
    host only.
    """
    meta = _meta(page, config)
    # Present and empty: no default puts one here.
    headers: dict[str, Any] = {"Cookie": []}
    if plain:
        # A file that comes as it is can be cut where KOSTER_MAX_BYTES is.
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
    """Return whether *url* is of another host than *page*, or not encrypted although that is."""
    there, here = site_of(url), site_of(page.url)
    if there is None or here is None:
        return True
    return there.host != here.host or there.scheme not in (here.scheme, "https")


def _meta(page: Request, config: Config) -> dict[str, Any]:
    """Return how *page* is connected, and what would change the meaning of an answer off."""
    return _connection(page, config) | {
        "dont_obey_robotstxt": True,
        "allow_offsite": True,
        "dont_retry": True,
        "dont_redirect": True,
        "dont_merge_cookies": True,
        "dont_cache": True,
        "handle_httpstatus_all": True,
        "autothrottle_dont_adjust_delay": True,
        "download_timeout": config.timeout_secs,
        "download_maxsize": 0,
        "download_warnsize": 0,
        "download_fail_on_dataloss": True,
    }


def _connection(page: Request, config: Config) -> dict[str, Any]:
    meta = {key: page.meta[key] for key in config.page_meta if key in page.meta}
    if "_scheme_proxy" in page.meta:  # of the environment: another scheme may have another
        meta.pop("proxy", None)
    if "proxy" in meta and "_auth_proxy" in page.meta:
        meta["_auth_proxy"] = page.meta["_auth_proxy"]
    return meta

"""What the request for a robots.txt has of a page that has been sent, and comes again."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from scrapy import Request
from scrapy.settings import Settings

from scrapy_koster.crawl.config import Config
from scrapy_koster.crawl.fetching.transfer import robots_request
from scrapy_koster.protocol.access import CachedRobots

SENT = {"proxy": "http://proxy.example", "_auth_proxy": "http://proxy.example"}
CREDENTIALS = {"Proxy-Authorization": "Basic eA==", "User-Agent": "FigTree/0.1"}


URL = "http://fict.org/robots.txt"
COPY = CachedRobots(URL, 200, b"", '"1"', "yesterday", 0, 0)


def asked(
    page: Request, *, url: str = URL, stale: CachedRobots | None = None, **settings: Any
) -> Request:
    crawler: Any = SimpleNamespace(settings=Settings(settings), spider=SimpleNamespace())
    config = Config.from_crawler(crawler)
    return robots_request(url, page, stale, config=config)


def page(**meta: Any) -> Request:
    return Request("http://fict.org/page", meta=meta, headers=CREDENTIALS)


def test_the_credentials_go_with_their_proxy() -> None:
    request = asked(page(**SENT))
    assert {key: request.meta[key] for key in SENT} == SENT
    assert request.headers["Proxy-Authorization"] == b"Basic eA=="
    assert request.headers["User-Agent"] == b"FigTree/0.1"


def test_the_credentials_do_not_go_without_it() -> None:
    request = asked(page(**SENT), KOSTER_PAGE_META=[])
    assert not SENT.keys() & request.meta.keys()
    assert "Proxy-Authorization" not in request.headers


def test_a_proxy_of_the_environment_is_left_to_the_environment() -> None:
    """That of another scheme, to which the site redirects, may be another."""
    request = asked(page(**SENT, _scheme_proxy=True))
    assert not {*SENT, "_scheme_proxy"} & request.meta.keys()
    assert "Proxy-Authorization" not in request.headers


@pytest.mark.parametrize(
    ("scheme", "url", "passed"),
    [
        ("http", "http://fict.org/robots.txt", True),
        ("http", "https://FICT.org:8080/moved", True),
        ("https", "http://fict.org/robots.txt", False),
        ("http", "http://www.fict.org/robots.txt", False),
        ("http", "http://fict.org@other.example/robots.txt", False),
        ("file", "http://fict.org/robots.txt", False),
    ],
)
def test_credentials_go_to_the_host_of_the_page(scheme: str, url: str, passed: bool) -> None:
    meta = {"http_user": "user", "http_pass": "pw", "http_auth_domain": "fict.org"}
    page = Request(f"{scheme}://fict.org/page", meta=meta, headers={"Authorization": "Bearer x"})
    request = asked(page, url=url)
    assert {key: request.meta[key] for key in meta if key in request.meta} == (
        meta if passed else {}
    )
    assert request.headers.get("Authorization") == (b"Bearer x" if passed else None)


def test_a_stale_copy_is_revalidated_at_its_url() -> None:
    bare = Request("http://fict.org/page")
    headers = asked(bare, stale=COPY).headers
    assert (headers["If-None-Match"], headers["If-Modified-Since"]) == (b'"1"', b"yesterday")
    assert asked(page(**SENT), stale=COPY).headers["User-Agent"] == b"FigTree/0.1"
    moved = replace(COPY, url="http://other.org/robots.txt")
    assert "If-None-Match" not in asked(bare, stale=moved).headers

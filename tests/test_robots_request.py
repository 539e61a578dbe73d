"""What the request for a robots.txt has of a page that has been sent, and comes again."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from scrapy import Request
from scrapy.settings import Settings

from scrapy_koster.crawl.config import Config
from scrapy_koster.crawl.robots_request import robots_request

SENT = {"proxy": "http://proxy.example", "_auth_proxy": "http://proxy.example"}
CREDENTIALS = {"Proxy-Authorization": "Basic eA==", "User-Agent": "FigTree/0.1"}


def asked(page: Request, **settings: Any) -> Request:
    crawler: Any = SimpleNamespace(settings=Settings(settings), spider=SimpleNamespace())
    config = Config.from_crawler(crawler)
    return robots_request("http://fict.org/robots.txt", page, None, config=config, plain=True)


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

"""What the downloader middlewares do with a request for a robots.txt."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from scrapy import Request, Spider, signals
from scrapy.core.downloader.middleware import DownloaderMiddlewareManager
from scrapy.downloadermiddlewares.retry import RetryMiddleware
from scrapy.http import HtmlResponse, Response
from scrapy.utils.test import get_crawler

from scrapy_koster.crawl.config import config_of
from scrapy_koster.crawl.engine.handlers import _SWITCHED_OFF, MeteredHandlers
from scrapy_koster.crawl.fetching.robots_request import robots_request

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from scrapy.crawler import Crawler

URL = "http://elsewhere.example/robots.txt"
ANSWERS = {
    "a file": Response(URL, 200, body=b"User-agent: *\n"),
    "a cookie": Response(URL, 200, {"Set-Cookie": "a=b"}),
    "redirected": Response(URL, 302, {"Location": "http://a.example/"}),
    "failing": Response(URL, 503),
    "refreshed": HtmlResponse(
        URL, body=b'<meta http-equiv="refresh" content="0; url=http://a.example/">'
    ),
}


class Own(RetryMiddleware):
    """A subclass, which may do more."""


class Narrow(Spider):
    """Has another site only."""

    name = "narrow"
    allowed_domains = ("a.example",)


@pytest.fixture
def crawler(tmp_path: Path) -> Iterator[Crawler]:
    settings = {
        "HTTPCACHE_ENABLED": True,
        "HTTPCACHE_DIR": str(tmp_path),
        "DOWNLOADER_MIDDLEWARES": {Own: 551},
    }
    crawler = get_crawler(Narrow, settings)
    crawler.spider = crawler._create_spider()
    middlewares = DownloaderMiddlewareManager.from_crawler(crawler)
    downloader = SimpleNamespace(middleware=middlewares, handlers=None)
    crawler.engine = SimpleNamespace(downloader=downloader, spider=crawler.spider)  # type: ignore[assignment]
    # The filter and the cache begin with it.
    crawler.signals.send_catch_log(signals.spider_opened, spider=crawler.spider)
    yield crawler
    crawler.signals.send_catch_log(signals.spider_closed, spider=crawler.spider, reason="finished")


def robots(crawler: Crawler) -> Request:
    page = Request("http://elsewhere.example/page", cookies={"a": "b"})
    return robots_request(URL, page, None, config=config_of(crawler), plain=True)


def ended(coroutine: Any) -> Any:
    """Return what a coroutine does that waits for nothing."""
    with pytest.raises(StopIteration) as caught:
        coroutine.send(None)
    return caught.value.value


def sent_to(answer: Response, through: Any, request: Request) -> tuple[Any, ...]:
    """Return what reached the site, and what came of its *answer*."""
    reached: list[Request] = []

    async def download(request: Request) -> Response:
        reached.append(request)
        return answer

    result = ended(through(download, request))
    return (
        *[(each.url, each.headers.to_unicode_dict(), each.meta) for each in reached],
        *(type(result), result.url, result.status, result.headers, result.body),
    )


@pytest.mark.parametrize("answer", ANSWERS.values(), ids=list(ANSWERS))
def test_those_that_are_not_asked_would_have_done_nothing(
    crawler: Crawler, answer: Response
) -> None:
    asked = crawler.engine.downloader.middleware.download_async
    handlers = MeteredHandlers(crawler)
    first = sent_to(answer, asked, robots(crawler))
    again = sent_to(answer, asked, robots(crawler))  # with what is kept of the first
    assert len(first) == 6  # it was sent once
    assert again == first
    assert sent_to(answer, handlers.through_middlewares, robots(crawler)) == first


def test_a_subclass_is_asked_and_those_of_scrapy_are_not(crawler: Crawler) -> None:
    def kinds(middlewares: Any) -> set[type]:
        return {type(each.__self__) for methods in middlewares.methods.values() for each in methods}

    every = kinds(crawler.engine.downloader.middleware)
    left = kinds(MeteredHandlers(crawler)._middlewares)
    assert every >= _SWITCHED_OFF
    assert left == every - _SWITCHED_OFF
    assert Own in left


def test_those_of_another_downloader_are_left_alone(crawler: Crawler) -> None:
    class Others(DownloaderMiddlewareManager):
        """May ask them in a way of its own."""

    crawler.engine.downloader.middleware = Others.from_crawler(crawler)
    assert MeteredHandlers(crawler)._middlewares is crawler.engine.downloader.middleware

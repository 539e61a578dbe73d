"""Pages that are fetched while the spider opens: the engine does not run yet, nor does it close."""

from __future__ import annotations

from typing import Any

import pytest
from harness.crawling import Crawl
from harness.replies import Reply
from harness.server import Server
from scrapy import Request, signals
from scrapy.crawler import Crawler
from typing_extensions import Self

from scrapy_koster import RobotsUnavailable

RULES = "User-agent: *\nDisallow: /secret\n"
SOON: dict[str, Any] = {
    "KOSTER_IDLE_LIMIT_SECS": 1.5,
    "KOSTER_DEFER_FIRST_SECS": 0.3,
    "RETRY_ENABLED": False,
}


class Fetching:
    """Fetches a page, which the crawl is to begin with."""

    def __init__(self, crawler: Crawler) -> None:
        self.crawler = crawler
        self.got: list[str] = []

    async def fetch(self) -> None:
        try:
            response = await self.crawler.engine.download_async(
                Request(self.crawler.settings["FIRST"], meta={"allow_offsite": True})
            )
            self.got.append(response.url)
        except RobotsUnavailable as error:
            self.got.append(type(error).__name__)


class Pipeline(Fetching):
    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        crawler.first = made = cls(crawler)  # type: ignore[attr-defined]
        return made

    async def open_spider(self) -> None:
        await self.fetch()

    def process_item(self, item: Any) -> Any:
        return item


class Extension(Fetching):
    signal: object

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        crawler.first = made = cls(crawler)  # type: ignore[attr-defined]
        crawler.signals.connect(made.fetch, signal=cls.signal)
        return made


class WhenOpened(Extension):
    signal = signals.spider_opened


class WhenStarted(Extension):
    signal = signals.engine_started


ASKING: dict[str, dict[str, Any]] = {
    "a pipeline": {"ITEM_PIPELINES": {Pipeline: 1}},
    "spider_opened": {"EXTENSIONS": {WhenOpened: 1}},
    "engine_started": {"EXTENSIONS": {WhenStarted: 1}},
}


@pytest.mark.parametrize("asking", ASKING)
async def test_a_robots_txt_that_takes_its_time(crawl: Crawl, server: Server, asking: str) -> None:
    site, first = server.site(), server.site(host="127.0.0.2")
    site.robots = RULES
    first.robots = Reply(200, RULES, delay=2)
    settings = SOON | ASKING[asking] | {"FIRST": first.url("/open")}
    settings["JOBDIR"] = str(crawl.folder / "job")
    result = await crawl(urls=[site.url("/1"), site.url("/secret")], settings=settings)
    assert result.crawler.first.got == [first.url("/open")]  # type: ignore[attr-defined]
    assert result.fetched == (site.url("/1"),)
    assert [url for url, _ in result.refused] == [site.url("/secret")]


@pytest.mark.parametrize("asking", ASKING)
async def test_a_site_that_cannot_be_asked(crawl: Crawl, server: Server, asking: str) -> None:
    """The crawl has nothing else to do: it begins once KOSTER_IDLE_LIMIT_SECS have passed."""
    site, first = server.site(), server.site(host="127.0.0.2")
    first.robots = Reply(503)
    settings = SOON | ASKING[asking] | {"FIRST": first.url("/open")}
    result = await crawl(urls=[site.url("/1")], settings=settings)
    assert result.crawler.first.got == ["RobotsUnavailable"]  # type: ignore[attr-defined]
    assert result.fetched == (site.url("/1"),)
    assert result.seconds < 60

"""How a crawl ends that robots.txt let fetch nothing."""

from __future__ import annotations

from typing import Any

import pytest
from harness.crawling import Crawl, RecordingSpider
from harness.replies import Reply
from harness.server import Server, Site
from scrapy import Request, signals
from scrapy.crawler import Crawler
from scrapy.exceptions import IgnoreRequest
from twisted.python.failure import Failure
from typing_extensions import Self

RULES = "User-agent: *\nDisallow: /private\n"
FORBIDDEN = "robotstxt_forbidden"


@pytest.fixture
def site(server: Server) -> Site:
    site = server.site()
    site.robots = RULES
    return site


@pytest.mark.parametrize(
    ("robots", "settings"),
    [
        (RULES, {}),
        (Reply(403), {}),
        (Reply(404), {"KOSTER_MISSING": "disallow"}),
        ("User-agent: *\nCrawl-delay: 99", {"KOSTER_CRAWL_DELAY": "refuse"}),
        (RULES, {"SCHEDULER": "scrapy.core.scheduler.Scheduler"}),
    ],
    ids=["rules", "restricted", "missing", "delay", "another scheduler"],
)
async def test_every_request_is_forbidden(
    crawl: Crawl, server: Server, robots: Any, settings: dict[str, Any]
) -> None:
    sites = [server.site() for _ in range(2)]
    for each in sites:
        each.robots = robots
    urls = [each.url(f"/private/{n}") for each in sites for n in range(3)]
    result = await crawl(urls=urls, settings=settings)
    assert result.finish_reason == FORBIDDEN
    assert len(result.refused) == 6


class Again(RecordingSpider):
    """Its errback fetches something else."""

    def fail(self, failure: Failure) -> Any:
        super().fail(failure)
        return self.ask(failure.request.url.replace("private", "open"))  # type: ignore[attr-defined]


class Dropping:
    """A downloader middleware that drops some requests by itself."""

    def process_request(self, request: Request) -> None:
        if "dropped" in request.url:
            raise IgnoreRequest


class Answering:
    """One that has some pages already."""

    def process_request(self, request: Request) -> Any:
        from scrapy.http import Response

        return Response(request.url) if "known" in request.url else None


@pytest.mark.parametrize(
    ("spider", "paths", "settings"),
    [
        (RecordingSpider, ["/private", "/"], {}),
        (RecordingSpider, [], {}),
        (RecordingSpider, ["/private"], {"KOSTER_DRY_RUN": True}),
        (Again, ["/private"], {}),
        (
            RecordingSpider,
            ["/private", "/dropped"],
            {"DOWNLOADER_MIDDLEWARES": {Dropping: 200}},
        ),
        (
            RecordingSpider,
            ["/private", "/dropped"],
            {"DOWNLOADER_MIDDLEWARES": {Dropping: 50}},
        ),
        (
            RecordingSpider,
            ["/private", "/known"],
            {"DOWNLOADER_MIDDLEWARES": {Answering: 50}},
        ),
    ],
    ids=["a page", "nothing", "dry run", "errback", "dropped later", "dropped first", "known"],
)
async def test_anything_else_is_not_that(
    crawl: Crawl, site: Site, *, spider: Any, paths: list[str], settings: dict[str, Any]
) -> None:
    result = await crawl(spider, urls=[site.url(path) for path in paths], settings=settings)
    assert result.finish_reason == "finished"


@pytest.mark.parametrize("unavailable", ["defer", "disallow", "allow"])
async def test_an_outage_is_not_that(
    crawl: Crawl, server: Server, site: Site, unavailable: str
) -> None:
    failing = server.site()
    failing.robots = Reply(503)
    settings = {"KOSTER_UNAVAILABLE": unavailable, "KOSTER_DEFER_LIMIT_SECS": 0.2}
    urls = [site.url("/private"), failing.url("/a")]
    result = await crawl(urls=urls, settings=settings)
    assert result.finish_reason == "finished"


async def test_who_feeds_the_spider_when_it_is_idle_goes_on(crawl: Crawl, site: Site) -> None:
    class Fed(RecordingSpider):
        @classmethod
        def from_crawler(cls, crawler: Crawler, *args: Any, **kwargs: Any) -> Self:
            spider = super().from_crawler(crawler, *args, **kwargs)
            crawler.signals.connect(spider.feed, signal=signals.spider_idle)
            return spider

        fed = False

        def feed(self) -> None:
            if not self.fed:
                self.fed = True
                self.crawler.engine.crawl(self.ask(site.url("/")))

    result = await crawl(Fed, urls=[site.url("/private")])
    assert result.fetched == (site.url("/"),)
    assert result.finish_reason == "finished"

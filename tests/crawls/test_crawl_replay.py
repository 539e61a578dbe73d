"""HTTPCACHE_IGNORE_MISSING: pages come out of the cache, and nothing is fetched undecided."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

import pytest
from harness.crawling import Crawl, CrawlResult, RecordingSpider
from harness.server import Server
from harness.server import Site as Served
from harness.virtual import time
from scrapy import Request
from scrapy.extensions.httpcache import DummyPolicy
from scrapy.http import Response

from scrapy_koster import RobotsForbidden
from scrapy_koster.protocol.access import CachedRobots, CacheEntry, FetchFailure
from scrapy_koster.protocol.site import Site
from scrapy_koster.storage.sqlite import SQLiteStorage

PATHS = ("/", "/no", "/page")
FORBIDDING = b"User-agent: *\nDisallow: /no"


class Recorded:
    """A site whose pages have been crawled into a cache, without a look at its robots.txt."""

    def __init__(self, crawl: Crawl, site: Served) -> None:
        self.crawl = crawl
        self.site = site
        self.urls = [site.url(path) for path in PATHS]

    async def record(self, **settings: Any) -> None:
        await self.run(ROBOTSTXT_OBEY=False, HTTPCACHE_IGNORE_MISSING=False, **settings)
        assert sorted(self.site.pages_asked) == sorted(PATHS)

    async def run(
        self, urls: Any = None, spider: type[RecordingSpider] = RecordingSpider, **settings: Any
    ) -> CrawlResult:
        settings = {
            "HTTPCACHE_ENABLED": True,
            "HTTPCACHE_DIR": str(self.crawl.folder / "cache"),
            "HTTPCACHE_IGNORE_MISSING": True,
            "KOSTER_DEFER_FIRST_SECS": 0.1,
            "KOSTER_DEFER_LIMIT_SECS": 0.3,
            **settings,
        }
        return await self.crawl(spider, urls=urls or self.urls, settings=settings)

    @property
    def fetched(self) -> int:
        """How many pages have been fetched since it was recorded."""
        return len(self.site.pages_asked) - len(PATHS)

    def store(self, known: CacheEntry) -> None:
        site = Site(self.site.scheme, self.site.host, self.site.port)
        storage = SQLiteStorage(str(self.crawl.folder / "robots.sqlite3"), "scrapy")
        storage.put(site, known)
        storage.close()

    def copy(
        self, body: bytes = FORBIDDING, *, age_secs: float = 1e7, status: int = 200
    ) -> CachedRobots:
        fetched = time.time() - age_secs
        url = self.site.url("/robots.txt")
        return CachedRobots(url, status, body, None, None, fetched, fetched + 3600)


@pytest.fixture
def recorded(crawl: Crawl, server: Server) -> Recorded:
    return Recorded(crawl, server.site())


def said(result: CrawlResult) -> list[str]:
    lines = result.logged(logging.INFO, "scrapy_koster")
    return [line for line in lines if "HTTPCACHE_IGNORE_MISSING" in line]


async def test_without_a_copy_pages_of_the_cache_pass(recorded: Recorded) -> None:
    await recorded.record()
    result = await recorded.run()
    assert sorted(result.fetched) == sorted(recorded.urls)
    assert result.stats["httpcache/hit"] == 3
    assert recorded.site.asked("/robots.txt") == 0
    assert recorded.fetched == 0
    [line] = said(result)
    assert line == (
        "HTTPCACHE_IGNORE_MISSING is set: pages come from the HTTP cache, and no robots.txt is"
        " fetched. The last stored copy decides, even if it has expired. Pages of a site without a"
        " copy are allowed"
    )
    assert result.stats.get("koster/deferred/requests") is None
    assert result.warnings == []


@pytest.mark.beside("Scrapy", "HttpCache, replay offline")
@pytest.mark.parametrize("is_failing", [False, True])
async def test_the_last_copy_decides_however_old(recorded: Recorded, is_failing: bool) -> None:
    """The last copy decides, and nothing is fetched."""
    await recorded.record()
    then, copy = time.time() - 1000, recorded.copy(FORBIDDING + b"\nDisallow: /*ge")
    recorded.store(
        FetchFailure("HTTP 503", 3, then, then, then + 9000, copy) if is_failing else copy
    )
    result = await recorded.run(KOSTER_UNAVAILABLE="disallow")
    assert result.errors == {recorded.site.url("/no"): RobotsForbidden}
    assert [verdict.line for verdict in result.verdicts] == [2]
    assert len(result.fetched) == 2
    assert result.stats["koster/hazard/urls"] == 1
    assert recorded.site.asked("/robots.txt") == 0
    assert recorded.fetched == 0
    assert result.logged(logging.INFO, "scrapy_koster")[-1].startswith(
        "Sites: 1 with a robots.txt. "
    )


# What the cache passes on to the network is subject to robots.txt as always.


class Outdated(DummyPolicy):
    """Each page in the cache has to be validated."""

    def is_cached_response_fresh(self, cachedresponse: Response, request: Request) -> bool:
        return False


PASSED_ON: Mapping[str, Mapping[str, Any]] = {
    "missing pages are fetched": {"HTTPCACHE_IGNORE_MISSING": False},
    "scheme": {"HTTPCACHE_IGNORE_SCHEMES": ["http"]},
    "validated": {"HTTPCACHE_POLICY": Outdated},
}


@pytest.mark.parametrize("settings", PASSED_ON.values(), ids=PASSED_ON)
async def test_what_the_cache_does_not_answer_obeys(
    recorded: Recorded, settings: dict[str, Any]
) -> None:
    await recorded.record()
    recorded.site.robots = FORBIDDING
    result = await recorded.run(**settings)
    assert result.errors == {recorded.site.url("/no"): RobotsForbidden}
    assert recorded.site.asked("/robots.txt") == 1
    assert recorded.site.asked("/no") == 1  # when it was recorded


async def test_it_keeps_no_delay_and_says_so(recorded: Recorded) -> None:
    await recorded.record()
    result = await recorded.run(KOSTER_CRAWL_DELAY="obey")
    [line] = result.warnings
    assert line.startswith('KOSTER_CRAWL_DELAY = "obey" has no effect')
    assert "HTTPCACHE_IGNORE_MISSING" in line

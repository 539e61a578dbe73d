"""3.4, expiration: copies are kept, also for the next crawl, and renewed before they are used."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import pytest
from harness.clocks import JumpingClock
from harness.comparison import RULES, SETTINGS
from harness.crawling import Crawl, CrawlResult, RecordingSpider
from harness.replies import Asked, Reply
from harness.server import Server, Site
from harness.sizes import so_many
from harness.virtual import time

from scrapy_koster import RobotsUnavailable
from scrapy_koster.protocol.access import Copy
from scrapy_koster.protocol.site import site_of
from scrapy_koster.storage.sqlite import SQLiteStorage

WEEK = 604_800
MONDAY = "Mon, 13 Nov 2023 00:00:00 GMT"
SITES = so_many(10, 300)


@pytest.fixture
def clock(crawl: Crawl) -> JumpingClock:
    crawl.clock = clock = JumpingClock()
    return clock


class InTurn(RecordingSpider):
    """Asks for its URLs one after the other, whether they can be had or not."""

    async def start(self) -> Any:
        yield self.ask(self.urls[0])

    def page(self, response: Any) -> Any:
        number = len(self.fetched) + len(self.refused)
        yield from map(self.ask, self.urls[number : number + 1])

    def fail(self, failure: Any) -> Any:
        super().fail(failure)
        yield from self.page(failure)


async def in_turn(crawl: Crawl, site: Site, *paths: str, **settings: Any) -> CrawlResult:
    urls = [site.url(path) for path in paths]
    return await crawl(InTurn, urls=urls, settings={**SETTINGS, **settings})


def later(clock: JumpingClock, seconds: float) -> Callable[[Asked], Reply]:
    """A page after which so much time has passed."""

    def page(_asked: Asked) -> Reply:
        clock.ahead += seconds
        return Reply(200)

    return page


def robots_of(site: Site) -> list[Asked]:
    return [asked for asked in site.requests if asked.path == "/robots.txt"]


def conditions(asked: Asked) -> tuple[str | None, str | None]:
    return asked.header("If-None-Match"), asked.header("If-Modified-Since")


def file_with(**headers: str) -> Reply:
    return Reply(200, RULES, headers={name.replace("_", "-"): v for name, v in headers.items()})


# Renewal.


@pytest.mark.promise("docs/access.md", "An expired copy is revalidated before it is used")
async def test_a_stale_copy_is_revalidated_before_it_is_used(
    crawl: Crawl, server: Server, clock: JumpingClock
) -> None:
    site = server.site()
    site.robots = [file_with(ETag='"1"', Last_Modified=MONDAY), Reply(304)]
    site.page("/1", later(clock, WEEK + 1))
    result = await in_turn(crawl, site, "/1", "/secret", "/2", "/3")
    paths = [asked.path for asked in site.requests]
    assert paths == ["/robots.txt", "/1", "/robots.txt", "/2", "/3"]
    assert [url for url, _ in result.refused] == [site.url("/secret")]
    first, second = robots_of(site)
    assert conditions(first) == (None, None)
    assert conditions(second) == ('"1"', MONDAY)
    assert result.stats["koster/revalidated"] == 1
    assert result.stats["robotstxt/response_status_count/304"] == 1
    [summary] = [told for told in result.logged(logging.INFO) if told.startswith("Sites: ")]
    assert summary.endswith("1 fetched, 0 from storage, 1 revalidated")


# What the server says of its life.


@pytest.mark.promise("docs/access.md", "limited by KOSTER_EXPIRY_MIN_SECS")
async def test_one_revalidation_in_the_least_life(
    crawl: Crawl, server: Server, clock: JumpingClock
) -> None:
    """11 pages, 100 s after each other; KOSTER_EXPIRY_MIN_SECS is 300 s."""
    site = server.site()
    site.robots = [
        file_with(ETag='"1"', Cache_Control="no-store"),
        Reply(304, headers={"Cache-Control": "max-age=0"}),
    ]
    site.pages(later(clock, 100))
    result = await in_turn(crawl, site, *(f"/{n}" for n in range(11)))
    assert site.asked("/robots.txt") == 4  # at 0, 300, 600 and 900 s
    assert result.stats["koster/revalidated"] == 3


LIVES = (
    (Reply(404), WEEK),
    (Reply(403), 3600),
    (file_with(Cache_Control="max-age=3600", Age="600"), 3000),
    (file_with(Date=MONDAY, Expires="Mon, 13 Nov 2023 02:00:00 GMT"), 7200),
    (file_with(Cache_Control="max-age=99999999"), 2_592_000),
)


@pytest.mark.promise("docs/access.md", "The lifetime comes from Cache-Control, or Expires")
@pytest.mark.promise("docs/access.md", "lifetime of a 404 and of a 403")
async def test_the_life_of_a_copy(crawl: Crawl, server: Server) -> None:
    sites = [server.site() for _ in LIVES]
    for site, (answer, _) in zip(sites, LIVES, strict=True):
        site.robots = answer
    before = time.time()
    await crawl(urls=[site.url("/1") for site in sites], settings=SETTINGS)
    for site, (_, life) in zip(sites, LIVES, strict=True):
        copy = stored(crawl, site)
        assert before + life - 1 <= copy.expires <= time.time() + life
        assert before - 1 <= copy.fetched <= time.time()


# A renewal that fails.


@pytest.mark.promise("docs/access.md", "If this fails, the site is deferred")
async def test_a_renewal_that_fails_defers(
    crawl: Crawl, server: Server, clock: JumpingClock
) -> None:
    site = server.site()
    site.robots = [file_with(ETag='"1"'), Reply(503)]
    site.page("/1", later(clock, WEEK + 1))
    result = await in_turn(crawl, site, "/1", "/2")
    assert site.pages_asked == ["/1"]
    assert [type(error) for _, error in result.refused] == [RobotsUnavailable]
    assert site.asked("/robots.txt") >= 3
    assert {conditions(asked)[0] for asked in robots_of(site)[1:]} == {'"1"'}


@pytest.mark.promise("docs/access.md", "KOSTER_STALE_IF_ERROR_SECS allows the old copy")
async def test_the_last_good_copy_serves_for_a_while(
    crawl: Crawl, server: Server, clock: JumpingClock
) -> None:
    site = server.site()
    site.robots = [file_with(ETag='"1"'), Reply(503)]
    site.page("/1", later(clock, WEEK + 1))
    site.page("/2", later(clock, 3000))
    site.page("/3", later(clock, 3000))
    result = await in_turn(
        crawl, site, "/1", "/2", "/3", "/secret", "/4", KOSTER_STALE_IF_ERROR_SECS=3600
    )
    assert site.pages_asked == ["/1", "/2", "/3"]
    assert [(url, type(error)) for url, error in result.refused] == [
        (site.url("/secret"), RobotsUnavailable),
        (site.url("/4"), RobotsUnavailable),
    ]


# From one crawl to the next.


def stored(crawl: Crawl, site: Site) -> Copy:
    storage = SQLiteStorage(str(crawl.folder / "robots.sqlite3"), "scrapy")
    home = site_of(site.url())
    assert home is not None
    copy = storage.get(home)
    storage.close()
    assert isinstance(copy, Copy)
    return copy


def _answering(tag: str) -> Callable[[Asked], Reply]:
    def robots(asked: Asked) -> Reply:
        if asked.header("If-None-Match") == tag:
            return Reply(304, headers={"ETag": tag})
        return Reply(200, RULES, headers={"ETag": tag})

    return robots


MANY = {**SETTINGS, "CONCURRENT_REQUESTS": 32, "KOSTER_TIMEOUT_SECS": 30, "LOG_LEVEL": "INFO"}


@pytest.mark.promise("README.md", "Copies of robots.txt are kept between crawls")
@pytest.mark.bound(150)
async def test_a_second_crawl_asks_for_nothing_and_a_third_for_changes(
    crawl: Crawl, server: Server, clock: JumpingClock
) -> None:
    def asked_in_all() -> int:
        return sum(site.asked("/robots.txt") for site in sites)

    sites = [server.site() for _ in range(SITES)]
    for number, site in enumerate(sites):
        site.robots = _answering(f'"{number}"')
    secrets = [site.url("/secret") for site in sites]
    first = await crawl(urls=secrets, settings=MANY)
    assert len(first.refused) == SITES
    assert asked_in_all() == first.stats["robotstxt/request_count"] == SITES
    assert first.stats["koster/storage/miss"] == SITES

    second = await crawl(urls=[site.url("/page") for site in sites], settings=MANY)
    assert len(second.fetched) == SITES
    assert asked_in_all() == SITES
    assert "robotstxt/request_count" not in second.stats
    assert second.stats["koster/storage/hit"] == SITES

    clock.ahead = WEEK + 1
    third = await crawl(urls=secrets, settings=MANY)
    assert len(third.refused) == SITES
    assert asked_in_all() == 2 * SITES
    tags = [conditions(robots_of(site)[1])[0] for site in sites]
    assert tags == [f'"{number}"' for number in range(SITES)]
    assert third.stats["koster/revalidated"] == SITES
    assert third.stats["robotstxt/response_status_count/304"] == SITES

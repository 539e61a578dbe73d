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

from scrapy_koster import RobotsUnavailable

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
    assert summary.endswith("1 fetched, 0 from storage, 1 confirmed unchanged")


# What the server says of its life.


# A renewal that fails.


@pytest.mark.parametrize(("stale_secs", "fetched"), [(0, ["/1"]), (3600, ["/1", "/2", "/3"])])
async def test_a_renewal_that_fails(
    crawl: Crawl, server: Server, clock: JumpingClock, stale_secs: int, fetched: list[str]
) -> None:
    """The last good copy serves for a while, if the setting says so; then the site is deferred."""
    site = server.site()
    site.robots = [file_with(ETag='"1"'), Reply(503)]
    site.page("/1", later(clock, WEEK + 1))
    site.page("/2", later(clock, 3000))
    site.page("/3", later(clock, 3000))
    paths = ("/1", "/2", "/3", "/secret", "/4")
    result = await in_turn(crawl, site, *paths, KOSTER_STALE_IF_ERROR_SECS=stale_secs)
    assert site.pages_asked == fetched
    assert result.errors == {
        site.url(path): RobotsUnavailable for path in paths if path not in fetched
    }
    assert site.asked("/robots.txt") >= 3
    assert {conditions(asked)[0] for asked in robots_of(site)[1:]} == {'"1"'}


# From one crawl to the next.


def _answering(tag: str) -> Callable[[Asked], Reply]:
    def robots(asked: Asked) -> Reply:
        if asked.header("If-None-Match") == tag:
            return Reply(304, headers={"ETag": tag})
        return Reply(200, RULES, headers={"ETag": tag})

    return robots


MANY = {**SETTINGS, "CONCURRENT_REQUESTS": 32, "KOSTER_TIMEOUT_SECS": 30, "LOG_LEVEL": "INFO"}


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
    assert f"0 fetched, {SITES} from storage, 0 confirmed unchanged" in "\n".join(second.logged())

    clock.ahead = WEEK + 1
    third = await crawl(urls=secrets, settings=MANY)
    assert len(third.refused) == SITES
    assert asked_in_all() == 2 * SITES
    tags = [conditions(robots_of(site)[1])[0] for site in sites]
    assert tags == [f'"{number}"' for number in range(SITES)]
    assert third.stats["koster/revalidated"] == SITES
    assert third.stats["robotstxt/response_status_count/304"] == SITES

"""3.4, expiration: copies are kept, also for the next crawl, and renewed before they are used."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from harness.clocks import JumpingClock
from harness.comparison import RULES, SETTINGS
from harness.crawling import Crawl, RecordingSpider
from harness.replies import Asked, Reply
from harness.server import Server, Site
from harness.sizes import so_many

from scrapy_koster import RobotsUnavailable

WEEK = 604_800
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


def later(clock: JumpingClock, seconds: float) -> Callable[[Asked], Reply]:
    """A page after which so much time has passed."""

    def page(_asked: Asked) -> Reply:
        clock.ahead += seconds
        return Reply(200)

    return page


def tags_of(site: Site) -> list[str | None]:
    """What each request for the robots.txt asks to be newer than."""
    asked = [asked for asked in site.requests if asked.path == "/robots.txt"]
    return [each.header("If-None-Match") for each in asked]


@pytest.mark.parametrize(("stale_secs", "fetched"), [(0, ["/1"]), (3600, ["/1", "/2", "/3"])])
async def test_a_renewal_that_fails(
    crawl: Crawl, server: Server, clock: JumpingClock, stale_secs: int, fetched: list[str]
) -> None:
    """The last good copy serves for a while, if the setting says so; then the site is deferred."""
    site = server.site()
    site.robots = [Reply(200, RULES, headers={"ETag": '"1"'}), Reply(503)]
    site.page("/1", later(clock, WEEK + 1))
    site.page("/2", later(clock, 3000))
    site.page("/3", later(clock, 3000))
    urls = [site.url(path) for path in ("/1", "/2", "/3", "/secret", "/4")]
    settings = {**SETTINGS, "KOSTER_STALE_IF_ERROR_SECS": stale_secs}
    result = await crawl(InTurn, urls=urls, settings=settings)
    assert site.pages_asked == fetched
    refused = [url for url in urls if url not in map(site.url, fetched)]
    assert result.errors == dict.fromkeys(refused, RobotsUnavailable)
    assert site.asked("/robots.txt") >= 3
    assert set(tags_of(site)[1:]) == {'"1"'}


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
    assert [tags_of(site)[1] for site in sites] == [f'"{number}"' for number in range(SITES)]
    assert third.stats["koster/revalidated"] == SITES
    assert third.stats["robotstxt/response_status_count/304"] == SITES

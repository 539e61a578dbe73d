"""3.4: what an earlier crawl has stored is judged by the settings of this one."""

from __future__ import annotations

from pathlib import Path

import pytest
from harness.crawling import Crawl
from harness.replies import Asked, Reply
from harness.server import Server
from harness.storages import place_of

RULES = "User-agent: *\nDisallow: /first\nDisallow: /second\n"
DAY = 86_400


@pytest.mark.promise("docs/reliability.md", "copies stored under other settings")
async def test_a_copy_lives_as_the_settings_of_today_say(crawl: Crawl, server: Server) -> None:
    site = server.site()
    site.robots = Reply(200, RULES, headers={"Cache-Control": f"max-age={20 * DAY}"})
    for settings in ({}, {"KOSTER_EXPIRY_MIN_SECS": 0, "KOSTER_EXPIRY_MAX_SECS": 0}):
        result = await crawl(urls=[site.url("/first")], settings=settings)
        assert result.fetched == ()
    assert site.asked("/robots.txt") == 2


# A failure belongs to the crawl that saw it: the crawl may have failed, and not the site.


@pytest.mark.promise("docs/access.md", "A failure counts only in the crawl that saw it")
@pytest.mark.parametrize("unavailable", ["defer", "disallow"])
async def test_after_a_run_through_a_dead_proxy_the_next_one_asks_at_once(
    crawl: Crawl, server: Server, unavailable: str
) -> None:
    site, proxy = server.site(), server.down().url("")
    soon = {"KOSTER_IDLE_LIMIT_SECS": 1, "KOSTER_UNAVAILABLE": unavailable, "RETRY_ENABLED": False}
    first = await crawl(urls=[site.url("/")], meta={"proxy": proxy}, settings=soon)
    assert first.fetched == ()
    second = await crawl(urls=[site.url("/")], settings=soon)
    assert second.fetched == (site.url("/"),)
    assert site.asked("/robots.txt") == 1
    assert second.seconds < 1


async def test_a_failure_of_an_earlier_run_keeps_its_copy_for_revalidation(
    crawl: Crawl, server: Server
) -> None:
    site = server.site()
    fresh = {"ETag": '"1"', "Cache-Control": "max-age=1"}
    settings = {"KOSTER_EXPIRY_MIN_SECS": 0, "KOSTER_IDLE_LIMIT_SECS": 1}
    site.robots = [Reply(200, RULES, headers=fresh), Reply(503), Reply(304)]
    for _ in range(2):
        await crawl(urls=[site.url("/first")], settings=settings)
        await crawl.sleep(1.5)
    result = await crawl(urls=[site.url("/first")], settings=settings)
    assert result.fetched == ()
    assert result.stats["koster/revalidated"] == 1


# A copy belongs to a site and a robot: sites can send each robot an answer of its own.


OPEN, CLOSED = "User-agent: *\nAllow: /\n", "User-agent: *\nDisallow: /\n"
PATHS = ("/a", "/b", "/c")


def by_robot(asked: Asked) -> Reply:
    """What a web application firewall does: the answer depends on the User-Agent."""
    return Reply(200, OPEN if (asked.header("User-Agent") or "").startswith("one/") else CLOSED)


@pytest.mark.promise("docs/access.md", "A copy belongs to a site and to the robot")
async def test_each_robot_obeys_its_own_file(crawl: Crawl, server: Server) -> None:
    site = server.site()
    site.robots = by_robot
    urls = [site.url(path) for path in PATHS]
    for _ in range(2):  # the second time both have it from the storage
        for robot in ("two", "one"):
            agent = {"USER_AGENT": f"{robot}/0.1 (+https://example.com)"}
            result = await crawl(urls=urls, settings=agent)
            assert len(result.fetched) == (len(PATHS) if robot == "one" else 0)
    assert site.asked("/robots.txt") == 2


async def test_a_fleet_of_two_robots_fetches_each_site_once_for_each(
    crawl: Crawl, server: Server, tmp_path: Path
) -> None:
    settings = place_of("redis", tmp_path).settings()
    sites = [server.site() for _ in range(4)]
    for site in sites:
        site.robots = by_robot
    urls = [site.url(path) for site in sites for path in PATHS]
    robots = ("one", "two", "one", "two")
    results = await crawl.together(
        *(crawl(urls=urls, settings=settings | {"USER_AGENT": f"{each}/0.1"}) for each in robots)
    )
    assert {site.asked("/robots.txt") for site in sites} == {2}
    fetched = [len(result.fetched) for result in results]
    assert fetched == [len(urls) if robot == "one" else 0 for robot in robots]

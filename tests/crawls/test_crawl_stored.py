"""3.4: what an earlier crawl has stored is judged by the settings of this one."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest
from harness.crawling import Crawl
from harness.replies import Asked, Reply
from harness.server import Server
from harness.storages import place_of

RULES = "User-agent: *\nDisallow: /first\nDisallow: /second\n"
DAY = 86_400


async def test_a_copy_lives_as_the_settings_of_today_say(crawl: Crawl, server: Server) -> None:
    site = server.site()
    site.robots = Reply(200, RULES, headers={"Cache-Control": f"max-age={20 * DAY}"})
    for settings in ({}, {"KOSTER_EXPIRY_MIN_SECS": 0, "KOSTER_EXPIRY_MAX_SECS": 0}):
        result = await crawl(urls=[site.url("/first")], settings=settings)
        assert result.fetched == ()
    assert site.asked("/robots.txt") == 2


# A failure belongs to the crawl that saw it: the crawl may have failed, and not the site.


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


# What is too long to be stored, and what is too old.


@pytest.mark.parametrize("kind", ["sqlite", "redis", "memory"])
async def test_a_file_that_cannot_be_stored_is_no_failure_of_the_storage(
    crawl: Crawl, server: Server, tmp_path: Path, kind: str
) -> None:
    """The sites after it are stored, and it is obeyed."""
    long, *others = [server.site() for _ in range(4)]
    long.robots = RULES + "#" * 11 * 2**20
    for site in others:
        site.robots = RULES
    settings = {**place_of(kind, tmp_path).settings(), "KOSTER_MAX_BYTES": 20_000_000}
    urls = [site.url(path) for site in (long, *others) for path in ("/first", "/page")]
    result = await crawl(urls=urls, settings={**settings, "CONCURRENT_REQUESTS": 1})
    assert len(result.fetched) == 4
    assert result.stats["koster/storage/error"] == 1
    assert len([line for line in result.log if "is not stored" in line.getMessage()]) == 1
    if kind != "memory":
        await crawl(urls=urls, settings=settings)
        assert [site.asked("/robots.txt") for site in (long, *others)] == [2, 1, 1, 1]


async def test_a_crawl_prunes_what_is_old(crawl: Crawl, server: Server, tmp_path: Path) -> None:
    place = place_of("sqlite", tmp_path)
    settings = {**place.settings(), "KOSTER_EXPIRY_MAX_SECS": 20, "ROBOTSTXT_USER_AGENT": "a"}

    def stored() -> list[str]:
        with closing(place.open("a")) as storage:
            return [site.robots_url for site, _ in storage.sites()]

    old, new = sorted((server.site() for _ in range(2)), key=lambda site: site.url("/"))
    for site in (old, new):
        site.robots = RULES
        await crawl(urls=[site.url("/page")], settings=settings)
        await crawl.sleep(30)
    assert stored() == [old.url("/robots.txt"), new.url("/robots.txt")]
    await crawl(urls=[], settings=settings)
    assert stored() == [new.url("/robots.txt")]

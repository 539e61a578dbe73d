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
    crawl: Crawl, server: Server, tmp_path: Path, unavailable: str
) -> None:
    site, proxy, place = server.site(), server.down().url(""), place_of("sqlite", tmp_path)
    soon = {"KOSTER_IDLE_LIMIT_SECS": 1, "KOSTER_UNAVAILABLE": unavailable, "RETRY_ENABLED": False}
    soon |= place.settings()
    first = await crawl(urls=[site.url("/")], meta={"proxy": proxy}, settings=soon)
    assert first.fetched == ()
    with closing(place.open()) as storage:
        assert storage.robots() == []  # and in a fleet, the others ask at once
    second = await crawl(urls=[site.url("/")], settings=soon)
    assert second.fetched == (site.url("/"),)
    assert site.asked("/robots.txt") == 1
    assert second.seconds < 1


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


@pytest.mark.parametrize(
    "kind", ["sqlite", pytest.param("redis", marks=pytest.mark.long), "memory"]
)
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

"""3.4: what an earlier crawl has stored is judged by the settings of this one."""

from __future__ import annotations

from typing import Any

import pytest
from harness.crawling import Crawl, CrawlResult
from harness.replies import Asked, Reply
from harness.server import Server, Site

RULES = "User-agent: *\nDisallow: /first\nDisallow: /second\n"
FIRST_LINES = {"KOSTER_MAX_BYTES": 40}
DAY = 86_400


def by_validator(asked: Asked) -> Reply:
    if asked.header("If-None-Match"):
        return Reply(304, headers={"ETag": '"1"'})
    return Reply(200, RULES, headers={"ETag": '"1"'})


async def pages(crawl: Crawl, site: Site, **settings: Any) -> tuple[list[str], CrawlResult]:
    """Which pages a crawl fetches."""
    site.robots = by_validator
    urls = [site.url(path) for path in ("/first", "/second", "/page")]
    result = await crawl(urls=urls, settings=settings)
    return sorted(url.removeprefix(site.url("")) for url in result.fetched), result


async def test_a_file_that_was_cut_is_fetched_again_when_more_is_read(
    crawl: Crawl, server: Server
) -> None:
    site = server.site()
    assert (await pages(crawl, site, **FIRST_LINES))[0] == ["/page", "/second"]
    assert (await pages(crawl, site))[0] == ["/page"]
    assert site.asked("/robots.txt") == 2
    assert [asked.header("If-None-Match") for asked in site.requests] == [None] * 5
    assert (await pages(crawl, site))[0] == ["/page"]
    assert site.asked("/robots.txt") == 2


@pytest.mark.promise("docs/reliability.md", "copies stored under other settings")
@pytest.mark.parametrize(
    ("headers", "settings", "asked"),
    [
        (
            {"Cache-Control": f"max-age={20 * DAY}"},
            {"KOSTER_EXPIRY_MIN_SECS": 0, "KOSTER_EXPIRY_MAX_SECS": 0},
            2,
        ),
        ({}, {"KOSTER_EXPIRY_SECS": 0}, 2),
    ],
    ids=["stated", "by default"],
)
async def test_a_copy_lives_as_the_settings_of_today_say(
    crawl: Crawl, server: Server, *, headers: dict[str, str], settings: dict[str, Any], asked: int
) -> None:
    site = server.site()
    site.robots = Reply(200, RULES, headers=headers)
    for later in (False, True):
        result = await crawl(urls=[site.url("/first")], settings=settings if later else None)
        assert result.fetched == ()
    assert site.asked("/robots.txt") == asked


async def test_a_failure_is_deferred_as_the_settings_of_today_say(
    crawl: Crawl, server: Server
) -> None:
    site = server.site()
    site.robots = [Reply(503, headers={"Retry-After": "600"}), RULES]
    url = site.url("/page")
    before = {"KOSTER_DEFER_LIMIT_SECS": 0, "KOSTER_DEFER_MAX_SECS": 600}
    assert (await crawl(urls=[url], settings=before)).fetched == ()
    today = {"KOSTER_DEFER_FIRST_SECS": 0.1, "KOSTER_DEFER_MAX_SECS": 0.1}
    assert (await crawl(urls=[url], settings=today)).fetched == (url,)

"""3.4: what an earlier crawl has stored is judged by the settings of this one."""

from __future__ import annotations

from typing import Any

import pytest
from harness.crawling import Crawl
from harness.replies import Reply
from harness.server import Server

RULES = "User-agent: *\nDisallow: /first\nDisallow: /second\n"
DAY = 86_400


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

"""KOSTER_OVERRIDES in a crawl: exceptions for single sites, each of them recorded and counted."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

from harness.crawling import Crawl
from harness.replies import Reply
from harness.reports import data_in, database_of
from harness.server import Server, Site

from scrapy_koster import RobotsForbidden
from scrapy_koster.protocol.site_status import Ground
from scrapy_koster.report.numbers import read

RULES = "User-agent: *\nDisallow: /private\n"
AGREED = "the owner agreed by mail"


def entry(site: Site, until: str = "2999-12-31", **more: Any) -> dict[str, Any]:
    return {"site": site.url(""), "reason": AGREED, "until": until, **more}


async def test_each_is_counted_and_told(
    crawl: Crawl, server: Server, site: Site, tmp_path: Path
) -> None:
    other, path = server.site(), tmp_path / "report.html"
    other.robots = RULES
    paths = ("/private/a", "/private/b", "/private", "/open", "/closed")
    settings = {
        "KOSTER_OVERRIDES": [
            entry(site, allow=["/private/"]),
            entry(site, disallow=["/private/b", "/closed"]),
            entry(other, "2020-01-01", allow=["/"]),
        ],
        "KOSTER_REPORT": str(path),
    }
    urls = [site.url(path) for path in paths] + [other.url("/private/a")]
    result = await crawl(urls=urls, settings=settings)
    assert sorted(site.pages_asked) == ["/open", "/private/a"]
    assert other.pages_asked == []
    assert all(isinstance(error, RobotsForbidden) for _, error in result.refused)
    grounds = {url: error.verdict.ground for url, error in result.refused}  # type: ignore[attr-defined]
    assert grounds == {
        site.url("/private/b"): Ground.RULE,  # the override says what the site says
        site.url("/private"): Ground.RULE,
        site.url("/closed"): Ground.OVERRIDE,
        other.url("/private/a"): Ground.RULE,
    }
    assert result.stats["koster/override/allowed"] == 1
    assert result.stats["koster/forbidden/override"] == 1
    assert result.stats["koster/forbidden/rule"] == 3
    said = f"your override: {AGREED}, until 2999-12-31;"
    for line in (
        f"<GET {site.url('/private/a')}> passes, allowed by {said} the site's line 2 forbids it",
        f"<GET {site.url('/closed')}> is forbidden by {said} without it this would be allowed",
    ):
        assert result.logged(logging.DEBUG).count(line) == 1
    [warning] = result.warnings
    assert warning.startswith(
        f"An entry of KOSTER_OVERRIDES has expired and is void: {other.url('')} ({AGREED}, until"
        " 2020-01-01)."
    )
    numbers = read(database_of(result.crawler))
    text = f"{AGREED}, until 2999-12-31"
    assert numbers["overrides"] == [
        {"site": site.url(""), "override": text, "allowed": 1, "refused": 1}
    ]
    assert numbers["totals"]["overridden"] == 1
    assert numbers["requests"]["refused"]["override"] == 1
    page = path.read_text("utf-8")
    assert "Your overrides" in page
    [row] = data_in(page)["tables"]["overrides"]
    assert row[:4] == [1, 1, site.url(""), text]


async def test_one_opens_a_closed_site(crawl: Crawl, server: Server) -> None:
    site, other = server.site(), server.site()
    site.robots, other.robots = Reply(403), Reply(503)
    settings = {
        "KOSTER_OVERRIDES": [
            entry(site, unavailable="allow", disallow=["/closed"]),
            entry(other, "2020-01-01", unavailable="allow"),
        ],
        "KOSTER_IDLE_LIMIT_SECS": 0,
    }
    urls = [site.url("/open"), site.url("/closed"), other.url("/open")]
    result = await crawl(urls=urls, settings=settings)
    assert site.pages_asked == ["/open"]
    assert other.pages_asked == []
    said = f"your override: {AGREED}, until 2999-12-31; without it this would be forbidden"
    assert any(line.endswith(said) for line in result.logged(logging.DEBUG))
    lines = result.logged(logging.INFO)
    assert any(site.url("") in line and "KOSTER_OVERRIDES" in line for line in lines)
    hint = 'use an entry of KOSTER_OVERRIDES with "unavailable": "allow"'
    assert any(other.url("") in line and hint in line for line in lines)


async def test_the_log_names_it_for_a_staging_site(crawl: Crawl, site: Site) -> None:
    result = await crawl(urls=[site.url("/private/a"), site.url("/private/b")])
    hint = "add an entry to KOSTER_OVERRIDES"
    [line] = [line for line in result.logged(logging.INFO) if hint in line]
    assert line.startswith(f"Pages of {site.url('')}, which is not a public address, are refused")

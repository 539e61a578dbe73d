"""KOSTER_OVERRIDES in a crawl: exceptions for single sites, each of them recorded and counted."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest
from harness.crawling import Crawl, RecordingSpider
from harness.replies import Reply
from harness.reports import tables_in
from harness.server import Server, Site

from scrapy_koster import RobotsForbidden, RobotsReport, RobotsUnavailable
from scrapy_koster.protocol.standing import Ground
from scrapy_koster.report.numbers import read

RULES = "User-agent: *\nDisallow: /private\n"
AGREED = "the owner agreed by mail"


@pytest.fixture
def site(server: Server) -> Site:
    site = server.site()
    site.robots = RULES
    return site


def entry(site: Site, until: str = "2999-12-31", **paths: list[str]) -> dict[str, Any]:
    return {"site": site.url(""), "reason": AGREED, "until": until, **paths}


@pytest.mark.promise("docs/settings.md", "KOSTER_OVERRIDES")
async def test_one_allows_and_one_refuses(crawl: Crawl, server: Server, site: Site) -> None:
    other = server.site()
    other.robots = RULES
    paths = ("/private/a", "/private/b", "/private", "/open", "/closed")
    settings = {
        "KOSTER_OVERRIDES": [
            entry(site, allow=["/private/"]),
            entry(site, disallow=["/private/b", "/closed"]),
        ]
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
    said = f"your override: {AGREED}, until 2999-12-31; the site"
    for line in (
        f"<GET {site.url('/private/a')}> passes, allowed by {said}'s line 2 forbids it",
        f"<GET {site.url('/closed')}> is forbidden by {said} allows it",
    ):
        assert result.logged(logging.DEBUG).count(line) == 1
    assert result.warnings == []


async def test_in_the_report(crawl: Crawl, site: Site, tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    settings = {
        "KOSTER_REPORT": str(path),
        "KOSTER_OVERRIDES": [entry(site, allow=["/private"], disallow=["/closed"])],
    }
    paths = ("/private/a", "/private/b", "/closed", "/")
    result = await crawl(urls=[site.url(path) for path in paths], settings=settings)
    assert len(result.fetched) == 3
    assert result.stats["koster/override/allowed"] == 2
    report = result.crawler.get_extension(RobotsReport)
    assert report is not None
    numbers = read(report.database)
    text = f"{AGREED}, until 2999-12-31"
    assert numbers.to_dict()["overrides"] == [
        {"site": site.url(""), "override": text, "allowed": 2, "refused": 1}
    ]
    assert numbers.totals["overridden"] == 2
    assert numbers.refused["override"] == 1
    assert numbers.allowed == 3
    assert sum(numbers.compared.values()) == 1  # only what the rules decided
    page = path.read_text("utf-8")
    assert "Your overrides" in page
    [row] = tables_in(page)["overrides"]
    assert row[:4] == [2, 1, site.url(""), text]


@pytest.mark.promise("docs/settings.md", "an override expires")
async def test_one_that_has_expired_is_void(crawl: Crawl, site: Site) -> None:
    settings = {
        "KOSTER_OVERRIDES": [
            entry(site, "2020-01-01", allow=["/"]),
            entry(site, allow=["/private/b"]),
        ]
    }
    urls = [site.url("/private/a"), site.url("/private/b")]
    result = await crawl(urls=urls, settings=settings)
    assert site.pages_asked == ["/private/b"]
    [warning] = result.warnings
    assert warning.startswith(
        f"An entry of KOSTER_OVERRIDES has expired and is void: {site.url('')} ({AGREED}, until"
        " 2020-01-01)."
    )


async def test_what_none_opens(crawl: Crawl, server: Server) -> None:
    closed, failing, tagged = (server.site() for _ in range(3))
    closed.robots = Reply(403)
    failing.robots = Reply(503)
    tagged.robots = RULES
    tagged.pages(
        Reply(
            200,
            '<meta name="robots" content="nofollow"><a href="/x">.</a>',
            headers={"Content-Type": "text/html"},
        )
    )
    settings = {
        "KOSTER_OVERRIDES": [entry(each, allow=["/"]) for each in (closed, failing, tagged)],
        "KOSTER_DEFER_FIRST_SECS": 0.2,
        "KOSTER_DEFER_LIMIT_SECS": 0.5,
    }
    urls = [closed.url("/"), failing.url("/"), tagged.url("/private")]
    result = await crawl(_Following, urls=urls, settings=settings)
    assert result.errors == {
        closed.url("/"): RobotsForbidden,
        failing.url("/"): RobotsUnavailable,
    }
    assert (closed.pages_asked, failing.pages_asked) == ([], [])
    assert tagged.pages_asked == ["/private"]
    assert result.stats["koster/meta/nofollow"] == 1


class _Following(RecordingSpider):
    def page(self, response: Any) -> Any:
        for link in response.css("a::attr(href)").getall():
            yield self.ask(response.urljoin(link))

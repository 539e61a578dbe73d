"""What a crawl says of its sites: each that is not simply obeyed, and how to go on."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from harness.comparison import HTML, RULES, SETTINGS
from harness.crawling import Crawl, CrawlResult
from harness.replies import Reply
from harness.server import Server, Site

PAGE = Reply(200, HTML, headers={"Content-Type": "text/html"})


async def crawled(crawl: Crawl, *sites: Site, path: str = "/page", **settings: Any) -> CrawlResult:
    urls = [site.url(path) for site in sites]
    return await crawl(urls=urls, settings={**SETTINGS, **settings})


def of_sites(result: CrawlResult, *, level: int = logging.INFO) -> list[str]:
    """What was said of sites at this level, without the summary."""
    return [
        record.getMessage()
        for record in result.log
        if record.levelno == level and record.name == "scrapy_koster.crawl.messages.announcer"
    ]


def summary(result: CrawlResult) -> str:
    [line] = [told for told in result.logged(logging.INFO) if told.startswith("Sites: ")]
    return line


# A site that is restricted.


@pytest.mark.parametrize("status", [401, 403])
async def test_a_restricted_site_is_named_with_the_ways_on(
    crawl: Crawl, server: Server, status: int
) -> None:
    site = server.site()
    site.robots = Reply(status)
    for _ in range(2):  # the second has it from the storage
        [line] = of_sites(await crawled(crawl, site))
        assert line.startswith(
            f"{site.url('')} is restricted: its robots.txt answers HTTP {status}"
        )
        for way in (
            f"scrapy robots cache forget {site.url('')}",
            "KOSTER_PAGE_META",
            'KOSTER_RESTRICTED = "allow"',
        ):
            assert way in line
    assert site.asked("/robots.txt") == 1


@pytest.mark.parametrize(
    ("answer", "said", "counted"),
    [
        (Reply(403), "is restricted:", "22 restricted"),
        (Reply(404), "has no rules:", "22 without robots.txt"),
        (PAGE, "with an HTML page", "22 with an HTML page for robots.txt"),
        (Reply(503), "Letting requests", "22 unavailable and let through"),
    ],
    ids=["restricted", "without", "HTML", "let through"],
)
async def test_twenty_of_a_kind_are_named_and_all_are_counted(
    crawl: Crawl, server: Server, answer: Reply, said: str, counted: str
) -> None:
    sites = [server.site() for _ in range(22)]
    for site in sites:
        site.robots = answer
    result = await crawled(crawl, *sites, KOSTER_UNAVAILABLE="allow")
    lines = of_sites(result)
    assert all(said in line for line in lines)
    named = [site for site in sites if any(site.url("") in line for line in lines)]
    assert len(named) == len(lines) == 20
    assert summary(result).startswith(f"Sites: {counted}. ")


# The dry run.


async def test_a_dry_run_says_what_would_be(crawl: Crawl, server: Server) -> None:
    site = server.site()
    site.robots = RULES
    result = await crawled(crawl, site, path="/secret", KOSTER_DRY_RUN=True)
    assert result.fetched == (site.url("/secret"),)
    said = result.logged(name="scrapy_koster.crawl.enforcement")
    [line] = [line for line in said if "forbidden" in line]
    assert line.startswith(f"<GET {site.url('/secret')}> would be forbidden by ")
    assert "Requests that would be refused (KOSTER_DRY_RUN): 1." in summary(result)

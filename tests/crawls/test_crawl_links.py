"""KOSTER_FILTER_LINKS and is_allowed(): what is known of a link before it is queued."""

from __future__ import annotations

import logging
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from harness.crawling import Crawl, CrawlResult, RecordingSpider
from harness.server import Server, Site
from scrapy import Request
from scrapy.http import Response

from scrapy_koster import KosterMiddleware, RobotsForbidden

RULES = "User-agent: *\nDisallow: /private\n"
FILTER: dict[str, Any] = {"KOSTER_FILTER_LINKS": True}


class Linking(RecordingSpider):
    """Its first page has the links; pages that come later have none."""

    links: Any = ()

    def page(self, response: Response) -> Any:
        if response.meta.get("depth", 0) == 0:
            for link in self.links:
                yield self.ask(response.urljoin(link) if isinstance(link, str) else link)


def enqueued(result: CrawlResult) -> int:
    return int(result.stats["scheduler/enqueued"])


async def test_forbidden_links_are_not_queued(crawl: Crawl, server: Server, site: Site) -> None:
    other = server.site()
    other.robots = RULES
    exempt = Request(site.url("/private/c"), meta={"dont_obey_robotstxt": True})
    links = ("/private/a", "/open", "/private/b", other.url("/private"), exempt)
    result = await crawl(Linking, urls=[site.url("/")], arguments={"links": links}, settings=FILTER)
    assert enqueued(result) == 4
    assert sorted(site.pages_asked) == ["/", "/open", "/private/c"]
    assert result.errors == {
        site.url("/private/a"): RobotsForbidden,
        site.url("/private/b"): RobotsForbidden,
        other.url("/private"): RobotsForbidden,  # its robots.txt was not known: it was queued
    }
    assert [verdict.line for verdict in result.verdicts] == [2, 2, 2]
    assert result.stats["koster/links/filtered"] == 2
    assert result.stats["robotstxt/forbidden"] == 3
    assert result.stats["koster/forbidden/rule"] == 3
    line = next(each for each in result.logged(logging.DEBUG) if "Not queued" in each)
    assert line.startswith(f"Not queued: <GET {site.url('/private/a')}> is forbidden by ")


async def test_a_dry_run_filters_no_link(crawl: Crawl, site: Site) -> None:
    settings = FILTER | {"KOSTER_DRY_RUN": True}
    arguments = {"links": ["/private"]}
    result = await crawl(Linking, urls=[site.url("/")], arguments=arguments, settings=settings)
    assert len(result.fetched) == 2
    assert "koster/links/filtered" not in result.stats


# What it costs, and what is counted.


FILTERED_LINKS = int(os.environ.get("FILTERED_LINKS", "400"))
"""Refused requests that are alive at a time: those in reference cycles are freed now and then."""


@pytest.mark.bound(60 + FILTERED_LINKS / 100)
async def test_many_links_leave_nothing_in_the_jobdir(
    crawl: Crawl, site: Site, tmp_path: Path
) -> None:
    job = tmp_path / "job"
    settings = FILTER | {"JOBDIR": str(job), "LOG_LEVEL": "INFO"}
    links = [f"/private/{number}" for number in range(FILTERED_LINKS)]
    result = await crawl(
        Linking, urls=[site.url("/")], arguments={"links": links}, settings=settings
    )
    assert len(result.refused) == result.stats["koster/links/filtered"] == FILTERED_LINKS
    assert enqueued(result) == result.stats["scheduler/dequeued/disk"] == 1
    assert b"private" not in b"".join(p.read_bytes() for p in job.rglob("*") if p.is_file())


# What is known of a URL.


class Knowing(RecordingSpider):
    """Asks what is known, before and after its first page."""

    asked: Any = ()

    async def start(self) -> AsyncIterator[Any]:
        self.before = self.known()
        async for request in super().start():
            yield request

    def page(self, response: Response) -> Any:
        self.after = self.known()

    def known(self) -> list[bool | None]:
        middleware = self.crawler.get_downloader_middleware(KosterMiddleware)
        assert middleware is not None
        return [middleware.is_allowed(*each) for each in self.asked]


async def test_is_allowed(crawl: Crawl, server: Server, site: Site) -> None:
    site.robots = f"{RULES}\nUser-agent: figtree\nDisallow: /fig\n"
    override = {
        "site": site.url(""),
        "allow": ["/private/x"],
        "reason": "so",
        "until": "2999-01-01",
    }
    private = site.url("/private")
    passing = Request(private, meta={"dont_obey_robotstxt": True})
    by_name = Request(site.url("/fig"), meta={"robotstxt_user_agent": "figtree"})
    table: list[tuple[Any, bool | None, bool | None]] = [
        ((site.url("/"),), None, True),
        ((private,), None, False),
        ((site.url("/private/x"),), None, True),
        ((private, "figtree"), None, True),
        ((site.url("/fig"), "FigTree/1.0 (+https://a.example)"), None, False),
        ((by_name,), None, False),
        ((passing,), True, True),
        (("data:,a",), True, True),
        ((server.site().url("/"),), None, None),
    ]
    result = await crawl(
        Knowing,
        urls=[site.url("/")],
        arguments={"asked": [each for each, _, _ in table]},
        settings={"KOSTER_OVERRIDES": [override]},
    )
    spider: Any = result.crawler.spider
    assert spider.before == [before for _, before, _ in table]
    assert spider.after == [after for _, _, after in table]
    assert site.asked("/robots.txt") == 1
    assert len(site.requests) == 2

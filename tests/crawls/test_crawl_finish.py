"""How a crawl ends that robots.txt let fetch nothing."""

from __future__ import annotations

from typing import Any

import pytest
from harness.crawling import Crawl
from harness.replies import Reply, Reset
from harness.server import Server, Site

RULES = "User-agent: *\nDisallow: /private\n"
FORBIDDEN = "robotstxt_forbidden"


@pytest.fixture
def site(server: Server) -> Site:
    site = server.site()
    site.robots = RULES
    return site


@pytest.mark.promise("docs/recipes.md", "finish_reason robotstxt_forbidden")
@pytest.mark.parametrize("scheduler", [{}, {"SCHEDULER": "scrapy.core.scheduler.Scheduler"}])
async def test_every_request_is_forbidden(
    crawl: Crawl, server: Server, site: Site, scheduler: dict[str, Any]
) -> None:
    """The grounds are a rule, a 403, a missing file and a delay."""
    restricted, missing, slow = (server.site() for _ in range(3))
    restricted.robots, missing.robots = Reply(403), Reply(404)
    slow.robots = "User-agent: *\nCrawl-delay: 99"
    settings = {"KOSTER_MISSING": "disallow", "KOSTER_CRAWL_DELAY": "refuse"}
    urls = [each.url("/private") for each in (site, restricted, missing, slow)]
    result = await crawl(urls=urls, settings=settings | scheduler)
    assert result.finish_reason == FORBIDDEN
    assert len(result.refused) == 4


@pytest.mark.parametrize("unavailable", ["defer", "disallow"])
async def test_an_outage_is_not_that(
    crawl: Crawl, server: Server, site: Site, unavailable: str
) -> None:
    failing = server.site()
    failing.robots = Reply(503)
    settings = {"KOSTER_UNAVAILABLE": unavailable, "KOSTER_DEFER_LIMIT_SECS": 0.2}
    urls = [site.url("/private"), failing.url("/a")]
    result = await crawl(urls=urls, settings=settings)
    assert result.finish_reason == "finished"


async def test_a_failure_of_a_robots_txt_is_no_other_reason(crawl: Crawl, site: Site) -> None:
    site.robots = [Reset(), Reply(body=RULES)]
    result = await crawl(urls=[site.url("/private")], settings={"KOSTER_DEFER_FIRST_SECS": 0.2})
    assert site.asked("/robots.txt") == 2
    assert result.finish_reason == FORBIDDEN

"""How a crawl ends that robots.txt let fetch nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from harness.crawling import Crawl, Robots
from harness.replies import Reply
from harness.server import Server, Site
from scrapy import signals

RULES = "User-agent: *\nDisallow: /private\n"
FORBIDDEN = "robotstxt_forbidden"


@pytest.fixture
def site(server: Server) -> Site:
    site = server.site()
    site.robots = RULES
    return site


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
async def test_an_outage_is_named(
    crawl: Crawl, server: Server, site: Site, unavailable: str
) -> None:
    failing = server.site()
    failing.robots = Reply(503)
    settings = {"KOSTER_UNAVAILABLE": unavailable, "KOSTER_DEFER_LIMIT_SECS": 0.2}
    urls = [site.url("/private"), failing.url("/a")]
    result = await crawl(urls=urls, settings=settings)
    assert result.finish_reason == "robotstxt_unavailable"
    result = await crawl(urls=[*urls, site.url("/open")], settings=settings)
    assert result.finish_reason == "finished"


async def test_what_a_monitor_sees_in_a_crawl_of_each(
    crawl: Crawl, server: Server, site: Site, tmp_path: Path
) -> None:
    counted = ["robotstxt/request_count", "robotstxt/forbidden"]
    counted += ["response_received_count", "log_count/ERROR"]
    closed, failing = server.site(), server.site()
    closed.robots, failing.robots = "User-agent: *\nDisallow: /\n", Reply(503)

    async def seen(robots: Robots, url: str, **settings: Any) -> tuple[Any, ...]:
        ours = {"KOSTER_DEFER_FIRST_SECS": 0.1, "KOSTER_IDLE_LIMIT_SECS": 0.5}
        running = crawl.start(urls=[url], robots=robots, settings=ours | settings)
        idle = Mock()
        running.crawler.signals.connect(idle, signals.spider_idle)
        result = await running.result()
        return (
            result.finish_reason,
            *(result.stats.get(name, 0) for name in counted),
            len(result.warnings),
            idle.call_count,
        )

    jobdir = {"JOBDIR": str(tmp_path / "job")}
    two = {"CLOSESPIDER_PAGECOUNT": 2}
    page = site.url("/")
    assert await seen("scrapy", closed.url("/")) == ("finished", 1, 1, 1, 0, 0, 1)
    reason, *counts, _ = await seen("koster", closed.url("/"))
    assert (reason, *counts) == (FORBIDDEN, 1, 1, 0, 0, 0)
    assert await seen("scrapy", failing.url("/")) == ("finished", 1, 0, 2, 1, 0, 1)
    reason, attempts, *counts, idles = await seen("koster", failing.url("/"))
    assert (reason, *counts) == ("robotstxt_unavailable", 1, 0, 0, 1)
    assert attempts > 1
    assert idles > 1
    assert (await seen("koster", failing.url("/"), **jobdir))[0] == "robotstxt_waiting"
    assert (await seen("scrapy", page, **two))[0] == "closespider_pagecount"  # robots.txt counts
    assert (await seen("koster", page, **two))[0] == "finished"

"""How a crawl ends that robots.txt let fetch nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from harness.crawling import Crawl, CrawlResult
from harness.replies import Reply
from harness.server import Server, Site
from scrapy import signals

FORBIDDEN = "robotstxt_forbidden"


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


async def test_what_changes_for_monitors_is_as_docs_coming_from_scrapy_says(
    crawl: Crawl, server: Server, site: Site, tmp_path: Path
) -> None:
    counted = ["robotstxt/forbidden", "response_received_count", "log_count/ERROR"]
    closed, failing = server.site(), server.site()
    closed.robots, failing.robots = "User-agent: *\nDisallow: /\n", Reply(503)

    async def seen(url: str, **settings: Any) -> tuple[CrawlResult, list[int], int]:
        """The result, what is counted, and how often the spider was idle."""
        ours = {"KOSTER_DEFER_FIRST_SECS": 0.1, "KOSTER_IDLE_LIMIT_SECS": 0.5}
        running = crawl.start(urls=[url], settings=ours | settings)
        idle = Mock()
        running.crawler.signals.connect(idle, signals.spider_idle)
        result = await running.result()
        return result, [result.stats.get(name, 0) for name in counted], idle.call_count

    result, counts, _ = await seen(closed.url("/"))
    assert (result.finish_reason, counts, result.warnings) == (FORBIDDEN, [1, 0, 0], [])
    result, counts, idles = await seen(failing.url("/"))
    assert (result.finish_reason, counts) == ("robotstxt_unavailable", [1, 0, 0])
    assert result.stats["robotstxt/request_count"] > 1
    assert len(result.warnings) == 1
    assert idles > 1
    result, _, _ = await seen(failing.url("/"), JOBDIR=str(tmp_path / "job"))
    assert result.finish_reason == "robotstxt_waiting"
    result, _, _ = await seen(site.url("/"), CLOSESPIDER_PAGECOUNT=2)  # robots.txt is no page
    assert result.finish_reason == "finished"

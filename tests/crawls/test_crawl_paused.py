"""A crawl that the user pauses: it does not end meanwhile, and the limits run on."""

from __future__ import annotations

from typing import Any

import pytest
from harness.crawling import Crawl
from harness.replies import Reply
from harness.server import Server

LIMIT_SECS = 6.0
SOON: dict[str, Any] = {
    "KOSTER_DEFER_FIRST_SECS": 1,
    "KOSTER_DEFER_MAX_SECS": 1,
    "KOSTER_DEFER_LIMIT_SECS": LIMIT_SECS,
    "RETRY_ENABLED": False,
}


@pytest.mark.promise("docs/access.md", "A paused crawl: failed sites are still retried")
async def test_a_site_that_answers_in_a_pause_is_fetched_from_after_it(
    crawl: Crawl, server: Server
) -> None:
    failing = server.site()
    failing.robots = Reply(503)
    running = crawl.start(urls=failing.urls(5), settings=SOON)
    await crawl.until(lambda: failing.asked("/robots.txt") == 2, seconds=10)
    engine: Any = running.crawler.engine
    engine.pause()
    failing.robots = Reply(404)
    await crawl.sleep(2 * LIMIT_SECS)
    assert failing.pages_asked == []
    engine.unpause()
    result = await running.result()
    assert len(result.fetched) == 5

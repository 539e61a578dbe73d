"""Responses that wait for each other, beside a site that cannot be asked: the crawl ends in time.

They are being scraped, and none of them is work.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from harness.crawling import Crawl, RecordingSpider
from harness.replies import Reply
from harness.server import Server
from scrapy import Request
from scrapy.http import Response
from scrapy.utils.defer import maybe_deferred_to_future
from twisted.internet.defer import Deferred

from scrapy_koster import RobotsUnavailable

IDLE_SECS = 3.0
SOON: dict[str, Any] = {
    "KOSTER_IDLE_LIMIT_SECS": IDLE_SECS,
    "KOSTER_DEFER_FIRST_SECS": 0.5,
    "KOSTER_DEFER_MAX_SECS": 1,
    "RETRY_ENABLED": False,
}
"""KOSTER_DEFER_LIMIT_SECS stays at its 300 s."""
IN_TIME_SECS = 2 * IDLE_SECS + 2


class Sharing(RecordingSpider):
    """Its pages need one picture, which the first callback downloads for all of them."""

    picture = ""
    waiting: list[Deferred[None]] | None = None

    async def parse(self, response: Response, **arguments: Any) -> None:
        if self.waiting is not None:
            told: Deferred[None] = Deferred()
            self.waiting.append(told)
            await maybe_deferred_to_future(told)
            return
        self.waiting = []
        with suppress(RobotsUnavailable):
            await self.crawler.engine.download_async(Request(self.picture))
        for told in self.waiting:
            told.callback(None)


@pytest.mark.promise("docs/access.md", "a callback that waits for a picture is given up")
@pytest.mark.parametrize("is_down", [True, False])
async def test_the_idle_limit_holds(crawl: Crawl, server: Server, is_down: bool) -> None:
    site, pictures = server.site(), server.site(host="127.0.0.2")
    pictures.robots = Reply(503) if is_down else [Reply(503), Reply(503), Reply(body="")]
    arguments = {"picture": pictures.url("/logo")}
    result = await crawl(Sharing, urls=site.urls(10), settings=SOON, arguments=arguments)
    assert result.seconds < IN_TIME_SECS
    assert result.finish_reason == "finished"
    assert len(site.pages_asked) == 10
    assert ("koster/deferred/dropped" in result.stats) is is_down
    assert bool(pictures.pages_asked) is not is_down

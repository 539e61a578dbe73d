"""Responses that wait for each other, beside a site that cannot be asked: the crawl ends in time.

They are being scraped, and none of them is work.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from harness.crawling import Crawl, RecordingSpider
from harness.replies import Reply
from harness.server import Server
from scrapy import Request
from scrapy.http import Response
from scrapy.utils.defer import maybe_deferred_to_future
from twisted.internet.defer import Deferred, DeferredLock

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
    """Its pages need one picture, which one callback downloads at a time."""

    picture = ""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.lock = DeferredLock()

    async def download(self) -> None:
        try:
            await self.crawler.engine.download_async(Request(self.picture))
        except RobotsUnavailable as error:
            self.refused.append((self.picture, error))
        else:
            self.fetched.append(self.picture)


class WithLogo(Sharing):
    def page(self, response: Response) -> Any:
        yield {"file_urls": [self.picture]}


class WithFuture(Sharing):
    waiting: list[Deferred[None]] | None = None

    async def parse(self, response: Response, **arguments: Any) -> None:
        if self.waiting is not None:
            told: Deferred[None] = Deferred()
            self.waiting.append(told)
            await maybe_deferred_to_future(told)
            return
        self.waiting = []
        await self.download()
        for told in self.waiting:
            told.callback(None)


@pytest.mark.promise("docs/access.md", "a callback that waits for a picture is given up")
@pytest.mark.parametrize(
    ("spider", "is_down"), [(WithLogo, True), (WithFuture, True), (WithFuture, False)]
)
async def test_the_idle_limit_holds(
    crawl: Crawl, server: Server, tmp_path: Path, spider: type[Sharing], is_down: bool
) -> None:
    site, pictures = server.site(), server.site(host="127.0.0.2")
    pictures.robots = Reply(503) if is_down else [Reply(503), Reply(503), Reply(body="")]
    settings = SOON | {
        "FILES_STORE": str(tmp_path),
        "ITEM_PIPELINES": {"scrapy.pipelines.files.FilesPipeline": 1},
    }
    result = await crawl(
        spider, urls=site.urls(10), settings=settings, arguments={"picture": pictures.url("/logo")}
    )
    assert result.seconds < IN_TIME_SECS
    assert result.finish_reason == "finished"
    assert len(site.pages_asked) == 10
    assert ("koster/deferred/dropped" in result.stats) is is_down
    assert bool(pictures.pages_asked) is not is_down

"""A crawl that the user pauses: it does not end meanwhile, and the limits run on."""

from __future__ import annotations

from typing import Any

import pytest
from harness.crawling import Crawl, RecordingSpider
from harness.replies import Reply
from harness.server import Server
from scrapy import Request
from scrapy.http import Response

from scrapy_koster import RobotsUnavailable

LIMIT_SECS = 6.0
SOON: dict[str, Any] = {
    "KOSTER_DEFER_FIRST_SECS": 1,
    "KOSTER_DEFER_MAX_SECS": 1,
    "KOSTER_DEFER_LIMIT_SECS": LIMIT_SECS,
    "RETRY_ENABLED": False,
}


class Pictures(RecordingSpider):
    """Each page has a picture, which is downloaded past the scheduler."""

    pictures: Any = None

    async def parse(self, response: Response, **arguments: Any) -> None:
        self.fetched.append(response.url)
        picture = Request(self.pictures.url("/picture"))
        try:
            await self.crawler.engine.download_async(picture)
        except RobotsUnavailable as error:
            self.refused.append((picture.url, error))
        else:
            self.fetched.append(picture.url)


@pytest.mark.parametrize("is_in_place", [False, True], ids=["parked", "in place"])
async def test_the_limit_of_a_failed_site_runs_on(
    crawl: Crawl, server: Server, is_in_place: bool
) -> None:
    """And a paused crawl does not end, though it has nothing else to do."""
    site, failing = server.site(), server.site(host="127.0.0.2")
    failing.robots = Reply(503)
    running = crawl.start(
        Pictures if is_in_place else RecordingSpider,
        urls=site.urls(1) if is_in_place else failing.urls(20),
        settings=SOON | {"KOSTER_IDLE_LIMIT_SECS": LIMIT_SECS / 2},
        arguments={"pictures": failing} if is_in_place else {},
    )
    await crawl.until(lambda: failing.asked("/robots.txt") == 2, seconds=10)
    engine: Any = running.crawler.engine
    engine.pause()
    await crawl.sleep(2 * LIMIT_SECS)
    assert engine.running
    assert failing.asked("/robots.txt") > 2
    engine.unpause()
    result = await running.result()
    assert len(result.refused) == (1 if is_in_place else 20)
    assert all(isinstance(error, RobotsUnavailable) for _, error in result.refused)


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


async def test_what_is_under_way_when_it_is_paused_is_told_afterwards(
    crawl: Crawl, server: Server
) -> None:
    """The first answer of a site comes in a pause: its pages are fetched after it."""
    site = server.site()
    site.robots = Reply(body="", delay=2)
    running = crawl.start(urls=site.urls(5), settings=SOON)
    await crawl.until(lambda: site.asked("/robots.txt") == 1, seconds=10)
    engine: Any = running.crawler.engine
    engine.pause()
    await crawl.sleep(4)
    assert site.pages_asked == []
    engine.unpause()
    result = await running.result()
    assert len(result.fetched) == 5
    assert site.asked("/robots.txt") == 1


async def test_a_page_that_is_under_way_downloads_its_picture(crawl: Crawl, server: Server) -> None:
    """Scrapy finishes what it has begun when it is paused: a site is asked once for that."""
    site, pictures = server.site(), server.site(host="127.0.0.2")
    site.pages(Reply(body="page", delay=1))
    running = crawl.start(
        Pictures, urls=site.urls(1), settings=SOON, arguments={"pictures": pictures}
    )
    await crawl.until(lambda: site.pages_asked, seconds=10)
    engine: Any = running.crawler.engine
    engine.pause()
    await crawl.until(lambda: pictures.pages_asked == ["/picture"], seconds=10)
    engine.unpause()
    result = await running.result()
    assert len(result.fetched) == 2


async def test_a_crawl_that_is_closed_in_a_pause(crawl: Crawl, server: Server) -> None:
    site, failing = server.site(), server.site(host="127.0.0.2")
    failing.robots = Reply(503)
    running = crawl.start(
        Pictures,
        urls=[*failing.urls(3), *site.urls(2)],
        settings=SOON,
        arguments={"pictures": failing},
    )
    await crawl.until(lambda: failing.asked("/robots.txt") == 2, seconds=10)
    engine: Any = running.crawler.engine
    engine.pause()
    await crawl.sleep(1)
    result = await running.stop()
    assert len(result.refused) == 2
    assert result.stats["koster/parked"] == 3

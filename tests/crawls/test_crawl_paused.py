"""A crawl that the user pauses: nothing is asked meanwhile, and no limit runs."""

from __future__ import annotations

from typing import Any

import pytest
from harness.crawling import Crawl, RecordingSpider, Running
from harness.replies import Reply
from harness.server import Server, Site
from harness.virtual import time
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


async def paused(crawl: Crawl, running: Running, failing: Site, secs: float) -> None:
    """Pause it for so long once the site has failed twice; nothing is asked meanwhile."""
    await crawl.until(lambda: failing.asked("/robots.txt") == 2, seconds=10)
    await crawl.sleep(0.2)  # the answer is there
    engine: Any = running.crawler.engine
    engine.pause()
    engine.pause()
    await crawl.sleep(secs)
    assert failing.asked("/robots.txt") == 2
    failing.robots = "User-agent: *\nDisallow:\n"
    engine.unpause()
    engine.unpause()


@pytest.mark.parametrize("is_in_place", [False, True], ids=["parked", "in place"])
async def test_a_pause_is_no_part_of_the_limits(
    crawl: Crawl, server: Server, is_in_place: bool
) -> None:
    """Neither of KOSTER_DEFER_LIMIT_SECS nor of KOSTER_IDLE_LIMIT_SECS."""
    site, failing = server.site(), server.site(host="127.0.0.2")
    failing.robots = Reply(503)
    urls = site.urls(1) if is_in_place else failing.urls(20)
    running = crawl.start(
        Pictures if is_in_place else RecordingSpider,
        urls=urls,
        settings=SOON | {"KOSTER_IDLE_LIMIT_SECS": LIMIT_SECS - 1},
        arguments={"pictures": failing} if is_in_place else {},
    )
    await paused(crawl, running, failing, 2 * LIMIT_SECS)
    result = await running.result()
    assert result.refused == ()
    assert len(result.fetched) == (2 if is_in_place else 20)


async def test_the_limit_runs_on_after_a_pause(crawl: Crawl, server: Server) -> None:
    """From where it was."""
    site, failing = server.site(), server.site(host="127.0.0.2")
    failing.robots = Reply(503)
    began = time.monotonic()
    running = crawl.start(
        urls=[*failing.urls(3), *site.urls(40)], settings=SOON | {"DOWNLOAD_DELAY": 0.5}
    )
    await crawl.until(lambda: failing.asked("/robots.txt") == 3, seconds=10)
    engine: Any = running.crawler.engine
    engine.pause()
    await crawl.sleep(2 * LIMIT_SECS)
    engine.unpause()
    spider: Any = running.crawler.spider
    await crawl.until(lambda: len(spider.refused) == 3)
    assert 3 * LIMIT_SECS - 1 < time.monotonic() - began < 3 * LIMIT_SECS + 3
    assert all(isinstance(error, RobotsUnavailable) for _, error in spider.refused)
    await running.stop()


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


async def test_who_comes_in_a_pause_waits_too(crawl: Crawl, server: Server) -> None:
    """Though the site has failed for longer than the limit by then."""
    site, pictures = server.site(), server.site(host="127.0.0.2")
    pictures.robots = Reply(503)
    site.page("/slow", Reply(body="page", delay=2 * LIMIT_SECS))
    running = crawl.start(
        Pictures,
        urls=[site.url("/slow"), site.url("/quick")],
        settings=SOON,
        arguments={"pictures": pictures},
    )
    await paused(crawl, running, pictures, 3 * LIMIT_SECS)
    result = await running.result()
    assert result.refused == ()
    assert pictures.pages_asked == ["/picture", "/picture"]


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
    await crawl.sleep(2 * LIMIT_SECS)
    result = await running.stop()
    assert len(result.refused) == 2
    assert result.stats["koster/parked"] == 3

"""The crawls of the tests, tried with Scrapy alone, and the watch over what tests leave behind."""

from __future__ import annotations

import pytest
from scrapy.utils.asyncio import call_later

from harness.crawling import Crawl
from harness.loops import Loop
from harness.replies import Hang
from harness.server import Server


def test_a_crawl_that_hangs_fails(loop: Loop, crawl: Crawl, server: Server) -> None:
    site = server.site()
    site.pages(Hang())
    with pytest.raises(pytest.fail.Exception, match=r"had not ended after 0.5 s"):
        loop.run(lambda: crawl(urls=site.urls(3), robots=None), 0.5)
    assert crawl.unfinished()


def test_a_timer_that_is_left_fails(loop: Loop) -> None:
    timers = []

    async def test() -> None:
        timers.append(call_later(30, print))

    with pytest.raises(pytest.fail.Exception, match="left behind"):
        loop.run(test, 10)
    timers[0].cancel()

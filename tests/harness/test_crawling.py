"""The crawls of the tests, tried with Scrapy alone, and the watch over what tests leave behind."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from scrapy.utils.asyncio import call_later, is_asyncio_available
from twisted.internet.defer import fail
from twisted.python.failure import Failure

from harness.clocks import sleep
from harness.crawling import Crawl, RecordingSpider
from harness.loops import Loop
from harness.replies import Hang
from harness.server import Server


async def test_a_crawl_that_logs_an_exception_fails(crawl: Crawl, server: Server) -> None:
    class Broken(RecordingSpider):
        def page(self, response: Any) -> Any:
            raise ZeroDivisionError

    with pytest.raises(AssertionError, match="ZeroDivisionError"):
        await crawl(Broken, urls=server.site().urls(1), robots=None)


class TestWatch:
    """What a test must not do."""

    def test_hang(self, loop: Loop, crawl: Crawl) -> None:
        with pytest.raises(pytest.fail.Exception, match=r"had not ended after 0.2 s"):
            loop.run(lambda: crawl.sleep(30), 0.2)

    def test_hang_in_a_crawl(self, loop: Loop, crawl: Crawl, server: Server) -> None:
        site = server.site()
        site.pages(Hang())
        with pytest.raises(pytest.fail.Exception, match=r"had not ended after 0.5 s"):
            loop.run(lambda: crawl(urls=site.urls(3), robots=None), 0.5)
        assert crawl.unfinished()

    def test_leave_a_timer(self, loop: Loop) -> None:
        timers = []

        async def test() -> None:
            timers.append(call_later(30, print))

        with pytest.raises(pytest.fail.Exception, match="left behind"):
            loop.run(test, 10)
        timers[0].cancel()

    def test_leave_a_task(self, loop: Loop) -> None:
        tasks = []

        async def test() -> None:
            if not is_asyncio_available():
                pytest.skip("no asyncio")
            tasks.append(asyncio.ensure_future(asyncio.sleep(30)))

        with pytest.raises(pytest.fail.Exception, match="left behind"):
            loop.run(test, 10)
        if not tasks[0].get_loop().is_closed():
            tasks[0].cancel()

    def test_leave_a_failure(self, loop: Loop) -> None:
        async def test() -> None:
            fail(Failure(ZeroDivisionError()))

        with pytest.raises(pytest.fail.Exception, match="ZeroDivisionError"):
            loop.run(test, 10)

    def test_fail(self, loop: Loop) -> None:
        async def test() -> None:
            raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            loop.run(test, 10)

    def test_what_hangs_is_broken_off(self, loop: Loop) -> None:
        ended = []

        async def test() -> None:
            try:
                await sleep(30)
            finally:
                ended.append(True)

        async def nothing() -> None:
            await sleep(0)

        with pytest.raises(pytest.fail.Exception):
            loop.run(test, 0.1)
        loop.run(nothing, 10)
        assert ended == [True]

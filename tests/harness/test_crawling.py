"""The crawls of the tests, tried with Scrapy alone, and the watch over what tests leave behind."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
from scrapy import Request
from scrapy.exceptions import DownloadTimeoutError, IgnoreRequest
from scrapy.utils.asyncio import call_later, is_asyncio_available
from twisted.internet.defer import fail
from twisted.python.failure import Failure

from harness.clocks import sleep
from harness.crawling import Crawl, RecordingSpider
from harness.loops import Loop
from harness.replies import Asked, Hang, Reply
from harness.server import Server


class Follower(RecordingSpider):
    depth = "1"

    def page(self, response: Any) -> Any:
        yield {"url": response.url}
        if response.url.endswith("/page0"):
            yield self.ask(response.urljoin("/followed"))


async def test_what_a_crawl_tells(crawl: Crawl, server: Server) -> None:
    site = server.site()
    result = await crawl(urls=site.urls(3), robots=None)
    assert sorted(result.fetched) == site.urls(3)
    assert result.refused == ()
    assert result.stats["downloader/response_count"] == 3
    assert result.finish_reason == "finished"
    assert "Closing spider (finished)" in result.logged(name="scrapy.core")


async def test_scrapys_own_middleware(crawl: Crawl, server: Server) -> None:
    site = server.site()
    site.robots = "User-agent: *\nDisallow: /page0"
    result = await crawl(urls=[site.url("/page0")], robots="scrapy")
    [(url, error)] = result.refused
    assert (url, type(error)) == (site.url("/page0"), IgnoreRequest)
    assert site.pages_asked == []


async def test_scrapys_own_middleware_fetches_forbidden_pages(crawl: Crawl, server: Server) -> None:
    """Why this project exists. If this fails Scrapy has been mended, as the README should say."""
    site = server.site()
    site.robots = Reply(200, "User-agent: *\nDisallow: /", delay=0.5)
    result = await crawl(urls=site.urls(40), robots="scrapy", settings={"CONCURRENT_REQUESTS": 16})
    assert len(site.pages_asked) == len(result.fetched) == 13


async def test_a_spider_of_ones_own(crawl: Crawl, server: Server) -> None:
    site = server.site()
    arguments = {"depth": "2"}
    result = await crawl(
        Follower, urls=site.urls(1), robots=None, arguments=arguments, headers={"X-Test": "1"}
    )
    assert result.fetched == (site.url("/page0"), site.url("/followed"))
    assert result.items == tuple({"url": url} for url in result.fetched)
    assert isinstance(result.crawler.spider, Follower)
    assert result.crawler.spider.depth == "2"
    assert site.requests[0].header("X-Test") == "1"


async def test_requests_and_meta(crawl: Crawl, server: Server) -> None:
    site, proxy = server.site(), server.proxy()
    request = Request(site.url("/own"), headers={"X-Own": "1"})
    result = await crawl(
        urls=[request, site.url("/proxied")], robots=None, meta={"proxy": proxy.url()}
    )
    assert len(result.fetched) == 2
    assert [asked.target for asked in proxy.requests] == [site.url("/proxied")]


async def test_https(crawl: Crawl, server: Server) -> None:
    site = server.site("https")
    assert (await crawl(urls=[site.url()], robots=None)).fetched == (site.url(),)


async def test_several_at_once(crawl: Crawl, server: Server) -> None:
    first, second = server.site(), server.site()
    gate = server.gate()
    first.pages(Reply(gate=gate))

    def answer(_asked: Asked) -> Reply:
        gate.open()
        return Reply()

    second.pages(answer)
    results = await crawl.together(
        crawl(urls=first.urls(1), robots=None), crawl(urls=second.urls(1), robots=None)
    )
    assert [result.fetched for result in results] == [tuple(first.urls(1)), tuple(second.urls(1))]
    assert all("Spider closed (finished)" in result.logged() for result in results)


@pytest.mark.real_time  # a thread opens the gate
async def test_stopping_in_the_middle(crawl: Crawl, server: Server) -> None:
    site, gate = server.site(), server.gate()
    site.pages(Reply(gate=gate))
    running = crawl.start(urls=site.urls(20), robots=None, settings={"CONCURRENT_REQUESTS": 4})
    await crawl.until(lambda: len(site.pages_asked) == 4)
    threading.Timer(0.1, gate.open).start()
    result = await running.stop()
    assert result.finish_reason == "shutdown"
    assert len(result.fetched) == 4


async def test_a_result_may_be_asked_for_again(crawl: Crawl, server: Server) -> None:
    running = crawl.start(urls=server.site().urls(1), robots=None)
    first, second = await crawl.together(running.result(), running.result())
    assert first is second is await running.result()


async def test_a_crawl_that_cannot_start(crawl: Crawl) -> None:
    with pytest.raises(NameError, match="nothing"):
        await crawl(urls=["data:,x"], robots=None, settings={"SCHEDULER": "scrapy.nothing"})


async def test_an_answer_that_never_comes(crawl: Crawl, server: Server) -> None:
    site = server.site()
    site.pages(Hang())
    settings = {"DOWNLOAD_TIMEOUT": 0.5, "RETRY_ENABLED": False}
    [(_, error)] = (await crawl(urls=site.urls(1), robots=None, settings=settings)).refused
    assert isinstance(error, DownloadTimeoutError)


async def test_until_gives_up(crawl: Crawl) -> None:
    with pytest.raises(AssertionError, match=r"not so after 0.1 s"):
        await crawl.until(lambda: False, seconds=0.1)


async def test_together_raises_what_one_raised(crawl: Crawl) -> None:
    async def one() -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await crawl.together(one(), crawl.sleep(0.05))


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

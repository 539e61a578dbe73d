"""A crawl whose scheduler is neither Scrapy's nor a subclass of it."""

from __future__ import annotations

import logging
from collections import deque
from typing import TYPE_CHECKING, Any

import pytest
from harness.crawling import Crawl, RecordingSpider
from harness.replies import Reply
from harness.server import Server, Site
from scrapy.core.scheduler import BaseScheduler

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.crawler import Crawler

SOON = {"KOSTER_IDLE_LIMIT_SECS": 1, "KOSTER_DEFER_FIRST_SECS": 0.2}


class Plain(BaseScheduler):
    """What Scrapy asks of a scheduler, and no more: it has no length."""

    def __init__(self) -> None:
        self.queue: deque[Request] = deque()

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Plain:
        scheduler = cls()
        crawler.spider.scheduler = scheduler  # type: ignore[union-attr]
        return scheduler

    def has_pending_requests(self) -> bool:
        return bool(self.queue)

    def enqueue_request(self, request: Request) -> bool:
        self.queue.append(request)
        return True

    def next_request(self) -> Request | None:
        return self.queue.popleft() if self.queue else None


class Keeping(Plain):
    """Says that what it holds is there for the next run, as that of scrapy-redis does."""

    persist = True


class OnlyUrls(RecordingSpider):
    scheduler: Plain


@pytest.fixture
def good(server: Server) -> Site:
    site = server.site()
    site.robots = ""
    return site


@pytest.fixture
def failing(server: Server) -> Site:
    site = server.site()
    site.robots = Reply(503)
    return site


def settings_of(scheduler: type[Plain], **more: Any) -> dict[str, Any]:
    return {**SOON, "SCHEDULER": scheduler, **more}


@pytest.mark.promise("docs/access.md", "a persistent scheduler keeps waiting requests")
async def test_one_that_keeps_its_requests_is_given_those_that_wait(
    crawl: Crawl, good: Site, failing: Site
) -> None:
    urls = [good.url("/"), *failing.urls(3)]
    result = await crawl(OnlyUrls, urls=urls, settings=settings_of(Keeping))
    assert result.fetched == (good.url("/"),)
    assert not result.refused
    kept = result.crawler.spider.scheduler.queue  # type: ignore[union-attr]
    assert sorted(request.url for request in kept) == sorted(failing.urls(3))
    said = " ".join(result.logged(logging.INFO))
    assert "kept for the next run" in said
    assert result.finish_reason == "robotstxt_waiting"


async def test_one_that_may_keep_them_is_given_them_by_a_crawl_that_is_stopped(
    crawl: Crawl, failing: Site
) -> None:
    running = crawl.start(
        OnlyUrls, urls=failing.urls(3), settings=settings_of(Plain, KOSTER_IDLE_LIMIT_SECS=100)
    )
    await crawl.until(lambda: failing.asked("/robots.txt"))
    result = await running.stop()
    given_back = result.crawler.spider.scheduler.queue  # type: ignore[union-attr]
    assert sorted(request.url for request in given_back) == sorted(failing.urls(3))
    assert any("go back to the scheduler" in said for said in result.logged(logging.INFO))

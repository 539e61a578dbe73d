"""A crawl whose scheduler is neither Scrapy's nor a subclass of it."""

from __future__ import annotations

import logging
from collections import deque

from harness.crawling import Crawl, RecordingSpider
from harness.replies import Reply
from harness.server import Server
from scrapy import Request
from scrapy.core.scheduler import BaseScheduler
from scrapy.crawler import Crawler

SOON = {"KOSTER_IDLE_LIMIT_SECS": 1, "KOSTER_DEFER_FIRST_SECS": 0.2}


class Plain(BaseScheduler):
    """What Scrapy asks of a scheduler, and no more: it has no length."""

    persist = True
    """What it holds is there for the next run, as with that of scrapy-redis."""

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


class OnlyUrls(RecordingSpider):
    scheduler: Plain


async def test_one_that_keeps_its_requests_is_given_those_that_wait(
    crawl: Crawl, server: Server
) -> None:
    good, failing = server.site(), server.site()
    failing.robots = Reply(503)
    urls = [good.url("/"), *failing.urls(3)]
    result = await crawl(OnlyUrls, urls=urls, settings={**SOON, "SCHEDULER": Plain})
    assert result.fetched == (good.url("/"),)
    assert not result.refused
    kept = result.crawler.spider.scheduler.queue  # type: ignore[union-attr]
    assert sorted(request.url for request in kept) == sorted(failing.urls(3))
    said = " ".join(result.logged(logging.INFO))
    assert "kept for the next run" in said
    assert result.finish_reason == "robotstxt_waiting"

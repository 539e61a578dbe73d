"""The finish reasons of crawls that robots.txt let fetch nothing, or not everything."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy import signals
from scrapy.exceptions import CloseSpider

from scrapy_koster.crawl.engine.robots_mark import is_for_robots_txt
from scrapy_koster.crawl.exceptions import RobotsForbidden

if TYPE_CHECKING:
    from collections.abc import Callable

    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.http import Response

    from scrapy_koster.crawl.config import Config

FORBIDDEN = "robotstxt_forbidden"
"""What a crawl ends with of which every request was forbidden, in place of "finished"."""
WAITING = "robotstxt_waiting"
"""What a crawl ends with whose requests wait for the next run."""


class Finish:
    """Ends a crawl as FORBIDDEN if every request of it was forbidden, and no other one was met.

    It looks until the first request is sent, or ends in another way: that costs a crawl nothing.
    """

    def __init__(self, crawler: Crawler, config: Config) -> None:
        self._crawler = crawler
        self._forbidden = False
        self._handlers: dict[object, Callable[..., None]] = {}
        if not config.dry_run:
            self._handlers = {
                signals.request_reached_downloader: self._fetches,
                signals.response_received: self._fetches,  # a page may come out of a cache
                signals.spider_error: self._spider_error,
                signals.spider_idle: self._spider_idle,
            }
        for signal, handler in self._handlers.items():
            crawler.signals.connect(handler, signal=signal)

    def ended_with(self, exception: Exception) -> None:
        """Take note of how a request has ended that was not fetched."""
        if isinstance(exception, RobotsForbidden):
            self._forbidden = True
        else:
            self._look_no_more()

    def _fetches(self, request: Request) -> None:
        if not is_for_robots_txt(request):
            self._look_no_more()

    def _look_no_more(self) -> None:
        for signal, handler in self._handlers.items():
            self._crawler.signals.disconnect(handler, signal=signal)
        self._handlers = {}

    def _spider_error(self, response: Response | None) -> None:
        if response is None:  # start() has raised, which is a finish reason of its own
            self._look_no_more()

    def _spider_idle(self) -> None:
        if self._forbidden:
            raise CloseSpider(FORBIDDEN)

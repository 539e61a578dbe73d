"""The finish reasons of crawls whose requests were forbidden, or wait for the next run."""

from __future__ import annotations

from collections.abc import Callable

from scrapy import Request, signals
from scrapy.crawler import Crawler
from scrapy.exceptions import CloseSpider

from scrapy_koster.crawl.engine.private import is_for_robots_txt
from scrapy_koster.crawl.exceptions import RobotsForbidden

FORBIDDEN = "robotstxt_forbidden"
"""The finish reason instead of "finished" if every request was forbidden."""
WAITING = "robotstxt_waiting"
"""The finish reason if requests wait for the next run."""


class Finish:
    """Ends an idle crawl with the reason FORBIDDEN if every request was forbidden.

    The handlers are disconnected when a page is requested or comes from a cache, when a request
    fails for another reason, or when ``start`` of the spider raises an error. After that, the
    finish reason is not FORBIDDEN.
    """

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._forbidden = False
        self._handlers: dict[object, Callable[..., None]] = {
            signals.request_reached_downloader: self._fetches,
            signals.response_received: self._fetches,  # a page may come out of a cache
            signals.spider_error: self._look_no_more,
            signals.spider_idle: self._spider_idle,
        }
        for signal, handler in self._handlers.items():
            crawler.signals.connect(handler, signal=signal)

    def ended_with(self, exception: Exception) -> None:
        """Note *exception*, with which a request failed."""
        if isinstance(exception, RobotsForbidden):
            self._forbidden = True
        else:
            self._look_no_more()

    def _fetches(self, request: Request) -> None:
        if not is_for_robots_txt(request):
            self._look_no_more()

    def _look_no_more(self, response: object = None) -> None:
        if response is not None:  # an error of a callback or errback; start() has no response
            return
        for signal, handler in self._handlers.items():
            self._crawler.signals.disconnect(handler, signal=signal)
        self._handlers = {}

    def _spider_idle(self) -> None:
        if self._forbidden:
            raise CloseSpider(FORBIDDEN)

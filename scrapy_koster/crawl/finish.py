"""The finish reasons of crawls whose requests were forbidden, or wait for the next run."""

from __future__ import annotations

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

    The reason is another if a page came from its site or from a cache, if a request failed for
    another reason, or if ``start`` of the spider raised an error.
    """

    def __init__(self, crawler: Crawler) -> None:
        self._is_forbidden = self._has_other = False
        crawler.signals.connect(self._spider_error, signal=signals.spider_error)
        crawler.signals.connect(self._spider_idle, signal=signals.spider_idle)

    def ended(self, request: Request, error: Exception | None = None) -> None:
        """Note that *request* ended: with a page, or with *error*."""
        if isinstance(error, RobotsForbidden):
            self._is_forbidden = True
        elif not is_for_robots_txt(request):
            self._has_other = True

    def _spider_error(self, response: object) -> None:
        if response is None:  # start() has no response, a callback or an errback has one
            self._has_other = True

    def _spider_idle(self) -> None:
        if self._is_forbidden and not self._has_other:
            raise CloseSpider(FORBIDDEN)

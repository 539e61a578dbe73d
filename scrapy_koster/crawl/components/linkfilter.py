"""The spider middleware that drops forbidden links before they are queued (KOSTER_FILTER_LINKS)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from scrapy import Request, signals
from scrapy.exceptions import CloseSpider, NotConfigured
from scrapy.utils.asyncgen import as_async_generator
from scrapy.utils.defer import ensure_awaitable
from scrapy.utils.spider import iterate_spider_output
from twisted.python.failure import Failure

from scrapy_koster.crawl.components.downloadermiddleware import KosterMiddleware
from scrapy_koster.crawl.config import config_of
from scrapy_koster.crawl.engine.notconfigured import not_disabled
from scrapy_koster.crawl.exceptions import RobotsForbidden
from scrapy_koster.crawl.messages.log import Log

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from scrapy.crawler import Crawler
    from scrapy.http import Response


class LinkFilterMiddleware:
    """Drops forbidden requests of callbacks before they are queued, and calls their errbacks.

    Enabled by KOSTER_FILTER_LINKS. It needs the highest order of all spider middlewares, so that
    requests and items from errbacks pass through the others.
    """

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> LinkFilterMiddleware:
        """Create it. Raises ValueError, which stops the crawl, if a setting is invalid."""
        if not crawler.settings.getbool("ROBOTSTXT_OBEY"):
            raise NotConfigured
        with not_disabled(cls.__name__):
            config = config_of(crawler)
            if config.filter_links and not config.dry_run:
                return cls(crawler)
        raise NotConfigured  # without a word: it is the user's

    async def process_spider_output(
        self,
        response: Response,  # noqa: ARG002  # Scrapy gives it by name
        result: AsyncIterator[Any],
    ) -> AsyncIterator[Any]:
        """Yield all output except forbidden requests, and the output of errbacks, in order."""
        middleware = self._crawler.get_downloader_middleware(KosterMiddleware)
        async for output in result:
            if middleware is None or (error := _refusal(middleware, output)) is None:
                yield output
            elif output.errback is not None:
                async for each in self._errback(output, error):
                    yield each

    async def _errback(self, request: Request, error: RobotsForbidden) -> AsyncIterator[Any]:
        """Call the errback of *request* as Scrapy does, and yield its output.

        An error of the errback is logged and counted as an error of the spider.
        """
        failure = Failure(error)
        failure.request = request  # type: ignore[attr-defined]  # as Scrapy does
        try:
            output = request.errback(failure)  # type: ignore[misc]  # it has one
            if isinstance(output, Failure):  # the errback did not handle it
                return
            found = await ensure_awaitable(iterate_spider_output(output))
            async for each in as_async_generator(found):
                yield each
        except CloseSpider:
            raise
        except Exception as raised:  # noqa: BLE001  # it may be anybody's
            if raised is not error:
                self._spider_error(request, raised)

    def _spider_error(self, request: Request, error: Exception) -> None:
        crawler, failure = self._crawler, Failure(error)
        Log(__name__, crawler).defect(
            "Error while the errback of %(request)s ran, whose link was dropped",
            error,
            request=request,
        )
        crawler.signals.send_catch_log(
            signals.spider_error, failure=failure, response=failure, spider=crawler.spider
        )
        for name in ("count", type(error).__name__):
            crawler.stats.inc_value(f"spider_exceptions/{name}")


def _refusal(middleware: KosterMiddleware, output: Any) -> RobotsForbidden | None:
    """Return the error of a request that is known to be forbidden, None for other output."""
    if not isinstance(output, Request):
        return None
    try:
        return middleware.enforcement.drop_link(output)
    except Exception:  # noqa: BLE001  # the request is queued, and its errback gets the error
        return None

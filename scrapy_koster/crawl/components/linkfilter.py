"""The spider middleware that drops forbidden links before they are queued (KOSTER_FILTER_LINKS)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from scrapy import Request
from scrapy.exceptions import NotConfigured

from scrapy_koster.crawl.assembly import assembly_of
from scrapy_koster.crawl.components.downloadermiddleware import KosterMiddleware
from scrapy_koster.crawl.config import config_of
from scrapy_koster.crawl.engine.notconfigured import not_disabled
from scrapy_koster.crawl.exceptions import RobotsForbidden

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from scrapy.crawler import Crawler
    from scrapy.http import Response

    from scrapy_koster.protocol.verdict import Verdict


class LinkFilterMiddleware:
    """Drops forbidden requests of callbacks before they are queued, and calls their errbacks.

    Enabled by KOSTER_FILTER_LINKS. It needs the highest order of all spider middlewares, so that
    requests and items from errbacks pass through the others.
    """

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._engine = assembly_of(crawler).engine

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
            verdict = _refusal(middleware, output)
            if verdict is None:
                yield output
                continue
            assert middleware is not None
            middleware.filtered(output, verdict)
            async for yielded in self._engine.errback(output, RobotsForbidden(verdict)):
                yield yielded


def _refusal(middleware: KosterMiddleware | None, output: Any) -> Verdict | None:
    if middleware is None or not isinstance(output, Request):
        return None
    try:
        return middleware.refusal(output)
    except Exception:  # noqa: BLE001  # it is queued, and its errback is told
        return None

"""A mixin for SitemapSpider that uses the crawl's copies of robots.txt."""

from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

from scrapy.spiders import SitemapSpider
from scrapy.utils.defer import deferred_from_coro, maybe_deferred_to_future
from twisted.internet.defer import CancelledError, DeferredQueue

from scrapy_koster.crawl.components.downloadermiddleware import KosterMiddleware
from scrapy_koster.crawl.exceptions import RobotsUnavailable
from scrapy_koster.crawl.messages.log import Log
from scrapy_koster.protocol.path import is_robots_txt


class RobotsSitemapMixin(SitemapSpider):
    """Mixin that lets a SitemapSpider find sitemaps in the crawl's copies of robots.txt.

    Use ``class MySpider(RobotsSitemapMixin, SitemapSpider)``. The spider sends no second request
    for a robots.txt in ``sitemap_urls``. The mixin overrides ``start``, and has no effect without
    KosterMiddleware.
    """

    async def start(self) -> AsyncIterator[Any]:
        """Yield the requests for sitemaps. Sitemaps in a robots.txt follow when it is known."""
        middleware: Any = self.crawler.get_downloader_middleware(KosterMiddleware)
        found: DeferredQueue[Any] = DeferredQueue()
        asked = [] if middleware is None else list(filter(is_robots_txt, self.sitemap_urls))
        found.put([url for url in self.sitemap_urls if url not in asked])
        for url in asked:  # at the same time: a hanging site does not delay others
            deferred_from_coro(self._look_up(url, middleware)).addCallback(found.put)
        # Without asyncio, the engine would log the CancelledError that ends start().
        with suppress(CancelledError):
            for _ in range(1 + len(asked)):
                self.sitemap_urls = await maybe_deferred_to_future(found.get())
                async for request in super().start():
                    yield request

    async def _look_up(self, url: str, middleware: KosterMiddleware) -> list[str]:
        """Return the URLs of the sitemaps in the robots.txt *url*. Empty if they are unknown."""
        log = Log(__name__, self.crawler)
        try:
            return await middleware.sitemaps(url)
        except RobotsUnavailable as error:
            log.warning(
                "The sitemaps of %(url)s are unknown: %(verdict)s", url=url, verdict=error.verdict
            )
        except Exception as error:  # noqa: BLE001  # no caller awaits this
            log.defect(
                "Error while looking up the sitemaps of %(url)s. Fix the URL, or the component"
                " that the traceback names",
                error,
                url=url,
            )
        return []

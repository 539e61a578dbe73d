"""The spider middleware that drops forbidden links before they are queued (KOSTER_FILTER_LINKS)."""

from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

from scrapy import Request
from scrapy.exceptions import CloseSpider
from scrapy.http import Response
from scrapy.utils.asyncgen import as_async_generator
from scrapy.utils.defer import ensure_awaitable
from scrapy.utils.spider import iterate_spider_output
from twisted.python.failure import Failure

from scrapy_koster.crawl.config import Config
from scrapy_koster.crawl.enforcement import Component
from scrapy_koster.crawl.exceptions import RobotsForbidden


class LinkFilterMiddleware(Component):
    """Drops forbidden requests from callbacks, and calls the errbacks of these requests.

    Dropped requests are not queued. Enabled by KOSTER_FILTER_LINKS. This middleware needs the
    highest order of the spider middlewares, so that the others process the output of errbacks.
    """

    settings = "KOSTER_FILTER_LINKS"

    @staticmethod
    def is_on(config: Config) -> bool:
        """Return whether links are filtered. A dry run drops no link."""
        return config.filter_links and not config.dry_run

    async def process_spider_output(
        self,
        response: Response,  # noqa: ARG002  # Scrapy passes it by name
        result: AsyncIterator[Any],
    ) -> AsyncIterator[Any]:
        """Yield the output, with the output of the errback in place of a forbidden request."""
        async for output in result:
            error = None
            if isinstance(output, Request):
                with suppress(Exception):  # KosterMiddleware raises the error again
                    error = self.enforcement.drop_link(output)
            if error is None:
                yield output
            elif output.errback is not None:
                async for each in self._errback(output, error):
                    yield each

    async def _errback(self, request: Request, error: RobotsForbidden) -> AsyncIterator[Any]:
        """Yield the output of the errback of *request*. The errback gets *error* in a Failure.

        A CloseSpider of the errback is raised. If the errback raises any other error than *error*,
        *request* is yielded. KosterMiddleware then refuses *request*, and Scrapy calls the errback
        again and logs the error of the errback.
        """
        failure = Failure(error)
        failure.request = request  # type: ignore[attr-defined]  # as Scrapy does
        try:
            output = request.errback(failure)  # type: ignore[misc]  # not None
            if isinstance(output, Failure):  # the errback has returned the failure
                return
            found = await ensure_awaitable(iterate_spider_output(output))
            async for each in as_async_generator(found):
                yield each
        except CloseSpider:
            raise
        except Exception as raised:  # noqa: BLE001  # an errback may raise any error
            if raised is not error:
                yield request

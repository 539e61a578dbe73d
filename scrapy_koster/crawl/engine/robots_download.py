"""Sends requests for a robots.txt as the crawl sends its pages, but through no slot."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from scrapy.http import Response

from scrapy_koster.crawl.engine.answer_limit import limited_handler

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from scrapy import Request
    from scrapy.crawler import Crawler

    from scrapy_koster.crawl.engine.answer_limit import AnswerLimit


class RobotsDownload:
    """Uses the downloader middlewares and the download handlers of a crawl."""

    def __init__(self, crawler: Crawler) -> None:
        downloader: Any = crawler.engine.downloader
        self._middlewares = downloader.middleware
        self._handlers = downloader.handlers

    async def through_middlewares(
        self, send: Callable[[Request], Coroutine[Any, Any, Response]], request: Request
    ) -> Response | Request:
        """Return the result of the downloader middlewares for *request*; they call *send*."""
        result: Response | Request = await self._middlewares.download_async(send, request)
        return result

    async def send(self, request: Request, limit: AnswerLimit) -> Response:
        """Return the response to *request*. TypeError if the handler returns something else.

        An answer that passes *limit* ends at once with Scrapy's handler for HTTP/1.1.
        """
        handler = self._handler(request.url)
        limited = limited_handler(handler, limit)
        try:
            response: object = await (
                self._handlers.download_request_async(request)
                if limited is None
                else limited.download_request(request)
            )
        finally:
            limit.end()
        if not isinstance(response, Response):
            raise TypeError(
                "download_request() of the download handler"
                f" {type(handler).__qualname__} returned a value of type"
                f" {type(response).__name__}, not a Response"
            )
        return response

    def is_zyte_api(self, url: str) -> bool:
        """Return whether scrapy-zyte-api sends it, which warns of headers it could set better."""
        kinds = type(self._handler(url)).__mro__
        return any(kind.__module__.startswith("scrapy_zyte_api") for kind in kinds)

    def _handler(self, url: str) -> Any:
        return self._handlers._get_handler(url.partition(":")[0])  # noqa: SLF001

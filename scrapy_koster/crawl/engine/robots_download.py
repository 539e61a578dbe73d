"""Sends requests for a robots.txt like pages of the crawl, but without a slot."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from scrapy.http import Response

from scrapy_koster.crawl.engine.answer_limit import limited_handler

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from scrapy import Request
    from scrapy.crawler import Crawler

    from scrapy_koster.crawl.engine.answer_limit import AnswerLimit


async def through_middlewares(
    crawler: Crawler, send: Callable[[Request], Coroutine[Any, Any, Response]], request: Request
) -> Response | Request:
    """Return the result of the downloader middlewares for *request*, which call *send*."""
    middlewares: Any = crawler.engine.downloader.middleware
    result: Response | Request = await middlewares.download_async(send, request)
    return result


async def send_limited(crawler: Crawler, request: Request, limit: AnswerLimit) -> Response:
    """Return the response to *request*. Raises TypeError if the handler returns another type.

    With Scrapy's handler for HTTP/1.1, *limit* ends a longer answer.
    """
    handler = _handler(crawler, request.url)
    limited = limited_handler(handler, limit)
    handlers: Any = crawler.engine.downloader.handlers
    try:
        response: object = await (
            handlers.download_request_async(request)
            if limited is None
            else limited.download_request(request)
        )
    finally:
        limit.end()
    if not isinstance(response, Response):
        raise TypeError(
            f"download_request() of the download handler {type(handler).__qualname__} returned a"
            f" value of type {type(response).__name__}, not a Response"
        )
    return response


def is_zyte_api(crawler: Crawler, url: str) -> bool:
    """Return whether scrapy-zyte-api sends *url*, which warns about some headers."""
    kinds = type(_handler(crawler, url)).__mro__
    return any(kind.__module__.startswith("scrapy_zyte_api") for kind in kinds)


def _handler(crawler: Crawler, url: str) -> Any:
    handlers: Any = crawler.engine.downloader.handlers
    return handlers._get_handler(url.partition(":")[0])  # noqa: SLF001

"""The spider middleware that obeys the robots META tags and X-Robots-Tag headers of pages."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any
from weakref import WeakKeyDictionary

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.http import Response

from scrapy_koster.crawl.components.optional import OptionalMiddleware, html_of, tokens_of
from scrapy_koster.crawl.config import Config, PageSource
from scrapy_koster.protocol.robotsmeta import (
    Directives,
    directives_of_headers,
    directives_of_page,
)

PAGE_DIRECTIVES = "koster_page_directives"
"""The key of request.meta with the directives of the page, for example ["noindex"]."""


class RobotsMetaMiddleware(OptionalMiddleware):
    """Drops requests from pages with nofollow, and items from pages with noindex."""

    why_dropped = "say so"
    how_to_keep = "KOSTER_PAGE_DIRECTIVES = [] keeps all requests and items."

    def __init__(self, crawler: Crawler, config: Config) -> None:
        super().__init__(crawler, config)
        self._found: WeakKeyDictionary[Response, Directives] = WeakKeyDictionary()

    @staticmethod
    def is_on(config: Config) -> bool:
        """Return whether KOSTER_PAGE_DIRECTIVES is not empty."""
        return bool(config.page_directives)

    def process_spider_input(self, response: Response) -> None:
        """Set the directives of the page in the meta of its request, for the callback."""
        request = response.request
        assert request is not None  # the engine sets it
        is_exempt = request.meta.get("dont_obey_robotstxt")
        directives = {} if is_exempt else self._directives(response, request)
        # Set even if empty: a spider may have copied the meta of another page to this request.
        said = [word for word in ("noindex", "nofollow") if word in directives]
        request.meta[PAGE_DIRECTIVES] = said
        if directives:
            self._found[response] = directives

    async def process_spider_output(
        self, response: Response, result: AsyncIterator[Any]
    ) -> AsyncIterator[Any]:
        """Yield the output, except the requests and items that the directives of the page drop."""
        directives = self._found.get(response)
        async for output in result:
            if directives is None or self._passes(output, response, directives):
                yield output

    def _directives(self, response: Response, request: Request) -> Directives:
        said: list[str] = []
        if PageSource.HEADER in self._config.page_directives:
            # Faster than headers.getlist(), which normalizes the name in every call.
            values = dict.get(response.headers, b"X-Robots-Tag") or ()
            said = [value.decode("latin-1") for value in values]
        page = html_of(response) if PageSource.META in self._config.page_directives else b""
        found: Directives = {}
        for token in tokens_of(request, self._config.robot) if said or page else ():
            found = directives_of_page(page, token) | directives_of_headers(said, token) | found
        return found

    def _passes(self, output: Any, response: Response, directives: Directives) -> bool:
        word = "nofollow" if isinstance(output, Request) else "noindex"
        said = directives.get(word)
        if said is None or output is None:
            return True
        self._stats.inc_value(f"koster/meta/{word}")
        return not self._drops(output, response, word, word, f"which says {said}")

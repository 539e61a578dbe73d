"""The spider middleware that obeys the robots META tags and X-Robots-Tag headers of pages."""

from __future__ import annotations

from typing import Any

from scrapy import Request
from scrapy.http import Response

from scrapy_koster.crawl.components.optional import OptionalMiddleware, html_of
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

    @staticmethod
    def is_on(config: Config) -> bool:
        """Return whether KOSTER_PAGE_DIRECTIVES is not empty."""
        return bool(config.page_directives)

    def process_spider_input(self, response: Response) -> None:
        """Set the directives of the page in the meta of its request, for the callback."""
        request = response.request
        assert request is not None  # the engine sets it
        is_exempt = request.meta.get("dont_obey_robotstxt")
        found = self._found[response] = {} if is_exempt else self._directives(response, request)
        # Set even if empty: a spider may have copied the meta of another page to this request.
        request.meta[PAGE_DIRECTIVES] = [word for word in ("noindex", "nofollow") if word in found]

    def _directives(self, response: Response, request: Request) -> Directives:
        said: list[str] = []
        if PageSource.HEADER in self._config.page_directives:
            # Faster than headers.getlist(), which normalizes the name in every call.
            values = dict.get(response.headers, b"X-Robots-Tag") or ()
            said = [value.decode("latin-1") for value in values]
        page = html_of(response) if PageSource.META in self._config.page_directives else b""
        found: Directives = {}
        for token in self._names(request) if said or page else ():
            found = directives_of_page(page, token) | directives_of_headers(said, token) | found
        return found

    async def _passes(self, output: Any, response: Response) -> bool:
        word = "nofollow" if isinstance(output, Request) else "noindex"
        said = self._found.get(response, {}).get(word)
        if said is None or output is None:
            return True
        self._crawler.stats.inc_value(f"koster/meta/{word}")
        return not self._drops(output, response, word, word, f"which says {said}")

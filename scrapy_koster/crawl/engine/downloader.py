"""The Downloader of a crawl: the project's Downloader, with a check before a request is sent.

The setting DOWNLOADER is Scrapy's extension point for this, so no method of Scrapy is replaced.
"""

from typing import Any

from scrapy import Request
from scrapy.core.downloader import Downloader
from scrapy.crawler import Crawler
from scrapy.http import Response
from twisted.internet.defer import Deferred

from scrapy_koster.crawl.engine.private import SendingHooks, per_crawler


class _Checking:
    """Mixin for a Downloader: checks requests, and lets them wait outside CONCURRENT_REQUESTS."""

    active: set[Request]
    handlers: Any

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)  # type: ignore[call-arg]  # of the Downloader
        self._places = crawler.settings.getint("CONCURRENT_REQUESTS")
        self._hooks = per_crawler(crawler, SendingHooks, SendingHooks)
        self._hooks.are_called = True
        # If Scrapy does not have this name, ``DeferringScheduler.open`` stops the crawl.
        if hasattr(getattr(self, "handlers", None), "download_request_async"):
            self.handlers = _CheckedHandlers(self.handlers, self._hooks)

    def needs_backout(self) -> bool:
        """Return whether the downloader is full. Requests that wait in place do not count."""
        is_full: bool = super().needs_backout()  # type: ignore[misc]
        if not (is_full and self._hooks.frees_places):
            return is_full
        return len(self.active.difference(self._hooks.in_place)) >= self._places

    def fetch(self, request: Request, *args: Any) -> Any:
        """Download *request*, as the Downloader does."""
        fetched = super().fetch(request, *args)  # type: ignore[misc]
        # Scrapy has an error of its own for a Downloader that returns something else.
        return fetched.addBoth(self._left, request) if isinstance(fetched, Deferred) else fetched

    def _left(self, result: Any, request: Request) -> Any:
        self._hooks.left(request)
        return result


class _CheckedHandlers:
    """The download handlers of a crawl, with a check directly before a request is sent."""

    def __init__(self, handlers: Any, hooks: SendingHooks) -> None:
        self._sent_by = handlers
        self._hooks = hooks

    def __getattr__(self, name: str) -> Any:
        return getattr(self._sent_by, name)

    async def download_request_async(self, request: Request) -> Response:
        """Return the response to *request*, after the check and the wait for the turn of its host.

        Raises IgnoreRequest if the check refuses *request*, or if the crawl closes during the wait.
        """
        # A URL that a middleware has set may wait for a robots.txt that needs a turn of its own. So
        # the check is before the turn. The robots.txt may change during the wait for it: so again.
        if (checked := self._hooks.check(request)) is not None:
            await checked
        if (visit := self._hooks.visit(request)) is None:
            return await self._send(request)
        async with visit:
            if (checked := self._hooks.check(request)) is not None:
                await checked
            return await self._send(request)

    async def _send(self, request: Request) -> Response:
        response: Response = await self._sent_by.download_request_async(request)
        return response


class RobotsDownloader(_Checking, Downloader):
    """Scrapy's Downloader with a check of requests directly before sending."""


def checking_downloader(kind: type) -> type:
    """Return a subclass of the Downloader class *kind* that checks requests.

    If *kind* checks requests already, *kind* is returned.
    """
    if issubclass(kind, _Checking):
        return kind
    if kind is Downloader:
        return RobotsDownloader
    return type(f"Checking{kind.__name__}", (_Checking, kind), {})

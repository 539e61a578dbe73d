"""Access to undocumented parts of Scrapy 2.14 to 2.19."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Coroutine, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Any, TypeAlias, TypeVar

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.http import Response
from scrapy.utils.httpobj import urlparse_cached
from twisted.internet.defer import CancelledError

_T = TypeVar("_T")
Within: TypeAlias = AbstractAsyncContextManager[None] | None
"""The context in which a request is sent, or None for no context."""

MARK = "koster_robotstxt"
"""The meta key of requests for a robots.txt. docs/stats.md documents the key, not the value."""

CANCELLED = (asyncio.CancelledError, CancelledError)
"""The errors of a cancelled coroutine, on an asyncio loop and on a Twisted reactor."""


def per_crawler(crawler: Crawler, kind: type[_T], make: Callable[[], _T]) -> _T:
    """Return the object of *kind* that belongs to *crawler*, made by *make* in the first call.

    The object is an attribute of the crawler. A WeakKeyDictionary would keep both in memory,
    because its value, the object, refers to its key, the crawler.
    """
    name = f"_koster_{kind.__name__.lower()}"
    if name not in vars(crawler):
        setattr(crawler, name, make())
    found: _T = getattr(crawler, name)
    return found


def is_for_robots_txt(request: Request) -> bool:
    """Return whether a Fetcher has made *request*."""
    return MARK in request.meta


def dupefilter_of(scheduler: Any) -> Any:
    """Return the duplicate filter of *scheduler*, or None if there is no attribute ``df``."""
    return getattr(scheduler, "df", None)


@dataclass(eq=False, slots=True)
class SendingHooks:
    """Functions for requests that are about to be sent, and the requests that wait in place."""

    check: Callable[[Request], Awaitable[None] | None] = lambda _: None
    """Raises IgnoreRequest for a request that has become forbidden, or returns an awaitable.

    Set by KosterMiddleware.
    """
    visit: Callable[[Request], Within] = lambda _: None
    """Returns the context in which a request is sent. Set by the pacer."""
    left: Callable[[Request], object] = lambda _: None
    """Called when a request leaves the downloader. Set by the pacer."""
    are_called: bool = False
    """Whether the downloader of the crawl is ours, and calls these functions."""
    in_place: set[Request] = field(default_factory=set)
    """The requests that wait in place (``InPlace``)."""
    frees_places: bool = False
    """Whether these requests take up no CONCURRENT_REQUESTS slot. Set by KosterMiddleware."""


async def through_middlewares(
    crawler: Any, send: Callable[[Request], Coroutine[Any, Any, Response]], request: Request
) -> Response | Request:
    """Send *request* with *send*, within the downloader middlewares. Return their result."""
    middlewares = crawler.engine.downloader.middleware
    result: Response | Request = await middlewares.download_async(send, request)
    return result


async def send_without_slot(crawler: Any, request: Request) -> Response:
    """Return the response to *request*. Raises TypeError if the handler returns another type."""
    response: object = await crawler.engine.downloader.handlers.download_request_async(request)
    if not isinstance(response, Response):
        raise TypeError(
            "download_request() of the download handler"
            f" {type(_handler(crawler, request.url)).__qualname__} returned a value of type"
            f" {type(response).__name__}, not a Response"
        )
    return response


def is_zyte_api(crawler: Any, url: str) -> bool:
    """Return whether scrapy-zyte-api downloads *url*. This handler warns about some headers."""
    kinds = type(_handler(crawler, url)).__mro__
    return any(kind.__module__.startswith("scrapy_zyte_api") for kind in kinds)


def _handler(crawler: Any, url: str) -> Any:
    return crawler.engine.downloader.handlers._get_handler(url.partition(":")[0])  # noqa: SLF001


class Engine:
    """Undocumented parts of a crawl's engine."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self.hooks = per_crawler(crawler, SendingHooks, SendingHooks)
        """The functions that the downloader calls for requests that are about to be sent."""
        self._is_closed = False

    @property
    def _slot(self) -> Any:
        return self._crawler.engine._slot  # noqa: SLF001

    @property
    def is_closing(self) -> bool:
        """Whether the crawl has begun to close. No fetch of a robots.txt begins from then on.

        Scrapy sends no signal when a crawl begins to close.
        """
        return self._is_closed or ((slot := self._slot) is not None and slot.closing is not None)

    def close(self) -> None:
        """Have the crawl closing from now on, for users of this object."""
        self._is_closed = True

    @property
    def is_interactive(self) -> bool:
        """Whether a command of Scrapy fetches a page for a waiting person.

        ``shell`` keeps its crawl open, and ``fetch``, ``view`` and ``parse`` replace the spider's
        ``start``.
        """
        slot = self._slot
        start = getattr(type(self._crawler.spider), "start", None)
        is_of_a_command = getattr(start, "__module__", "").startswith("scrapy.commands.")
        return is_of_a_command or (slot is not None and not slot.close_if_idle)

    @property
    def under_way(self) -> Collection[Request]:
        """The requests that use a place of the downloader: in middlewares, in a slot, or sent."""
        if not self.hooks.frees_places:
            return self.active
        return self.active - self.hooks.in_place

    @property
    def active(self) -> set[Request]:
        """The requests in the downloader, also those that wait in place."""
        active: set[Request] = self._crawler.engine.downloader.active
        return active

    @property
    def slots(self) -> Mapping[str, Any]:
        """The slots of the downloader, by key."""
        slots: Mapping[str, Any] = getattr(self._crawler.engine.downloader, "slots", {})
        return slots

    def slot_key(self, request: Request) -> str:
        """Return the key of the slot in which *request* is sent: its host, unless it has one."""
        key: str = request.meta.get("download_slot") or urlparse_cached(request).hostname or ""
        return key

    def share_of_scraper(self, callbacks: int) -> float:
        """Return the share of the scraper's room that *callbacks* use with responses of mean size.

        If the whole room is used, Scrapy takes no request from the scheduler.
        """
        slot: Any = self._crawler.engine.scraper.slot
        count = max(len(slot.active) + len(slot.queue), callbacks)
        share: float = callbacks / count * slot.active_size / slot.max_active_size
        return share

    def wake(self) -> None:
        """Make the engine call the scheduler soon, not only after a download or five seconds."""
        if (slot := self._slot) is not None:
            slot.nextcall.schedule()

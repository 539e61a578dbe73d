"""What Scrapy does not offer in public, in one place: Scrapy 2.17 to 2.19 have it alike."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from pydispatch.dispatcher import getAllReceivers, liveReceivers
from scrapy import signals
from twisted.internet.defer import CancelledError
from twisted.python.failure import Failure

from scrapy_koster.crawl.engine.compat import has_start_failed, scheduler_of
from scrapy_koster.crawl.engine.robots_mark import is_for_robots_txt
from scrapy_koster.crawl.engine.sending import SendingHooks

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    from scrapy import Request
    from scrapy.core.scheduler import BaseScheduler
    from scrapy.crawler import Crawler
    from scrapy.dupefilters import BaseDupeFilter
    from scrapy.http import Response
    from scrapy.spiders import SitemapSpider


_T = TypeVar("_T")

CANCELLED = (asyncio.CancelledError, CancelledError)
"""What a coroutine that is cancelled ends with, on either kind of loop."""


def belonging(crawler: Crawler, kind: type[_T], make: Callable[[], _T]) -> _T:
    """Return the one object of *kind* that belongs to *crawler*; *make* it if there is none.

    It is an attribute of the crawler, and gone with it: a weak dictionary would keep both, since
    what belongs to a crawler knows it.
    """
    name = f"_koster_{kind.__name__.lower()}"
    if name not in vars(crawler):
        setattr(crawler, name, make())
    found: _T = getattr(crawler, name)
    return found


def has_receivers(crawler: Crawler, signal: object) -> bool:
    """Return whether anybody has connected to *signal*."""
    return any(True for _ in liveReceivers(getAllReceivers(crawler.signals.sender, signal)))


def dupefilter_of(scheduler: BaseScheduler) -> BaseDupeFilter | None:
    """Return what *scheduler* filters duplicates by, None if it has nothing that is known."""
    return getattr(scheduler, "df", None)


def sitemap_callback(spider: SitemapSpider) -> Callable[[Response], Any]:
    """Return the callback of the requests for sitemaps."""
    return spider._parse_sitemap  # noqa: SLF001


_FETCHING = signals.request_reached_downloader
_MOVING = (
    signals.request_scheduled,
    signals.response_received,
    signals.item_scraped,
    signals.item_dropped,
    signals.item_error,
    signals.spider_error,
)


def _of_the_crawl(call: Callable[[], object]) -> Callable[[Request], None]:
    """Return *call* as the receiver of a signal that is also sent for a robots.txt."""

    def receive(request: Request) -> None:
        if not is_for_robots_txt(request):
            call()

    return receive


class Engine:
    """The engine of a crawl, as far as what Scrapy does not offer in public is concerned."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self.hooks = belonging(crawler, SendingHooks, SendingHooks)
        """What its downloader does with each request that it sends."""
        self._receivers: list[Callable[[Request], None]] = []
        """A signal keeps none of them alive."""

    @property
    def _slot(self) -> Any:
        return self._crawler.engine._slot  # noqa: SLF001

    @property
    def is_paused(self) -> bool:
        """Whether the user has paused the crawl."""
        return self._crawler.engine.paused

    @property
    def is_closing(self) -> bool:
        """Whether the crawl has begun to close, for which there is no signal.

        One that still opens its spider does not run yet, and does not close.
        """
        slot = self._slot
        return slot is None or slot.closing is not None

    @property
    def _is_opening(self) -> bool:
        return not (self._crawler.engine.running or self.is_closing)

    @property
    def is_by_hand(self) -> bool:
        """Whether a command of Scrapy fetches one page for somebody who waits for it.

        Those are ``shell``, whose crawl stays open, and ``fetch``, ``view`` and
        ``parse``, which put a start of their own into the spider.
        """
        slot = self._slot
        start = getattr(type(self._crawler.spider), "start", None)
        is_of_a_command = getattr(start, "__module__", "").startswith("scrapy.commands.")
        return is_of_a_command or (slot is not None and not slot.close_if_idle)

    def has_start_failed(self) -> bool:
        """Whether the spider's start() has raised, which is a finish reason of its own."""
        return has_start_failed(self._crawler.engine)

    @property
    def under_way(self) -> Collection[Request]:
        """The requests that take a place of the downloader: in its middlewares, a slot, or sent."""
        active: set[Request] = self._crawler.engine.downloader.active
        placeless = self.hooks.placeless
        return active - placeless.keys() if placeless else active

    def wake(self) -> None:
        """Have the engine ask its scheduler, as it does by itself only after a
        download or every five seconds.
        """
        slot = self._slot
        if slot is not None:
            slot.nextcall.schedule()

    @property
    def scraped_count(self) -> int:
        """How many responses are being scraped, or are to be."""
        slot = self._crawler.engine.scraper.slot
        return len(getattr(slot, "active", ())) + len(getattr(slot, "queue", ()))

    def when_moving(self, call: Callable[[], object]) -> Callable[[], None]:
        """Call *call* at each signal that something was scheduled, fetched or scraped.

        That costs something at each of them. Return what ends it.
        """
        send = self._crawler.signals
        calls = dict.fromkeys(_MOVING, call) | {_FETCHING: _of_the_crawl(call)}
        for signal, called in calls.items():
            send.connect(called, signal=signal)

        def end() -> None:
            for signal, called in calls.items():
                send.disconnect(called, signal=signal)

        return end

    def when_fetching(self, call: Callable[[], object]) -> None:
        """Call *call* for each request of the crawl that reaches the downloader, from now on."""
        receiver = _of_the_crawl(call)
        self._receivers.append(receiver)
        self._crawler.signals.connect(receiver, signal=_FETCHING)

    def has_nothing_else(self, waiting: Collection[Request]) -> bool:
        """Whether nothing can be downloaded but the requests that are *waiting* for their site.

        That is no moment of ``spider_idle``: what a pipeline downloads belongs to
        an item, and while there are items Scrapy takes the spider for busy. Where
        they hold all places of CONCURRENT_REQUESTS no other can be downloaded.
        While the spider is opened nothing is, but for who opens it.
        """
        engine = self._crawler.engine
        scheduler = scheduler_of(engine)
        if scheduler is None or not all(request in waiting for request in engine.downloader.active):
            return False
        if self._is_opening:
            return True
        return (
            engine.scraper.slot is not None
            and engine._start is None  # noqa: SLF001
            and (engine.downloader.needs_backout() or not scheduler.has_pending_requests())
        )

    async def errback(self, request: Request, error: Exception) -> AsyncIterator[Any]:
        """Call the errback of *request* as Scrapy does, and yield what it yields.

        An error of the errback's own is logged and counted as an error of the spider.
        """
        scraper, failure = self._crawler.engine.scraper, Failure(error)
        try:
            output = await scraper.call_spider_async(failure, request)
            if isinstance(output, AsyncIterator):
                async for each in output:
                    yield each
            else:
                for each in output:
                    yield each
        except Exception as raised:  # noqa: BLE001  # it may be anybody's
            if raised is not error:  # else there is no errback, or it did not handle it
                scraper.handle_spider_error(Failure(), request, failure)

    @contextmanager
    def place_given_up(self, request: Request) -> Iterator[None]:
        """Give the place of CONCURRENT_REQUESTS that *request* has to others meanwhile."""
        if not self.hooks.are_called or request not in self._crawler.engine.downloader.active:
            yield
            return
        with self.hooks.place_given_up(request):
            self.wake()
            yield

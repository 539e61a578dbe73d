"""What Scrapy does not offer in public, in one place: Scrapy 2.17 to 2.19 have it alike."""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from scrapy import signals
from twisted.internet.defer import CancelledError

from scrapy_koster.crawl.engine.robots_mark import is_for_robots_txt

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence
    from contextlib import AbstractAsyncContextManager

    from scrapy import Request
    from scrapy.core.scheduler import BaseScheduler
    from scrapy.crawler import Crawler
    from scrapy.dupefilters import BaseDupeFilter


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


def dupefilter_of(scheduler: BaseScheduler) -> BaseDupeFilter | None:
    """Return what *scheduler* filters duplicates by, None if it has nothing that is known."""
    return getattr(scheduler, "df", None)


_FETCHING = signals.request_reached_downloader
_MOVING = (
    _FETCHING,
    signals.request_scheduled,
    signals.response_received,
    signals.item_scraped,
    signals.item_dropped,
    signals.item_error,
    signals.spider_error,
)


class SendingHooks:
    """Functions for requests that are about to be sent. They do nothing until they are set."""

    def __init__(self) -> None:
        self.check: Callable[[Request], object] = lambda _: None
        """Raises IgnoreRequest for a request that may not be sent any more."""
        self.visit: Callable[[Request], AbstractAsyncContextManager[None] | None] = lambda _: None
        """Returns the context in which a request is sent, None for none."""
        self.are_called = False
        """Whether the downloader of the crawl is one that calls these functions."""
        self.placeless: Counter[Request] = Counter()
        """Requests in the downloader that take no place of CONCURRENT_REQUESTS."""

    def begin_calls(self) -> None:
        """Note that there is a downloader that calls these functions."""
        self.are_called = True

    def check_by(self, check: Callable[[Request], object]) -> None:
        """Set the function that raises IgnoreRequest for a request that may not be sent."""
        self.check = check

    def send_within(
        self, visit: Callable[[Request], AbstractAsyncContextManager[None] | None]
    ) -> None:
        """Set the function that returns the context in which a request is sent."""
        self.visit = visit


class Engine:
    """The engine of a crawl, as far as what Scrapy does not offer in public is concerned."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self.hooks = belonging(crawler, SendingHooks, SendingHooks)
        """What its downloader does with each request that it sends."""
        self._connections: list[Callable[[], None]] = []

    @property
    def _slot(self) -> Any:
        return self._crawler.engine._slot  # noqa: SLF001

    @property
    def is_closing(self) -> bool:
        """Whether the crawl has begun to close, for which there is no signal."""
        slot = self._slot
        return slot is None or slot.closing is not None

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

    def when_moving(self, call: Callable[[], object]) -> Callable[[], None]:
        """Call *call* at each signal that something was scheduled, fetched or scraped.

        That costs something at each of them. Return what ends it.
        """
        return self._connected(call, _MOVING)

    def when_fetching(self, call: Callable[[], object]) -> None:
        """Call *call* for each request of the crawl that reaches the downloader, from now on."""
        self._connections.append(self._connected(call, (_FETCHING,)))

    def _connected(self, call: Callable[[], object], at: Sequence[object]) -> Callable[[], None]:
        """Call *call* at these signals, unless they are sent for a robots.txt.

        Return a function that ends the calls. It has to be kept: a signal keeps no receiver alive.
        """

        def receive(request: Request | None = None) -> None:
            if request is None or not is_for_robots_txt(request):
                call()

        def end() -> None:
            for signal in at:
                self._crawler.signals.disconnect(receive, signal=signal)

        for signal in at:
            self._crawler.signals.connect(receive, signal=signal)
        return end

    def has_only(self, waiting: Collection[Request]) -> bool:
        """Return whether the downloader has no other requests than those that are *waiting*."""
        return all(request in waiting for request in self._crawler.engine.downloader.active)

    @contextmanager
    def place_given_up(self, request: Request) -> Iterator[None]:
        """Give the place of CONCURRENT_REQUESTS that *request* has to others meanwhile."""
        placeless = self.hooks.placeless
        if not self.hooks.are_called or request not in self._crawler.engine.downloader.active:
            yield
            return
        placeless[request] += 1
        self.wake()
        try:
            yield
        finally:
            placeless[request] -= 1
            if not placeless[request]:
                del placeless[request]

"""Detects that a crawl only waits for sites, or that a crawl closes.

A crawl that only waits for failing sites ends after KOSTER_IDLE_LIMIT_SECS. If requests wait only
in the scheduler, Scrapy sends ``spider_idle``. Scrapy does not send this signal while a request
waits in place, inside the downloader. Requests of media pipelines and of ``engine.download_async``
wait there. So while requests wait in place, the downloader is checked twice a second. The crawl is
idle if the downloader has no other requests.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace

from scrapy import Request
from scrapy.utils.asyncio import CallLaterResult

from scrapy_koster.crawl.clock import Clock, Ticks
from scrapy_koster.crawl.engine.private import Engine
from scrapy_koster.protocol.access import Failure
from scrapy_koster.protocol.printable import printable

# The reason of a failure is cut to this number of characters. The reason for giving up follows.
_REASON_CHARS = 100
# The time between two checks. Scrapy has no signal for an idle downloader, or for a crawl that
# begins to close.
_LOOK_SECS = 0.5


@dataclass(eq=False)
class IdleTimeout:
    """The idle time, in which a crawl only waits for sites, and the requests that wait in place.

    The idle time is over after KOSTER_IDLE_LIMIT_SECS. ``idle`` starts the idle time unless it
    runs or is over already. ``busy`` stops and resets it.
    """

    clock: Clock
    engine: Engine
    limit_secs: float
    over: Callable[[], object]
    """Called when the idle time is over."""
    closing: Callable[[], object]
    """Called if a check finds that the crawl closes.

    There are checks only while requests wait in place.
    """
    has_turns: Callable[[], bool]
    """Returns whether requests wait for the turn of their host, which is work."""
    is_over: bool = field(default=False, init=False)
    is_closing: bool = field(default=False, init=False)
    is_by_hand: bool = field(default=False, init=False)
    """Whether a command fetches a page for a waiting person."""
    in_place: Counter[Request] = field(default_factory=Counter, init=False)
    """The requests that wait in place, each with its number of waits.

    A request can be downloaded twice at the same time.
    """
    _timer: CallLaterResult | None = field(default=None, init=False)
    _ticks: Ticks | None = field(default=None, init=False)

    def given_up(self, failure: Failure) -> Failure:
        """Return *failure* with a second reason: why the site is given up."""
        if self.is_by_hand:
            why = "scrapy fetch, shell, view and parse do not wait for a site to recover"
        else:
            secs = self.limit_secs
            why = f"there was nothing else to crawl for KOSTER_IDLE_LIMIT_SECS = {secs:g} s"
        return replace(failure, reason=f"{printable(failure.reason, _REASON_CHARS)}; {why}")

    def have_none(self) -> None:
        """End the idle time now and for good: a person waits for a page, and can try again."""
        self.is_by_hand = self.is_over = True

    def idle(self) -> None:
        """Start the idle time, unless requests wait for the turn of their host."""
        if self.has_turns():
            self.busy()
        elif self._timer is None and not (self.is_over or self.is_closing):
            self._timer = self.clock.call_later(self.limit_secs, self._end)

    def busy(self) -> None:
        """Stop and reset the idle time, because the crawl has work."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self.is_over = self.is_by_hand and not self.is_closing

    def begin_anew(self) -> None:
        """Restart an idle time that runs or is over, because a site failed for the first time."""
        if self._timer is not None or self.is_over:
            self.busy()
            self.idle()

    def close(self) -> None:
        """Stop the idle time for good, because the crawl closes."""
        self.is_closing = True
        self.busy()

    def _end(self) -> None:
        self._timer = None
        self.is_over = True
        self.over()

    def is_work(self, request: Request) -> bool:
        """Return whether the downloader has a request that does not wait, other than *request*."""
        return not self.engine.has_only({*self.in_place, request})

    @contextmanager
    def waiting(self, request: Request, *, gives_place: bool = True) -> Iterator[None]:
        """Return the context in which *request* waits in place.

        With *gives_place*, *request* uses no place of CONCURRENT_REQUESTS within this context. Pass
        False if the scheduler parks no requests, because then only the places limit the number of
        waiting requests.
        """
        self.in_place[request] += 1
        if self._ticks is None:
            self._ticks = self.clock.every(_LOOK_SECS, self._look)
        try:
            with self.engine.place_given_up(request) if gives_place else nullcontext():
                yield
        finally:
            self.in_place[request] -= 1
            if not self.in_place[request]:
                del self.in_place[request]
            if not self.in_place and self._ticks is not None:
                self._ticks.stop()
                self._ticks = None

    def _look(self) -> None:
        if self.engine.is_closing:
            self.closing()
        elif self.engine.has_only(self.in_place):
            self.idle()
        else:
            self.busy()

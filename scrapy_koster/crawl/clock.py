"""The time of a crawl: the only module of the package that reads a clock while a crawl runs.

There are two kinds of time. What is stored or compared with what a site sent is in seconds since
the epoch: a plain ``float``, whose name ends in ``_epoch`` or that is called ``now``. What waits
inside this process goes by an ``Instant`` of the clock that never goes back.
"""

from __future__ import annotations

import math
from time import monotonic, time
from typing import TYPE_CHECKING, Any, TypeVar

from scrapy.utils.asyncio import call_later
from scrapy.utils.defer import deferred_from_coro, maybe_deferred_to_future
from twisted.internet.defer import Deferred

from scrapy_koster.crawl.engine.private import CANCELLED, belonging

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from scrapy.crawler import Crawler
    from scrapy.utils.asyncio import CallLaterResult

Instant = float
"""A point of time of the monotonic clock, in seconds; the name tells it from seconds since the
epoch.
"""

_MOMENT_SECS = 0.1
_T = TypeVar("_T")

LONG_AGO = Instant(-math.inf)
NEVER = Instant(math.inf)


class Clock:
    """Tells the time, and waits: on an asyncio loop, on a Twisted reactor, or without a reactor.

    Tests and the simulation use a subclass with a time of its own.
    """

    epoch = staticmethod(time)
    """The seconds since the epoch. Without a call between: it is read several times a request."""
    now: Callable[[], Instant] = staticmethod(monotonic)
    """The time of the clock that never goes back; also without a call between."""

    def call_later(
        self, secs: float, function: Callable[..., object], *args: Any
    ) -> CallLaterResult:
        """Call *function* in *secs* seconds; return a timer that can be cancelled."""
        return call_later(secs, function, *args)

    def every(self, secs: float, function: Callable[[], object]) -> Ticks:
        """Call *function* every *secs* seconds, first after *secs*, until it is stopped."""
        return Ticks(self, secs, function)

    async def sleep(self, secs: float) -> None:
        """Wait for *secs* seconds."""
        over: Deferred[None] = Deferred()
        timer = self.call_later(secs, over.callback, None)
        try:
            await maybe_deferred_to_future(over)
        finally:
            timer.cancel()

    async def within(self, secs: float, awaited: Awaitable[_T]) -> _T:
        """Return the result of *awaited*; after *secs* cancel it, and raise LateError.

        In a process that was stopped meanwhile the time is over before what has ended can say so:
        it gets a moment for that.
        """
        running: Deferred[_T] = deferred_from_coro(awaited)
        late = []

        def end() -> None:
            late.append(True)
            running.cancel()

        def over() -> None:
            timers.append(self.call_later(_MOMENT_SECS, end))

        timers = [self.call_later(secs, over)]
        try:
            result = await maybe_deferred_to_future(running)
        except CANCELLED:
            if late:
                raise LateError from None
            raise
        finally:
            timers[-1].cancel()
        if late:  # it ended by itself when it was cancelled
            raise LateError
        return result


class LateError(Exception):
    """What was awaited has not ended in time."""


class Ticks:
    """Calls a function again and again, until it is stopped."""

    def __init__(self, clock: Clock, secs: float, function: Callable[[], object]) -> None:
        self._clock = clock
        self._secs = secs
        self._function = function
        self._timer: CallLaterResult | None = clock.call_later(secs, self._tick)

    def stop(self) -> None:
        """Call it no more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _tick(self) -> None:
        self._timer = self._clock.call_later(self._secs, self._tick)
        self._function()


def clock_of(crawler: Crawler) -> Clock:
    """Return the clock of *crawler*: every part of its crawl has the same."""
    return belonging(crawler, Clock, Clock)


def set_clock(crawler: Crawler, clock: Clock) -> None:
    """Have *crawler* use *clock*; RuntimeError if a part of its crawl has been built already."""
    if belonging(crawler, Clock, lambda: clock) is not clock:
        raise RuntimeError("the crawl has a clock already: set it before anything is built")

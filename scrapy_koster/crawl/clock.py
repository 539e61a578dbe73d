"""The time of a crawl. No other module of ``crawl`` reads a clock.

There are two kinds of time. A time that is stored, or compared with the headers of a site, is a
plain ``float`` in seconds since the epoch (``Clock.epoch``). Waits inside this process use an
``Instant`` of the monotonic clock (``Clock.now``).
"""

import math
from collections.abc import Awaitable, Callable
from time import monotonic, time
from typing import Any, TypeVar

from scrapy.crawler import Crawler
from scrapy.utils.asyncio import CallLaterResult, call_later
from scrapy.utils.defer import deferred_from_coro, maybe_deferred_to_future
from twisted.internet.defer import Deferred

from scrapy_koster.crawl.engine.private import per_crawler

Instant = float
"""A time of the monotonic clock, in seconds. Not comparable with seconds since the epoch."""

_STEPS = 20
_T = TypeVar("_T")

TIMER_MOST_SECS = 86400.0
"""The longest timer, in seconds. Some event loops cannot wait for much longer."""
LONG_AGO = Instant(-math.inf)
NEVER = Instant(math.inf)


class Clock:
    """The time, timers and time-outs of a crawl, on an asyncio loop or a Twisted reactor.

    Tests and the simulation use subclasses.
    """

    epoch = staticmethod(time)
    """Return the seconds since the epoch. Must be fast: called several times for a request."""
    now: Callable[[], Instant] = staticmethod(monotonic)
    """Return the time of the monotonic clock."""

    def call_later(
        self, secs: float, function: Callable[..., object], *args: Any
    ) -> CallLaterResult:
        """Call *function* after *secs* seconds. Return a timer that can be cancelled."""
        return call_later(secs, function, *args)

    async def sleep(self, secs: float) -> None:
        """Wait for *secs* seconds."""
        over: Deferred[None] = Deferred()
        timer = self.call_later(secs, over.callback, None)
        try:
            await maybe_deferred_to_future(over)
        finally:
            timer.cancel()

    async def within(self, secs: float, awaited: Awaitable[_T]) -> _T:
        """Return the result of *awaited*. After *secs*, cancel *awaited* and raise LateError."""
        return await TimeLimit(self, secs).within(awaited)


class TimeLimit:
    """A limit for several calls together, whose time passes only within these calls.

    Time in which this process is blocked or suspended hardly counts: a result may have arrived, and
    the loop has not read it. So the limit is the sum of short timers, and the loop reads between
    them.
    """

    def __init__(self, clock: Clock, secs: float) -> None:
        self._clock, self._step_secs, self._left = clock, secs / _STEPS, _STEPS

    @property
    def is_over(self) -> bool:
        """Whether the time has passed, and the last call is cancelled."""
        return not self._left

    async def within(self, awaited: Awaitable[_T]) -> _T:
        """Return the result of *awaited*. At the end, cancel *awaited* and raise LateError."""
        running: Deferred[_T] = deferred_from_coro(awaited)

        def passed() -> None:
            self._left -= 1
            if self._left:
                timers.append(self._clock.call_later(self._step_secs, passed))
            else:
                running.cancel()

        timers = [self._clock.call_later(self._step_secs, passed)]
        try:
            return await maybe_deferred_to_future(running)
        finally:
            timers[-1].cancel()
            if self.is_over:  # even if *awaited* has caught the cancellation
                raise LateError from None


class LateError(Exception):
    """A coroutine has not ended in time."""


class Ticks:
    """Calls *function* every *secs* seconds, first after *secs*."""

    def __init__(self, clock: Clock, secs: float, function: Callable[[], object]) -> None:
        self._clock = clock
        self._secs = secs
        self._function = function
        self._timer = clock.call_later(secs, self._tick)

    def stop(self) -> None:
        """Stop the calls."""
        self._timer.cancel()

    def _tick(self) -> None:
        self._timer = self._clock.call_later(self._secs, self._tick)
        self._function()


def clock_of(crawler: Crawler) -> Clock:
    """Return the clock of *crawler*, shared by the parts of the crawl."""
    return per_crawler(crawler, Clock, Clock)

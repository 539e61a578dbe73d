"""How many sites are asked for their robots.txt at once, and how far ahead of the pages.

The scheduler takes requests from the wrapped queue to find new sites. Each of them costs memory and
a fetch, and delays the pages of the sites that have answered. So it stops while enough sites are
*young*. A site that has waited for half a second may hang: it is no longer young, so 300 hanging
sites delay the next one by less than 4 seconds. All sites that wait have a limit of their own, so
that in an outage the rest of the queue stays where it is.

Each fetch holds a socket. New sites come before sites that have failed, and these may take half of
the sockets, since they have shown that they may hang. The last eighth is kept for them.
"""

from __future__ import annotations

import math
from collections import deque
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from scrapy.utils.defer import maybe_deferred_to_future
from twisted.internet.defer import Deferred

from scrapy_koster.protocol.access import Failure

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from scrapy.utils.asyncio import CallLaterResult

    from scrapy_koster.crawl.clock import Clock, Instant
    from scrapy_koster.crawl.states import SiteState

YOUNG_SECS = 0.5
_YOUNG_LEAST = 100
_YOUNG_PER_PLACE = 2
_WAITING_LEAST = 1000
_SOCKETS_MAX = 1000
_FILES_UNKNOWN = 512


class NoSocketError(Exception):
    """No socket was free in time."""


class LookaheadLimit:
    """The sites that wait for their robots.txt, and the sockets of those that are asked."""

    def __init__(
        self,
        clock: Clock,
        has_room: Callable[[], object],
        *,
        young: int,
        waiting: int,
        sockets: int,
    ) -> None:
        """*young*, *waiting* and *sockets* are how many there may be at once.

        *has_room* is called when sites are no longer young, so that there is room for others.
        """
        self._clock = clock
        self._has_room = has_room
        self._young_limit = young
        self._waiting_limit = waiting
        self._waiting: set[SiteState] = set()
        self._young: dict[SiteState, Instant] = {}
        """When each began to wait, in order."""
        self._timer: CallLaterResult | None = None
        self.is_full = False
        """Whether no more sites are to be looked for now."""
        self._new = _Sockets(max(1, sockets * 7 // 8))
        self._failed = _Sockets(max(1, sockets // 2))
        self._sockets = sockets

    @classmethod
    def of_crawl(
        cls, clock: Clock, has_room: Callable[[], object], *, places: int, memory: int
    ) -> LookaheadLimit:
        """Return the limit for CONCURRENT_REQUESTS *places* and KOSTER_MEMORY_SITES *memory*."""
        return cls(
            clock,
            has_room,
            young=max(_YOUNG_PER_PLACE * places, _YOUNG_LEAST),
            waiting=max(memory, _WAITING_LEAST),
            sockets=socket_limit(),
        )

    # Sites that wait.

    def begins(self, state: SiteState) -> None:
        """Count a site that begins to wait, or waits already."""
        if state in self._waiting:
            return
        self._waiting.add(state)
        if not isinstance(state.known, Failure):
            self._young[state] = self._clock.now()
        self._look()

    def ends(self, state: SiteState) -> None:
        """Do not count the site any more."""
        self._waiting.discard(state)
        self._young.pop(state, None)
        self._look()

    def close(self) -> None:
        """Leave no timer behind."""
        self._young.clear()
        if self._timer is not None:
            self._timer.cancel()

    def _look(self) -> None:
        if len(self._young) >= self._young_limit and self._timer is None:
            self._drop_old()
        is_young = len(self._young) >= self._young_limit
        self.is_full = is_young or len(self._waiting) >= self._waiting_limit

    def _drop_old(self) -> None:
        while self._young:
            state, since = next(iter(self._young.items()))
            left_secs = since + YOUNG_SECS - self._clock.now()
            if left_secs > 0:
                break
            del self._young[state]
        if len(self._young) >= self._young_limit:
            self._timer = self._clock.call_later(left_secs, self._time_is_over)

    def _time_is_over(self) -> None:
        self._timer = None
        self._look()
        if not self.is_full:
            self._has_room()

    # Sites that are asked.

    def is_free(self, state: SiteState) -> bool:
        """Whether a socket for the site is free now."""
        sockets = self._sockets_for(state)
        return not sockets.queue and self._has_socket(sockets)

    @asynccontextmanager
    async def socket(self, state: SiteState, within_secs: float = math.inf) -> AsyncIterator[None]:
        """Hold a socket for the site within this; NoSocketError if none is free *within_secs*."""
        sockets = self._sockets_for(state)
        if self.is_free(state):
            sockets.take()
        else:
            await self._wait(sockets.queue, within_secs)
        try:
            yield
        finally:
            sockets.give_back()
            self._give()

    async def _wait(self, queue: deque[Deferred[None]], within_secs: float) -> None:
        given: Deferred[None] = Deferred(queue.remove)

        def end() -> None:
            queue.remove(given)
            given.errback(NoSocketError())

        queue.append(given)
        timer = None
        if within_secs < math.inf:
            timer = self._clock.call_later(max(0.0, within_secs), end)
        try:
            await maybe_deferred_to_future(given)
        finally:
            if timer is not None:
                timer.cancel()

    def _give(self) -> None:
        for sockets in (self._new, self._failed):
            while sockets.queue and self._has_socket(sockets):
                sockets.take()
                sockets.queue.popleft().callback(None)

    def _sockets_for(self, state: SiteState) -> _Sockets:
        return self._failed if isinstance(state.known, Failure) else self._new

    def _has_socket(self, sockets: _Sockets) -> bool:
        return sockets.open < sockets.limit and self._new.open + self._failed.open < self._sockets


class _Sockets:
    """The sockets of new sites, or of sites that have failed."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.open = 0
        self.queue: deque[Deferred[None]] = deque()
        """Fetches that wait for a socket."""

    def take(self) -> None:
        """Count one more that is open."""
        self.open += 1

    def give_back(self) -> None:
        """Count one fewer that is open."""
        self.open -= 1


def socket_limit() -> int:
    """Return how many sockets may be open for robots.txt: half of the files, 1,000 at most."""
    try:
        import resource  # noqa: PLC0415  # not on Windows
    except ImportError:
        return _FILES_UNKNOWN // 2
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    is_unlimited = files == resource.RLIM_INFINITY
    return _SOCKETS_MAX if is_unlimited else max(1, min(files // 2, _SOCKETS_MAX))

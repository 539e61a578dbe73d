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
_WAITING_LEAST = 1000
_SOCKETS_MAX = 1000
_FILES_UNKNOWN = 512


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
        self._new = _Sockets(max(1, sockets * 7 // 8))
        self._failed = _Sockets(max(1, sockets // 2))
        self._sockets = sockets
        self._is_closed = False

    @classmethod
    def of_crawl(
        cls, clock: Clock, has_room: Callable[[], object], *, places: int, memory: int
    ) -> LookaheadLimit:
        """Return the limit for CONCURRENT_REQUESTS *places* and KOSTER_MEMORY_SITES *memory*."""
        young, waiting = max(2 * places, _YOUNG_LEAST), max(memory, _WAITING_LEAST)
        return cls(clock, has_room, young=young, waiting=waiting, sockets=socket_limit())

    # Sites that wait.

    def begins(self, state: SiteState) -> None:
        """Count a site that begins to wait, or waits already."""
        if state not in self._waiting and not isinstance(state.known, Failure):
            self._young[state] = self._clock.now()
        self._waiting.add(state)

    def ends(self, state: SiteState) -> None:
        """Do not count the site any more."""
        self._waiting.discard(state)
        self._young.pop(state, None)

    @property
    def is_full(self) -> bool:
        """Whether no more sites are to be looked for now."""
        left_secs = 0.0
        while len(self._young) >= self._young_limit and left_secs <= 0:
            state, since = next(iter(self._young.items()))
            left_secs = since + YOUNG_SECS - self._clock.now()
            if left_secs <= 0:
                del self._young[state]
            elif self._timer is None:
                self._timer = self._clock.call_later(left_secs, self._time_is_over)
        return left_secs > 0 or len(self._waiting) >= self._waiting_limit

    def _time_is_over(self) -> None:
        self._timer = None
        if not self.is_full:
            self._has_room()

    def close(self) -> None:
        """Leave no timer behind, and let nobody wait for a socket: no site is asked any more."""
        self._young.clear()
        if self._timer is not None:
            self._timer.cancel()
        self._is_closed = True
        self._give()

    # Sites that are asked.

    @asynccontextmanager
    async def socket(self, state: SiteState) -> AsyncIterator[None]:
        """Hold a socket for the site within this, when one is free."""
        sockets = self._failed if isinstance(state.known, Failure) else self._new
        if sockets.queue or not self._has_socket(sockets):
            given: Deferred[None] = Deferred()
            sockets.queue.append(given)
            await maybe_deferred_to_future(given)
        else:
            sockets.open += 1
        try:
            yield
        finally:
            sockets.open -= 1
            self._give()

    def _give(self) -> None:
        for sockets in (self._new, self._failed):
            while sockets.queue and self._has_socket(sockets):
                sockets.open += 1
                sockets.queue.popleft().callback(None)

    def _has_socket(self, sockets: _Sockets) -> bool:
        is_one_free = self._new.open + self._failed.open < self._sockets
        return self._is_closed or (is_one_free and sockets.open < sockets.limit)


class _Sockets:
    """The sockets of new sites, or of sites that have failed, and who waits for one."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.open = 0
        self.queue: deque[Deferred[None]] = deque()


def socket_limit() -> int:
    """Return how many sockets may be open for robots.txt: half of the files, 1,000 at most."""
    try:
        import resource  # noqa: PLC0415  # not on Windows
    except ImportError:
        return _FILES_UNKNOWN // 2
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    is_unlimited = files == resource.RLIM_INFINITY
    return _SOCKETS_MAX if is_unlimited else max(1, min(files // 2, _SOCKETS_MAX))

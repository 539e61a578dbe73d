"""Limits the number of sites that wait for a robots.txt, and of robots.txt fetched at once.

The scheduler takes requests from the wrapped queue to find new sites. A new site costs memory and a
fetch, and delays the pages of known sites. So the scheduler pauses while too many sites are
*young*: a young site has not failed, and has waited for less than half a second. A site that waits
longer may hang, and must not stop the scheduler. The number of all waiting sites has a higher
limit, so that in an outage the scheduler does not empty the queue. The scheduler also pauses while
loaded files, whose requests can come out, fill the memory.
"""

from collections import Counter, deque
from collections.abc import AsyncIterator, Callable, Sized
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import count

from scrapy.utils.asyncio import CallLaterResult
from scrapy.utils.defer import maybe_deferred_to_future
from twisted.internet.defer import Deferred

from scrapy_koster.crawl.clock import Clock, Instant
from scrapy_koster.crawl.states import SiteState
from scrapy_koster.protocol.access import FetchFailure

YOUNG_SECS = 0.5
FETCH_YOUNG_SECS = 1.0
_FETCHES_MAX = 1000


@dataclass(eq=False)
class LookaheadLimit:
    """Limits the number of sites that wait for a robots.txt."""

    clock: Clock
    has_room: Callable[[], object]
    """Called when sites are no longer young, and the scheduler can look for new sites again."""
    has_memory: Callable[[], bool]
    """Returns whether the files of more sites can be loaded."""
    young_limit: int
    waiting_limit: int
    waiting: Sized
    """The sites that wait."""
    _young: dict[SiteState, Instant] = field(default_factory=dict, init=False)
    """Young sites, the oldest first, with the time when their wait began.

    If the limit is reached, ``is_full`` removes sites that are no longer young.
    """
    _timer: CallLaterResult | None = field(default=None, init=False)

    def begins(self, state: SiteState) -> None:
        """Count the site as young, unless it has failed."""
        if not isinstance(state.known, FetchFailure):
            self._young[state] = self.clock.now()

    def ends(self, state: SiteState) -> None:
        """Stop counting the site as young: it has been asked."""
        self._young.pop(state, None)

    @property
    def is_full(self) -> bool:
        """Whether the scheduler has to stop looking for new sites."""
        left_secs = 0.0
        while len(self._young) >= self.young_limit and left_secs <= 0:
            state, since = next(iter(self._young.items()))
            left_secs = since + YOUNG_SECS - self.clock.now()
            if left_secs <= 0:
                del self._young[state]
            elif self._timer is None:
                self._timer = self.clock.call_later(left_secs, self._time_is_over)
        is_full = left_secs > 0 or len(self.waiting) >= self.waiting_limit
        return is_full or not self.has_memory()

    def _time_is_over(self) -> None:
        self._timer = None
        if not self.is_full:
            self.has_room()

    def close(self) -> None:
        """Forget the young sites, and stop the timer."""
        self._young.clear()
        if self._timer is not None:
            self._timer.cancel()


class FetchLimiter:
    """Limits the fetches of robots.txt at once, which take up no CONCURRENT_REQUESTS slots.

    At most *most* run, and at most *young* of them have begun within the last second. So a proxy or
    a network gets as many as the user has set, and fetches that hang do not delay the rest.
    Sites that have failed may hang again: they have a quarter of *most*, the other sites the rest.
    """

    def __init__(self, clock: Clock, young: int, most: int) -> None:
        self._clock = clock
        self._young_limit, self._limit = young, most
        self._limits = {True: max(1, most // 4), False: max(1, most - most // 4)}
        self._running: Counter[bool] = Counter()
        """The number of running fetches, by whether the site has failed."""
        self._young: dict[object, Instant] = {}
        """Fetches with the time when they began, the oldest first. Removed late."""
        self._lines: dict[bool, deque[tuple[int, Deferred[None]]]] = {True: deque(), False: deque()}
        """The waiting fetches in their order, by whether the site has failed."""
        self._order = count()
        self._timer: CallLaterResult | None = None

    @asynccontextmanager
    async def fetching(self, state: SiteState) -> AsyncIterator[None]:
        """Return the context of a fetch. Entering the context waits until the fetch may begin."""
        has_failed = isinstance(state.known, FetchFailure)
        line, number = self._lines[has_failed], next(self._order)
        turn: Deferred[None] = Deferred(lambda turn: line.remove((number, turn)))
        line.append((number, turn))
        self._begin_next()
        await maybe_deferred_to_future(turn)
        try:
            yield
        finally:
            self._running[has_failed] -= 1
            self._young.pop(turn, None)
            self._begin_next()

    def _begin_next(self) -> None:
        while self._has_room() and (has_failed := self._next_line()) is not None:
            self._running[has_failed] += 1
            _, turn = self._lines[has_failed].popleft()
            self._young[turn] = self._clock.now()
            turn.callback(None)

    def _next_line(self) -> bool | None:
        """Return which line has the next fetch, or None if no fetch may begin."""
        room = [each for each, most in self._limits.items() if self._running[each] < most]
        waiting = [each for each in room if self._lines[each]]
        return min(waiting, key=lambda each: self._lines[each][0], default=None)

    def _has_room(self) -> bool:
        """Return whether a fetch may begin. If all are young, look again when one is older."""
        now = self._clock.now()
        while len(self._young) >= self._young_limit:
            turn, began = next(iter(self._young.items()))
            if (left_secs := began + FETCH_YOUNG_SECS - now) > 0:
                if self._timer is None and any(self._lines.values()):
                    self._timer = self._clock.call_later(left_secs, self._look)
                return False
            del self._young[turn]
        return self._running.total() < self._limit

    def _look(self) -> None:
        self._timer = None
        self._begin_next()

    def close(self) -> None:
        """Stop the timer."""
        if self._timer is not None:
            self._timer.cancel()


def socket_limit() -> int:
    """Return the default of KOSTER_CONCURRENT_FETCHES: half of the limit of open files.

    The number is at most 1,000, and 256 on Windows.
    """
    try:
        import resource  # noqa: PLC0415  # not on Windows
    except ImportError:
        return 256
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    is_unlimited = files == resource.RLIM_INFINITY
    return _FETCHES_MAX if is_unlimited else max(1, min(files // 2, _FETCHES_MAX))

"""Limits the number of sites that wait for a robots.txt, and of robots.txt fetched at once.

The scheduler takes requests from the wrapped queue to find new sites. A new site costs memory and a
fetch, and delays the pages of known sites. So the scheduler pauses while too many sites are
*young*: a young site has not failed, and has waited for less than half a second. A site that waits
longer may hang, and must not stop the scheduler. The number of all waiting sites has a higher
limit, so that in an outage the scheduler does not empty the queue. The scheduler also pauses while
loaded files, whose requests can come out, fill the memory.
"""

from bisect import insort
from collections import Counter, deque
from collections.abc import Callable, Sized
from contextlib import AsyncExitStack
from dataclasses import dataclass
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


class Young:
    """Sites or fetches that have begun within the last *secs* seconds, at most *most* of them."""

    def __init__(
        self, clock: Clock, secs: float, most: int, has_room: Callable[[], object]
    ) -> None:
        """*has_room* is called when there is room again after a while without."""
        self._clock, self._secs, self._most, self._has_room = clock, secs, most, has_room
        self._began: dict[object, Instant] = {}
        """When each has begun, the oldest first. The old ones are removed by ``is_full``."""
        self._timer: CallLaterResult | None = None

    def begins(self, each: object) -> None:
        """Count *each* from now on."""
        self._began[each] = self._clock.now()

    def ends(self, each: object) -> None:
        """Stop counting *each*, if it is still young."""
        self._began.pop(each, None)

    @property
    def is_full(self) -> bool:
        """Whether there is no room for another one."""
        while len(self._began) >= self._most:
            each, began = next(iter(self._began.items()))
            if (left_secs := began + self._secs - self._clock.now()) > 0:
                if self._timer is None:
                    self._timer = self._clock.call_later(left_secs, self._time_is_over)
                return True
            del self._began[each]
        return False

    def _time_is_over(self) -> None:
        self._timer = None
        self._has_room()

    def close(self) -> None:
        """Forget all, and stop the timer."""
        self._began.clear()
        if self._timer is not None:
            self._timer.cancel()


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

    def __post_init__(self) -> None:
        """Begin without sites."""
        self._young = Young(self.clock, YOUNG_SECS, self.young_limit, self.has_room)
        self.ends, self.close = self._young.ends, self._young.close

    def begins(self, state: SiteState) -> None:
        """Count the site as young, unless it has failed."""
        if not isinstance(state.known, FetchFailure):
            self._young.begins(state)

    @property
    def is_full(self) -> bool:
        """Whether the scheduler has to stop looking for new sites."""
        is_full = self._young.is_full or len(self.waiting) >= self.waiting_limit
        return is_full or not self.has_memory()


class FetchLimiter:
    """Limits the fetches of robots.txt at once, which take up no CONCURRENT_REQUESTS slots.

    At most *most* run, and at most *young* of them have begun within the last second. So a proxy or
    a network gets as many as the user has set, and fetches that hang do not delay the rest.
    Sites that have failed may hang again: they have a quarter of *most*, the other sites the rest.
    """

    def __init__(self, clock: Clock, young: int, most: int) -> None:
        self._young = Young(clock, FETCH_YOUNG_SECS, young, self._begin_next)
        self.close = self._young.close
        self._limit = most
        self._limits = {True: max(1, most // 4), False: max(1, most - most // 4)}
        self._running: Counter[bool] = Counter()
        """The number of running fetches, by whether the site has failed."""
        self._lines: dict[bool, deque[tuple[bool, int, Deferred[None]]]]
        self._lines = {True: deque(), False: deque()}
        """The waiting fetches in their order, by whether the site has failed."""
        self._order = count()
        self._is_beginning = False

    async def enter(self, place: AsyncExitStack, state: SiteState, *, is_new: bool = True) -> None:
        """Wait until the fetch for a site may begin. It ends when *place* is closed.

        A fetch that is not new, but goes on, is before the new ones.
        """
        has_failed = isinstance(state.known, FetchFailure)
        line, number = self._lines[has_failed], next(self._order)
        turn: Deferred[None] = Deferred(lambda turn: line.remove((is_new, number, turn)))
        insort(line, (is_new, number, turn))
        self._begin_next()
        if not turn.called:
            await maybe_deferred_to_future(turn)
        place.callback(self._ends, turn, has_failed=has_failed)

    def _ends(self, turn: Deferred[None], *, has_failed: bool) -> None:
        self._running[has_failed] -= 1
        self._young.ends(turn)
        self._begin_next()

    def _begin_next(self) -> None:
        while (has_failed := self._next_line()) is not None and not self._young.is_full:
            self._running[has_failed] += 1
            *_, turn = self._lines[has_failed].popleft()
            self._young.begins(turn)
            # Without asyncio, the fetch can end within this call, and call this method again. Then
            # this loop begins the next fetch: hundreds of nested calls are a RecursionError.
            self._is_beginning = True
            turn.callback(None)
            self._is_beginning = False

    def _next_line(self) -> bool | None:
        """Return which line has the next fetch, or None if no fetch may begin."""
        if self._is_beginning or self._running.total() >= self._limit:
            return None
        lines, limits = self._lines, self._limits
        waiting = [each for each in lines if lines[each] and self._running[each] < limits[each]]
        return min(waiting, key=lambda each: lines[each][0], default=None)


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

"""Items that are due some time, or may last so long: one timer of the loop for all of them."""

from __future__ import annotations

import heapq
import itertools
from typing import TYPE_CHECKING, Generic, TypeVar

from scrapy_koster.crawl.clock import NEVER

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator

    from scrapy.utils.asyncio import CallLaterResult

    from scrapy_koster.crawl.clock import Clock, Instant

_ItemT = TypeVar("_ItemT", bound="Hashable")

# Some loops cannot set a timer for longer. One that fires too soon is set again.
_MOST_SECS = 86400.0


class Timetable(Generic[_ItemT]):
    """Calls a function for each item once, at the earliest of the times that were set for it.

    A broad crawl may defer ten thousand sites, so only the item that is due first has a timer.
    """

    def __init__(self, clock: Clock, due: Callable[[_ItemT], None]) -> None:
        """*due* is called with each item; it may set the same item again."""
        self._clock = clock
        self._call = due
        self._due: dict[_ItemT, Instant] = {}
        self._heap: list[tuple[Instant, int, _ItemT]] = []
        """Includes entries of items that became due earlier: ``_due`` has the valid ones."""
        self._numbers = itertools.count()
        self._timer: CallLaterResult | None = None
        self._timer_at = NEVER

    def __contains__(self, item: _ItemT) -> bool:
        return item in self._due

    def __iter__(self) -> Iterator[tuple[_ItemT, Instant]]:
        return iter(list(self._due.items()))

    def set(self, item: _ItemT, when: Instant) -> None:
        """Make *item* due at *when*, unless it is due earlier."""
        if when < self._due.get(item, NEVER):
            self._due[item] = when
            heapq.heappush(self._heap, (when, next(self._numbers), item))
            self._set_timer()

    def clear(self) -> None:
        """Forget all items: nothing is due any more."""
        self._due.clear()
        self._heap.clear()
        self._cancel()

    def _set_timer(self) -> None:
        if self._heap and self._heap[0][0] < self._timer_at:
            self._cancel()
            self._timer_at = self._heap[0][0]
            secs = min(max(0.0, self._timer_at - self._clock.now()), _MOST_SECS)
            self._timer = self._clock.call_later(secs, self._fire)

    def _cancel(self) -> None:
        self._timer_at = NEVER
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _fire(self) -> None:
        self._timer, self._timer_at = None, NEVER
        try:
            while self._heap and self._heap[0][0] <= self._clock.now():
                when, _, item = heapq.heappop(self._heap)
                if self._due.get(item) == when:
                    del self._due[item]
                    self._call(item)
        finally:
            self._set_timer()


class Timeouts(Generic[_ItemT]):
    """Calls a function for each item that lasts for longer than *secs* seconds.

    Of those that last the first that has begun is the first that is late: only it has a timer.
    """

    def __init__(self, clock: Clock, secs: float, late: Callable[[_ItemT], object]) -> None:
        """*late* is called with each item that has not ended in time."""
        self._clock = clock
        self._secs = secs
        self._late = late
        self._since: dict[_ItemT, Instant] = {}
        """When each began, in order."""
        self._timer: CallLaterResult | None = None

    def begin(self, item: _ItemT) -> None:
        """Count the time of *item* from now."""
        self._since[item] = self._clock.now()
        self._set_timer()

    def end(self, item: _ItemT) -> bool:
        """Count its time no more; return False if it is over."""
        in_time = self._since.pop(item, None) is not None
        if not self._since and self._timer is not None:
            self._timer.cancel()
            self._timer = None
        return in_time

    def _set_timer(self) -> None:
        if self._timer is None and self._since:
            self._timer = self._clock.call_later(max(0.0, self._left_secs()), self._fire)

    def _left_secs(self) -> float:
        first = next(iter(self._since.values()))
        return self._secs - (self._clock.now() - first)

    def _fire(self) -> None:
        self._timer = None
        try:
            while self._since and self._left_secs() <= 0:
                item = next(iter(self._since))
                del self._since[item]
                self._late(item)
        finally:
            self._set_timer()

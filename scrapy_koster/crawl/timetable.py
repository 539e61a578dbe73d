"""Items that are due at a time of their own: one timer of the loop for all of them."""

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

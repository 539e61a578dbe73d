"""When sites that could not be asked are due again: one timer for all of them."""

from __future__ import annotations

import heapq
import itertools
import math
from time import monotonic
from typing import TYPE_CHECKING

from scrapy_koster.crawl.engine.alarm import Alarm

if TYPE_CHECKING:
    from collections.abc import Callable

    from scrapy_koster.crawl.sites import SiteState


class RetryTimer:
    """Fires for each site once, at the earliest of the times it was scheduled for.

    There is one timer, for the site that is due first: a broad crawl may defer
    ten thousand. A clock that is put back meanwhile lengthens no wait.
    """

    def __init__(self, fire: Callable[[SiteState], None]) -> None:
        self._fire = fire
        self._due: dict[SiteState, float] = {}
        self._heap: list[tuple[float, int, SiteState]] = []
        """With entries whose site has become due earlier: ``_due`` says which hold."""
        self._numbers = itertools.count()
        self._alarm = Alarm(self._ring)

    def schedule(self, state: SiteState, secs: float) -> None:
        """Fire for the site in *secs* seconds, unless it is due earlier anyway."""
        when = monotonic() + secs
        if when < self._due.get(state, math.inf):
            self._due[state] = when
            heapq.heappush(self._heap, (when, next(self._numbers), state))
            self._set()

    def stop(self) -> None:
        """Forget all: nothing fires any more."""
        self._due.clear()
        self._heap.clear()
        self._alarm.cancel()

    def _set(self) -> None:
        if self._heap:
            self._alarm.set(self._heap[0][0])

    def _ring(self) -> None:
        try:
            while self._heap and self._heap[0][0] <= monotonic():
                when, _, state = heapq.heappop(self._heap)
                if self._due.get(state) == when:
                    del self._due[state]
                    self._fire(state)
        finally:
            self._set()

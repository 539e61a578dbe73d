"""Items that may last for so long at most: one timer of the loop for all of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from scrapy.utils.asyncio import CallLaterResult

    from scrapy_koster.crawl.clock import Clock, Instant

_ItemT = TypeVar("_ItemT", bound="Hashable")


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

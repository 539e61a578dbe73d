"""One timer of the loop for all who wait for a time."""

from __future__ import annotations

import math
from time import monotonic
from typing import TYPE_CHECKING

from scrapy.utils.asyncio import call_later

if TYPE_CHECKING:
    from collections.abc import Callable

    from scrapy.utils.asyncio import CallLaterResult

# A timer of some loops cannot be set for longer. One that rings too soon does no harm.
_MOST_SECS = 86400.0


class Alarm:
    """Rings at the earliest of the times it was set for, at the latest after a day."""

    def __init__(self, ring: Callable[[], None]) -> None:
        """*ring* has to set it again, if there are other times still."""
        self._ring = ring
        self._timer: CallLaterResult | None = None
        self._set_for = math.inf

    def set(self, when: float) -> None:
        """Ring at the time *when*, of the clock that never goes back, unless it does earlier."""
        if when < self._set_for:
            self.cancel()
            self._set_for = when
            secs = min(max(0.0, when - monotonic()), _MOST_SECS)
            self._timer = call_later(secs, self._rings)

    def cancel(self) -> None:
        """Ring no more."""
        self._set_for = math.inf
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _rings(self) -> None:
        self._timer = None
        self._set_for = math.inf
        self._ring()

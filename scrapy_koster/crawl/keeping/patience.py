"""How long a crawl that has nothing else to do waits for unreachable sites."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from scrapy_koster.crawl.keeping.fate import Crawl
from scrapy_koster.protocol.printable import printable

if TYPE_CHECKING:
    from collections.abc import Callable

    from scrapy.utils.asyncio import CallLaterResult

    from scrapy_koster.crawl.clock import Clock
    from scrapy_koster.protocol.access import Failure

# Of why a site cannot be asked, so that there is room for why it is not waited for.
_REASON_CHARS = 100


class Patience:
    """Knows what the crawl has to do: OVER once it was idle for KOSTER_IDLE_LIMIT_SECS.

    ``idle`` and ``busy`` may be called as often as one likes. When there is
    something else to do after all, it begins anew.
    """

    def __init__(self, clock: Clock, limit_secs: float, over: Callable[[], None]) -> None:
        """*over* is called at the moment when it is over."""
        self._clock = clock
        self._limit_secs = limit_secs
        self._over = over
        self._timer: CallLaterResult | None = None
        self.crawl = Crawl.BUSY
        self.is_by_hand = False
        """Whether somebody waits for one page."""

    def given_up(self, failure: Failure) -> Failure:
        """Return *failure* with why it is not waited for any longer."""
        if self.is_by_hand:
            why = "a command that fetches one page waits for no second attempt"
        else:
            secs = self._limit_secs
            why = f"there was nothing else to crawl for KOSTER_IDLE_LIMIT_SECS = {secs:g} s"
        reason = f"{printable(failure.reason, _REASON_CHARS)}; {why}"
        return replace(failure, reason=reason)

    def have_none(self) -> None:
        """Be over from the start: somebody waits for one page, and may ask again."""
        self.is_by_hand = True
        self.crawl = Crawl.OVER

    def idle(self) -> None:
        """There is nothing else to do."""
        if self.crawl is Crawl.BUSY:
            self.crawl = Crawl.IDLE
            self._timer = self._clock.call_later(self._limit_secs, self._end)

    def busy(self) -> None:
        """There is something else to do."""
        if self.crawl in (Crawl.IDLE, Crawl.OVER):
            self._stop()
            self.crawl = Crawl.OVER if self.is_by_hand else Crawl.BUSY

    def close(self) -> None:
        """The crawl has begun to close."""
        self._stop()
        self.crawl = Crawl.CLOSING

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _end(self) -> None:
        self._timer = None
        self.crawl = Crawl.OVER
        self._over()

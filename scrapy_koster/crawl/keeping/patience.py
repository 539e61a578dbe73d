"""How long a crawl that has nothing else to do waits for sites that cannot be asked."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from scrapy.utils.asyncio import call_later

from scrapy_koster.protocol.printable import printable

if TYPE_CHECKING:
    from collections.abc import Callable

    from scrapy.utils.asyncio import CallLaterResult

    from scrapy_koster.protocol.access import Failure

# Of why a site cannot be asked, so that there is room for why it is not waited for.
_REASON_CHARS = 100


class Patience:
    """Is over when there has been nothing else to do for KOSTER_IDLE_LIMIT_SECS.

    ``idle`` and ``busy`` may be called as often as one likes. When there is
    something else to do after all, it begins anew.
    """

    def __init__(self, limit_secs: float, over: Callable[[], None]) -> None:
        """*over* is called at the moment when it is over."""
        self._limit_secs = limit_secs
        self._over = over
        self._timer: CallLaterResult | None = None
        self.is_by_hand = False
        """Whether somebody waits for one page."""
        self.is_over = False
        """Whether sites that have failed are not waited for any more."""

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
        self.is_by_hand = self.is_over = True

    def idle(self) -> None:
        """There is nothing else to do."""
        if self._timer is None and not self.is_over:
            self._timer = call_later(self._limit_secs, self._end)

    def busy(self) -> None:
        """There is something else to do."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self.is_over = self.is_by_hand

    def _end(self) -> None:
        self._timer = None
        self.is_over = True
        self._over()

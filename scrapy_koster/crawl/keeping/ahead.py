"""How far ahead of its pages a crawl fetches robots.txt.

The scheduler takes requests from the wrapped queue to find sites that are not known yet. Each of
them costs memory and a fetch, and the pages of the sites that have answered come later for it. So
it stops while enough sites wait for their answer.

A site that has waited for a second may hang. It no longer counts towards that limit, so that the
sites after it have their turn: 300 hanging sites delay the next one by less than 3 seconds. All
sites that wait, the hanging and the deferred ones too, have a limit of their own. In an outage the
rest of the queue stays where it is until some of these have answered or were given up.

A crawl begins with two sites. Each further one would delay the first page by what it costs. While
that page is under way no other site begins, for a moment.
"""

from __future__ import annotations

from contextlib import ExitStack, nullcontext
from typing import TYPE_CHECKING

from scrapy_koster.protocol.access import Failure

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from scrapy.utils.asyncio import CallLaterResult

    from scrapy_koster.crawl.clock import Clock, Instant
    from scrapy_koster.crawl.states import SiteState

# Sites that are asked for the first time, for each request that the crawl may have under way.
_FIRST_PER_PLACE = 2
# As many as get a permit within 0.6 seconds if all of them hang. See ``fetching.permits``.
_FIRST_LEAST = 112
FIRST_SECS = 1.0
"""So long a site counts as one that is asked for the first time."""
_WAITING_LEAST = 1000
_FIRST_AT_START = 2
START_SECS = 0.25
"""So long a crawl begins, if no page was scraped before."""
# A page from this machine or the next takes less. Sites whose pages take longer need not wait.
_FIRST_PAGE_SECS = 0.02


class Ahead:
    """Knows whether enough sites wait: ``is_full``."""

    def __init__(
        self,
        clock: Clock,
        has_room: Callable[[], object],
        *,
        first: int,
        waiting: int,
        start: Callable[[], AbstractContextManager[object]] = nullcontext,
    ) -> None:
        """*first*: how many sites may be asked for the first time; *waiting*: how many in all.

        *has_room* is called when there is room because the time of some is over. *start* is
        entered when the first site begins to wait, and left when the crawl has begun.
        """
        self._clock = clock
        self._first_limit = first
        self._first_limit_now = min(first, _FIRST_AT_START)
        self._limit = waiting
        self._has_room = has_room
        self._waiting: set[SiteState] = set()
        self._first: dict[SiteState, Instant] = {}
        """The time when each began to wait, in order."""
        self._timer: CallLaterResult | None = None
        self._start = start
        self._beginning: ExitStack | None = None
        """What ends when the crawl has begun."""
        self._is_held = False
        """Whether no site begins, since the first page is under way."""
        self.has_begun = False
        """Whether the first page was scraped, or ``START_SECS`` have passed since a site waits."""
        self.is_full = False
        """Whether no more sites are to be looked for now. An attribute: it is read for each
        request.
        """

    @classmethod
    def of_crawl(
        cls, clock: Clock, has_room: Callable[[], object], *, places: int, memory: int
    ) -> Ahead:
        """Return that of a crawl: *places* is CONCURRENT_REQUESTS, *memory* KOSTER_MEMORY_SITES."""
        first, waiting = max(_FIRST_PER_PLACE * places, _FIRST_LEAST), max(memory, _WAITING_LEAST)
        return cls(clock, has_room, first=first, waiting=waiting)

    def begins(self, state: SiteState) -> None:
        """Count a site that begins to wait, or waits already."""
        if state in self._waiting:
            return
        self._waiting.add(state)
        if not self.has_begun and self._beginning is None:
            self._beginning = ExitStack()
            self._beginning.enter_context(self._start())
            self._beginning.callback(self._clock.call_later(START_SECS, self.begun).cancel)
        if not isinstance(state.known, Failure):
            self._first[state] = self._clock.now()
        self._look()

    def ends(self, state: SiteState) -> None:
        """Do not count the site any more: it waits no longer, or begins to anew."""
        self._waiting.discard(state)
        self._first.pop(state, None)
        self._look()

    def first_sent(self) -> None:
        """Look for no site for a moment: the first page is under way."""
        if self.has_begun or self._beginning is None:
            return
        self._is_held = True
        self._beginning.callback(self._clock.call_later(_FIRST_PAGE_SECS, self._go_on).cancel)
        self._look()

    def _go_on(self) -> None:
        self._is_held = False
        self._look()
        if not self.is_full:
            self._has_room()

    def begun(self) -> None:
        """Look as far ahead as may be: the first page was scraped, or its time is over."""
        self.has_begun = True
        self._is_held = False
        if self._beginning is not None:
            self._beginning.close()
        self._first_limit_now = self._first_limit
        was_full = self.is_full
        self._look()
        if was_full and not self.is_full:
            self._has_room()

    def close(self) -> None:
        """Leave no timer behind, also when attempts that are under way end later."""
        self._first.clear()
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None
        if self._beginning is not None:
            self._beginning.close()

    def _look(self) -> None:
        limit = self._first_limit_now
        if self.has_begun and len(self._first) >= limit and self._timer is None:
            self._drop_late()
        is_full = len(self._first) >= limit or len(self._waiting) >= self._limit
        self.is_full = is_full or self._is_held

    def _drop_late(self) -> None:
        """Drop those that have waited for long enough; look again when the next of them has."""
        now = self._clock.now()
        while self._first:
            state, since = next(iter(self._first.items()))
            left_secs = since + FIRST_SECS - now
            if left_secs > 0:
                break
            del self._first[state]
        if len(self._first) >= self._first_limit:
            self._timer = self._clock.call_later(left_secs, self._time_is_over)

    def _time_is_over(self) -> None:
        self._timer = None
        self._go_on()

"""Limits the number of sites that wait for a robots.txt, and of robots.txt fetched at once.

The scheduler takes requests from the wrapped queue to find new sites. A new site costs memory and a
fetch, and delays the pages of known sites. So the scheduler pauses while too many sites are
*young*: a young site has not failed, and has waited for less than half a second. A site that waits
longer may hang, and must not stop the scheduler. The number of all waiting sites has a higher
limit, so that in an outage the scheduler does not empty the queue.

A fetch holds a socket. Sites that have failed may hang again, so they share a quarter of the
sockets. The other sites share the rest.
"""

from collections.abc import AsyncIterator, Callable, Sized
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from scrapy.utils.asyncio import CallLaterResult
from scrapy.utils.defer import maybe_deferred_to_future
from twisted.internet.defer import DeferredSemaphore

from scrapy_koster.crawl.clock import Clock, Instant
from scrapy_koster.crawl.states import SiteState
from scrapy_koster.protocol.access import Failure

YOUNG_SECS = 0.5
_SOCKETS_MAX = 1000


@dataclass(eq=False)
class LookaheadLimit:
    """Limits the number of sites that wait for a robots.txt."""

    clock: Clock
    has_room: Callable[[], object]
    """Called when sites are no longer young, and the scheduler can look for new sites again."""
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
        if not isinstance(state.known, Failure):
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
        return left_secs > 0 or len(self.waiting) >= self.waiting_limit

    def _time_is_over(self) -> None:
        self._timer = None
        if not self.is_full:
            self.has_room()

    def close(self) -> None:
        """Forget the young sites, and stop the timer."""
        self._young.clear()
        if self._timer is not None:
            self._timer.cancel()


class Sockets:
    """The sockets of fetches, divided between failed sites and new sites."""

    def __init__(self, count: int) -> None:
        """*count* is the number of sockets. See ``socket_limit``."""
        self._failed = DeferredSemaphore(max(1, count // 4))
        self._new = DeferredSemaphore(max(1, count - count // 4))

    @asynccontextmanager
    async def hold(self, state: SiteState) -> AsyncIterator[None]:
        """Return a context that holds a socket. Entering the context waits for a free socket."""
        sockets = self._failed if isinstance(state.known, Failure) else self._new
        await maybe_deferred_to_future(sockets.acquire())
        try:
            yield
        finally:
            sockets.release()


def socket_limit() -> int:
    """Return the number of sockets for robots.txt: half of the limit of open files.

    The number is at most 1,000, and 256 on Windows.
    """
    try:
        import resource  # noqa: PLC0415  # not on Windows
    except ImportError:
        return 256
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    is_unlimited = files == resource.RLIM_INFINITY
    return _SOCKETS_MAX if is_unlimited else max(1, min(files // 2, _SOCKETS_MAX))

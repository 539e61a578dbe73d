"""Whose robots.txt is asked for next: how many sites are asked at the same time.

A robots.txt is small, and most sites answer at once: a few dozen fetches at a
time keep a crawl busy, and do not compete for the resolver and the processor.
Sites that hang must not use these up. So a fetch has a *permit* for its first
moments only; one that lasts longer gives its permit back, and goes on as one of
the sockets that are open, of which there may be many more.

    permits     56 of 64 for sites that are asked for the first time
    sockets    448 of 512 likewise, at a limit of 1,024 files

A site that is asked for the first time goes before one that failed before:
nothing is known of it, and the other has shown that it may hang. The shares
below keep both going: however many sites hang, retries cannot take more than
half of all, nor first requests the last eighth.
"""

from __future__ import annotations

import math
from collections import deque
from enum import Enum
from fractions import Fraction
from typing import TYPE_CHECKING

from scrapy.utils.defer import maybe_deferred_to_future
from twisted.internet.defer import Deferred

from scrapy_koster.crawl.timetable import Timeouts

if TYPE_CHECKING:
    from scrapy_koster.crawl.clock import Clock
    from scrapy_koster.protocol.exchange import Exchange

# Permits, for each request that the crawl may have under way.
_FETCHES_PER_SLOT = 4
_CONCURRENT_LEAST = 16
# So that 300 sites that hang pass on their permits, 56 at a time, within 2 seconds.
_PERMIT_SECS = 0.3
_SOCKETS_MAX = 1000
_FILES_UNKNOWN = 512


class Order(Enum):
    """Which sites go first, and the share of permits and of sockets that they may take."""

    FIRST = Fraction(7, 8)
    """Sites that have not failed."""
    AGAIN = Fraction(1, 2)
    """Sites that failed before."""


class TurnNeededError(Exception):
    """A host with a Crawl-delay has to have a turn before it is asked for a robots.txt."""

    def __init__(
        self, url: str | None = None, hops: int = 0, exchanges: tuple[Exchange, ...] = ()
    ) -> None:
        """*url* is where the site redirects to after so many *hops*, None for the site itself.

        *exchanges* are what was sent and received by then.
        """
        super().__init__(url)
        self.url = url
        self.hops = hops
        self.exchanges = exchanges


class NoPermitError(Exception):
    """The time in which a permit was of use has passed."""


class Permits:
    """Gives permits to fetches, *at_once* at a time, and sockets, *sockets* at a time.

    A permit lasts as long as its fetch, and *secs* seconds at most.
    """

    def __init__(self, clock: Clock, *, at_once: int, sockets: int, secs: float) -> None:
        self._clock = clock
        self._lasting: Timeouts[_Permit] = Timeouts(clock, secs, self._take_back)
        at_once = min(at_once, sockets)
        self._all = _Share(Fraction(1), at_once, sockets)
        self._shares = {order: _Share(order.value, at_once, sockets) for order in Order}

    @classmethod
    def of_crawl(cls, clock: Clock, concurrent_requests: int) -> Permits:
        """Return the permits of a crawl with so many CONCURRENT_REQUESTS."""
        return cls(
            clock,
            at_once=_FETCHES_PER_SLOT * max(concurrent_requests, _CONCURRENT_LEAST),
            sockets=socket_limit(),
            secs=_PERMIT_SECS,
        )

    def permit(self, order: Order, within_secs: float = math.inf) -> _Permit:
        """Return a context, which waits for a permit, and holds a socket while it is open.

        Raises NoPermitError if none comes within *within_secs*.
        """
        return _Permit(self, self._shares[order], within_secs)

    async def begin(self, permit: _Permit) -> None:
        """Wait for *permit*, and have it last."""
        await self._wait(permit.share, permit.within_secs)
        self._lasting.begin(permit)

    def end(self, permit: _Permit) -> None:
        """Take back the socket of *permit*, and itself if its time is not over."""
        permit.share.close()
        self._all.close()
        if self._lasting.end(permit):
            self._take_back(permit)
        else:
            self._give()

    def _take_back(self, permit: _Permit) -> None:
        permit.share.give_back()
        self._all.give_back()
        self._give()

    async def _wait(self, share: _Share, within_secs: float) -> None:
        queue = share.queue
        if not queue and self._has_room(share):
            self._take(share)
            return
        given: Deferred[None] = Deferred(queue.remove)
        queue.append(given)
        timer = None
        if within_secs < math.inf:
            timer = self._clock.call_later(max(0.0, within_secs), _end, given, queue)
        try:
            await maybe_deferred_to_future(given)
        finally:
            if timer is not None:
                timer.cancel()

    def _give(self) -> None:
        for share in self._shares.values():
            while share.queue and self._has_room(share):
                self._take(share)
                share.queue.popleft().callback(None)

    def _take(self, share: _Share) -> None:
        share.take()
        self._all.take()

    def is_free(self, order: Order) -> bool:
        """Whether a permit would come at once."""
        return self._has_room(self._shares[order])

    def _has_room(self, share: _Share) -> bool:
        return share.has_room and self._all.has_room


class _Permit:
    """The permit of one fetch, as a context."""

    __slots__ = ("_permits", "share", "within_secs")

    def __init__(self, permits: Permits, share: _Share, within_secs: float) -> None:
        self._permits = permits
        self.share = share
        self.within_secs = within_secs

    async def __aenter__(self) -> None:
        await self._permits.begin(self)

    async def __aexit__(self, *_: object) -> None:
        self._permits.end(self)


class _Share:
    """What sites of one order, or all, have of the permits and sockets, and may have at most."""

    __slots__ = ("_at_once", "_permits", "_sockets", "open", "queue")

    def __init__(self, part: Fraction, at_once: int, sockets: int) -> None:
        self._at_once = max(1, int(part * at_once))
        self._sockets = max(1, int(part * sockets))
        self._permits = self.open = 0
        self.queue: deque[Deferred[None]] = deque()
        """Those who wait for a permit."""

    @property
    def has_room(self) -> bool:
        """Whether there is a permit left of it, and a socket."""
        return self._permits < self._at_once and self.open < self._sockets

    def take(self) -> None:
        """Count a permit, and the socket that comes with it."""
        self._permits += 1
        self.open += 1

    def give_back(self) -> None:
        """Count a permit no more."""
        self._permits -= 1

    def close(self) -> None:
        """Count a socket no more."""
        self.open -= 1


def _end(given: Deferred[None], queue: deque[Deferred[None]]) -> None:
    if not given.called:
        queue.remove(given)
        given.errback(NoPermitError())


def socket_limit() -> int:
    """Return how many sockets may be open for robots.txt: half of the files, 1,000 at most."""
    try:
        import resource  # noqa: PLC0415  # not on Windows
    except ImportError:
        files = _FILES_UNKNOWN
    else:
        files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        files = _SOCKETS_MAX * 2 if files == resource.RLIM_INFINITY else files
    return max(1, min(files // 2, _SOCKETS_MAX))

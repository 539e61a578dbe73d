"""When each host with a Crawl-delay may be visited next, and which request visits it.

A visit begins when a request is sent. A site sees the request later than that, so the next visit
may begin a delay after the answer, or after half a second if the answer takes longer.

When the time of a host has come (``next_visit``) and requests wait, the visit is claimed in the
storage, since other processes may visit the host as well. It is then open for half a delay. One
request takes it, and is sent: its visit is under way until the answer. Before a request is sent
its time is checked again, because it may have waited in its slot.
"""

from __future__ import annotations

from collections import deque
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from scrapy.utils.defer import deferred_from_coro, maybe_deferred_to_future
from twisted.internet.defer import Deferred

from scrapy_koster.crawl.clock import LONG_AGO
from scrapy_koster.crawl.engine.private import CANCELLED

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator
    from contextlib import AbstractContextManager

    from scrapy import Request
    from scrapy.utils.asyncio import CallLaterResult

    from scrapy_koster.crawl.clock import Clock, Instant
    from scrapy_koster.crawl.engine.private import Engine
    from scrapy_koster.crawl.fetching.storage_calls import StorageCalls
    from scrapy_koster.crawl.messages.stats import Stats
    from scrapy_koster.crawl.parking.parked_requests import ParkedRequests

LATE_MOST_SECS = 0.5
"""How much later than it was sent a site may see a request, for all we know."""
_OPEN_LEAST_SECS = 0.05
_RETRY_SECS = 1.0
# Some loops cannot set a timer for longer.
_TIMER_MOST_SECS = 86400.0
_EVICTED_AT_ONCE = 16


class TooEarlyError(Exception):
    """A visit may not begin now, and does not wait."""


@dataclass(eq=False, slots=True)
class Host:
    """A host, the delays of its sites, and the time of the next visit."""

    name: str
    delays: dict[str, float] = field(default_factory=dict)
    """The delay of each of its sites, in seconds."""
    gap: float = 0.0
    """The seconds from one visit to the next. 0 if no site requests a delay any more."""
    next_visit: Instant = LONG_AGO
    claim: Deferred[Any] | None = None
    """The call that claims the next visit in the storage."""
    claimed_at: Instant = LONG_AGO
    """When the storage granted a visit that has not begun yet."""
    open_until: Instant = LONG_AGO
    """Until then a request may take that visit."""
    taken_by: Request | None = None
    """The request that has taken the next visit and was not sent yet. None for a robots.txt."""
    taken_until: Instant = LONG_AGO
    under_way: int = 0
    timer: CallLaterResult | None = None
    timer_at: Instant = LONG_AGO
    waiters: deque[tuple[Deferred[bool], Request | None]] = field(default_factory=deque)
    """The requests that wait in place. None for a robots.txt."""


class HostVisits:
    """The hosts that request a delay. It gives their visits to one request after the other."""

    def __init__(
        self,
        engine: Engine,
        store: StorageCalls,
        stats: Stats,
        clock: Clock,
        *,
        parked: ParkedRequests,
        most: int,
    ) -> None:
        """*most* hosts are kept in memory."""
        self._engine = engine
        self._store = store
        self._stats = stats
        self._clock = clock
        self._parked = parked
        self._most = most
        self._hosts: dict[str, Host] = {}
        self._waiting: Callable[[Request], AbstractContextManager[None]]
        self._refuse: Callable[[Request], None]
        self._closed = False

    def open(
        self,
        waiting: Callable[[Request], AbstractContextManager[None]],
        refuse: Callable[[Request], None],
    ) -> None:
        """Begin. A request that has to wait when it is sent is *waiting* in place meanwhile.

        If the crawl closes first, *refuse* is called with it, and raises.
        """
        self._waiting, self._refuse = waiting, refuse

    def __iter__(self) -> Iterator[Host]:
        return iter(self._hosts.values())

    def get(self, name: str) -> Host | None:
        """Return the host of this name, None if it requested no delay."""
        return self._hosts.get(name)

    def add(self, name: str) -> Host:
        """Return a new host. An old one may leave the memory."""
        for _ in range(_EVICTED_AT_ONCE):
            if len(self._hosts) < self._most:
                break
            oldest = next(iter(self))
            del self._hosts[oldest.name]
            if not self._is_idle(oldest):
                self._hosts[oldest.name] = oldest
        host = self._hosts[name] = Host(name)
        return host

    def _is_idle(self, host: Host) -> bool:
        is_busy = host.under_way or host.claim or host.timer or self._is_taken(host)
        return not (is_busy or self.is_awaited(host) or host.next_visit > self._clock.now())

    def is_open(self, host: Host) -> bool:
        """Return whether a request may take the next visit now."""
        return self._clock.now() < host.open_until and not host.under_way

    def is_awaited(self, host: Host) -> bool:
        """Return whether requests wait for the next visit."""
        return bool(host.waiters) or self._parked.waiting_in(host.name) > 0

    def _is_taken(self, host: Host) -> bool:
        """Return whether a request has taken the next visit, and may still be sent."""
        by = host.taken_by
        is_under_way = by is not None and by in self._engine.under_way
        return is_under_way or self._clock.now() < host.taken_until

    # Requests wait for the next visit.

    def want(self, host: Host) -> None:
        """Have the next visit given to a request that waits for it, when its time has come."""
        is_busy = host.under_way or host.claim or host.timer
        if self._closed or is_busy or not self.is_awaited(host):
            return
        if self.is_open(host):
            self._give(host)
        else:
            self._set_timer(host, host.next_visit)

    async def wait(self, host: Host, request: Request | None = None) -> bool:
        """Wait in place for a visit to *host*; return False if the crawl closes first."""
        if self._closed:
            return False
        given: Deferred[bool] = Deferred()
        host.waiters.append((given, request))
        self.want(host)
        return await maybe_deferred_to_future(given)

    def _set_timer(self, host: Host, when: Instant) -> None:
        now = self._clock.now()
        secs = min(max(0.0, when - now), _TIMER_MOST_SECS)
        self._stats.paced(secs)
        host.timer, host.timer_at = self._clock.call_later(secs, self._look, host), now + secs

    def _stop_timer(self, host: Host) -> None:
        if host.timer is not None:
            host.timer.cancel()
            host.timer = None
            self._stats.paced(-max(0.0, host.timer_at - self._clock.now()))

    def _look(self, host: Host) -> None:
        host.timer = None
        now = self._clock.now()
        if not host.gap:
            self._end_waits(host, may_visit=True)
            self._parked.let_out(host.name)
            self._engine.wake()
        elif self._is_taken(host):
            later = host.taken_until if host.taken_until > now else now + _RETRY_SECS
            self._set_timer(host, later)
        elif host.next_visit > now:
            self._set_timer(host, host.next_visit)
        elif self.is_awaited(host):
            claim = deferred_from_coro(self._claim(host))
            claim.addErrback(lambda failure: failure.trap(*CANCELLED))
            host.claim = None if claim.called else claim

    async def _claim(self, host: Host) -> None:
        gap, asked_at = host.gap, self._clock.now()
        try:
            left = min(await self._store.visit(host.name, gap), max(gap, _RETRY_SECS))
        finally:
            host.claim = None
        now = self._clock.now()
        host.next_visit = max(host.next_visit, now + left)
        # A visit without a claim may have begun meanwhile.
        if host.next_visit <= now and not host.under_way:
            host.claimed_at = asked_at
            host.open_until = now + max(gap / 2, _OPEN_LEAST_SECS)
        self.want(host)

    def _give(self, host: Host) -> None:
        """Give the next visit to the first request that waits in place, or else to a parked one."""
        while host.waiters:
            given, request = host.waiters.popleft()
            if not given.called:
                self.take(host, request)
                given.callback(True)  # noqa: FBT003
                break
        else:
            self._parked.let_one_out(host.name)
            self._engine.wake()
        if host.timer is None:  # in case the request is not sent
            self._set_timer(host, max(host.open_until, host.taken_until))

    @staticmethod
    def _end_waits(host: Host, *, may_visit: bool) -> None:
        waiters, host.waiters = host.waiters, deque()
        for given, _ in waiters:
            if not given.called:
                given.callback(may_visit)

    def take(self, host: Host, request: Request | None) -> None:
        """Have *request*, or a robots.txt, take the next visit."""
        host.taken_by, host.taken_until = request, self._clock.now() + host.gap
        host.open_until = LONG_AGO

    # A visit.

    @asynccontextmanager
    async def visit(self, host: Host, request: Request | None) -> AsyncIterator[None]:
        """Have *request*, or a robots.txt, sent within this, as soon as it may be.

        A visit with ``dont_obey_robotstxt`` is only noted. A robots.txt does not wait, but raises
        TooEarlyError.
        """
        if request is not None and request.meta.get("dont_obey_robotstxt"):
            await self._store.visit(host.name, host.gap, begun=True)
        else:
            await self._begin(host, request)
        self._stop_timer(host)
        host.under_way += 1
        began = self._clock.now()
        host.next_visit = began + host.gap
        try:
            yield
        finally:
            host.under_way -= 1
            answered = min(self._clock.now(), began + LATE_MOST_SECS)
            host.next_visit = max(host.next_visit, answered + host.gap)
            self.want(host)

    async def _begin(self, host: Host, request: Request | None) -> None:
        """Return when a visit may begin. The time of *request* may have passed in its slot."""
        if request is None and host.under_way:
            raise TooEarlyError
        while True:
            if host.taken_by is request:
                host.taken_by, host.taken_until = None, LONG_AGO
            left = host.next_visit - self._clock.now()
            if left <= 0 and host.gap:
                is_claimed = self._clock.now() - host.claimed_at < host.gap / 2
                host.claimed_at = LONG_AGO
                left = await self._store.visit(host.name, host.gap, begun=is_claimed)
                left = max(left, host.next_visit - self._clock.now())  # others may have begun
            if left <= 0:
                return
            host.next_visit = max(host.next_visit, self._clock.now() + left)
            if request is None:
                raise TooEarlyError
            with self._waiting(request):
                if not await self.wait(host, request):
                    self._refuse(request)
                    raise TooEarlyError

    def close(self) -> None:
        """Give no more visits. The requests that wait in place are told."""
        self._closed = True
        for host in list(self):
            self._stop_timer(host)
            if host.claim is not None:
                host.claim.cancel()
            self._end_waits(host, may_visit=False)

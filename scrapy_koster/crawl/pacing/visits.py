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
from itertools import count
from typing import TYPE_CHECKING, Any

from scrapy.utils.defer import deferred_from_coro, maybe_deferred_to_future
from twisted.internet.defer import Deferred

from scrapy_koster.crawl.clock import LONG_AGO

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine
    from contextlib import AbstractContextManager
    from typing import TypeAlias

    from scrapy import Request
    from scrapy.utils.asyncio import CallLaterResult

    from scrapy_koster.crawl.clock import Clock, Instant
    from scrapy_koster.crawl.engine.private import Engine
    from scrapy_koster.crawl.fetching.storage_calls import StorageCalls
    from scrapy_koster.crawl.messages.stats import Stats

    Waiting: TypeAlias = Callable[[], AbstractContextManager[None]]

LATE_MOST_SECS = 0.5
"""How much later than it was sent a site may see a request, for all we know."""
_OPEN_LEAST_SECS = 0.05
_RETRY_SECS = 1.0
# A call of the storage that took so long, or half a delay, is repeated: if this process was stopped
# meanwhile, the time of the visit has passed to another one.
_STALLED_SECS = 0.1
_TRIES = 3
# Some loops cannot set a timer for longer.
_TIMER_MOST_SECS = 86400.0


class ClosingError(Exception):
    """The crawl closes before a visit could begin."""


class TooEarlyError(Exception):
    """A visit may not begin now, and does not wait."""


class Host:
    """A host, the delays of its sites, and the time of the next visit."""

    __slots__ = (
        "claimed_at", "delays", "gap", "is_claiming", "name", "next_visit", "open_until",
        "taken_by", "taken_until", "timer", "under_way", "waiters",
    )  # fmt: skip

    def __init__(self, name: str) -> None:
        self.name = name
        self.delays: dict[str, float] = {}
        """The delay of each of its sites, in seconds."""
        self.gap = 0.0
        """The seconds from one visit to the next. 0 if no site requests a delay any more."""
        self.next_visit = LONG_AGO
        self.is_claiming = False
        """Whether the storage is being asked for the next visit."""
        self.claimed_at = LONG_AGO
        """When the storage granted a visit that has not begun yet."""
        self.open_until = LONG_AGO
        """Until then a request may take that visit."""
        self.taken_by: Request | None = None
        """The request that has taken the next visit and was not sent yet. None for a robots.txt."""
        self.taken_until = LONG_AGO
        self.under_way = 0
        self.timer: CallLaterResult | None = None
        self.waiters: deque[tuple[Deferred[bool], Request | None]] = deque()
        """The requests that wait in place. None for a robots.txt."""


class HostVisits:
    """Gives the visits to each host to one request after the other."""

    def __init__(
        self,
        engine: Engine,
        store: StorageCalls,
        stats: Stats,
        clock: Clock,
        *,
        waiting_in: Callable[[str], int],
        opened: Callable[[Host], None],
    ) -> None:
        """*waiting_in* counts the parked requests for a host. *opened* is called when one of them
        may come out, or all of them if the host has no delay any more.
        """
        self._engine = engine
        self._store = store
        self._stats = stats
        self._clock = clock
        self._waiting_in = waiting_in
        self._opened = opened
        self._timers: dict[Host, Instant] = {}
        self._tasks: set[Deferred[None]] = set()
        self._pausing: set[Deferred[None]] = set()
        self._waiters: set[Deferred[bool]] = set()
        self._closed = False

    def is_open(self, host: Host) -> bool:
        """Return whether a request may take the next visit now."""
        return self._clock.now() < host.open_until and not host.under_way

    def is_awaited(self, host: Host) -> bool:
        """Return whether requests wait for the next visit."""
        return bool(host.waiters) or self._waiting_in(host.name) > 0

    def is_taken(self, host: Host) -> bool:
        """Return whether a request has taken the next visit, and may still be sent."""
        by = host.taken_by
        is_under_way = by is not None and by in self._engine.under_way
        return is_under_way or self._clock.now() < host.taken_until

    def is_idle(self, host: Host) -> bool:
        """Return whether nothing would be lost with *host*."""
        is_busy = host.under_way or host.is_claiming or self.is_taken(host)
        return not (is_busy or self.is_awaited(host) or host.next_visit > self._clock.now())

    def take(self, host: Host, request: Request | None) -> None:
        """Have *request*, or a robots.txt, take the next visit."""
        host.taken_by, host.taken_until = request, self._clock.now() + host.gap
        host.open_until = LONG_AGO

    def want(self, host: Host) -> None:
        """Have the next visit given to a request that waits for it, when its time has come."""
        is_idle = not (host.under_way or host.is_claiming or host in self._timers)
        if self._closed or not is_idle or not self.is_awaited(host):
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
        self._waiters.add(given)
        self.want(host)
        try:
            return await maybe_deferred_to_future(given)
        finally:
            self._waiters.discard(given)

    def _set_timer(self, host: Host, when: Instant) -> None:
        secs = min(max(0.0, when - self._clock.now()), _TIMER_MOST_SECS)
        self._timers[host] = self._clock.now() + secs
        self._stats.paced(secs)
        host.timer = self._clock.call_later(secs, self._look, host)

    def _drop_timer(self, host: Host) -> None:
        if (when := self._timers.pop(host, None)) is not None:
            assert host.timer is not None
            host.timer.cancel()
            self._stats.paced(-max(0.0, when - self._clock.now()))

    def _look(self, host: Host) -> None:
        del self._timers[host]
        host.timer = None
        now = self._clock.now()
        if host.under_way or not self.is_awaited(host):
            return
        if not host.gap:
            self._give_all(host)
        elif self.is_taken(host):
            left = host.taken_until - now
            self._set_timer(host, host.taken_until if left > 0 else now + _RETRY_SECS)
        elif host.next_visit > now:
            self._set_timer(host, host.next_visit)
        else:
            host.is_claiming = True
            self._run(self._claim(host))

    async def _claim(self, host: Host) -> None:
        gap, asked_at = host.gap, self._clock.now()
        try:
            left = min(await self._store.visit(host.name, gap), max(gap, _RETRY_SECS))
        finally:
            host.is_claiming = False
        now = self._clock.now()
        host.next_visit = max(host.next_visit, now + left)
        # A visit without a claim may have begun meanwhile.
        if host.next_visit <= now and not host.under_way:
            host.claimed_at = asked_at
            host.open_until = now + max(gap / 2, _OPEN_LEAST_SECS)
        self.want(host)

    def _give(self, host: Host) -> None:
        while host.waiters:
            given, request = host.waiters.popleft()
            if not given.called:
                self.take(host, request)
                given.callback(True)  # noqa: FBT003
                self.want(host)
                return
        self._opened(host)

    def _give_all(self, host: Host) -> None:
        waiters, host.waiters = host.waiters, deque()
        for given, _ in waiters:
            if not given.called:
                given.callback(True)  # noqa: FBT003
        self._opened(host)

    # A visit.

    @asynccontextmanager
    async def visit(
        self,
        host: Host,
        request: Request | None,
        waiting: Waiting | None,
        *,
        obeys: bool = True,
    ) -> AsyncIterator[None]:
        """Have *request*, or a robots.txt, visit *host*: as soon as it may, *waiting* until then.

        A visit that does not obey is only noted. Raises ClosingError if the crawl closes first,
        and TooEarlyError if the visit may not begin now and *waiting* is None.
        """
        if host.taken_by is request:
            host.taken_by, host.taken_until = None, LONG_AGO
        host.under_way += 1
        try:
            if obeys:
                await self._begin(host, waiting)
            else:
                self._run(self._note(host))
            began = self._clock.now()
            host.next_visit = began + host.gap
            try:
                yield
            finally:
                answered = min(self._clock.now(), began + LATE_MOST_SECS)
                host.next_visit = max(host.next_visit, answered + host.gap)
        finally:
            host.under_way -= 1
            self._drop_timer(host)
            self.want(host)

    async def _begin(self, host: Host, waiting: Waiting | None) -> None:
        for tried in count():
            now = self._clock.now()
            left, is_late = host.next_visit - now, False
            if left <= 0 and host.gap:
                is_claimed = now - host.claimed_at < host.gap / 2
                host.claimed_at = LONG_AGO
                left = await self._store.visit(host.name, host.gap, begun=is_claimed)
                after = self._clock.now()
                left = max(left, host.next_visit - after)  # another visit may have begun
                is_late = after - now >= max(host.gap / 2, _STALLED_SECS) and tried < _TRIES
            if left <= 0 and not is_late:
                return
            if left > 0:
                host.next_visit = max(host.next_visit, self._clock.now() + left)
                if waiting is None:
                    raise TooEarlyError
                with waiting():
                    await self._pause(left)

    async def _pause(self, secs: float) -> None:
        over: Deferred[None] = Deferred()
        timer = self._clock.call_later(secs, over.callback, None)
        self._pausing.add(over)
        try:
            if not self._closed:
                await maybe_deferred_to_future(over)
        finally:
            self._pausing.discard(over)
            timer.cancel()
        if self._closed:
            raise ClosingError

    async def _note(self, host: Host) -> None:
        await self._store.visit(host.name, host.gap, begun=True)

    def _run(self, coroutine: Coroutine[Any, Any, None]) -> None:
        task = deferred_from_coro(coroutine)
        self._tasks.add(task)
        task.addBoth(lambda _: self._tasks.discard(task))

    def close(self) -> None:
        """Give no more visits. The requests that wait in place are told."""
        if self._closed:
            return
        self._closed = True
        for host in list(self._timers):
            self._drop_timer(host)
        for given in list(self._waiters):
            if not given.called:
                given.callback(False)  # noqa: FBT003
        for over in list(self._pausing):
            if not over.called:
                over.callback(None)
        for task in list(self._tasks):
            task.cancel()

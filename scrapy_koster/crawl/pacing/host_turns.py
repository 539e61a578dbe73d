"""Whose turn it is to visit a host whose visits are to be apart."""

from __future__ import annotations

from collections import deque
from contextlib import asynccontextmanager
from itertools import count
from typing import TYPE_CHECKING, Any, TypeAlias

from scrapy.utils.defer import deferred_from_coro, maybe_deferred_to_future
from twisted.internet.defer import Deferred

from scrapy_koster.crawl.clock import LONG_AGO
from scrapy_koster.crawl.pacing.hosts import LATE_MOST_SECS, Checking, Open
from scrapy_koster.crawl.timetable import Timetable

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine
    from contextlib import AbstractContextManager

    from scrapy import Request

    from scrapy_koster.crawl.clock import Clock, Instant
    from scrapy_koster.crawl.fetching.ports import Store
    from scrapy_koster.crawl.messages.stats import Stats
    from scrapy_koster.crawl.pacing.hosts import Host, Hosts

    Waiting: TypeAlias = Callable[[], AbstractContextManager[None]]

# A request that has the turn and is held by something else is looked after so often.
_LOOK_SECS = 1.0
_TURN_LEAST_SECS = 0.05
# So much of a gap is added to it, for what is not known of how late a request is: see
# LATE_MOST_SECS. The answer shows that it was there.
_SPARE_SHARE = 0.01
# If it took the storage so long to grant a turn that is used now, it may have noted it as so much
# earlier than it is used. It is told.
_LATE_SECS = 0.01
# While it fails it is asked again so often, if the gap is shorter.
_HELD_SECS = 1.0
# If it took it so long, it is asked again, so often.
_STALLED_SECS = 0.1
_TRIES = 3


class ClosingError(Exception):
    """The crawl closes before a visit could begin."""


class TooEarlyError(Exception):
    """A visit may not begin now, and does not wait."""


class HostTurns:
    """Gives each host one turn after the other, to who waits in place first.

    A turn is had by one request, from when it is let out until it is sent. The next begins
    once the answer is there, and not before the delay has passed since it was sent. The storage
    grants it for as long as the delay, and once more at the moment when the request is sent: until
    then it may have waited in its slot.
    """

    def __init__(
        self,
        hosts: Hosts,
        store: Store,
        stats: Stats,
        clock: Clock,
        opened: Callable[[Host], None],
    ) -> None:
        """*opened* is called when a host's turn may be taken, and nobody waits for it in place."""
        self._hosts = hosts
        self._store = store
        self._stats = stats
        self._clock = clock
        self._opened = opened
        self._due: Timetable[Host] = Timetable(clock, self._look)
        self._tasks: set[Deferred[None]] = set()
        self._pausing: set[Deferred[None]] = set()
        self._closed = False

    def want(self, host: Host) -> None:
        """Have the turn of *host* given to those who wait for it, once it comes."""
        if self._closed or isinstance(host.turn, Checking) or host.under_way:
            return
        if self._hosts.is_ready(host):
            self._give(host)
        else:
            self._look_at(host, host.next_visit)

    async def wait(self, host: Host, request: Request | None = None) -> bool:
        """Wait in place for the turn of *host*; False if the crawl closes first."""
        if self._closed:
            return False
        given: Deferred[bool] = Deferred()
        host.waiters = host.waiters or deque()
        host.waiters.append((given, request))
        self.want(host)
        return await maybe_deferred_to_future(given)

    def take(self, host: Host, request: Request | None) -> None:
        """Let *request* have the turn, or /robots.txt."""
        host.turn = request
        host.next_visit = self._clock.now() + self._hosts.gap(host)

    @asynccontextmanager
    async def visit(
        self, host: Host, waiting: Waiting | None, *, obeys: bool = True
    ) -> AsyncIterator[None]:
        """Have a visit to *host* begin once it may, *waiting* until then.

        The turn was given before, and what has it may have waited for something else since. If
        it does not obey it is noted only. Raises ClosingError if the crawl closes first, and
        TooEarlyError if it may not begin now and *waiting* is None.
        """
        if not isinstance(host.turn, Checking):
            host.turn = None
        host.under_way += 1
        try:
            if obeys:
                await self._begin(host, waiting)
            else:
                self._run(self._note(host.name, self._hosts.gap(host)))
            began, gap = self._clock.now(), self._hosts.gap(host)
            host.free_at = host.next_visit = began + gap
            try:
                yield
            finally:
                secs = self._clock.now() - began
                late = min(host.lateness(secs), LATE_MOST_SECS) + _SPARE_SHARE * gap
                host.free_at = max(host.free_at, began + (gap + min(late, secs)))
                host.next_visit = max(host.next_visit, host.free_at)
        finally:
            host.under_way -= 1
            if self._hosts.is_awaited(host):
                self.want(host)

    async def _begin(self, host: Host, waiting: Waiting | None) -> None:
        """Wait until a visit may begin that is about to be sent."""
        claimed_at, host.claimed_at = host.claimed_at, LONG_AGO
        for tried in count():
            gap, now = self._hosts.gap(host), self._clock.now()
            left = host.free_at - now
            if left <= 0:
                # What was granted lasts for one gap. It is prolonged, or asked for anew.
                is_claimed = now - claimed_at < gap / 2
                left = await self._store.visit(host.name, gap, begun=is_claimed) if gap else 0.0
                secs = self._clock.now() - now
                # Was this process stopped meanwhile? Another may have had its turn then.
                is_late = secs >= max(gap / 2, _STALLED_SECS) and tried < _TRIES
                claimed_at = LONG_AGO
                if left <= 0 and not is_late:
                    if secs > _LATE_SECS:
                        self._run(self._note(host.name, gap))
                    return
            if left > 0:
                host.next_visit = max(host.next_visit, self._clock.now() + left)
                if waiting is None:
                    raise TooEarlyError
                with waiting():
                    await self._pause(left)

    async def _pause(self, secs: float) -> None:
        """Wait for *secs* seconds."""
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

    def close(self) -> None:
        """Give no turn any more; who waits for one is told."""
        if self._closed:
            return
        self._closed = True
        for _, when in self._due:
            self._stats.paced(-max(0.0, when - self._clock.now()))
        self._due.clear()
        for host in self._hosts:
            for given, _ in host.waiters or ():
                if not given.called:
                    given.callback(False)  # noqa: FBT003
        for over in list(self._pausing):
            if not over.called:
                over.callback(None)
        for task in list(self._tasks):
            task.cancel()

    def _look_at(self, host: Host, when: Instant) -> None:
        """Look at that time whether its turn has come, unless that is to be anyway."""
        if host not in self._due:
            self._stats.paced(max(0.0, when - self._clock.now()))
            self._due.set(host, when)

    def _look(self, host: Host) -> None:
        """Its turn may have come."""
        if host.under_way or not self._hosts.is_awaited(host):
            return
        if self._hosts.is_had(host):
            self._look_at(host, self._clock.now() + _LOOK_SECS)
        elif host.next_visit > self._clock.now():
            self._look_at(host, host.next_visit)
        else:
            host.turn = Checking()
            self._run(self._ask(host))

    async def _ask(self, host: Host) -> None:
        """Ask the storage whether another process has had the turn."""
        gap, asked_at = self._hosts.gap(host), self._clock.now()
        early = min(await self._store.visit(host.name, gap), max(gap, _HELD_SECS))
        now = self._clock.now()
        host.next_visit = max(host.next_visit, now + early)
        # A visit that needs no turn may have begun meanwhile.
        if host.next_visit <= now and not host.under_way:
            # Before another process could have it. A file may ask for no delay any more.
            host.claimed_at = asked_at
            host.turn = Open(now + max(gap / 2, _TURN_LEAST_SECS))
        else:
            host.turn = None
        self.want(host)

    def _give(self, host: Host) -> None:
        while host.waiters:
            given, request = host.waiters.popleft()
            if not given.called:
                self.take(host, request)
                given.callback(True)  # noqa: FBT003
                if self._hosts.is_awaited(host):
                    self.want(host)
                return
        self._opened(host)

    async def _note(self, host: str, gap: float) -> None:
        await self._store.visit(host, gap, begun=True)

    def _run(self, coroutine: Coroutine[Any, Any, None]) -> None:
        task = deferred_from_coro(coroutine)
        self._tasks.add(task)
        task.addBoth(lambda _: self._tasks.discard(task))

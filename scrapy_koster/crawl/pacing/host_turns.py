"""Whose turn it is to visit a host whose visits are to be apart."""

from __future__ import annotations

import heapq
import math
from collections import deque
from contextlib import contextmanager
from time import monotonic
from typing import TYPE_CHECKING, Any

from scrapy.utils.defer import deferred_from_coro, maybe_deferred_to_future
from twisted.internet.defer import Deferred

from scrapy_koster.crawl.engine.alarm import Alarm
from scrapy_koster.crawl.pacing.hosts import LATE_MOST_SECS, Asked

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator

    from scrapy import Request

    from scrapy_koster.crawl.fetching.ports import Store
    from scrapy_koster.crawl.messages.stats import Stats
    from scrapy_koster.crawl.pacing.hosts import Host, Hosts

# A request that has the turn and is held by something else is looked after so often.
_LOOK_SECS = 1.0
_TURN_LEAST_SECS = 0.05
# So much of a gap is added to it, for what is not known of how late a request is: see
# LATE_MOST_SECS. The answer shows that it was there.
_SPARE_SHARE = 0.01


class HostTurns:
    """Gives each host one turn after the other, to who waits in place first.

    A turn is had by one request, from when it is let out until it is sent. The next begins
    once the answer is there, and not before the delay has passed since it was sent.
    """

    def __init__(
        self, hosts: Hosts, store: Store, stats: Stats, free: Callable[[Host], None]
    ) -> None:
        """*free* is called when a host's turn may be taken, and nobody waits for it in place."""
        self._hosts = hosts
        self._store = store
        self._free = free
        self._timer = HostTimer(self._look, stats)
        self._tasks: set[Deferred[None]] = set()
        self._closed = False

    def want(self, host: Host) -> None:
        """Have the turn of *host* given to those who wait for it, once it comes."""
        if self._closed or isinstance(host.turn, Asked) or host.under_way:
            return
        if host.is_ready:
            self._give(host)
        else:
            self._timer.set(host, host.free)

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
        host.turn, host.free = request, monotonic() + self._hosts.gap(host)

    @contextmanager
    def visit(self, host: Host | None) -> Iterator[None]:
        """Note that a visit to *host* begins, and is under way meanwhile."""
        if host is None:
            yield
            return
        if not isinstance(host.turn, Asked):
            host.turn = None
        host.under_way += 1
        began, gap = monotonic(), self._hosts.gap(host)
        host.free = began + gap
        self._run(self._note(host.name, gap))
        try:
            yield
        finally:
            host.under_way -= 1
            secs = monotonic() - began
            late = min(host.lateness(secs), LATE_MOST_SECS) + _SPARE_SHARE * gap
            host.free = max(host.free, began + gap + min(late, secs))
            if host.wanted:
                self.want(host)

    def close(self) -> None:
        """Give no turn any more; who waits for one is told."""
        if self._closed:
            return
        self._closed = True
        self._timer.stop()
        for host in self._hosts:
            for given, _ in host.waiters or ():
                if not given.called:
                    given.callback(False)  # noqa: FBT003
        for task in list(self._tasks):
            task.cancel()

    def _look(self, host: Host) -> None:
        """Its turn may have come."""
        if host.under_way or not host.wanted:
            return
        if self._hosts.is_had(host):
            self._timer.set(host, monotonic() + _LOOK_SECS)
        elif host.free > monotonic():
            self._timer.set(host, host.free)
        else:
            host.turn = Asked()
            self._run(self._ask(host))

    async def _ask(self, host: Host) -> None:
        """Ask the storage whether another process has had the turn."""
        gap = self._hosts.gap(host)
        early = min(await self._store.visit(host.name, gap), gap)
        now = monotonic()
        host.free = max(host.free, now + early)
        # A visit that needs no turn may have begun meanwhile.
        if host.free <= now and not host.under_way:
            # Before another process could have it. A file may ask for no delay any more.
            host.turn = now + max(gap / 2, _TURN_LEAST_SECS)
        else:
            host.turn = None
        self.want(host)

    def _give(self, host: Host) -> None:
        while host.waiters:
            given, request = host.waiters.popleft()
            if not given.called:
                self.take(host, request)
                given.callback(True)  # noqa: FBT003
                if host.wanted:
                    self.want(host)
                return
        self._free(host)

    async def _note(self, host: str, gap: float) -> None:
        await self._store.visit(host, gap, begun=True)

    def _run(self, coroutine: Coroutine[Any, Any, None]) -> None:
        task = deferred_from_coro(coroutine)
        self._tasks.add(task)
        task.addBoth(lambda _: self._tasks.discard(task))


class HostTimer:
    """Fires for each host at the time that was set for it: one timer for all."""

    def __init__(self, fire: Callable[[Host], None], stats: Stats) -> None:
        self._fire = fire
        self._stats = stats
        self._heap: list[Host] = []
        self._alarm = Alarm(self._ring)

    def set(self, host: Host, when: float) -> None:
        """Fire for *host* at that time, unless it is set already."""
        if not math.isinf(host.due):
            return
        host.due = when
        heapq.heappush(self._heap, host)
        self._stats.paced(max(0.0, when - monotonic()))
        self._set()

    def stop(self) -> None:
        """Fire for none any more."""
        self._alarm.cancel()
        for host in self._heap:
            self._stats.paced(-max(0.0, host.due - monotonic()))
        self._heap.clear()

    def _set(self) -> None:
        if self._heap:
            self._alarm.set(self._heap[0].due)

    def _ring(self) -> None:
        try:
            while self._heap and self._heap[0].due <= monotonic():
                host = heapq.heappop(self._heap)
                host.due = math.inf
                self._fire(host)
        finally:
            self._set()

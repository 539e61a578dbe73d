"""Crawl-delay: visits to a host that are as far apart as it requests (KOSTER_CRAWL_DELAY).

A delay applies to a host: the longest delay that its sites request. A request that has to wait is
parked in the scheduler, or waits in place, and uses no place of the downloader. See docs/pacing.md.

A visit begins when a request is sent. A site sees the request later than that, so the next visit
may begin a delay after the answer, or after half a second if the answer takes longer.

When the time of a host has come (``next_visit``) and requests wait, the visit is claimed in the
storage, since other processes may visit the host as well. It is then open for half a delay. One
request takes it, and is sent: its visit is under way until the answer. Before a request is sent
its time is checked again, because it may have waited in its slot.
"""

from __future__ import annotations

from contextlib import asynccontextmanager, nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

from scrapy.exceptions import IgnoreRequest
from scrapy.utils.defer import deferred_from_coro, maybe_deferred_to_future
from twisted.internet.defer import Deferred

from scrapy_koster.crawl.clock import LONG_AGO
from scrapy_koster.crawl.engine.private import CANCELLED
from scrapy_koster.crawl.engine.robots_mark import is_for_robots_txt
from scrapy_koster.crawl.pacing.hosts import LATE_MOST_SECS, Hosts
from scrapy_koster.protocol.access import Copy
from scrapy_koster.protocol.delay import names_delay
from scrapy_koster.protocol.path import is_robots_txt

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from contextlib import AbstractAsyncContextManager, AbstractContextManager

    from scrapy import Request
    from scrapy.statscollectors import StatsCollector

    from scrapy_koster.crawl.clock import Clock, Instant
    from scrapy_koster.crawl.config import Config
    from scrapy_koster.crawl.engine.private import Engine
    from scrapy_koster.crawl.fetching.storage_calls import StorageCalls
    from scrapy_koster.crawl.messages.log import Log
    from scrapy_koster.crawl.pacing.delays import Delays
    from scrapy_koster.crawl.pacing.hosts import Host
    from scrapy_koster.crawl.parking.parked_requests import ParkedRequests
    from scrapy_koster.crawl.robot import Robot
    from scrapy_koster.crawl.site_records import SiteRecords
    from scrapy_koster.crawl.states import SiteState
    from scrapy_koster.protocol.access import Known

    Waiting: TypeAlias = Callable[[Request], AbstractContextManager[None]]

_OPEN_LEAST_SECS = 0.05
_RETRY_SECS = 1.0
# Some loops cannot set a timer for longer.
_TIMER_MOST_SECS = 86400.0
# A crawl that only waits for so long logs it, and again after so many seconds.
_LONG_SECS = 5.0
_TELL_SECS = 60.0
# A copy is fresh for so many visits at least.
_VISITS = 10
# The delay by which a visit is noted before it is known whether the host requests one.
_FIRST_SECS = 1.0


class Pacer:
    """Knows the hosts that request a delay, and gives their visits to one request at a time."""

    def __init__(
        self,
        config: Config,
        stats: StatsCollector,
        log: Log,
        *,
        clock: Clock,
        engine: Engine,
        robot: Robot,
        records: SiteRecords,
        store: StorageCalls,
        delays: Delays,
        parked: ParkedRequests,
        own_secs: float,
    ) -> None:
        """*own_secs* is the DOWNLOAD_DELAY."""
        self._config = config
        self._stats = stats
        self._log = log
        self._clock = clock
        self._engine = engine
        self._robot = robot
        self._records = records
        self._store = store
        self._parked = parked
        self._hosts = Hosts(
            clock,
            engine=engine,
            records=records,
            delays=delays,
            own_secs=own_secs,
            most=config.memory_sites,
            is_idle=self._is_idle,
        )
        self._tell_at = LONG_AGO
        self._is_closed = False
        self.too_long = delays.too_long

    def open(self, waiting: Waiting, refuse: Callable[[Request], None]) -> None:
        """Begin: from now on each request that is sent is a visit.

        A request that has to wait then is *waiting* in place. If the crawl closes first, *refuse*
        is called with it.
        """
        self._waiting, self._refuse = waiting, refuse
        self._engine.hooks.send_within(self._sent_within)

    def close(self) -> None:
        """Give no more visits. The requests that wait in place are told."""
        self._is_closed = True
        for host in self._hosts:
            self._stop_timer(host)
            if host.claim is not None:
                host.claim.cancel()
            self._end_waits(host, may_visit=False)

    # The hosts.

    def _is_idle(self, host: Host) -> bool:
        is_busy = host.under_way or host.claim or host.timer or self._is_awaited(host)
        return not is_busy and max(host.next_visit, host.taken_until) <= self._clock.now()

    def _host_of(self, url: str) -> Host | None:
        """Return the host of *url* if its visits have to be apart, else None."""
        try:
            state = self._records.state_of(url)
        except ValueError:  # the errback of the request gets the error of the middleware
            return None
        # A page may have waited in its slot since before the delay was known.
        return None if state is None else self._hosts.of(state, self._robot.name)

    # Which requests have to wait.

    def host_to_wait_for(self, request: Request) -> Host | None:
        """Return the host for whose next visit *request* has to wait, or None.

        If a visit is open *request* takes it.
        """
        try:
            state = self._records.state_of(request.url)
            if state is None:
                return None
            host = self.held(request, state, self._robot.name_of(request))
        except Exception:  # noqa: BLE001  # the errback of the request gets it from the middleware
            return None
        if host is not None and self._is_open(host):
            self._take(host, request)
            return None
        return host

    def held(self, request: Request, state: SiteState, robot: str) -> Host | None:
        """Return the host that *request* may visit only when it has taken a visit, or None."""
        host = self._hosts.of(state, robot)
        if host is None or host.taken_by is request or request.meta.get("dont_obey_robotstxt"):
            return None
        # A forbidden request does not wait: it is refused at once.
        is_sent = is_robots_txt(request.url) or (
            state.allows(request.url, robot) and not self.too_long(state, robot)
        )
        return host if is_sent or self._config.dry_run else None

    def concerns(self, state: SiteState, robot: str) -> bool:
        """Return whether a site requests a delay, or another site of its host does."""
        return bool(self._hosts.of(state, robot) or self.too_long(state, robot))

    def has_waiting(self) -> bool:
        """Return whether requests wait for a host. The crawl has nothing else to do: log it."""
        waiting = [host for host in self._hosts if self._is_awaited(host)]
        now = self._clock.now()
        if waiting and now >= self._tell_at:
            first = min(waiting, key=lambda host: host.next_visit)
            if first.next_visit - now >= _LONG_SECS:
                self._tell_at = now + _TELL_SECS
                self._log.info(
                    "Idle until the Crawl-delay of a host has passed. Hosts with waiting requests:"
                    " %(hosts)d, for example %(host)s. Next request in %(secs).0f s",
                    hosts=len(waiting),
                    host=first.name,
                    secs=first.next_visit - now,
                )
        return bool(waiting)

    # Requests wait for the next visit.

    def _is_awaited(self, host: Host) -> bool:
        return bool(host.waiters) or self._parked.waiting_in(host.name) > 0

    def _is_taken(self, host: Host) -> bool:
        """Return whether a request has taken the next visit, and may still be sent."""
        by = host.taken_by
        is_under_way = by is not None and by in self._engine.under_way
        return is_under_way or self._clock.now() < host.taken_until

    def _is_open(self, host: Host) -> bool:
        """Return whether a request may take the next visit now."""
        is_over = self._clock.now() >= host.open_until
        return not (is_over or host.under_way or self._is_taken(host))

    async def wait(self, host: Host, request: Request | None = None) -> bool:
        """Wait in place for a visit to *host*; return False if the crawl closes first."""
        if self._is_closed:
            return False
        given: Deferred[bool] = Deferred(host.waiters.__delitem__)
        host.waiters[given] = request
        self.want(host)
        return await maybe_deferred_to_future(given)

    def want(self, host: Host) -> None:
        """Have the next visit given to a request that waits for it, when its time has come."""
        is_busy = host.under_way or host.claim or host.timer
        if self._is_closed or is_busy or not self._is_awaited(host):
            return
        if self._is_open(host):
            self._give(host)
        else:
            self._set_timer(host, host.next_visit)

    def _set_timer(self, host: Host, when: Instant) -> None:
        now = self._clock.now()
        secs = min(max(0.0, when - now), _TIMER_MOST_SECS)
        host.timer, host.timer_since = self._clock.call_later(secs, self._look, host), now

    def _stop_timer(self, host: Host) -> None:
        if host.timer is not None:
            host.timer.cancel()
            host.timer = None
            secs: Any = self._clock.now() - host.timer_since
            self._stats.inc_value("koster/crawl_delay/waited_seconds", secs)

    def _look(self, host: Host) -> None:
        self._stop_timer(host)
        now = self._clock.now()
        if not host.gap:
            self._end_waits(host, may_visit=True)
            self._parked.let_out(host.name)
            self._engine.wake()
        elif self._is_taken(host):
            self._set_timer(host, max(host.taken_until, now + _RETRY_SECS))
        elif host.next_visit > now:
            self._set_timer(host, host.next_visit)
        elif self._is_awaited(host):
            claim: Deferred[Any] = deferred_from_coro(self._store.visit(host.name, host.gap))
            claim.addCallback(self._claimed, host, now)
            claim.addErrback(lambda failure: failure.trap(*CANCELLED))
            host.claim = None if claim.called else claim

    def _claimed(self, left: float, host: Host, asked_at: Instant) -> None:
        host.claim, now = None, self._clock.now()
        host.next_visit = max(host.next_visit, now + left)
        # A visit without a claim may have begun meanwhile.
        if host.next_visit <= now and not host.under_way:
            host.open_until = max(asked_at + host.gap / 2, now + _OPEN_LEAST_SECS)
        self.want(host)

    def _give(self, host: Host) -> None:
        """Give the next visit to the first request that waits in place, or else to a parked one."""
        self._set_timer(host, host.open_until)  # in case it is not sent
        if host.waiters:
            given = next(iter(host.waiters))
            self._take(host, host.waiters.pop(given))
            given.callback(True)  # noqa: FBT003
        else:
            self._parked.let_one_out(host.name)
            self._engine.wake()

    def _take(self, host: Host, request: Request | None) -> None:
        """Have *request*, or a robots.txt, take the next visit."""
        host.taken_by, host.taken_until = request, self._clock.now() + host.gap

    @staticmethod
    def _end_waits(host: Host, *, may_visit: bool) -> None:
        while host.waiters:
            given = next(iter(host.waiters))
            del host.waiters[given]
            given.callback(may_visit)

    # A visit.

    def _sent_within(self, request: Request) -> AbstractAsyncContextManager[None] | None:
        # A robots.txt is sent within ``asking``.
        host = None if is_for_robots_txt(request) else self._host_of(request.url)
        return None if host is None else self._visit(host, request)

    @asynccontextmanager
    async def _visit(self, host: Host, request: Request | None) -> AsyncIterator[None]:
        """Have *request*, or a robots.txt, sent within this, as soon as it may be.

        A visit with ``dont_obey_robotstxt`` is only noted.
        """
        if request is not None and request.meta.get("dont_obey_robotstxt"):
            await self._store.visit(host.name, host.gap, begun=True)
        else:
            await self._begin(host, request)
        self._stop_timer(host)
        host.under_way += 1
        host.open_until, began = LONG_AGO, self._clock.now()
        host.next_visit = began + host.gap
        try:
            yield
        finally:
            host.under_way -= 1
            answered = self._clock.now()
            if request is not None:  # it is not known when exactly a robots.txt was sent
                answered = min(answered, began + LATE_MOST_SECS)
            host.next_visit = max(host.next_visit, answered + host.gap)
            self.want(host)

    async def _begin(self, host: Host, request: Request | None) -> None:
        """Return when a visit may begin. The time of *request* may have passed in its slot.

        A robots.txt to which another one redirects has not waited for its turn before.
        """
        while host.gap:
            if host.taken_by is request:
                host.taken_by, host.taken_until = None, LONG_AGO
            left = host.next_visit - self._clock.now()
            is_free = request is not None or not host.under_way
            if left <= 0 and is_free:
                is_claimed = self._clock.now() < host.open_until
                host.open_until = LONG_AGO
                left = await self._store.visit(host.name, host.gap, begun=is_claimed)
                left = max(left, host.next_visit - self._clock.now())  # others may have begun
                if left <= 0:
                    return
            host.next_visit = max(host.next_visit, self._clock.now() + left)
            with nullcontext() if request is None else self._waiting(request):
                if not await self.wait(host, request):
                    if request is not None:
                        self._refuse(request)
                    raise IgnoreRequest("the crawl is closing")

    # A robots.txt is a visit, too.

    async def turn_to_ask(self, state: SiteState) -> None:
        """Wait until the robots.txt of a site may be fetched: an old copy may name a delay."""
        host = self._host_of(state.site.robots_url)
        if host is not None:
            await self.wait(host)

    def asking(self, url: str) -> AbstractAsyncContextManager[None]:
        """Have the robots.txt at *url* fetched within this, as soon as it may be: one visit."""
        host = self._host_of(url)
        return nullcontext() if host is None else self._visit(host, None)

    async def learnt(self, state: SiteState, known: Known) -> Known:
        """Return *known*, fresh for some visits at least: else each visit would be to renew it.

        If it may be the first that names a delay, the visit is noted. To be awaited before it is
        stored: other processes obey it at once.
        """
        host = self._hosts.get(state.site.host)
        if isinstance(known, Copy) and host is not None and host.gap:
            return replace(known, expires=max(known.expires, known.fetched + _VISITS * host.gap))
        if isinstance(known, Copy) and names_delay(known.body):
            await self._store.visit(state.site.host, _FIRST_SECS, begun=True)
        return known

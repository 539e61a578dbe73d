"""The locks of this process on hosts with a delay: one task for each host that requests wait for.

A lock is in the storage, too, where other processes see it. There it has a lease: if a process
dies, its lock ends by itself. The task waits until the host has rested, takes the lock, hands it to
a request, renews it, and ends it after the visit.

A request that has to wait is parked in the scheduler, and comes out with the lock. A request that
is in the downloader already (``engine.download_async``, media pipelines) waits in place for the
lock, and meanwhile takes up no CONCURRENT_REQUESTS slot. A lock is taken for a parked request only
if the downloader has room, so that no host is locked for a request that cannot be sent.

The request that is about to be sent uses the lock, whatever request the lock was taken for: the
other one may be behind it in the queue of a slot. A request that ends without being sent hands the
lock on.
"""

import sys
from collections import OrderedDict
from typing import Any

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.exceptions import IgnoreRequest
from scrapy.utils.defer import maybe_deferred_to_future
from twisted.internet.defer import Deferred

from scrapy_koster.crawl.clock import LONG_AGO, TIMER_MOST_SECS, clock_of
from scrapy_koster.crawl.engine.private import CANCELLED
from scrapy_koster.crawl.in_place import InPlace
from scrapy_koster.crawl.messages.log import Log
from scrapy_koster.crawl.pacing.host import PARKED, Host, Visitor
from scrapy_koster.crawl.parking.parked_requests import ParkedRequests
from scrapy_koster.crawl.storage_calls import StorageCalls
from scrapy_koster.crawl.tasks import Tasks

LEASE_SECS = 20.0
"""After this time and a gap, the lock of a process that does not renew it ends."""
_RENEW_SECS = LEASE_SECS / 4
_LEAST_SECS = 0.001
# Hosts are forgotten only if there are more.
_HOSTS = 10_000
# The share of the scraper's room that waiting requests may take.
_SHARE_MOST = 0.5
_DROPPED = "Dropping requests: %(reason)s. koster/crawl_delay/dropped counts such requests"


class HostLocks:
    """The hosts of a crawl that request a delay, and the requests that wait for their locks."""

    def __init__(
        self, crawler: Crawler, in_place: InPlace, store: StorageCalls, parked: ParkedRequests
    ) -> None:
        self._clock = clock_of(crawler)
        self._stats: Any = crawler.stats
        self._log = Log(__name__, crawler)
        self._engine, self._in_place = in_place.engine, in_place
        self._store, self._parked = store, parked
        self._places = crawler.settings.getint("CONCURRENT_REQUESTS") or sys.maxsize
        self.hosts: dict[str, Host] = {}
        self._ready: OrderedDict[Host, None] = OrderedDict()
        """Hosts that can be visited, and whose parked requests wait for room in the downloader."""
        self._coming: dict[Host, None] = {}
        """Hosts that are locked, or being locked, for a parked request that is not out yet."""
        self._unsent: dict[Request, Host] = {}
        """Requests that the lock of a host was taken for, until they leave the downloader."""
        self._tasks = Tasks(crawler)
        self.begin = self._tasks.begin
        self._waiting = 0
        """The number of requests that wait in place."""
        self._prune_at = _HOSTS

    # The hosts.

    def add(self, name: str) -> Host:
        """Return a new host. Hosts that nobody waits for are forgotten two gaps after a visit."""
        now = self._clock.now()
        if len(self.hosts) >= self._prune_at:
            for host in list(self.hosts.values()):
                if not host.is_served and host.rest_until + host.gap <= now:
                    del self.hosts[host.name]
            self._prune_at = max(_HOSTS, 2 * len(self.hosts))
        host = self.hosts[name] = Host(name, now)
        return host

    async def rest(self, host: Host) -> None:
        """Have *host* rest for a gap from now, in the storage too: it is visited without a lock."""
        self.rest_here(host)
        if not host.is_locked:
            await self._end_visit(host)

    def rest_here(self, host: Host) -> None:
        """Have *host* rest for a gap from now, as far as this process knows."""
        host.rest_until = max(host.rest_until, self._clock.now() + host.gap)

    async def _end_visit(self, host: Host) -> None:
        secs = max(0.0, host.rest_until - self._clock.now())
        await self._store.end_visit(host.name, secs)
        # There, the rest has begun during the call. An earlier call for the lock would fail.
        host.rest_until = max(host.rest_until, self._clock.now() + secs)

    # Requests wait for the lock.

    def is_awaited(self, host: Host, by: type = object) -> bool:
        """Return whether a visitor of the type *by* waits for *host*."""
        in_place = any(isinstance(visitor, by) for visitor in host.waiters.values())
        return in_place or self._parked.waiting_in(host.name) > 0

    async def wait(self, host: Host, visitor: Visitor, *, first: bool = False) -> bool:
        """Wait in place until *visitor* has the lock. Return False if the crawl closes first.

        With *first*, *visitor* is about to be sent: it is the next, and keeps its place in the
        downloader. Raises IgnoreRequest if waiting requests take half of the scraper's room.
        """
        if self._engine.is_closing:
            return False
        given: Deferred[bool] = Deferred(host.waiters.__delitem__)
        page = visitor if isinstance(visitor, Request) and not first else None
        if page and self._waiting:
            self._check_room(host)
        self._waiting += page is not None
        try:
            with self._in_place.waiting(page):
                host.waiters[given] = visitor
                if first:
                    host.waiters.move_to_end(given, last=False)
                if not host.is_locked:
                    host.wake()
                elif not (host.under_way or host.is_in_queue):
                    self.hand_on(host)  # its request may wait for *visitor*
                self.want(host)
                return await maybe_deferred_to_future(given)
        except CANCELLED:
            if host.visitor is visitor and not host.under_way:  # it got the lock in this moment
                self.hand_on(host)
            raise
        finally:
            self._waiting -= page is not None

    def _check_room(self, host: Host) -> None:
        if self._engine.share_of_scraper(self._waiting + 1) > _SHARE_MOST:
            self._stats.inc_value("koster/crawl_delay/dropped")
            reason = (
                f"too many requests of pipelines and callbacks wait for the Crawl-delay of"
                f" {host.name}: half of SCRAPER_SLOT_MAX_ACTIVE_SIZE is in use. Raise it, or yield"
                " these requests from callbacks, so that they wait in the scheduler"
            )
            self._log.warning_once(_DROPPED, reason=reason)
            raise IgnoreRequest(reason)

    def want(self, host: Host) -> None:
        """Begin to serve the requests that wait for *host*, if any."""
        if not (host.is_served or self._engine.is_closing) and self.is_awaited(host):
            host.is_served = True
            self.begin(self._serve(host))

    def take_turns(self) -> None:
        """Let parked requests be served, as the downloader has room. The scheduler calls this."""
        for host in list(self._coming):
            # The request that came out may not have needed the lock.
            if host.visitor is PARKED and not self._parked.let_one_out(host.name):
                self.hand_on(host)
        while self._ready and len(self._coming) < self._room:
            host, _ = self._ready.popitem(last=False)
            self._coming[host] = None
            host.wake()

    @property
    def _room(self) -> int:
        """The number of requests that the downloader has room for."""
        return self._places - len(self._engine.under_way)

    # The task of a host.

    async def _serve(self, host: Host) -> None:
        try:
            while self.is_awaited(host) and not self._engine.is_closing:
                secs = host.rest_until - self._clock.now()
                if secs > 0:
                    await self._pause(host, secs)
                    self._stats.inc_value("koster/crawl_delay/waited_seconds", secs)
                elif host.waiters or host in self._coming:
                    await self._lock(host)
                    self._coming.pop(host, None)
                else:
                    self._ready[host] = None
                    self._engine.wake()
                    await self._pause(host, TIMER_MOST_SECS)
                    self._ready.pop(host, None)
        finally:
            host.is_served = False

    async def _pause(self, host: Host, secs: float) -> None:
        """Wait for *secs*, or until ``host.wake`` is called."""
        host.event = Deferred()
        timer = self._clock.call_later(min(secs, TIMER_MOST_SECS), host.wake)
        try:
            await maybe_deferred_to_future(host.event)
        finally:
            timer.cancel()

    async def _lock(self, host: Host) -> None:
        """Lock *host*, hand the lock to a request, and end the lock after the visit."""
        if await self._begin_visit(host):
            self.hand_on(host)
            while host.is_locked:
                await self._pause(host, _RENEW_SECS)
                if host.is_locked:
                    await self._renew(host)
            await self._end_visit(host)

    async def _renew(self, host: Host) -> None:
        is_renewed = await self._begin_visit(host, is_first=False)
        if host.under_way or not host.is_locked:
            return
        is_parked = host.visitor is PARKED
        # If there is room, the parked request should be out: the crawl is paused.
        if not is_renewed or (is_parked and self._room > 0):
            self.release(host)
        elif host.waiters or (not is_parked and self._parked.has_room(host.name)):
            # The visitor may wait for another request, for example to log in, or in the slot of a
            # host that redirects to this one.
            self.hand_on(host)

    async def _begin_visit(self, host: Host, *, is_first: bool = True) -> bool:
        """Return whether *host* could be locked in the storage, for the first time or again."""
        asked_at, secs = self._clock.now(), LEASE_SECS + host.gap
        left = await self._store.begin_visit(host.name, secs)
        if left:
            now = self._clock.now()
            host.rest_until = max(host.rest_until, now + max(min(left, host.gap), _LEAST_SECS))
        elif is_first or host.is_locked:  # or the visit has ended during the call
            host.lock_until = asked_at + LEASE_SECS
        return not left

    # The lock.

    def hand_on(self, host: Host) -> None:
        """Give the lock to a request that waits for *host*. If none waits, end the lock."""
        is_over = host.rest_until > self._clock.now() or self._engine.is_closing
        if is_over or not self.is_awaited(host):
            self.release(host)
        elif host.waiters:
            given, visitor = host.waiters.popitem(last=False)
            self._give(host, visitor)
            given.callback(True)  # noqa: FBT003
        else:
            host.visitor = PARKED
            self._coming[host] = None
            self._parked.let_one_out(host.name)
            self._engine.wake()

    def takes_parked(self, host: Host, request: Request) -> bool:
        """Return whether *request* gets the lock: it was taken for the next parked request."""
        if is_next := host.visitor is PARKED:
            self._give(host, request)
        return is_next

    def takes(self, host: Host, visitor: Visitor) -> bool:
        """Return whether *visitor* gets the lock, whoever it was taken for. *visitor* is sent now.

        A lock whose lease is over, because this process was suspended, is not used.
        """
        if not host.is_locked or host.under_way:
            return False
        now = self._clock.now()
        if now >= host.lock_until or now < host.rest_until:
            self.release(host)
            return False
        self._give(host, visitor)
        return True

    def _give(self, host: Host, visitor: Visitor) -> None:
        host.visitor = visitor
        self._coming.pop(host, None)
        if isinstance(visitor, Request):
            self._unsent[visitor] = host

    def left(self, request: Request) -> None:
        """Hand on the lock that *request* has, if any: *request* has left the downloader."""
        host = self._unsent.pop(request, None)
        if host is not None and host.visitor is request and not host.under_way:
            self.hand_on(host)

    def release(self, host: Host) -> None:
        """End the lock of *host*. The task ends it in the storage, where the host rests as here."""
        host.visitor, host.lock_until = None, LONG_AGO
        self._coming.pop(host, None)
        host.wake()

    # The end.

    def close(self) -> None:
        """End the waits in place, and give unused locks back. The crawl closes."""
        for host in list(self.hosts.values()):  # a callback may add one
            while host.waiters:
                host.waiters.popitem()[0].callback(False)  # noqa: FBT003
            if not host.under_way:
                self.release(host)

    async def closed(self) -> None:
        """Wait until the storage has been told of the ends of all visits. ``close`` comes first."""
        await self._tasks.ended()

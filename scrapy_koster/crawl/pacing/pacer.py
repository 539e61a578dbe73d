"""Crawl-delay: a visit is a lock on its host, and the gap begins at its end (KOSTER_CRAWL_DELAY).

The sites of a host, with any scheme and port, share the longest of their delays, and one lock
(``host_locks``). See docs/pacing.md.

Directly before sending, the lock must still be held, and its lease must not be over. So a process
that was suspended sends nothing early. When the visit ends, with a response or an error, the host
rests for the delay.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.exceptions import IgnoreRequest

from scrapy_koster.crawl.clock import LONG_AGO, clock_of
from scrapy_koster.crawl.config import Config
from scrapy_koster.crawl.decision import decide
from scrapy_koster.crawl.engine.private import Within, is_for_robots_txt
from scrapy_koster.crawl.in_place import InPlace
from scrapy_koster.crawl.messages.log import Log
from scrapy_koster.crawl.pacing.delays import Delays
from scrapy_koster.crawl.pacing.host import Host, Visitor
from scrapy_koster.crawl.pacing.host_locks import HostLocks
from scrapy_koster.crawl.parking.parked_requests import ParkedRequests
from scrapy_koster.crawl.robot import Robot
from scrapy_koster.crawl.site_records import SiteRecords
from scrapy_koster.crawl.states import SiteState
from scrapy_koster.crawl.storage_calls import StorageCalls
from scrapy_koster.protocol.access import CachedRobots, CacheEntry
from scrapy_koster.protocol.delay import names_delay
from scrapy_koster.protocol.path import is_robots_txt
from scrapy_koster.protocol.step import Ask, waits
from scrapy_koster.protocol.verdict import Source

# An idle crawl logs a wait of at least _LONG_SECS, once in _TELL_SECS.
_LONG_SECS = 5.0
_TELL_SECS = 60.0
# A copy of a host with a delay is fresh for at least the time of this number of visits.
_VISITS = 10


@dataclass(kw_only=True, eq=False)
class Pacer:
    """The hosts that request a delay, and the visits to these hosts."""

    crawler: Crawler
    config: Config
    in_place: InPlace
    robot: Robot
    records: SiteRecords
    store: StorageCalls
    parked: ParkedRequests

    def __post_init__(self) -> None:
        """Begin without hosts, and not open."""
        self._log = Log(__name__, self.crawler)
        self._clock = clock_of(self.crawler)
        self._delays = Delays(self.crawler, self.config, self.robot.name)
        self.delay_of = self._delays.of
        self._own_secs = self.crawler.settings.getfloat("DOWNLOAD_DELAY")
        self._locks = HostLocks(self.crawler, self.in_place, self.store, self.parked)
        self.take_turns, self.wait = self._locks.take_turns, self._locks.wait
        self.close, self.closed = self._locks.close, self._locks.closed
        self._tell_at = LONG_AGO
        self.is_open = False

    def open(self) -> None:
        """Pace requests from now on. Without this call, no host has a delay."""
        self.is_open = True
        hooks = self.in_place.engine.hooks
        hooks.visit, hooks.left = self._sent_within, self._locks.left

    # The hosts.

    def _host_of(self, url: str) -> Host | None:
        """Return the host of *url* if the host requests a delay, or None."""
        try:
            state = self.records.state_of(url) if self.is_open else None
        except ValueError:  # the middleware raises this error, too, for the errback of the request
            return None
        # Read the delay again: it may have become known while the request waited in its slot.
        return None if state is None else self._host_of_site(state, self.robot.name)

    def _host_of_site(self, state: SiteState, robot: str) -> Host | None:
        host = self._locks.hosts.get(state.site.host)
        if not self.is_open or not (secs := self._delays.secs_of(state, robot)):
            return host
        if host is None:
            host = self._locks.add(state.site.host)
        gap = max(secs, self._own_secs)
        if gap > host.gap:
            host.gap = gap
            # The fetch of this robots.txt was a visit. If another process or crawl has fetched it,
            # the visit is in the storage.
            if state.facts.source is Source.FETCHED:
                self._locks.rest_here(host)
        return host

    # Which requests have to wait.

    def parks(self, request: Request, state: SiteState) -> bool:
        """Return whether *request* has to wait for its host. If so, park *request*.

        If the host is locked for the next parked request that comes out, *request* gets the lock.
        """
        try:
            host = self.blocking_host(request, state, self.robot.name_of(request))
        except Exception:  # noqa: BLE001  # the middleware raises this error, too
            return False
        if host is None or self._locks.takes_parked(host, request):
            return False
        self.parked.push(host.name, request)
        self._locks.want(host)
        return True

    def blocking_host(self, request: Request, state: SiteState, robot: str) -> Host | None:
        """Return the host if *request* has to wait for its lock, or None."""
        host = self._host_of_site(state, robot)
        if host is None or host.visitor is request or request.meta.get("dont_obey_robotstxt"):
            return None
        step, url = state.step, request.url
        if self.config.dry_run or is_robots_txt(url):
            return host
        if waits(step):
            return None
        delay, now = self.delay_of(state, robot), self._clock.epoch()
        # A forbidden request does not wait, because it will be refused.
        decision = decide(url, robot, state, step, delay=delay, config=self.config, now=now)
        return host if decision.allowed else None

    def has_waiting(self) -> bool:
        """Return whether requests for pages wait for a host. Log a long wait: the crawl is idle."""
        hosts = self._locks.hosts.values()
        waiting = [host for host in hosts if self._locks.is_awaited(host, Request)]
        now, first = self._clock.now(), min(waiting, key=lambda host: host.rest_until, default=None)
        if first and now >= self._tell_at and first.rest_until - now >= _LONG_SECS:
            self._tell_at = now + _TELL_SECS
            self._log.info(
                "Idle until the Crawl-delay of %(host)s has passed. Next request in %(secs).0f s",
                host=first.name,
                secs=first.rest_until - now,
            )
        return bool(waiting)

    # A visit.

    def _sent_within(self, request: Request) -> Within:
        # The Fetcher sends requests for a robots.txt within ``visit``.
        return None if is_for_robots_txt(request) else self.visit(request, request.url)

    def visit(self, visitor: Visitor, url: str) -> Within:
        """Return the context of a request to *url*, which makes the request a visit.

        The request is for a page, or for the robots.txt of a site: then *url* can also be the URL
        of a redirect. Returns None if the host of *url* has no delay.
        """
        host = self._host_of(url)
        return None if host is None else self._visit(host, visitor)

    @asynccontextmanager
    async def _visit(self, host: Host, visitor: Visitor) -> AsyncIterator[None]:
        """Return the context of a visit. Entering the context waits until *visitor* may begin.

        A request with ``dont_obey_robotstxt`` does not wait. The host rests from its beginning, and
        again from its end. Raises IgnoreRequest if the crawl closes during the wait.
        """
        if isinstance(visitor, Request) and visitor.meta.get("dont_obey_robotstxt"):
            await self._locks.rest(host)
            try:
                yield
            finally:
                self._locks.begin(self._locks.rest(host))
            return
        while not self._locks.takes(host, visitor):
            if not await self.wait(host, visitor, first=True):
                raise IgnoreRequest("the crawl is closing")
        host.under_way = True
        try:
            yield
        finally:
            host.under_way = False
            self._locks.rest_here(host)
            self._locks.release(host)

    # A robots.txt is a visit, too.

    @asynccontextmanager
    async def turn(
        self, state: SiteState, load: Callable[[], Awaitable[object]]
    ) -> AsyncIterator[None]:
        """Return the context of an attempt to fetch a robots.txt, which needs the lock of its host.

        The delay may be known from an expired copy, or from another site of the host. For an
        unknown site, *load* loads the stored copy first: a valid copy needs no visit. At the end, a
        lock that was not used is handed on.
        """
        if (host := self._host_of(state.site.robots_url)) is not None:
            if state.known is None:
                await load()
            # The request with the lock may wait for this robots.txt.
            if isinstance(state.step, Ask) and not self._locks.takes(host, state.site):
                await self.wait(host, state.site)
        try:
            yield
        finally:
            if host is not None and host.visitor is state.site and not host.under_way:
                self._locks.hand_on(host)

    async def on_fetched(self, state: SiteState, known: CacheEntry) -> CacheEntry:
        """Return *known*. A copy of a host with a delay is made fresh for ten visits or more.

        If the life were shorter, most visits could be renewals of the copy. If *known* has a longer
        delay than the host had, its fetch is stored as a visit. Await this call before storing the
        copy, because another process may obey a stored copy at once.
        """
        host = self._locks.hosts.get(state.site.host)
        gap = 0.0 if host is None else host.gap
        if not (self.is_open and isinstance(known, CachedRobots)):
            return known
        secs = self._delays.secs_in(known.in_utf8) if names_delay(known.body) else 0.0
        if secs > gap:
            gap = max(secs, self._own_secs)
            await self.store.end_visit(state.site.host, gap)
        return replace(known, expires=max(known.expires, known.fetched + _VISITS * gap))

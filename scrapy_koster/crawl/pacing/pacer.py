"""Crawl-delay: visits to a host that are as far apart as it requests (KOSTER_CRAWL_DELAY).

A delay applies to a host, whatever the scheme and the port: the longest that its sites request. A
request that has to wait is parked in the scheduler, or waits in place if it did not come from
there. It uses no place of the downloader meanwhile. See docs/pacing.md.
"""

from __future__ import annotations

from contextlib import asynccontextmanager, nullcontext
from dataclasses import replace
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, TypeAlias

from scrapy_koster.crawl.clock import LONG_AGO
from scrapy_koster.crawl.engine.robots_mark import is_for_robots_txt
from scrapy_koster.crawl.fetching.fetcher import TurnNeededError
from scrapy_koster.crawl.pacing.delays import NO_DELAY
from scrapy_koster.crawl.pacing.visits import (
    LATE_MOST_SECS,
    ClosingError,
    Host,
    HostVisits,
    TooEarlyError,
)
from scrapy_koster.protocol.access import Copy, last_copy
from scrapy_koster.protocol.path import is_robots_txt
from scrapy_koster.protocol.rewriting import sent_as
from scrapy_koster.protocol.site import site_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator
    from contextlib import AbstractAsyncContextManager, AbstractContextManager

    from scrapy import Request

    from scrapy_koster.crawl.clock import Clock, Instant
    from scrapy_koster.crawl.config import Config
    from scrapy_koster.crawl.engine.private import Engine
    from scrapy_koster.crawl.fetching.storage_calls import StorageCalls
    from scrapy_koster.crawl.messages.log import Log
    from scrapy_koster.crawl.messages.stats import Stats
    from scrapy_koster.crawl.pacing.delays import Delays
    from scrapy_koster.crawl.parking.parked_requests import ParkedRequests
    from scrapy_koster.crawl.robot import Robot
    from scrapy_koster.crawl.site_records import SiteRecords
    from scrapy_koster.crawl.states import SiteState
    from scrapy_koster.protocol.access import Known
    from scrapy_koster.protocol.delay import Delay
    from scrapy_koster.protocol.site import Site

    Waiting: TypeAlias = Callable[[Request], AbstractContextManager[None]]

# A crawl that only waits for so long logs it, and again after so many seconds.
_LONG_SECS = 5.0
_TELL_SECS = 60.0
# A copy is fresh for so many visits at least.
_VISITS = 10
# The delay by which a visit is noted before it is known whether the host requests one.
_FIRST_SECS = 1.0
_EVICTED_AT_ONCE = 16


class Pacer:
    """Knows the hosts that request a delay, and which requests have to wait for a visit."""

    def __init__(
        self,
        config: Config,
        stats: Stats,
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
        self._log = log
        self._engine = engine
        self._robot = robot
        self._records = records
        self._clock = clock
        self._dry_run = config.dry_run
        self._limit = config.memory_sites
        self._own_secs = own_secs
        self._delays = delays
        self._store = store
        self._parked = parked
        self._visits = HostVisits(
            engine, store, stats, clock, waiting_in=parked.waiting_in, opened=self._opened
        )
        self._hosts: dict[str, Host] = {}
        self._open: dict[Host, None] = {}
        """Hosts that a parked request may visit now."""
        self._tell_at = LONG_AGO
        self.want = self._visits.want
        self.close = self._visits.close

    def __iter__(self) -> Iterator[Host]:
        return iter(self._hosts.values())

    def open(self, waiting: Waiting, refuse: Callable[[Request], None]) -> None:
        """Begin: from now on each request that is sent is a visit.

        A request that has to wait then is *waiting* in place. If the crawl closes first, *refuse*
        is called with it, and raises.
        """

        def visiting(request: Request) -> AbstractAsyncContextManager[None] | None:
            if is_for_robots_txt(request):  # see ``asking``
                return None
            host = self._host_of(request.url)
            return None if host is None else self._sent(request, host, waiting, refuse)

        self._engine.hooks.send_within(visiting)

    @asynccontextmanager
    async def _sent(
        self, request: Request, host: Host, waiting: Waiting, refuse: Callable[[Request], None]
    ) -> AsyncIterator[None]:
        obeys = not request.meta.get("dont_obey_robotstxt")
        is_waiting = partial(waiting, request)
        try:
            async with self._visits.visit(host, request, is_waiting, obeys=obeys):
                yield
        except ClosingError:
            refuse(request)
            raise

    # The hosts.

    def _host_for(self, state: SiteState, robot: str) -> Host | None:
        """Return the host of a site if its visits have to be apart, else None."""
        secs = self._delays.kept(state, robot)
        if not (secs or self._hosts):
            return None
        host, site = self._hosts.get(state.site.host), str(state.site)
        if host is None:
            if not secs:
                return None
            host = self._new(state, secs)
        elif secs and site not in host.delays:
            host.next_visit = max(host.next_visit, self._after_robots_txt(state, secs))
        # A site that has left the memory requests its delay until it is known again.
        if state.known is not None and secs != host.delays.get(site):
            host.delays[site] = secs
            longest = max(host.delays.values())
            host.gap = max(longest, self._own_secs) if longest else 0.0
        return host if host.gap else None

    def _new(self, state: SiteState, secs: float) -> Host:
        self._make_room()
        host = self._hosts[state.site.host] = Host(state.site.host)
        host.next_visit = self._after_robots_txt(state, secs)
        if self._is_visited(state.site):
            gap = max(secs, self._own_secs)
            host.next_visit = self._clock.now() + (gap + LATE_MOST_SECS)
        return host

    def _after_robots_txt(self, state: SiteState, secs: float) -> Instant:
        """Return the time of the next visit. The last one was to /robots.txt.

        Before that was read, others may have begun.
        """
        copy, passed = last_copy(state.known), secs
        if copy is not None:
            passed = self._clock.epoch() - copy.fetched - LATE_MOST_SECS
        return self._clock.now() + min(max(secs - passed, 0.0), secs)

    def _is_visited(self, site: Site) -> bool:
        """Return whether the downloader has pages of another site of the host."""
        sites = (_site_of(request.url) for request in self._engine.under_way)
        return any(each and each.host == site.host and each != site for each in sites)

    def _make_room(self) -> None:
        for _ in range(_EVICTED_AT_ONCE):
            if len(self._hosts) < self._limit:
                return
            name, host = next(iter(self._hosts.items()))
            del self._hosts[name]
            if not self._visits.is_idle(host):
                self._hosts[name] = host

    def _named(self, name: str) -> Host | None:
        host = self._hosts.get(name)
        return host if host is not None and host.gap else None

    def _host_of(self, url: str) -> Host | None:
        if (state := self._records.met(url)) is not None:
            # A page may have waited in its slot since before the delay was known.
            self._host_for(state, self._robot.name)
        site = _site_of(url)
        return self._named(site.host) if site else None

    # Which requests have to wait.

    def host_to_wait_for(self, request: Request) -> Host | None:
        """Return the host for whose next visit *request* has to wait, or None.

        If a visit is open *request* takes it.
        """
        try:
            state = self._records.state_of(request.url)
            if state is None or (state.delay == NO_DELAY and not self._hosts):
                return None
            host = self.held(request, state, self._robot.name_of(request))
        except Exception:  # noqa: BLE001  # the errback of the request gets it from the middleware
            return None
        if host is not None and self._visits.is_open(host):
            self._visits.take(host, request)
            return None
        return host

    def held(self, request: Request, state: SiteState, robot: str) -> Host | None:
        """Return the host that *request* may visit only when it has taken a visit, or None."""
        host = self._host_for(state, robot)
        if host is None or host.taken_by is request or request.meta.get("dont_obey_robotstxt"):
            return None
        return host if self._dry_run or self._may_pass(request, state, robot) else None

    def _may_pass(self, request: Request, state: SiteState, robot: str) -> bool:
        """Return whether *request* needs a visit: one that is forbidden does not."""
        if is_robots_txt(request.url):  # even if the site is not known
            return True
        return self._delays.too_long(state, robot) is None and all(
            state.allows(url, robot) for url in sent_as(request.url)
        )

    def concerns(self, state: SiteState, robot: str) -> bool:
        """Return whether a site requests a delay, or another site of its host does."""
        if state.delay == NO_DELAY and not self._hosts:
            return False
        return (
            self._host_for(state, robot) is not None
            or self._delays.too_long(state, robot) is not None
        )

    def too_long(self, request: Request, state: SiteState, robot: str) -> Delay | None:
        """Return the delay for which *request* is refused, or None."""
        return None if is_robots_txt(request.url) else self._delays.too_long(state, robot)

    async def turn(self, host: Host, request: Request) -> bool:
        """Wait in place until *request* may visit *host*; return False if the crawl closes."""
        return await self._visits.wait(host, request)

    # What comes out of the scheduler.

    def _opened(self, host: Host) -> None:
        if host.gap:
            self._open[host] = None
        else:
            self._parked.let_out(host.name)
        self._engine.wake()

    @property
    def has_visit(self) -> bool:
        """Whether a parked request may visit its host."""
        return bool(self._open)

    def next_host(self) -> str | None:
        """Return the name of a host that a parked request may visit now, or None."""
        for host in list(self._open):
            if self._visits.is_open(host) and self._parked.waiting_in(host.name):
                return host.name
            del self._open[host]
            self.want(host)
        return None

    def has_waiting(self) -> bool:
        """Return whether requests wait for a host. The crawl has nothing else to do: log it."""
        waiting = [host for host in self if self._visits.is_awaited(host)]
        if waiting and self._clock.now() >= self._tell_at:
            self._tell(waiting)
        return bool(waiting)

    def _tell(self, waiting: list[Host]) -> None:
        first = min(waiting, key=attrgetter("next_visit"))
        secs = first.next_visit - self._clock.now()
        if secs < _LONG_SECS:
            return
        self._tell_at = self._clock.now() + _TELL_SECS
        self._log.info(
            "Idle until the Crawl-delay of a host has passed. Hosts with waiting requests:"
            " %(hosts)d, for example %(host)s. Next request in %(secs).0f s",
            hosts=len(waiting),
            host=first.name,
            secs=secs,
        )

    # A robots.txt is a visit, too.

    def needs_turn(self, url: str) -> bool:
        """Return whether the host of *url* is known to request a delay."""
        return self._host_of(url) is not None

    def _host_asked(self, state: SiteState, after: TurnNeededError | None) -> Host | None:
        if after is not None and after.url is not None:
            site = _site_of(after.url)
            return self._named(site.host) if site else None
        self._host_for(state, self._robot.name)  # an old copy may name a delay
        return self._named(state.site.host)

    async def turn_to_ask(self, state: SiteState, after: TurnNeededError | None) -> bool:
        """Wait until /robots.txt may be fetched; return whether the host requests a delay.

        *after* says where it redirects to, if it does.
        """
        host = self._host_asked(state, after)
        return host is not None and await self._visits.wait(host)

    @asynccontextmanager
    async def asking(self, state: SiteState, after: TurnNeededError | None) -> AsyncIterator[None]:
        """Have a robots.txt fetched within this: that is one visit.

        Raises TurnNeededError if another process has visited the host meanwhile.
        """
        host = self._host_asked(state, after)
        if host is None:
            yield
            return
        try:
            async with self._visits.visit(host, None, None):
                yield
                # It is not known when exactly it was sent.
                host.next_visit = self._clock.now() + host.gap
        except TooEarlyError:
            raise after or TurnNeededError from None

    async def note(self, state: SiteState, known: Known) -> None:
        """Note that a robots.txt was fetched, if it may be the first that names a delay.

        To be awaited before it is stored: other processes obey it at once.
        """
        if not isinstance(known, Copy) or self._named(state.site.host) is not None:
            return
        if self._delays.may_be_named_in(known.body):
            await self._store.visit(state.site.host, _FIRST_SECS, begun=True)

    def lengthened(self, state: SiteState, known: Known) -> Known:
        """Return *known*, fresh for some visits at least: else each visit would be to renew it."""
        host = self._named(state.site.host)
        if host is None or not isinstance(known, Copy):
            return known
        return replace(known, expires=max(known.expires, known.fetched + _VISITS * host.gap))


class NoPacer:
    """Keeps no delay (KOSTER_CRAWL_DELAY = "ignore")."""

    def needs_turn(self, _url: str) -> bool:
        """Return False."""
        return False

    async def turn_to_ask(self, _state: SiteState, _after: TurnNeededError | None) -> bool:
        """Return at once."""
        return False

    def asking(
        self, _state: SiteState, _after: TurnNeededError | None
    ) -> AbstractAsyncContextManager[None]:
        """Return a context that does nothing."""
        return nullcontext()

    async def note(self, _state: SiteState, _known: Known) -> None:
        """Do nothing."""

    def lengthened(self, _state: SiteState, known: Known) -> Known:
        """Return *known* as it is."""
        return known

    def too_long(self, _request: Request, _state: SiteState, _robot: str) -> None:
        """Return None: no delay is too long."""

    def close(self) -> None:
        """Do nothing."""


def _site_of(url: str) -> Site | None:
    """Return the site of *url*, None for a URL that names none."""
    try:
        return site_of(url)
    except ValueError:  # the errback of the request gets the error of the middleware
        return None

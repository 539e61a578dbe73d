"""Crawl-delay: visits to a host that are as far apart as it requests (KOSTER_CRAWL_DELAY).

A delay applies to a host, whatever the scheme and the port: the longest that its sites request. A
request that has to wait is parked in the scheduler, or waits in place if it did not come from
there. It uses no place of the downloader meanwhile. See docs/pacing.md.

A crawl that keeps no delays has no pacer.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import replace
from operator import attrgetter
from typing import TYPE_CHECKING

from scrapy_koster.crawl.clock import LONG_AGO
from scrapy_koster.crawl.engine.robots_mark import is_for_robots_txt
from scrapy_koster.crawl.fetching.fetcher import TurnNeededError
from scrapy_koster.crawl.pacing.visits import LATE_MOST_SECS, HostVisits, TooEarlyError
from scrapy_koster.crawl.states import State
from scrapy_koster.protocol.access import Copy, last_copy
from scrapy_koster.protocol.delay import names_delay
from scrapy_koster.protocol.path import is_robots_txt
from scrapy_koster.protocol.site import site_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from contextlib import AbstractAsyncContextManager, AbstractContextManager

    from scrapy import Request

    from scrapy_koster.crawl.clock import Clock, Instant
    from scrapy_koster.crawl.config import Config
    from scrapy_koster.crawl.engine.private import Engine
    from scrapy_koster.crawl.fetching.storage_calls import StorageCalls
    from scrapy_koster.crawl.messages.log import Log
    from scrapy_koster.crawl.pacing.delays import Delays
    from scrapy_koster.crawl.pacing.visits import Host
    from scrapy_koster.crawl.robot import Robot
    from scrapy_koster.crawl.site_records import SiteRecords
    from scrapy_koster.crawl.states import SiteState
    from scrapy_koster.protocol.access import Known
    from scrapy_koster.protocol.site import Site

# A crawl that only waits for so long logs it, and again after so many seconds.
_LONG_SECS = 5.0
_TELL_SECS = 60.0
# A copy is fresh for so many visits at least.
_VISITS = 10
# The delay by which a visit is noted before it is known whether the host requests one.
_FIRST_SECS = 1.0
_LOOK_SECS = 0.1


class Pacer:
    """Knows the hosts that request a delay, and which requests have to wait for a visit."""

    def __init__(
        self,
        config: Config,
        log: Log,
        *,
        clock: Clock,
        engine: Engine,
        robot: Robot,
        records: SiteRecords,
        store: StorageCalls,
        delays: Delays,
        visits: HostVisits,
        own_secs: float,
    ) -> None:
        """*own_secs* is the DOWNLOAD_DELAY."""
        self._log = log
        self._engine = engine
        self._robot = robot
        self._records = records
        self._clock = clock
        self._dry_run = config.dry_run
        self._own_secs = own_secs
        self._timeout_secs = config.timeout_secs
        self._store = store
        self._visits = visits
        self._redirected: set[SiteState] = set()
        """Sites whose redirect waits until it is known if the other host requests a delay."""
        self._tell_at = LONG_AGO
        self.too_long = delays.too_long
        self._secs_of = delays.secs_of
        self.want = visits.want
        self.close = visits.close

    def open(
        self,
        waiting: Callable[[Request], AbstractContextManager[None]],
        refuse: Callable[[Request], None],
    ) -> None:
        """Begin: from now on each request that is sent is a visit. See ``HostVisits.open``."""
        self._visits.open(waiting, refuse)
        self._engine.hooks.send_within(self._visit)

    def _visit(self, request: Request) -> AbstractAsyncContextManager[None] | None:
        if is_for_robots_txt(request):  # see ``asking``
            return None
        host = self._host_of(request.url)
        return None if host is None else self._visits.visit(host, request)

    # The hosts.

    def _host_for(self, state: SiteState, robot: str) -> Host | None:
        """Return the host of a site if its visits have to be apart, else None."""
        secs, site = self._secs_of(state, robot), str(state.site)
        host = self._visits.get(state.site.host)
        if host is None:
            if not secs:
                return None
            host = self._visits.add(state.site.host)
        if secs and site not in host.delays:
            host.next_visit = max(host.next_visit, self._first_visit(state, secs))
        # A site that has left the memory requests its delay until it is known again.
        if state.known is not None and secs != host.delays.get(site):
            host.delays[site] = secs
            longest = max(host.delays.values())
            host.gap = max(longest, self._own_secs) if longest else 0.0
        return host if host.gap else None

    def _first_visit(self, state: SiteState, secs: float) -> Instant:
        """Return when a site may be visited whose delay has become known.

        The last visit was to its robots.txt, or the downloader has pages of another site of its
        host.
        """
        now, site, copy = self._clock.now(), state.site, last_copy(state.known)
        others = (_site_of(request.url) for request in self._engine.under_way)
        if any(each and each.host == site.host and each != site for each in others):
            return now + max(secs, self._own_secs) + LATE_MOST_SECS
        passed = secs if copy is None else self._clock.epoch() - copy.fetched - LATE_MOST_SECS
        return now + min(max(secs - passed, 0.0), secs)

    def _named(self, url: str) -> Host | None:
        site = _site_of(url)
        host = self._visits.get(site.host) if site else None
        return host if host is not None and host.gap else None

    def _host_of(self, url: str) -> Host | None:
        if (state := self._records.met(url)) is not None:
            # A page may have waited in its slot since before the delay was known.
            self._host_for(state, self._robot.name)
        return self._named(url)

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
        if host is not None and self._visits.is_open(host):
            self._visits.take(host, request)
            return None
        return host

    def held(self, request: Request, state: SiteState, robot: str) -> Host | None:
        """Return the host that *request* may visit only when it has taken a visit, or None."""
        host = self._host_for(state, robot)
        if host is None or host.taken_by is request or request.meta.get("dont_obey_robotstxt"):
            return None
        # A forbidden request does not wait: it is refused at once.
        is_sent = is_robots_txt(request.url) or (
            state.allows(request.url, robot) and not self.too_long(state, robot)
        )
        return host if is_sent or self._dry_run else None

    def concerns(self, state: SiteState, robot: str) -> bool:
        """Return whether a site requests a delay, or another site of its host does."""
        return bool(self._host_for(state, robot) or self.too_long(state, robot))

    async def turn(self, host: Host, request: Request) -> bool:
        """Wait in place until *request* may visit *host*; return False if the crawl closes."""
        return await self._visits.wait(host, request)

    def has_waiting(self) -> bool:
        """Return whether requests wait for a host. The crawl has nothing else to do: log it."""
        waiting = [host for host in self._visits if self._visits.is_awaited(host)]
        now = self._clock.now()
        if waiting and now >= self._tell_at:
            first = min(waiting, key=attrgetter("next_visit"))
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

    # A robots.txt is a visit, too.

    def _host_asked(self, state: SiteState, after: TurnNeededError | None) -> Host | None:
        if after is not None and after.url is not None:
            return self._host_of(after.url)  # its delay may have become known meanwhile
        return self._host_of(state.site.robots_url)  # an old copy may name a delay

    def holds_redirect(self, url: str) -> bool:
        """Return whether a redirect to *url* needs a turn, or it is not known yet if it does."""
        return self._host_of(url) is not None or self._is_first_fetched(url)

    def _is_first_fetched(self, url: str) -> bool:
        """Return whether the robots.txt of the site of *url* is on its way for the first time."""
        state = self._records.met(url)
        if state is None or state in self._redirected:
            return False
        return state.known is None and state.state is State.FETCHING

    async def turn_to_ask(self, state: SiteState, after: TurnNeededError | None) -> None:
        """Wait until /robots.txt may be fetched. *after* says where it redirects to, if it does."""
        if after is not None and after.url is not None:
            # Two sites that redirect to each other do not wait for each other.
            self._redirected.add(state)
            until = self._clock.now() + self._timeout_secs
            while self._is_first_fetched(after.url) and self._clock.now() < until:
                await self._clock.sleep(_LOOK_SECS)
            self._redirected.discard(state)
        host = self._host_asked(state, after)
        if host is not None:
            await self._visits.wait(host)

    @asynccontextmanager
    async def asking(self, state: SiteState, after: TurnNeededError | None) -> AsyncIterator[None]:
        """Have a robots.txt fetched within this: that is one visit.

        Raises TurnNeededError if it may not begin now.
        """
        host = self._host_asked(state, after)
        if host is None:
            yield
            return
        try:
            async with self._visits.visit(host, None):
                yield
                # It is not known when exactly it was sent.
                host.next_visit = self._clock.now() + host.gap
        except TooEarlyError:
            raise after or TurnNeededError from None

    async def learnt(self, state: SiteState, known: Known) -> Known:
        """Return *known*, fresh for some visits at least: else each visit would be to renew it.

        If it may be the first that names a delay, the visit is noted. To be awaited before it is
        stored: other processes obey it at once.
        """
        if not isinstance(known, Copy):
            return known
        host = self._named(state.site.robots_url)
        if host is not None:
            return replace(known, expires=max(known.expires, known.fetched + _VISITS * host.gap))
        if names_delay(known.body):
            await self._store.visit(state.site.host, _FIRST_SECS, begun=True)
        return known


def _site_of(url: str) -> Site | None:
    """Return the site of *url*, None for a URL that names none."""
    try:
        return site_of(url)
    except ValueError:  # the errback of the request gets the error of the middleware
        return None

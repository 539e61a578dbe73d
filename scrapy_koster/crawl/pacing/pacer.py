"""Crawl-delay: visits to a host that are as far apart as it asks for (KOSTER_CRAWL_DELAY).

A delay is kept by host, whatever the scheme and the port: it is the longest that its sites ask for.
Who waits for a turn of its host waits in the scheduler, or in place where it does not come from
there. It takes no place of the downloader meanwhile. See docs/pacing.md.
"""

from __future__ import annotations

from collections import Counter
from contextlib import asynccontextmanager, nullcontext
from dataclasses import replace
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, TypeAlias

from scrapy_koster.crawl.clock import LONG_AGO
from scrapy_koster.crawl.engine.robots_mark import is_for_robots_txt
from scrapy_koster.crawl.fetching.permits import TurnNeededError
from scrapy_koster.crawl.pacing.delays import NO_DELAY
from scrapy_koster.crawl.pacing.host_turns import ClosingError, HostTurns, TooEarlyError
from scrapy_koster.protocol.access import Copy
from scrapy_koster.protocol.path import is_robots_txt
from scrapy_koster.protocol.rewriting import sent_as

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from contextlib import AbstractAsyncContextManager, AbstractContextManager

    from scrapy import Request

    from scrapy_koster.crawl.clock import Clock
    from scrapy_koster.crawl.config import Config
    from scrapy_koster.crawl.engine.private import Engine
    from scrapy_koster.crawl.fetching.ports import Store
    from scrapy_koster.crawl.messages.log import Log
    from scrapy_koster.crawl.messages.stats import Stats
    from scrapy_koster.crawl.pacing.delays import Delays
    from scrapy_koster.crawl.pacing.hosts import Host, Hosts
    from scrapy_koster.crawl.robot import Robot
    from scrapy_koster.crawl.site_records import SiteRecords
    from scrapy_koster.crawl.states import SiteState
    from scrapy_koster.protocol.access import Known
    from scrapy_koster.protocol.delay import Delay

    Waiting: TypeAlias = Callable[[Request], AbstractContextManager[None]]

# A crawl that has nothing else to do for long says so, and again after so many seconds.
_LONG_SECS = 5.0
_TELL_SECS = 60.0
# A copy is fresh for as many visits at least.
_VISITS = 10
# The delay by which a visit is noted that is not known to be one of a host with a delay.
_FIRST_SECS = 1.0


class Pacer:
    """Tells which requests have to wait for a turn of their host, and gives them one."""

    is_on = True

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
        store: Store,
        delays: Delays,
        hosts: Hosts,
        renew: Callable[[SiteState], None],
    ) -> None:
        """*renew* has a site retrieved whose copy is not fresh any more."""
        self._log = log
        self._engine = engine
        self._robot = robot
        self._records = records
        self._clock = clock
        self._renew = renew
        self._dry_run = config.dry_run
        self._delays = delays
        self._hosts = hosts
        self._store = store
        self._turns = HostTurns(hosts, store, stats, clock, self._is_open)
        self._in_turn: Counter[SiteState] = Counter()
        """How many requests to each site wait in place for a turn of its host."""
        self._open: dict[Host, None] = {}
        """Hosts whose turn a parked request may take."""
        self._tell_at = LONG_AGO

    def want(self, host: Host) -> None:
        """Have the turn of *host* given to those who wait for it, once it comes."""
        self._turns.want(host)

    def close(self) -> None:
        """Give no turn any more; who waits for one is told."""
        self._turns.close()

    def open(self, waiting: Waiting, refuse: Callable[[Request], None]) -> None:
        """Begin: from now on what is sent is a visit.

        A request that has to wait for that is *waiting* in place; *refuse* is called with it if
        the crawl closes first, and raises.
        """

        def visiting(request: Request) -> AbstractAsyncContextManager[None] | None:
            if is_for_robots_txt(request):  # which is in ``asking``
                return None
            host = self._host_of(request.url)
            return None if host is None else self._sent(request, host, waiting, refuse)

        self._engine.around_downloads(visiting)

    @asynccontextmanager
    async def _sent(
        self, request: Request, host: Host, waiting: Waiting, refuse: Callable[[Request], None]
    ) -> AsyncIterator[None]:
        obeys = not request.meta.get("dont_obey_robotstxt")
        try:
            async with self._turns.visit(host, partial(waiting, request), obeys=obeys):
                yield
        except ClosingError:
            refuse(request)
            raise

    # Which requests have to wait.

    def holds(self, request: Request) -> tuple[SiteState, Host] | None:
        """Return the site of *request*, and its host, if that has no turn for it now.

        One that its site's rules forbid needs none. Where the turn is free *request* has it from
        now on.
        """
        try:
            state = self._records.state_of(request.url)
            if state is None or (state.delay is NO_DELAY and not self._hosts):
                return None
            host = self.held(request, state, self._robot.name_of(request))
        except Exception:  # noqa: BLE001  # the middleware says so to the request's errback
            return None
        if host is None:
            return None
        if self._hosts.is_ready(host):
            self._turns.take(host, request)
            return None
        return state, host

    def held(self, request: Request, state: SiteState, robot: str) -> Host | None:
        """Return the host whose turn *request* has to have and has not, None for none."""
        host = self._hosts.of_site(state, robot)
        if host is None or host.turn is request or request.meta.get("dont_obey_robotstxt"):
            return None
        return host if self._dry_run or self._may_pass(request, state, robot) else None

    def _may_pass(self, request: Request, state: SiteState, robot: str) -> bool:
        if is_robots_txt(request.url):  # also where the site is not known
            return True
        return self._delays.too_long(state, robot) is None and all(
            state.allows(url, robot) for url in sent_as(request.url)
        )

    def concerns(self, state: SiteState, robot: str) -> bool:
        """Whether a site asks for a delay, or another of its host does."""
        if state.delay is NO_DELAY and not self._hosts:
            return False
        return (
            self._hosts.of_site(state, robot) is not None
            or self._delays.too_long(state, robot) is not None
        )

    def too_long(self, request: Request, state: SiteState, robot: str) -> Delay | None:
        """Return the delay for which *request* is refused, None where it is not."""
        return None if is_robots_txt(request.url) else self._delays.too_long(state, robot)

    def paces(self, state: SiteState) -> Host | None:
        """Return the host of a site where visits are to be apart, None where they need not be."""
        return self._hosts.of_site(state, self._robot.name)

    # What comes out of the parking.

    def open_site(self) -> SiteState | None:
        """Return a site of whose parked requests one may come out, None if there is none."""
        for host in list(self._open):
            if self._hosts.is_ready(host) and (state := self._fresh_site(host)) is not None:
                return state
            del self._open[host]
            if self._hosts.is_awaited(host) and not self._hosts.is_ready(host):
                self.want(host)
        return None

    def _is_open(self, host: Host) -> None:
        if self._fresh_site(host) is not None:
            self._open[host] = None
            self._engine.wake()

    def _fresh_site(self, host: Host) -> SiteState | None:
        """Return a site that has parked requests and is known; those that are not are asked."""
        found = None
        for state in host.states:
            if not self._hosts.waiting_for_turn(state):
                continue
            now = self._clock.epoch()
            if now >= state.until_epoch:
                self._renew(state)
            if now < state.until_epoch:  # it may have been settled anew
                found = found or state
        return found

    def is_waited_for(self, state: SiteState) -> bool:
        """Whether requests to the site wait for a turn of its host, or have it."""
        return self._in_turn[state] > 0 or self._hosts.needs(state)

    def has_waiting(self) -> bool:
        """Whether requests wait for the turn of a host. While a crawl does nothing else, say so."""
        waiting = [host for host in self._hosts if self._hosts.is_awaited(host)]
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

    # Visits.

    async def turn(self, state: SiteState, host: Host, request: Request) -> bool:
        """Wait in place for the turn of *host*; False if the crawl closes first.

        The site, which *request* is to, stays in memory meanwhile.
        """
        self._in_turn[state] += 1
        try:
            return await self._turns.wait(host, request)
        finally:
            self._in_turn[state] -= 1
            if not self._in_turn[state]:
                del self._in_turn[state]

    def needs_turn(self, url: str) -> bool:
        """Whether the host of *url*, which names a site, is known to ask for a delay."""
        return self._host_of(url) is not None

    def _host_of(self, url: str) -> Host | None:
        state = self._records.met(url)
        if state is not None:
            # An old copy names it as well. A page may have been in its slot before there was one.
            self._hosts.of_site(state, self._robot.name)
        return self._hosts.of_url(url) if self._hosts else None

    async def turn_to_ask(self, state: SiteState, after: TurnNeededError | None) -> bool:
        """Wait until /robots.txt may be asked for, where the host is known to ask for a delay.

        *after* says where that redirects to, if it does. Return whether there is such a delay.
        """
        host = self._asked(state, after)
        return host is not None and await self._turns.wait(host)

    def _asked(self, state: SiteState, after: TurnNeededError | None) -> Host | None:
        if after is not None and after.url is not None:
            return self._hosts.of_url(after.url)
        self._hosts.of_site(state, self._robot.name)  # an old copy names it as well
        return self._hosts.named(state.site.host)

    async def note(self, state: SiteState, known: Known) -> None:
        """Note that a site was asked, if its answer may be the first to name a delay.

        To be awaited before that is stored: others have clocks of their own, and go by it at once.
        """
        if not isinstance(known, Copy) or self._hosts.named(state.site.host) is not None:
            return
        if self._delays.may_be_named_in(known.body):
            await self._store.visit(state.site.host, _FIRST_SECS, begun=True)

    def lengthened(self, state: SiteState, known: Known) -> Known:
        """Return *known*, fresh for so many visits at least: else each of them would be to ask."""
        host = self._hosts.named(state.site.host)
        if host is None or not isinstance(known, Copy):
            return known
        return replace(
            known, expires=max(known.expires, known.fetched + _VISITS * self._hosts.gap(host))
        )

    @asynccontextmanager
    async def asking(self, state: SiteState, after: TurnNeededError | None) -> AsyncIterator[None]:
        """Have a site asked for its robots.txt within this: that is one visit.

        Raises TurnNeededError if another process has had the turn meanwhile.
        """
        host = self._asked(state, after)
        if host is None:
            yield
            return
        try:
            async with self._turns.visit(host, None):
                yield
                # When exactly it was sent is not known here.
                host.free_at = max(host.free_at, self._clock.now() + self._hosts.gap(host))
                host.next_visit = max(host.next_visit, host.free_at)
        except TooEarlyError:
            raise after or TurnNeededError from None


class NoPacer:
    """Keeps no delay (KOSTER_CRAWL_DELAY = "ignore")."""

    is_on = False

    def needs_turn(self, _url: str) -> bool:
        """Return False."""
        return False

    async def turn_to_ask(self, _state: SiteState, _after: TurnNeededError | None) -> bool:
        """Do not wait."""
        return False

    async def note(self, _state: SiteState, _known: Known) -> None:
        """Note nothing."""

    def asking(
        self, _state: SiteState, _after: TurnNeededError | None
    ) -> AbstractAsyncContextManager[None]:
        """Note nothing."""
        return nullcontext()

    def lengthened(self, _state: SiteState, known: Known) -> Known:
        """Return *known* as it is."""
        return known

    def open(self, _waiting: Waiting, _refuse: Callable[[Request], None]) -> None:
        """Note no visits."""

    def close(self) -> None:
        """Do nothing."""

    def holds(self, _request: Request) -> None:
        """Hold nothing."""

    def held(self, _request: Request, _state: SiteState, _robot: str) -> None:
        """Hold nothing."""

    def concerns(self, _state: SiteState, _robot: str) -> bool:
        """Return False."""
        return False

    def too_long(self, _request: Request, _state: SiteState, _robot: str) -> None:
        """No delay is too long."""

    def paces(self, _state: SiteState) -> None:
        """No visits have to be apart."""

    def open_site(self) -> None:
        """Nobody waits."""

    def is_waited_for(self, _state: SiteState) -> bool:
        """Return False."""
        return False

    def has_waiting(self) -> bool:
        """Return False."""
        return False

    def want(self, host: Host) -> None:
        """Nobody waits."""

    async def turn(self, _state: SiteState, _host: Host, _request: Request) -> bool:
        """Return True."""
        return True

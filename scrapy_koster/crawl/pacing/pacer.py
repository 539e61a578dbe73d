"""Crawl-delay: visits to a host are at least its delay apart (KOSTER_CRAWL_DELAY).

The sites of a host, with any scheme and port, share the longest of their delays. A request that has
to wait is parked in the scheduler, or waits in place if it is in the downloader already. In both
cases, the request uses no place of CONCURRENT_REQUESTS. See docs/pacing.md.

When a host can be visited and requests wait, the visit is claimed in the storage, because another
process may visit the host, too. Then one request gets the turn, which lasts for half a delay. The
visit begins when the request is sent. If the turn is over by then, for example because the request
waited in its slot, the visit is claimed again.

A request that is about to be sent takes the turn, whoever has it, or comes first if it has to wait.
It uses a place in its slot, and the request with the turn may be behind it in the queue of the
slot.

The next visit waits for the response. The delay before the next visit counts from the response, or
from 0.5 s after sending if that is earlier: by then, the site has received the request. After a
robots.txt, the delay always counts from the response.
"""

from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.exceptions import IgnoreRequest
from scrapy.utils.defer import deferred_from_coro, maybe_deferred_to_future
from twisted.internet.defer import Deferred

from scrapy_koster.crawl.clock import LONG_AGO, TIMER_MOST_SECS, Instant, clock_of
from scrapy_koster.crawl.config import Config
from scrapy_koster.crawl.decision import decide
from scrapy_koster.crawl.engine.private import CANCELLED, Engine, Within, is_for_robots_txt
from scrapy_koster.crawl.fetching.storage_calls import StorageCalls
from scrapy_koster.crawl.messages.log import Log
from scrapy_koster.crawl.pacing.delays import Delays
from scrapy_koster.crawl.parking.parked_requests import ParkedRequests
from scrapy_koster.crawl.robot import Robot
from scrapy_koster.crawl.site_records import SiteRecords
from scrapy_koster.crawl.states import SiteState
from scrapy_koster.protocol.access import Copy, Known
from scrapy_koster.protocol.delay import names_delay
from scrapy_koster.protocol.path import is_robots_txt
from scrapy_koster.protocol.site import Site
from scrapy_koster.protocol.step import Ask, waits
from scrapy_koster.protocol.verdict import Source

Visitor: TypeAlias = Request | Site
"""A request for a page, or a site whose robots.txt is fetched."""

# The longest time from sending a request to its arrival at the site, by assumption.
_LATE_MOST_SECS = 0.5
_TURN_LEAST_SECS = 0.05
_RETRY_SECS = 1.0
# The longest time for which a turn that is over holds back others: while its request is in the
# downloader. If this were 0, the requests of a slow slot would fill the downloader.
_HELD_SECS = 10.0
# An idle crawl logs a wait of at least _LONG_SECS, once in _TELL_SECS.
_LONG_SECS = 5.0
_TELL_SECS = 60.0
# A copy of a host with a delay is fresh for at least the time of this number of visits.
_VISITS = 10
# The gap of a visit that is recorded before the delay of its host is known.
_FIRST_SECS = 1.0
_PARKED = object()
# Up to this number, hosts are not forgotten.
_HOSTS_KEPT = 10_000


@dataclass(eq=False, slots=True)
class Host:
    """A host that requests a delay, and its next visit."""

    name: str
    next_visit: Instant
    gap: float = 0.0
    """Seconds between two visits: the longest delay in this crawl, or a longer DOWNLOAD_DELAY."""
    turn: object | None = None
    """The visitor with the turn, or None. ``_PARKED``: the next parked request that comes out."""
    turn_until: Instant = LONG_AGO
    under_way: int = 0
    """Number of visits that have begun and have no response yet."""
    giving: Deferred[Any] | None = None
    """The running call of ``Pacer._give_turns``, or None."""
    waiters: OrderedDict[Deferred[bool], Visitor] = field(default_factory=OrderedDict)
    """The visitors that wait in place, by the Deferred of the wait."""


@dataclass(kw_only=True, eq=False)
class Pacer:
    """The hosts that request a delay, and the turns of requests to these hosts."""

    crawler: Crawler
    config: Config
    engine: Engine
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
        self._hosts: dict[str, Host] = {}
        self._prune_at = _HOSTS_KEPT
        self._tell_at = LONG_AGO
        self.is_open = False

    def open(self, waiting: Callable[[Request], AbstractContextManager[None]]) -> None:
        """Pace requests from now on. Before this call, and if it never comes, no host has a delay.

        *waiting* returns the context in which a request waits in place.
        """
        self._waiting, self.is_open = waiting, True
        self.engine.hooks.visit = self._sent_within

    def close(self) -> None:
        """End the waits in place. A crawl that closes gives no more turns."""
        for host in self._hosts.values():
            if host.giving is not None:
                host.giving.cancel()
            while host.waiters:
                host.waiters.popitem()[0].callback(False)  # noqa: FBT003

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
        host = self._hosts.get(state.site.host)
        if not self.is_open or not (secs := self._delays.secs_of(state, robot)):
            return host
        if host is None:
            if len(self._hosts) >= self._prune_at:
                self._prune()
            host = self._hosts[state.site.host] = Host(state.site.host, self._clock.now())
        gap = max(secs, self._own_secs)
        if gap > host.gap:
            host.gap = gap
            # The fetch of this robots.txt was a visit. If another process or crawl has fetched it,
            # the visit is in the storage.
            if state.facts.source is Source.FETCHED:
                host.next_visit = max(host.next_visit, self._clock.now() + gap)
        return host

    def _prune(self) -> None:
        """Forget the hosts that had no visit for two gaps, and for which no request waits.

        Within the second gap, a request may be about to begin a visit.
        """
        now = self._clock.now()
        for name, host in list(self._hosts.items()):
            is_used = host.under_way or host.giving or self._is_awaited(host)
            if not is_used and max(host.next_visit, host.turn_until) + host.gap <= now:
                del self._hosts[name]
        self._prune_at = max(_HOSTS_KEPT, 2 * len(self._hosts))

    # Which requests have to wait.

    def parks(self, request: Request, state: SiteState) -> bool:
        """Return whether *request* has to wait for its host. If so, park *request*.

        If the turn is for the next parked request that comes out, *request* gets the turn.
        """
        try:
            host = self.held(request, state, self.robot.name_of(request))
        except Exception:  # noqa: BLE001  # the middleware raises this error, too
            return False
        if host is None:
            return False
        if host.turn is _PARKED and self._clock.now() < host.turn_until:
            host.turn = request
            return False
        self.parked.push(host.name, request)
        self.want(host)
        return True

    def held(self, request: Request, state: SiteState, robot: str) -> Host | None:
        """Return the host if *request* has to wait for a turn, or None."""
        host = self._host_of_site(state, robot)
        if host is None or host.turn is request or request.meta.get("dont_obey_robotstxt"):
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
        waiting = [host for host in self._hosts.values() if self._is_awaited(host, Request)]
        now, first = self._clock.now(), min(waiting, key=lambda host: host.next_visit, default=None)
        if first and now >= self._tell_at and first.next_visit - now >= _LONG_SECS:
            self._tell_at = now + _TELL_SECS
            self._log.info(
                "Idle until the Crawl-delay of %(host)s has passed. Next request in %(secs).0f s",
                host=first.name,
                secs=first.next_visit - now,
            )
        return bool(waiting)

    # Requests wait for their turn.

    def _is_awaited(self, host: Host, by: type = object) -> bool:
        in_place = any(isinstance(visitor, by) for visitor in host.waiters.values())
        return in_place or self.parked.waiting_in(host.name) > 0

    async def wait(self, host: Host, visitor: Visitor, *, first: bool = False) -> bool:
        """Wait in place until *visitor* has the turn. Return False if the crawl closes first.

        If *first*, *visitor* gets the next turn.
        """
        if self.engine.is_closing:
            return False
        given: Deferred[bool] = Deferred(host.waiters.__delitem__)
        host.waiters[given] = visitor
        if first:
            host.waiters.move_to_end(given, last=False)
        self.want(host)
        with self._waiting(visitor) if isinstance(visitor, Request) else nullcontext():
            return await maybe_deferred_to_future(given)

    def want(self, host: Host) -> None:
        """Begin to give turns to the requests that wait for *host*, if no visit is under way."""
        if not (self.engine.is_closing or host.under_way or host.giving) and self._is_awaited(host):
            host.giving = deferred_from_coro(self._give_turns(host))
            host.giving.addErrback(lambda failure: failure.trap(*CANCELLED))

    async def _give_turns(self, host: Host) -> None:
        """Give turns until a visit begins or no request waits.

        The end of the visit calls ``want`` again.
        """
        try:
            while self._is_awaited(host) and not host.under_way:
                secs: Any = max(0.0, min(self._secs_left(host), TIMER_MOST_SECS))
                await self._clock.sleep(secs)  # even 0 s, so that ``want`` sets ``giving`` first
                self.crawler.stats.inc_value("koster/crawl_delay/waited_seconds", secs)
                asked_at = self._clock.now()
                is_free = self._secs_left(host) <= 0 and await self._may_visit(host)
                if is_free and self._is_awaited(host):
                    self._give_turn(host, asked_at)
        finally:
            host.giving = None

    def _secs_left(self, host: Host) -> float:
        """Return the seconds until a turn can be given, 0 or less if it can be given now."""
        now = self._clock.now()
        left = host.next_visit - now
        # A request with a turn that is over may still be in the downloader. It claims the visit,
        # unless it waits for another request to the host, for example in a middleware for logins.
        held_secs = _HELD_SECS if host.turn in self.engine.under_way else 0.0
        if now < host.turn_until + held_secs:
            return max(left, min(host.gap, _RETRY_SECS), _TURN_LEAST_SECS)
        return left

    def _give_turn(self, host: Host, asked_at: Instant) -> None:
        """Give the turn to a waiting request. Requests in place come first."""
        host.turn_until = max(asked_at + host.gap / 2, self._clock.now() + _TURN_LEAST_SECS)
        if host.waiters:
            given = next(iter(host.waiters))
            host.turn = host.waiters.pop(given)
            given.callback(True)  # noqa: FBT003
        else:
            host.turn = _PARKED
            self.parked.let_one_out(host.name)
            self.engine.wake()

    async def _may_visit(self, host: Host, *, begun: bool = False) -> bool:
        """Return whether a visit to *host* can begin now. If so, the storage has recorded it.

        With *begun*, the visit is claimed already, and is recorded again with the time of now.
        """
        left = await self.store.visit(host.name, host.gap, begun=begun)
        now = self._clock.now()
        host.next_visit = max(host.next_visit, now + left)
        # During the call, a visit without a turn may have begun.
        return host.next_visit <= now and not host.under_way

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

        A request with ``dont_obey_robotstxt`` does not wait. Its visit is recorded.
        """
        if isinstance(visitor, Request) and visitor.meta.get("dont_obey_robotstxt"):
            await self.store.visit(host.name, host.gap, begun=True)
        else:
            await self._begin(host, visitor)
        host.under_way += 1
        began = self._clock.now()
        host.next_visit = began + host.gap
        try:
            yield
        finally:
            host.under_way -= 1
            answered = self._clock.now()
            # A request for a robots.txt may be sent later than *began*, so its answer counts.
            if isinstance(visitor, Request):
                answered = min(answered, began + _LATE_MOST_SECS)
            host.next_visit = max(host.next_visit, answered + host.gap)
            self.want(host)

    async def _begin(self, host: Host, visitor: Visitor) -> None:
        """Claim the visit of *visitor*. If the visit cannot begin, wait for a turn and claim again.

        A visitor can come without a turn, for example after a redirect of a robots.txt. Raises
        IgnoreRequest if the crawl closes during the wait.
        """
        while True:
            now = self._clock.now()
            has_turn = now < host.turn_until
            host.turn, host.turn_until = None, LONG_AGO
            is_free = host.next_visit <= now and not host.under_way
            if is_free and await self._may_visit(host, begun=has_turn):
                return
            # During the call, the turn may have been given to a request behind this one.
            if host.turn_until == LONG_AGO and not await self.wait(host, visitor, first=True):
                raise IgnoreRequest("the crawl is closing")

    # A robots.txt is a visit, too.

    async def turn_to_ask(self, state: SiteState, load: Callable[[], Awaitable[object]]) -> None:
        """Wait for the turn of a robots.txt, if its host has a delay.

        The delay may be known from an expired copy, or from another site of the host. For an
        unknown site, *load* loads the stored copy first: a valid copy needs no turn.
        """
        if (host := self._host_of(state.site.robots_url)) is not None:
            if state.known is None:
                await load()
            if isinstance(state.step, Ask):
                await self.wait(host, state.site)

    async def learnt(self, state: SiteState, known: Known) -> Known:
        """Return *known*. A copy of a host with a delay is made fresh for ten visits or more.

        If the life were shorter, most visits could be renewals of the copy. If *known* may be the
        first copy with a delay, its fetch is recorded as a visit. Await this call before storing
        the copy, because another process may obey a stored copy at once.
        """
        host = self._hosts.get(state.site.host)
        if isinstance(known, Copy) and host is not None:
            return replace(known, expires=max(known.expires, known.fetched + _VISITS * host.gap))
        if self.is_open and isinstance(known, Copy) and names_delay(known.body):
            await self.store.visit(state.site.host, _FIRST_SECS, begun=True)
        return known

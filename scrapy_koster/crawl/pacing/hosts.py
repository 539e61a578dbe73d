"""The hosts whose visits are to be apart: of each the sites, and who has the turn."""

from __future__ import annotations

import math
from collections import deque
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from scrapy import Request

from scrapy_koster.crawl.clock import LONG_AGO
from scrapy_koster.protocol.access import last_copy
from scrapy_koster.protocol.site import site_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from twisted.internet.defer import Deferred

    from scrapy_koster.crawl.clock import Clock, Instant
    from scrapy_koster.crawl.engine.private import Engine
    from scrapy_koster.crawl.pacing.delays import Delays
    from scrapy_koster.crawl.states import SiteState
    from scrapy_koster.protocol.site import Site

_EVICTED_AT_ONCE = 16
LATE_MOST_SECS = 0.5
"""The site sees a request later than it was sent: when there is a connection, and no sooner than
the machine has time for it. What one is late by, so much at most, shortens the gap behind it."""


class Checking:
    """The storage is being asked whether another process has had the turn."""


class Open(NamedTuple):
    """Nobody has the turn yet; it may be taken until then."""

    until: Instant


Turn: TypeAlias = Request | Checking | Open | None
"""Who has the turn: a request, nobody yet, or nobody."""


class Host:
    """A host whose visits are to be apart, and when the next of them may begin.

    It is kept small: a crawl may have ten thousand.
    """

    __slots__ = (
        "claimed_at", "first", "free_at", "last_gap", "next_visit", "others", "quickest", "turn",
        "under_way", "waiters",
    )  # fmt: skip

    def __init__(self, state: SiteState) -> None:
        self.first = state
        self.others: tuple[SiteState, ...] = ()
        """More sites of the host: of another scheme, at another port."""
        self.next_visit = LONG_AGO
        """Before this nobody gets the turn."""
        self.free_at = LONG_AGO
        """Before this nothing is sent: the last visit of this process was too recent."""
        self.last_gap = 0.0
        """How far apart its visits were before one of its sites was met."""
        self.claimed_at = LONG_AGO
        """When the storage last granted a turn that was not used yet."""
        self.quickest = math.inf
        """How long the shortest visit took."""
        self.turn: Turn = None
        self.under_way = 0
        """Visits that have begun and not ended."""
        self.waiters: deque[tuple[Deferred[bool], Request | None]] | None = None
        """Who waits in place."""

    @property
    def name(self) -> str:
        """What it is called."""
        return self.first.site.host

    @property
    def states(self) -> tuple[SiteState, ...]:
        """Its sites that were met: one of them asks for a delay."""
        return (self.first, *self.others)

    def lateness(self, secs: float) -> float:
        """Return by how much the request of a visit of so many seconds may have come late.

        That is what it took longer than the quickest so far. One that is quicker than those
        before it may have been late all the same, as long as it took.
        """
        if secs < self.quickest:
            self.quickest = secs
            return secs
        return secs - self.quickest

    def join(self, state: SiteState) -> None:
        """Take a site for one of its own; it may have been known before, and forgotten."""
        if state.site == self.first.site:
            self.first = state
        else:
            others = (each for each in self.others if each.site != state.site)
            self.others = (*others, state)


class Hosts:
    """The hosts of which a site asks for a delay; so many of them at most."""

    def __init__(
        self,
        engine: Engine,
        delays: Delays,
        clock: Clock,
        *,
        limit: int,
        own_secs: float,
        waiting_for_turn: Callable[[Site], int],
    ) -> None:
        """*own_secs* is the DOWNLOAD_DELAY; *waiting_for_turn* tells how many requests to a site
        wait in the scheduler for a turn of its host.
        """
        self._engine = engine
        self._own_secs = own_secs
        self._delays = delays
        self._clock = clock
        self._limit = limit
        self._waiting_for_turn = waiting_for_turn
        self._hosts: dict[str, Host] = {}

    def __len__(self) -> int:
        return len(self._hosts)

    def __iter__(self) -> Iterator[Host]:
        return iter(self._hosts.values())

    def of_site(self, state: SiteState, robot: str) -> Host | None:
        """Return the host of a site where visits are to be apart, None where they need not be."""
        secs = self._delays.kept(state, robot)
        if not (secs or self._hosts):
            return None
        host = self._hosts.get(state.site.host)
        if host is None:
            return self._new(state) if secs else None
        if state not in host.states:
            host.last_gap = self.gap(host)
            host.join(state)
            host.next_visit = max(host.next_visit, self._after_robots_txt(state))
        return host if self.gap(host) else None

    def named(self, name: str) -> Host | None:
        """Return the host called *name* if its visits are to be apart."""
        host = self._hosts.get(name)
        return host if host is not None and self.gap(host) else None

    def of_url(self, url: str) -> Host | None:
        """Return the host of *url* if its visits are to be apart."""
        site = _site_of(url)
        return self.named(site.host) if site else None

    def gap(self, host: Host) -> float:
        """Return how far apart its visits are to begin, in seconds; 0 where it does not matter."""
        secs = max(self._delays.kept(state) for state in host.states)
        if not secs and any(state.known is None for state in host.states):
            secs = host.last_gap  # that site may have been forgotten, and asks for it still
        return max(secs, self._own_secs) if secs else 0.0

    def is_awaited(self, host: Host) -> bool:
        """Whether somebody waits for its turn."""
        return bool(host.waiters) or any(map(self.waiting_for_turn, host.states))

    def needs(self, state: SiteState) -> bool:
        """Whether a site has to stay in memory: another state of it would not be that of its host.

        Its host is visited, or waited for.
        """
        host = self._hosts.get(state.site.host)
        return (
            host is not None
            and state in host.states
            and bool(host.under_way or self.is_had(host) or self.is_awaited(host))
        )

    def waiting_for_turn(self, state: SiteState) -> int:
        """Return how many requests to a site wait in the scheduler for a turn of its host."""
        return self._waiting_for_turn(state.site)

    def is_ready(self, host: Host) -> bool:
        """Whether its turn may be taken now."""
        return isinstance(host.turn, Open) and self._clock.now() < host.turn.until

    def is_had(self, host: Host) -> bool:
        """Whether a request has its turn, or one is about to."""
        if isinstance(host.turn, Request):
            return host.turn in self._engine.under_way
        return isinstance(host.turn, Checking)

    def _new(self, state: SiteState) -> Host:
        self._make_room()
        host = self._hosts[state.site.host] = Host(state)
        host.next_visit = self._after_robots_txt(state)
        if self._is_visited(state.site):
            host.next_visit = self._clock.now() + (self.gap(host) + LATE_MOST_SECS)
        return host

    def _is_visited(self, site: Site) -> bool:
        """Whether pages of another site of the host are under way: they needed no turn."""
        return any(
            (other := _site_of(request.url)) and other.host == site.host and other != site
            for request in self._engine.under_way
        )

    def _make_room(self) -> None:
        for _ in range(_EVICTED_AT_ONCE):
            if len(self._hosts) < self._limit:
                return
            name, host = next(iter(self._hosts.items()))
            del self._hosts[name]
            if (
                self.is_awaited(host)
                or host.under_way
                or host.next_visit > self._clock.now()
                or self.is_had(host)
            ):
                self._hosts[name] = host

    def _after_robots_txt(self, state: SiteState) -> Instant:
        """Return when the next visit may begin: that to /robots.txt was one.

        Before that was read, others may have begun.
        """
        copy, gap = last_copy(state.known), self._delays.kept(state)
        passed = math.inf if copy is None else self._clock.epoch() - copy.fetched - LATE_MOST_SECS
        return self._clock.now() + min(max(gap - passed, 0.0), gap)


def _site_of(url: str) -> Site | None:
    """Return the site of *url*, None where it has none."""
    try:
        return site_of(url)
    except ValueError:  # the middleware says so to the request's errback
        return None

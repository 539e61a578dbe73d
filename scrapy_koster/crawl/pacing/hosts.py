"""The hosts whose visits are to be apart: of each the sites, and who has the turn."""

from __future__ import annotations

import math
from collections import deque
from time import monotonic
from typing import TYPE_CHECKING, TypeAlias

from scrapy import Request

from scrapy_koster.crawl.engine.private import under_way
from scrapy_koster.protocol.access import last_copy
from scrapy_koster.protocol.site import site_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from scrapy.crawler import Crawler
    from twisted.internet.defer import Deferred

    from scrapy_koster.crawl.pacing.delays import Delays
    from scrapy_koster.crawl.sites import SiteState
    from scrapy_koster.protocol.site import Site

_EVICTED_AT_ONCE = 16
LATE_MOST_SECS = 0.5
"""The site sees a request later than it was sent: when there is a connection, and no sooner than
the machine has time for it. What one is late by, so much at most, shortens the gap behind it."""


class Asked:
    """The storage is being asked whether another process has had the turn."""


Turn: TypeAlias = Request | Asked | float | None
"""Who has the turn: a request; nobody yet, but it may be taken until then; nobody."""


class Host:
    """A host whose visits are to be apart, and when the next of them may begin.

    Times are of the clock that never goes back, in seconds. It is kept small: a crawl may have
    ten thousand.
    """

    __slots__ = ("due", "first", "free", "others", "quickest", "turn", "under_way", "waiters")

    def __init__(self, state: SiteState) -> None:
        self.first = state
        self.others: tuple[SiteState, ...] = ()
        """More sites of the host: of another scheme, at another port."""
        self.free = 0.0
        """Before this no visit begins."""
        self.due = math.inf
        """When it is looked at again, which does not change while it is in a heap."""
        self.quickest = math.inf
        """How long the shortest visit took."""
        self.turn: Turn = None
        self.under_way = 0
        """Visits that have begun and not ended."""
        self.waiters: deque[tuple[Deferred[bool], Request | None]] | None = None
        """Who waits in place."""

    def __lt__(self, other: Host) -> bool:
        return self.due < other.due

    @property
    def name(self) -> str:
        """What it is called."""
        return self.first.site.host

    @property
    def states(self) -> tuple[SiteState, ...]:
        """Its sites that were met: one of them asks for a delay."""
        return (self.first, *self.others)

    @property
    def wanted(self) -> bool:
        """Whether somebody waits for its turn."""
        return bool(self.waiters) or any(state.turns for state in self.states)

    @property
    def is_ready(self) -> bool:
        """Whether its turn may be taken now."""
        return isinstance(self.turn, float) and monotonic() < self.turn

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
        self, crawler: Crawler, delays: Delays, clock: Callable[[], float], limit: int
    ) -> None:
        """*clock* tells the seconds since the epoch."""
        self._crawler = crawler
        self._own_secs = crawler.settings.getfloat("DOWNLOAD_DELAY")
        self._delays = delays
        self._clock = clock
        self._limit = limit
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
            host.join(state)
            host.free = max(host.free, self._after_robots_txt(state))
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
        return max(secs, self._own_secs) if secs else 0.0

    def is_had(self, host: Host) -> bool:
        """Whether a request has its turn, or one is about to."""
        if isinstance(host.turn, Request):
            return host.turn in under_way(self._crawler)
        return isinstance(host.turn, Asked)

    def _new(self, state: SiteState) -> Host:
        self._make_room()
        host = self._hosts[state.site.host] = Host(state)
        host.free = self._after_robots_txt(state)
        if self._is_visited(state.site):
            host.free = monotonic() + self.gap(host) + LATE_MOST_SECS
        return host

    def _is_visited(self, site: Site) -> bool:
        """Whether pages of another site of the host are under way: they needed no turn."""
        return any(
            (other := _site_of(request.url)) and other.host == site.host and other != site
            for request in under_way(self._crawler)
        )

    def _make_room(self) -> None:
        for _ in range(_EVICTED_AT_ONCE):
            if len(self._hosts) < self._limit:
                return
            name, host = next(iter(self._hosts.items()))
            del self._hosts[name]
            if host.wanted or host.under_way or host.free > monotonic() or self.is_had(host):
                self._hosts[name] = host

    def _after_robots_txt(self, state: SiteState) -> float:
        """Return when the next visit may begin: that to /robots.txt was one.

        Before that was read, others may have begun.
        """
        copy, gap = last_copy(state.known), self._delays.kept(state)
        passed = math.inf if copy is None else self._clock() - copy.fetched - LATE_MOST_SECS
        return monotonic() + min(max(gap - passed, 0.0), gap)


def _site_of(url: str) -> Site | None:
    """Return the site of *url*, None where it has none."""
    try:
        return site_of(url)
    except ValueError:  # the middleware says so to the request's errback
        return None

"""The hosts that request a delay, and when each of them may be visited next."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from scrapy_koster.crawl.clock import LONG_AGO
from scrapy_koster.protocol.access import last_copy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from scrapy import Request
    from scrapy.utils.asyncio import CallLaterResult
    from twisted.internet.defer import Deferred

    from scrapy_koster.crawl.clock import Clock, Instant
    from scrapy_koster.crawl.engine.private import Engine
    from scrapy_koster.crawl.pacing.delays import Delays
    from scrapy_koster.crawl.site_records import SiteRecords
    from scrapy_koster.crawl.states import SiteState

LATE_MOST_SECS = 0.5
"""How much later than it was sent a site may see a request, for all we know."""


@dataclass(eq=False, slots=True)
class Host:
    """A host, the delays of its sites, and its next visit."""

    name: str
    delays: dict[str, float] = field(default_factory=dict)
    """The delay of each of its sites, in seconds."""
    gap: float = 0.0
    """The seconds from one visit to the next. 0 if no site requests a delay any more."""
    next_visit: Instant = LONG_AGO
    claim: Deferred[Any] | None = None
    """The call that claims the next visit in the storage."""
    open_until: Instant = LONG_AGO
    """Until then a request may take the visit that the storage has granted, and begin it."""
    taken_by: Request | None = None
    """The request that has taken the next visit and was not sent yet. None for a robots.txt."""
    taken_until: Instant = LONG_AGO
    under_way: int = 0
    """How many requests were sent and not answered yet."""
    timer: CallLaterResult | None = None
    timer_since: Instant = LONG_AGO
    waiters: dict[Deferred[bool], Request | None] = field(default_factory=dict)
    """The requests that wait in place. None for a robots.txt."""


class Hosts:
    """The hosts that request a delay. Those that nobody waits for may leave the memory."""

    def __init__(
        self,
        clock: Clock,
        *,
        engine: Engine,
        records: SiteRecords,
        delays: Delays,
        own_secs: float,
        most: int,
        is_idle: Callable[[Host], bool],
    ) -> None:
        """*own_secs* is the DOWNLOAD_DELAY. About *most* hosts are kept in memory."""
        self._clock = clock
        self._engine = engine
        self._records = records
        self._delays = delays
        self._own_secs = own_secs
        self._most = most
        self._is_idle = is_idle
        self._hosts: dict[str, Host] = {}
        self._prune_at = most

    def __iter__(self) -> Iterator[Host]:
        return iter(self._hosts.values())

    def __contains__(self, name: str) -> bool:
        return name in self._hosts

    def get(self, name: str) -> Host | None:
        """Return the host of this name, None if it requested no delay."""
        return self._hosts.get(name)

    def of(self, state: SiteState, robot: str) -> Host | None:
        """Return the host of a site if its visits have to be apart, else None."""
        secs, site = self._delays.secs_of(state, robot), str(state.site)
        host = self._hosts.get(state.site.host)
        if host is None:
            if not secs:
                return None
            if len(self._hosts) >= self._prune_at:
                busy = {name: kept for name, kept in self._hosts.items() if not self._is_idle(kept)}
                self._hosts, self._prune_at = busy, max(self._most, 2 * len(busy))
            host = self._hosts[state.site.host] = Host(state.site.host)
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
        now, copy = self._clock.now(), last_copy(state.known)
        others = {self._records.met(request.url) for request in self._engine.under_way} - {state}
        if any(other and other.site.host == state.site.host for other in others):
            return now + max(secs, self._own_secs) + LATE_MOST_SECS
        passed = secs if copy is None else self._clock.epoch() - copy.fetched - LATE_MOST_SECS
        return now + min(max(secs - passed, 0.0), secs)

"""A host that requests a delay, and who has the lock of this process on the host."""

from collections import OrderedDict
from dataclasses import dataclass, field
from typing import TypeAlias

from scrapy import Request
from twisted.internet.defer import Deferred

from scrapy_koster.crawl.clock import LONG_AGO, Instant
from scrapy_koster.protocol.site import Site

Visitor: TypeAlias = Request | Site
"""A request for a page, or a site whose robots.txt is fetched."""
PARKED = object()
"""The visitor of a lock that is taken for the next parked request."""


@dataclass(eq=False, slots=True)
class Host:
    """A host that requests a delay, and the lock of this process on the host."""

    name: str
    rest_until: Instant
    """The end of the gap after the last visit, as far as this process knows."""
    gap: float = 0.0
    """Seconds between two visits: the longest delay in this crawl, or a longer DOWNLOAD_DELAY."""
    lock_until: Instant = LONG_AGO
    """The end of the lease. ``LONG_AGO`` without the lock."""
    visitor: object | None = None
    """The visitor with the lock, or None. ``PARKED``: the next parked request that comes out."""
    under_way: bool = False
    """Whether the visitor with the lock is being sent."""
    is_served: bool = False
    """Whether a task serves the requests that wait for the host."""
    event: Deferred[None] = field(default_factory=Deferred)
    """What the task waits for. It looks at the host again when this fires."""
    waiters: OrderedDict[Deferred[bool], Visitor] = field(default_factory=OrderedDict)
    """The visitors that wait in place, by the Deferred of the wait."""

    @property
    def is_locked(self) -> bool:
        """Whether this process has the lock, perhaps with a lease that is over."""
        return self.lock_until != LONG_AGO

    @property
    def is_in_queue(self) -> bool:
        """Whether the visitor waits to come out, or in the slot of the host: others would, too."""
        if isinstance(self.visitor, Request):
            return self.visitor.meta.get("download_slot") == self.name
        return self.visitor is PARKED

    def wake(self) -> None:
        """Have the task look at the host."""
        if not self.event.called:
            self.event.callback(None)

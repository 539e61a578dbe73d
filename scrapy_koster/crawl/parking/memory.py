"""Where requests wait for their site to open."""

from __future__ import annotations

from heapq import heappop, heappush
from itertools import count
from typing import TYPE_CHECKING

from scrapy_koster.crawl.parking.overflow import Overflow

if TYPE_CHECKING:
    from collections.abc import Iterator

    from scrapy import Request
    from scrapy.crawler import Crawler

    from scrapy_koster.crawl.parking.overflow import Place

_IN_MEMORY = 10_000


class Parking:
    """Requests by site; those of the sites that have opened come out.

    Higher priorities come first, and among equals the first that came. Memory
    is bounded: past ``in_memory`` requests the others are in a temporary file.
    """

    def __init__(self, crawler: Crawler, in_memory: int = _IN_MEMORY) -> None:
        self._in_memory = in_memory
        self._held: dict[str, list[tuple[Place, Request]]] = {}
        self._held_count = 0
        self._overflow = Overflow(crawler)
        self._numbers = count()
        self._counts: dict[str, int] = {}
        self._open: set[str] = set()
        self._next: list[tuple[Place, str]] = []

    def __len__(self) -> int:
        return sum(self._counts.values())

    def push(self, site: str, request: Request) -> int:
        """Park *request*: its *site* is not open. Return how many wait for it."""
        self._open.discard(site)
        place = (-request.priority, next(self._numbers))
        if self._held_count < self._in_memory or not self._overflow.push(site, place, request):
            heappush(self._held.setdefault(site, []), (place, request))
            self._held_count += 1
        self._counts[site] = self._counts.get(site, 0) + 1
        return self._counts[site]

    def open(self, site: str) -> None:
        """Let the requests of *site* come out."""
        if site in self._counts and site not in self._open:
            self._open.add(site)
            heappush(self._next, (self._first(site), site))

    def pop(self) -> Request | None:
        """Return the next request of a site that is open, None if there is none."""
        while self._next:
            place, site = heappop(self._next)
            if site not in self._open or self._first(site) != place:
                continue  # it was closed again since
            request = self._take(site, place)
            if site in self._counts:
                heappush(self._next, (self._first(site), site))
            return request
        return None

    def drain(self) -> Iterator[Request]:
        """Take everything out, whether its site is open or not."""
        for site in list(self._counts):
            while site in self._counts:
                yield self._take(site, self._first(site))

    def close(self) -> None:
        """Give the temporary file back."""
        self._overflow.close()

    def _first(self, site: str) -> Place:
        held = self._held.get(site)
        places = [held[0][0]] if held else []
        overflown = self._overflow.first(site)
        return min(places if overflown is None else [*places, overflown])

    def _take(self, site: str, place: Place) -> Request:
        self._counts[site] -= 1
        if not self._counts[site]:
            del self._counts[site]
            self._open.discard(site)
        held = self._held.get(site)
        if not held or held[0][0] != place:
            return self._overflow.take(site, place)
        self._held_count -= 1
        request = heappop(held)[1]
        if not held:
            del self._held[site]
        return request

"""Where requests wait for their site to open."""

from __future__ import annotations

from heapq import heappop, heappush
from itertools import count
from typing import TYPE_CHECKING

from scrapy_koster.crawl.parking.overflow import Overflow

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from scrapy import Request
    from scrapy.crawler import Crawler

    from scrapy_koster.crawl.parking.overflow import Place

_IN_MEMORY = 10_000


class _Lot:
    """Requests that wait for the same thing."""

    __slots__ = ("count", "held", "mark", "name", "opened", "site")

    def __init__(self, site: str, name: str) -> None:
        self.site = site
        self.name = name
        self.held: list[tuple[Place, Request]] = []
        self.count = 0
        """Of those in the file as well."""
        self.opened = False
        self.mark: Callable[[Request], None] | None = None
        """Called with each request that comes out."""


class Parking:
    """Requests by site; those of the sites that have opened come out.

    Higher priorities come first, and among equals the first that came. Memory
    is bounded: past ``in_memory`` requests the others are in a temporary file.
    """

    def __init__(self, crawler: Crawler, in_memory: int = _IN_MEMORY) -> None:
        self._in_memory = in_memory
        self._held_count = 0
        self._overflow = Overflow(crawler)
        self._numbers = count()
        self._sites: dict[str, _Lot] = {}
        self._lots: dict[str, _Lot] = {}
        """Those of the sites, and those that were given up and have not come out yet."""
        self._next: list[tuple[Place, str]] = []

    def __len__(self) -> int:
        return sum(lot.count for lot in self._lots.values())

    def push(self, site: str, request: Request) -> int:
        """Park *request*: its *site* is not open. Return how many wait for it."""
        lot = self._sites.get(site)
        if lot is None:
            name = str(next(self._numbers))
            lot = self._sites[site] = self._lots[name] = _Lot(site, name)
        lot.opened = False
        place = (-request.priority, next(self._numbers))
        if self._held_count < self._in_memory or not self._overflow.push(lot.name, place, request):
            heappush(lot.held, (place, request))
            self._held_count += 1
        lot.count += 1
        return lot.count

    def open(self, site: str) -> None:
        """Let the requests of *site* come out."""
        if site in self._sites:
            self._open(self._sites[site])

    def give_up(self, site: str, mark: Callable[[Request], None]) -> None:
        """Let the requests of *site* come out for good, each marked by *mark*.

        Those that are parked later wait apart from them.
        """
        if site in self._sites:
            lot = self._sites.pop(site)
            lot.mark = mark
            self._open(lot)

    def pop(self) -> Request | None:
        """Return the next request of a site that is open, None if there is none."""
        while self._next:
            place, name = heappop(self._next)
            lot = self._lots.get(name)
            if lot is None or not lot.opened or self._first(lot) != place:
                continue  # it was closed again since
            request = self._take(lot, place)
            if lot.count:
                heappush(self._next, (self._first(lot), name))
            return request
        return None

    def drain(self) -> Iterator[Request]:
        """Take everything out, whether its site is open or not."""
        for lot in list(self._lots.values()):
            while lot.count:
                yield self._take(lot, self._first(lot))

    def close(self) -> None:
        """Give the temporary file back."""
        self._overflow.close()

    def _open(self, lot: _Lot) -> None:
        if not lot.opened:
            lot.opened = True
            heappush(self._next, (self._first(lot), lot.name))

    def _first(self, lot: _Lot) -> Place:
        places = [lot.held[0][0]] if lot.held else []
        overflown = self._overflow.first(lot.name)
        return min(places if overflown is None else [*places, overflown])

    def _take(self, lot: _Lot, place: Place) -> Request:
        lot.count -= 1
        if not lot.count:
            del self._lots[lot.name]
            if self._sites.get(lot.site) is lot:
                del self._sites[lot.site]
        if lot.held and lot.held[0][0] == place:
            self._held_count -= 1
            request = heappop(lot.held)[1]
        else:
            request = self._overflow.take(lot.name, place)
        if lot.mark is not None:
            lot.mark(request)
        return request

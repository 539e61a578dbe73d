"""Where requests wait for their site to open."""

from __future__ import annotations

import sqlite3
from collections import Counter
from heapq import heappop, heappush
from itertools import count
from typing import TYPE_CHECKING

from scrapy_koster.crawl.log import Log
from scrapy_koster.crawl.parking.file import ParkedFile

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from scrapy import Request
    from scrapy.crawler import Crawler

    from scrapy_koster.crawl.parking.file import Place
    from scrapy_koster.crawl.parking.journal import Journal

_IN_MEMORY = 10_000


class _Lot:
    """Requests that wait for the same thing."""

    __slots__ = ("count", "held", "mark", "name", "opened", "site")

    def __init__(self, site: str, name: str) -> None:
        self.site = site
        self.name = name
        self.held: list[tuple[Place, Request]] = []
        self.count = 0
        """Of those that are in the file alone as well."""
        self.opened = False
        self.mark: Callable[[Request], None] | None = None
        """Called with each request that comes out."""


class Parking:
    """Requests by site; those of the sites that have opened come out.

    Higher priorities come first, and among equals the first that came. Memory
    is bounded: past ``in_memory`` requests the others are in a temporary file.
    With *folder* (the JOBDIR) all of them are in a file that lasts, and are
    there for the next run, however this one ends.
    """

    def __init__(
        self, crawler: Crawler, in_memory: int = _IN_MEMORY, folder: Path | None = None
    ) -> None:
        self._log = Log(__name__, crawler)
        self._in_memory = in_memory if folder is None else 0
        self._held_count = 0
        self._count = 0
        self._file = ParkedFile(crawler, folder)
        self._numbers = count()
        self._sites: dict[str, _Lot] = {}
        self._lots: dict[str, _Lot] = {}
        """Those of the sites, and those that were given up and have not come out yet; by name."""
        self._next: list[tuple[Place, str]] = []
        self.journal: Journal | None = None  # what waits here is in it as well

    def __len__(self) -> int:
        return self._count

    @property
    def has_next(self) -> bool:
        """Whether requests may come out."""
        return bool(self._next)

    def waiting_for(self, site: str) -> int:
        """Return how many requests wait for *site*."""
        return self._sites[site].count if site in self._sites else 0

    def by_site(self) -> Counter[str]:
        """Return how many requests wait for each site."""
        sites: Counter[str] = Counter()
        for lot in self._lots.values():
            sites[lot.site] += lot.count
        return sites

    def take_back(self, mark: Callable[[Request], None]) -> int:
        """Park again what the last run has left in the file; return how many these are.

        *mark* is given each of them. Their sites are closed.
        """
        counts, highest = self._file.take_back(mark)
        self._numbers = count(highest + 1)
        for site, waiting in counts.items():
            self._new_lot(site).count = waiting
        self._count = counts.total()
        return self._count

    def push(self, site: str, request: Request) -> int:
        """Park *request*: its *site* is not open. Return how many wait for it."""
        lot = self._sites.get(site) or self._new_lot(site)
        lot.opened = False
        place = (-request.priority, next(self._numbers))
        if self._held_count < self._in_memory or not self._file.write(lot.name, place, request):
            heappush(lot.held, (place, request))
            self._held_count += 1
        if self.journal is not None:
            self.journal.parked(place, request)
        lot.count += 1
        self._count += 1
        return lot.count

    def open(self, site: str) -> None:
        """Let the requests of *site* come out."""
        if site in self._sites:
            self._open(self._sites[site])

    def give_up(self, site: str, mark: Callable[[Request], None]) -> int:
        """Let the requests of *site* come out for good, each marked by *mark*; return 0.

        Those that are parked later wait apart from them.
        """
        if (lot := self._sites.pop(site, None)) is not None:
            lot.mark = mark
            self._open(lot)
        return 0

    def give_up_unwritten(self, site: str, mark: Callable[[Request], None]) -> int:
        """Give up those of *site* that are not in a file that lasts; return how many wait still."""
        lot = self._sites.get(site)
        if lot is not None and lot.held and self._file.lasts:
            apart = self._new_lot(site)
            apart.held = sorted(self._unwritten(lot))
            apart.count, apart.mark = len(apart.held), mark
            self._held_count -= len(lot.held) - apart.count
            self._sites[site], lot.held = lot, []
            self._count += apart.count
            self._uncount(lot, apart.count)
            self._open(apart)
        return self.waiting_for(site)

    def pop(self) -> Request | None:
        """Return the next request of a site that is open, None if there is none."""
        while self._next:
            place, name = heappop(self._next)
            lot = self._lots.get(name)
            if lot is None or not lot.opened or self._first(lot) != place:
                continue  # it was closed again since
            request = self._take(lot, place)
            self._come_next(lot)
            if request is not None:
                return request
        return None

    def drain(self) -> Iterator[Request]:
        """Take everything out that does not stay in a file that lasts."""
        for lot in list(self._lots.values()):
            if self._file.lasts:
                yield from (request for _, request in self._unwritten(lot))
                continue
            while (place := self._first(lot)) is not None:
                if (request := self._take(lot, place)) is not None:
                    yield request

    def _unwritten(self, lot: _Lot) -> Iterator[tuple[Place, Request]]:
        # Where the disk was full it may have room by now.
        return (held for held in lot.held if not self._file.write(lot.name, *held))

    def close(self) -> None:
        """Close the file. One that does not last is gone."""
        self._sites.clear()  # an answer that comes yet lets nothing out
        self._file.close()

    def _new_lot(self, site: str) -> _Lot:
        name = site if site not in self._lots else f"{site} {next(self._numbers)}"
        lot = self._sites[site] = self._lots[name] = _Lot(site, name)
        return lot

    def _open(self, lot: _Lot) -> None:
        if not lot.opened:
            lot.opened = True
            self._come_next(lot)

    def _come_next(self, lot: _Lot) -> None:
        if (place := self._first(lot)) is not None:
            heappush(self._next, (place, lot.name))

    def _first(self, lot: _Lot) -> Place | None:
        places = [place for place, _ in lot.held[:1]]
        try:
            overflown = self._file.first(lot.name)
        except sqlite3.Error as error:
            overflown = None
            self._lose_file(lot, error)
        return min(places if overflown is None else [*places, overflown], default=None)

    def _take(self, lot: _Lot, place: Place) -> Request | None:
        request: Request | None
        if lot.held and lot.held[0][0] == place:
            request = heappop(lot.held)[1]
            self._held_count -= 1
        else:
            request = self._from_file(lot, place)
        self._uncount(lot, 1)
        if self.journal is not None and not self.journal.taken(place):
            return None  # another worker has it
        if lot.mark is not None and request is not None:
            lot.mark(request)
        return request

    def _from_file(self, lot: _Lot, place: Place) -> Request | None:
        try:
            return self._file.read(lot.name, place)
        except Exception as error:  # noqa: BLE001  # it could be read when it was written
            self._say_lost(lot, 1, error)
            return None
        finally:
            self._file.remove(lot.name, place)

    def _uncount(self, lot: _Lot, requests: int) -> None:
        lot.count -= requests
        self._count -= requests
        if not lot.count:
            del self._lots[lot.name]
            if self._sites.get(lot.site) is lot:
                del self._sites[lot.site]

    def _lose_file(self, lot: _Lot, error: Exception) -> None:
        self._file.forget(lot.name)
        if lost := lot.count - len(lot.held):
            self._say_lost(lot, lost, error)
            self._uncount(lot, lost)
        if lot.opened and lot.held:
            heappush(self._next, (lot.held[0][0], lot.name))

    def _say_lost(self, lot: _Lot, requests: int, error: Exception) -> None:
        self._log.defect(
            "Requests that waited for %(site)s cannot be read back from their file, and are lost:"
            " %(requests)d",
            error,
            site=lot.site,
            requests=requests,
        )

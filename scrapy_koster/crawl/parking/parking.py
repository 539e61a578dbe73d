"""Where requests wait for their site to open."""

from __future__ import annotations

import sqlite3
from heapq import heappop, heappush
from itertools import count
from typing import TYPE_CHECKING

from scrapy_koster.crawl.messages.log import Log
from scrapy_koster.crawl.parking.file import ParkedFile
from scrapy_koster.crawl.parking.journal import NoJournal
from scrapy_koster.crawl.parking.lots import Lots

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from scrapy import Request
    from scrapy.crawler import Crawler

    from scrapy_koster.crawl.parking.file import Place
    from scrapy_koster.crawl.parking.journal import Journal
    from scrapy_koster.crawl.parking.lots import Lot

_IN_MEMORY = 10_000


class Parking:
    """Requests by site; those of the sites that have opened come out.

    Higher priorities come first, and among equals the first that came. Memory
    is bounded: past ``in_memory`` requests the others are in a temporary file.
    With *folder* (the JOBDIR) all of them are in a file that lasts, and are
    there for the next run, however this one ends.
    """

    def __init__(
        self,
        crawler: Crawler,
        in_memory: int = _IN_MEMORY,
        folder: Path | None = None,
        file: type[ParkedFile] = ParkedFile,
    ) -> None:
        self._log = Log(__name__, crawler)
        self._in_memory = in_memory if folder is None else 0
        self._held_count = 0
        self._count = 0
        self._file = file(crawler, folder)
        self._numbers = count()
        self._lots = Lots()
        self.by_site = self._lots.by_site
        self.ready: list[tuple[Place, str]] = []
        """The next request of each site that is open: a heap. Some may be closed again. An
        attribute, and public: it is looked at for each request.
        """
        self._journal: Journal | NoJournal = NoJournal()

    def __len__(self) -> int:
        return self._count

    @property
    def has_next(self) -> bool:
        """Whether requests may come out."""
        return bool(self.ready) and not self.is_held

    @property
    def is_held(self) -> bool:
        """Whether nothing may come out: it is not known what another worker has taken over."""
        return self._journal.is_holding

    def waiting_for(self, site: str) -> int:
        """Return how many requests wait for *site*."""
        return sum(lot.count for lot in self._lots.of(site) if not lot.opened)

    def waiting_for_turn(self, site: str) -> int:
        """Return how many of these wait for no more than the turn of its host."""
        lot = self._lots.of_turns(site)
        return 0 if lot is None or lot.opened else lot.count

    def begin(self, journal: Journal | NoJournal, mark: Callable[[Request], None]) -> int:
        """Begin: park again what the last run has left in the file; return how many these are.

        *mark* is given each of them. Their sites are closed. What waits here from now on is in
        the *journal* as well.
        """
        self._journal = journal
        counts, highest = self._file.take_back(mark)
        self._numbers = count(highest + 1)
        for site, waiting in counts.items():
            self._lots.lot(site).count = waiting
        self._count = counts.total()
        return self._count

    def push(
        self, site: str, request: Request, *, for_turn: bool = False, for_long: bool = False
    ) -> None:
        """Park *request*: its *site* is not open.

        With *for_turn* the site is known, and it waits for the turn of its host; with *for_long*
        it is known to fail.
        """
        lot = self._lots.lot(site, for_turn=for_turn)
        lot.opened = False
        place = (-request.priority, next(self._numbers))
        if self._held_count < self._in_memory or not self._file.write(lot.name, place, request):
            heappush(lot.held, (place, request))
            self._held_count += 1
        self._journal.parked(place, request, for_long=for_long)
        lot.count += 1
        self._count += 1

    def open(self, site: str, *, turns: bool = True) -> None:
        """Let the requests of *site* come out; with *turns* also those who wait for no more."""
        for lot in self._lots.of(site):
            if turns or lot.key == site:
                self._open(lot)

    def give_up(self, site: str, mark: Callable[[Request], None]) -> None:
        """Let the requests of *site* come out for good, each marked by *mark*.

        Those that are parked later wait apart from them.
        """
        for lot in self._lots.of(site):
            self._lots.put_apart(lot)
            lot.mark = mark
            self._open(lot)

    def give_up_unwritten(self, site: str, mark: Callable[[Request], None]) -> None:
        """Give up those of *site* that are not in a file that lasts."""
        for lot in self._lots.of(site):
            if lot.held and self._file.lasts:
                self._give_up_unwritten(lot, mark)

    def _give_up_unwritten(self, lot: Lot, mark: Callable[[Request], None]) -> None:
        apart = self._lots.new(lot.site, lot.key)
        apart.held = sorted(self._unwritten(lot))
        apart.count, apart.mark = len(apart.held), mark
        self._held_count -= len(lot.held) - apart.count
        self._lots.put_back(lot)
        lot.held = []
        self._count += apart.count
        self._uncount(lot, apart.count)
        self._open(apart)

    def pop(self) -> Request | None:
        """Return the next request of a site that is open, None if there is none."""
        while self.ready and not self.is_held:
            place, name = heappop(self.ready)
            lot = self._lots.by_name.get(name)
            if lot is None or not lot.opened or self._first(lot) != place:
                continue  # it was closed again since
            request = self._take(lot, place)
            self._come_next(lot)
            if request is not None:
                return request
        return None

    def take(self, site: str) -> Request | None:
        """Return the next request that waits for a turn of *site*, None if there is none."""
        while not self.is_held:
            lot = self._lots.of_turns(site)
            place = None if lot is None else self._first(lot)
            if lot is None or place is None:
                break
            if (request := self._take(lot, place)) is not None:
                return request
        return None

    def drain(self) -> Iterator[Request]:
        """Take everything out that does not stay in a file that lasts."""
        for lot in self._lots:
            if self._file.lasts:
                yield from (request for _, request in self._unwritten(lot))
                continue
            yield from (request for _, request in self._all_of(lot))

    def drain_places(self) -> Iterator[tuple[Place, Request]]:
        """Take everything out, with its place; the journal is not told."""
        for lot in self._lots:
            yield from self._all_of(lot)

    def _all_of(self, lot: Lot) -> Iterator[tuple[Place, Request]]:
        while (place := self._first(lot)) is not None:
            if (request := self._out(lot, place)) is not None:
                yield place, request

    def _unwritten(self, lot: Lot) -> Iterator[tuple[Place, Request]]:
        # Where the disk was full it may have room by now.
        return (held for held in lot.held if not self._file.write(lot.name, *held))

    def close(self) -> None:
        """Close the file. One that does not last is gone."""
        self._lots.clear()  # an answer that comes yet lets nothing out
        self._file.close()

    def _open(self, lot: Lot) -> None:
        if not lot.opened:
            lot.opened = True
            self._come_next(lot)

    def _come_next(self, lot: Lot) -> None:
        if (place := self._first(lot)) is not None:
            heappush(self.ready, (place, lot.name))

    def _first(self, lot: Lot) -> Place | None:
        places = [place for place, _ in lot.held[:1]]
        try:
            overflown = self._file.first(lot.name)
        except sqlite3.Error as error:
            overflown = None
            self._lose_file(lot, error)
        return min(places if overflown is None else [*places, overflown], default=None)

    def _take(self, lot: Lot, place: Place) -> Request | None:
        """Take out the request at *place*; None if it is another worker's, or is held."""
        is_own = self._journal.taken(place)
        if is_own is None:
            return None
        request = self._out(lot, place)
        if not is_own:
            return None
        if lot.mark is not None and request is not None:
            lot.mark(request)
        return request

    def _out(self, lot: Lot, place: Place) -> Request | None:
        request: Request | None
        if lot.held and lot.held[0][0] == place:
            request = heappop(lot.held)[1]
            self._held_count -= 1
        else:
            request = self._from_file(lot, place)
        self._uncount(lot, 1)
        return request

    def _from_file(self, lot: Lot, place: Place) -> Request | None:
        try:
            return self._file.read(lot.name, place)
        except Exception as error:  # noqa: BLE001  # it could be read when it was written
            _say_lost(self._log, lot, 1, error)
            return None
        finally:
            self._file.remove(lot.name, place)

    def _uncount(self, lot: Lot, requests: int) -> None:
        lot.count -= requests
        self._count -= requests
        if not lot.count:
            self._lots.remove(lot)

    def _lose_file(self, lot: Lot, error: Exception) -> None:
        self._file.forget(lot.name)
        if lost := lot.count - len(lot.held):
            _say_lost(self._log, lot, lost, error)
            self._uncount(lot, lost)
        if lot.opened and lot.held:
            heappush(self.ready, (lot.held[0][0], lot.name))


def _say_lost(log: Log, lot: Lot, requests: int, error: Exception) -> None:
    log.defect(
        "Requests that waited for %(site)s cannot be read back from their file, and are lost:"
        " %(requests)d",
        error,
        site=lot.site,
        requests=requests,
    )

"""Where requests wait for their site to open."""

from __future__ import annotations

import logging
import pickle
import sqlite3
from heapq import heappop, heappush
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from scrapy.utils.request import request_from_dict

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import TypeAlias

    from scrapy import Request
    from scrapy.crawler import Crawler

    Place: TypeAlias = tuple[int, int]
    """What sorts first goes first: the priority, then the order of arrival."""

logger = logging.getLogger(__name__)

_IN_MEMORY = 10_000

_SCHEMA = (
    "PRAGMA locking_mode = EXCLUSIVE",
    "PRAGMA journal_mode = MEMORY",
    "PRAGMA synchronous = OFF",
    """
    CREATE TABLE parked (
        site TEXT, priority INT, number INT, request BLOB, PRIMARY KEY (site, priority, number)
    ) WITHOUT ROWID
    """,
)
_SELECT = "SELECT request FROM parked WHERE site = ? AND priority = ? AND number = ?"
_DELETE = "DELETE FROM parked WHERE site = ? AND priority = ? AND number = ?"


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


class Overflow:
    """Requests in a temporary file, which nobody else can name or open.

    They are pickled, as Scrapy's own disk queues do: they come from this
    process and go back to it. A file of its own, and not one of SQLite's
    temporary ones: of those nothing can be read any more once the disk is full.
    """

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._connection: sqlite3.Connection | None = None
        self._counts: dict[str, int] = {}
        self._warned = False

    def push(self, site: str, place: Place, request: Request) -> bool:
        """Write *request*; False if it cannot be written (a lambda as callback, a full disk)."""
        try:
            data = pickle.dumps(request.to_dict(spider=self._crawler.spider))
            self._opened().execute("INSERT INTO parked VALUES (?, ?, ?, ?)", (site, *place, data))
        except (pickle.PicklingError, AttributeError, TypeError, ValueError):
            return False
        except (sqlite3.Error, OSError) as error:
            self._warn(error)
            return False
        self._counts[site] = self._counts.get(site, 0) + 1
        return True

    def first(self, site: str) -> Place | None:
        """Return the first place of *site*."""
        if site not in self._counts:
            return None
        place: Place = (
            self._opened()
            .execute(
                "SELECT priority, number FROM parked WHERE site = ? ORDER BY 1, 2 LIMIT 1", (site,)
            )
            .fetchone()
        )
        return place

    def take(self, site: str, place: Place) -> Request:
        """Take the request at *place* out."""
        at = (site, *place)
        (data,) = self._opened().execute(_SELECT, at).fetchone()
        self._opened().execute(_DELETE, at)
        self._counts[site] -= 1
        if not self._counts[site]:
            del self._counts[site]
        fields = pickle.loads(data)  # noqa: S301  # what push() wrote, where nobody else can
        return request_from_dict(fields, spider=self._crawler.spider)

    def close(self) -> None:
        """Delete the file."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _opened(self) -> sqlite3.Connection:
        if self._connection is None:
            # Where an open file can be deleted it is, at once; elsewhere when the folder can be.
            with TemporaryDirectory(prefix="koster-", ignore_cleanup_errors=True) as folder:
                self._connection = _created(Path(folder) / "parked.sqlite3")
        return self._connection

    def _warn(self, error: Exception) -> None:
        if not self._warned:
            self._warned = True
            logger.warning(
                "Requests that wait for their site are all kept in memory: the temporary file for"
                " them cannot be written (%(error)s). Give the folder for temporary files (TMPDIR)"
                " more room",
                {"error": error},
                extra={"spider": self._crawler.spider},
            )


def _created(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        for statement in _SCHEMA:
            connection.execute(statement)
    except sqlite3.Error:
        connection.close()
        raise
    return connection

"""Parked requests in a file: those that memory has no room for, or that outlive the crawl."""

from __future__ import annotations

import pickle
import sqlite3
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from scrapy.utils.request import request_from_dict

from scrapy_koster.crawl.messages.log import Log
from scrapy_koster.crawl.parking.likeness import is_as_good

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import TypeAlias

    from scrapy import Request
    from scrapy.crawler import Crawler

    Place: TypeAlias = tuple[int, int]
    """What sorts first goes first: the priority, then the order of arrival."""

_NAME = "koster-parked.sqlite3"
_VERSION = 1
_TEMPORARY = (
    "PRAGMA locking_mode = EXCLUSIVE",
    "PRAGMA journal_mode = MEMORY",
    "PRAGMA synchronous = OFF",
)
# What has been written survives the process, though not the machine.
_LASTING = (
    "PRAGMA locking_mode = EXCLUSIVE",
    "PRAGMA journal_mode = WAL",
    "PRAGMA synchronous = NORMAL",
)
_TABLE = """
    CREATE TABLE IF NOT EXISTS parked (
        lot TEXT, priority INT, number INT, request BLOB, PRIMARY KEY (lot, priority, number)
    ) WITHOUT ROWID
    """
_FIRST = "SELECT priority, number FROM parked WHERE lot = ? ORDER BY 1, 2 LIMIT 1"
_NEXT = """
    SELECT priority, number FROM parked WHERE lot = ? AND (priority, number) > (?, ?)
    ORDER BY 1, 2 LIMIT 1
    """
_INSERT = "INSERT INTO parked VALUES (?, ?, ?, ?)"
_SELECT = "SELECT request FROM parked WHERE lot = ? AND priority = ? AND number = ?"
_DELETE = "DELETE FROM parked WHERE lot = ? AND priority = ? AND number = ?"
_RENAME = "UPDATE parked SET lot = ? WHERE lot = ?"
_SET_ASIDE = "UPDATE parked SET lot = ? WHERE lot = ? AND priority = ? AND number = ?"


def site_of_lot(lot: str) -> str:
    """Return the site of a lot: what follows in its name tells apart the lots of one site."""
    return lot.partition(" ")[0]


class ParkedFile:
    """Requests in an SQLite file: in the JOBDIR, or a temporary one that nobody else can open.

    They are pickled, as Scrapy's own disk queues do: they come from this crawl
    and go back to it. What would not come back as it went is not taken: what
    cannot be pickled and read again, and, where the file is temporary, what
    carries objects that may be shared.
    """

    def __init__(self, crawler: Crawler, folder: Path | None = None) -> None:
        """*folder* is where the file stays when the crawl ends; None: it is temporary."""
        self._crawler = crawler
        self._log = Log(__name__, crawler)
        self._path = None if folder is None else folder / _NAME
        self._connection: sqlite3.Connection | None = None
        self._rows: Counter[str] = Counter()
        self._removed: set[tuple[str, Place]] = set()
        """What could not be deleted yet: the disk is full."""
        self._last: dict[str, Place] = {}
        """The last place of each lot that was removed."""
        self._warned = False

    @property
    def lasts(self) -> bool:
        """Whether what is in the file is there for the next run."""
        return self._path is not None

    def take_back(self, mark: Callable[[Request], None]) -> tuple[Counter[str], int]:
        """Return how many requests of each lot the last run has left, and their highest number.

        *mark* is given each of them.
        """
        if self._path is None or not self._path.exists():
            return Counter(), 0
        try:
            return self._taken_back(self._opened(), mark)
        except (sqlite3.Error, OSError) as error:
            self._log.warning(
                "%(path)s has requests that waited when the last run ended, and cannot be read:"
                " %(error)s. In this run requests wait in memory. Repair the file, or delete it to"
                " drop these requests",
                path=self._path,
                error=error,
            )
            self._close()
            self._path = None
            return Counter(), 0

    def write(self, lot: str, place: Place, request: Request) -> bool:
        """Write *request*; False if that is not possible, or it would not come back as it went."""
        data = self._pickled(request)
        if data is None:
            return False
        try:
            self._opened().execute(_INSERT, (lot, *place, data))
        except OverflowError:  # a priority of more than 64 bits
            return False
        except (sqlite3.Error, OSError) as error:
            self._warn(error)
            return False
        self._rows[lot] += 1
        return True

    def first(self, lot: str) -> Place | None:
        """Return the first place of *lot*. sqlite3.Error if the file cannot be read."""
        if self._rows[lot] <= 0:
            return None
        after: Place | None = None
        place: Place | None = self._opened().execute(_FIRST, (lot,)).fetchone()
        while place is not None and (lot, place) in self._removed:
            after = max(place, self._last[lot]) if after is None else place
            place = self._opened().execute(_NEXT, (lot, *after)).fetchone()
        return place

    def read(self, lot: str, place: Place) -> Request:
        """Return the request at *place*. It may raise anything."""
        (data,) = self._opened().execute(_SELECT, (lot, *place)).fetchone()
        return self._unpickled(data)

    def remove(self, lot: str, place: Place) -> None:
        """Delete the request at *place*, which has been taken out."""
        self._rows[lot] -= 1
        self._last[lot] = max(place, self._last.get(lot, place))
        if not self._rows[lot]:
            del self._rows[lot], self._last[lot]
        self._removed.add((lot, place))
        self._delete_removed()

    def forget(self, lot: str) -> None:
        """Leave what is in *lot* alone: it cannot be read."""
        del self._rows[lot]

    def close(self) -> None:
        """Close the file, and delete it if nothing is in it."""
        if self._connection is None:
            return
        self._delete_removed()
        try:
            is_empty = self._connection.execute("SELECT 1 FROM parked").fetchone() is None
        except sqlite3.Error:
            is_empty = False
        self._close()
        if is_empty and self._path is not None:
            self._path.unlink(missing_ok=True)

    def _pickled(self, request: Request) -> bytes | None:
        try:
            data = pickle.dumps(request.to_dict(spider=self._crawler.spider))
            back = self._unpickled(data)
            return data if self.lasts or is_as_good(back, request) else None
        except Exception:  # noqa: BLE001  # what a request carries may be anybody's
            return None

    def _unpickled(self, data: bytes) -> Request:
        fields = pickle.loads(data)  # noqa: S301  # what write() wrote, as Scrapy in its JOBDIR
        return request_from_dict(fields, spider=self._crawler.spider)

    def _delete_removed(self) -> None:
        try:
            while self._removed:
                lot, place = self._removed.pop()
                self._removed.add((lot, place))
                self._opened().execute(_DELETE, (lot, *place))
                self._removed.discard((lot, place))
        except (sqlite3.Error, OSError) as error:
            self._warn(error)

    def _taken_back(
        self, connection: sqlite3.Connection, mark: Callable[[Request], None]
    ) -> tuple[Counter[str], int]:
        connection.execute("BEGIN")
        for (lot,) in connection.execute("SELECT DISTINCT lot FROM parked").fetchall():
            connection.execute(_RENAME, (site_of_lot(lot), lot))
        rows = connection.execute("SELECT lot, priority, number FROM parked").fetchall()
        unreadable = [row for row in rows if not self._is_marked(row, mark)]
        for lot, *place in unreadable:
            connection.execute(_SET_ASIDE, (f"{lot} unreadable", lot, *place))
            self._rows[lot] -= 1
        connection.execute("COMMIT")
        if unreadable:
            self._log.warning(
                "Requests in %(path)s that cannot be loaded: %(count)d. This spider does not have"
                " their callbacks or classes. They stay in the file: to crawl them, run a version"
                " of the spider that has these",
                path=self._path,
                count=len(unreadable),
            )
        return +self._rows, max((number for *_, number in rows), default=0)

    def _is_marked(self, row: tuple[str, int, int], mark: Callable[[Request], None]) -> bool:
        lot, *place = row
        self._rows[lot] += 1
        try:
            request = self.read(lot, (place[0], place[1]))
        except sqlite3.Error:
            raise
        except Exception:  # noqa: BLE001  # the code that wrote it may have changed since
            return False
        mark(request)
        return True

    def _opened(self) -> sqlite3.Connection:
        if self._connection is None:
            if self._path is not None:
                self._connection = _connected(self._path, _LASTING)
            else:
                # Where an open file can be deleted it is, at once; elsewhere when it is closed.
                with TemporaryDirectory(prefix="koster-", ignore_cleanup_errors=True) as folder:
                    self._connection = _connected(Path(folder) / _NAME, _TEMPORARY)
        return self._connection

    def _close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _warn(self, error: Exception) -> None:
        if self._warned:
            return
        self._warned = True
        if self._path is not None:
            self._log.warning(
                "%(path)s cannot be written (%(error)s). Waiting requests are kept in memory only,"
                " and lost if this process is killed. The next run may crawl pages of this run"
                " again. Give the JOBDIR more room",
                path=self._path,
                error=error,
            )
        else:
            self._log.warning(
                "All waiting requests are kept in memory: their temporary file cannot be written"
                " (%(error)s). Give the folder for temporary files (TMPDIR) more room",
                error=error,
            )


def _connected(path: Path, pragmas: Iterable[str]) -> sqlite3.Connection:
    # Another process that has it keeps it: nobody is to wait for that.
    connection = sqlite3.connect(path, timeout=0, isolation_level=None)
    try:
        for statement in pragmas:
            connection.execute(statement)
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if version not in (0, _VERSION):
            raise sqlite3.DatabaseError(f"a later version of scrapy-koster wrote it ({version})")
        connection.execute(_TABLE)
        connection.execute(f"PRAGMA user_version = {_VERSION}")
    except sqlite3.Error:
        connection.close()
        raise
    return connection

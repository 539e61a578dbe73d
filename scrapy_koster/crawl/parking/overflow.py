"""The temporary file for the requests that memory has no room for."""

from __future__ import annotations

import pickle
import sqlite3
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from scrapy.utils.request import request_from_dict

from scrapy_koster.crawl.log import Log

if TYPE_CHECKING:
    from typing import TypeAlias

    from scrapy import Request
    from scrapy.crawler import Crawler

    Place: TypeAlias = tuple[int, int]
    """What sorts first goes first: the priority, then the order of arrival."""

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


class Overflow:
    """Requests in a temporary file, which nobody else can name or open.

    They are pickled, as Scrapy's own disk queues do: they come from this
    process and go back to it. A file of its own, and not one of SQLite's
    temporary ones: of those nothing can be read any more once the disk is full.
    """

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._log = Log(__name__, crawler)
        self._connection: sqlite3.Connection | None = None
        self._counts: dict[str, int] = {}
        self._warned = False

    def push(self, site: str, place: Place, request: Request) -> bool:
        """Write *request*; False if it cannot be written (a lambda as callback, a full disk)."""
        try:
            data = pickle.dumps(request.to_dict(spider=self._crawler.spider))
        except Exception:  # noqa: BLE001  # what a request carries may be anybody's
            return False
        try:
            self._opened().execute("INSERT INTO parked VALUES (?, ?, ?, ?)", (site, *place, data))
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
            self._log.warning(
                "Requests that wait for their site are all kept in memory: the temporary file for"
                " them cannot be written (%(error)s). Give the folder for temporary files (TMPDIR)"
                " more room",
                error=error,
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

"""Parked requests in an SQLite file, if there are too many for memory or if a JOBDIR keeps them."""

from __future__ import annotations

import pickle
import sqlite3
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from scrapy.utils.request import request_from_dict

from scrapy_koster.crawl.messages.log import Log

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import TypeAlias

    from scrapy import Request
    from scrapy.crawler import Crawler

    Place: TypeAlias = tuple[int, int]
    """The priority and the number of a request in its queue. The lowest is the next."""

NAME = "koster-parked.sqlite3"
_TEMPORARY = (
    "PRAGMA locking_mode = EXCLUSIVE",
    "PRAGMA journal_mode = MEMORY",
    "PRAGMA synchronous = OFF",
)
# A written request survives the process, though not the machine.
_LASTING = (
    "PRAGMA locking_mode = EXCLUSIVE",
    "PRAGMA journal_mode = WAL",
    "PRAGMA synchronous = NORMAL",
)
_TABLE = """
    CREATE TABLE IF NOT EXISTS parked (
        queue TEXT, priority INT, number INT, request BLOB, fingerprint BLOB,
        PRIMARY KEY (queue, priority, number)
    ) WITHOUT ROWID
    """
_INSERT = "INSERT INTO parked VALUES (?, ?, ?, ?, ?)"
_NEXT = """
    SELECT priority, number, request FROM parked WHERE queue = ? AND (priority, number) > (?, ?)
    ORDER BY 1, 2 LIMIT 100
    """
_DELETE = "DELETE FROM parked WHERE queue = ? AND priority = ? AND number = ?"
_RENAME = "UPDATE parked SET queue = ? WHERE queue = ?"


class ParkedFile:
    """Requests in an SQLite file: in the JOBDIR, or in a temporary file.

    They are pickled as in the disk queues of Scrapy. A temporary file takes only requests of
    Scrapy's own classes, since an attribute that a subclass adds would not come back.

    The fingerprint of a request is stored with it: a process that is killed may not have written
    it to the ``requests.seen`` of Scrapy, and the next run would fetch the page twice.
    """

    def __init__(self, crawler: Crawler, folder: Path | None = None) -> None:
        """*folder* is where the file stays when the crawl ends; None for a temporary file."""
        self._crawler = crawler
        self._log = Log(__name__, crawler)
        self._path = None if folder is None else folder / NAME
        self._connection: sqlite3.Connection | None = None
        self.fingerprints: frozenset[bytes] = frozenset()
        """The fingerprints of the requests that the last run has left."""
        self.number = 0
        """The highest number of these requests."""
        self._has_warned = False

    @property
    def lasts(self) -> bool:
        """Whether the next run finds the requests in the file."""
        return self._path is not None

    def resume(self) -> Counter[str]:
        """Return how many requests the last run has left, by the key of their queue."""
        counts: Counter[str] = Counter()
        if self._path is None or not self._path.exists():
            return counts
        try:
            connection = self._opened()
            connection.execute("BEGIN")
            queues = "SELECT queue, count(*) FROM parked GROUP BY 1"
            for queue, count in connection.execute(queues).fetchall():
                counts[key_of(queue)] += count
                connection.execute(_RENAME, (key_of(queue), queue))
            connection.execute("COMMIT")
            rows = connection.execute("SELECT number, fingerprint FROM parked").fetchall()
        except (sqlite3.Error, OSError) as error:
            self._log.warning(
                "%(path)s has requests that waited when the last run ended, and cannot be read:"
                " %(error)s. In this run requests wait in memory. Repair the file, or delete it to"
                " drop these requests",
                path=self._path,
                error=error,
            )
            self._disconnect()
            self._path = None
            return Counter()
        self.number = max((number for number, _ in rows), default=0)
        self.fingerprints = frozenset(fingerprint for _, fingerprint in rows)
        return counts

    def write(self, queue: str, place: Place, request: Request) -> bool:
        """Write *request*; return False if it has to wait in memory."""
        try:
            row = self._row(request)
        except Exception:  # noqa: BLE001  # a request may carry objects of any class
            return False
        if row is None:
            return False
        try:
            self._opened().execute(_INSERT, (queue, *place, *row))
        except OverflowError:  # a priority of more than 64 bits
            return False
        except (sqlite3.Error, OSError) as error:
            self._warn(error)
            return False
        return True

    def _row(self, request: Request) -> tuple[bytes, bytes] | None:
        if not self.lasts and not type(request).__module__.startswith("scrapy."):
            return None
        data = pickle.dumps(request.to_dict(spider=self._crawler.spider), protocol=4)
        return data, self.fingerprint(request) if self.lasts else b""

    def fingerprint(self, request: Request) -> bytes:
        """Return the fingerprint by which the dupefilter knows *request*."""
        fingerprinter = self._crawler.request_fingerprinter
        assert fingerprinter is not None  # a crawl has one
        return fingerprinter.fingerprint(request)

    def read(self, queue: str, after: Place) -> list[tuple[Place, Request | Exception]]:
        """Return the next requests of *queue*, with the error of each that cannot be loaded.

        Raises sqlite3.Error if the file cannot be read.
        """
        rows = self._opened().execute(_NEXT, (queue, *after)).fetchall()
        return [((priority, number), self._loaded(data)) for priority, number, data in rows]

    def _loaded(self, data: bytes) -> Request | Exception:
        try:
            fields = pickle.loads(data)  # noqa: S301  # written by write(), as Scrapy in its JOBDIR
            return request_from_dict(fields, spider=self._crawler.spider)
        except Exception as error:  # noqa: BLE001  # the code that wrote it may have changed since
            return error

    def remove(self, queue: str, place: Place) -> None:
        """Delete the request at *place*, which has come out."""
        try:
            self._opened().execute(_DELETE, (queue, *place))
        except (sqlite3.Error, OSError) as error:
            self._warn(error)

    def lost(self, queue: str, count: int, error: Exception) -> None:
        """Log that *count* requests of *queue* cannot be read."""
        if self._path is not None and not isinstance(error, sqlite3.Error):
            self._log.warning(
                "Requests in %(path)s that cannot be loaded: %(count)d. This spider does not have"
                " their callbacks or classes. They stay in the file: to crawl them, run a version"
                " of the spider that has these",
                path=self._path,
                count=count,
            )
            return
        self._log.defect(
            "Requests that waited for %(site)s cannot be read back from their file, and are lost:"
            " %(requests)d",
            error,
            site=key_of(queue),
            requests=count,
        )

    def close(self) -> None:
        """Close the file, and delete it if it is empty."""
        if self._connection is None:
            return
        try:
            is_empty = self._connection.execute("SELECT 1 FROM parked").fetchone() is None
        except sqlite3.Error:
            is_empty = False
        self._disconnect()
        if is_empty and self._path is not None:
            self._path.unlink(missing_ok=True)

    def _opened(self) -> sqlite3.Connection:
        if self._connection is None:
            if self._path is not None:
                self._connection = _connected(self._path, _LASTING)
            else:
                # Where an open file can be deleted it is, at once; elsewhere when it is closed.
                with TemporaryDirectory(prefix="koster-", ignore_cleanup_errors=True) as folder:
                    self._connection = _connected(Path(folder) / NAME, _TEMPORARY)
        return self._connection

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _warn(self, error: Exception) -> None:
        if self._has_warned:
            return
        self._has_warned = True
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


def key_of(queue: str) -> str:
    """Return the key of a queue: its site or its host, without the number of the queue."""
    return queue.partition(" ")[0]


def _connected(path: Path, pragmas: Iterable[str]) -> sqlite3.Connection:
    # No crawl waits for another process that has the file.
    connection = sqlite3.connect(path, timeout=0, isolation_level=None)
    try:
        for statement in pragmas:
            connection.execute(statement)
        connection.execute(_TABLE)
    except sqlite3.Error:
        connection.close()
        raise
    return connection

"""Parked requests in the SQLite file that a JOBDIR keeps."""

import pickle
import sqlite3
from pathlib import Path
from typing import TypeAlias

from scrapy import Request
from scrapy.core.scheduler import Scheduler
from scrapy.crawler import Crawler
from scrapy.settings import BaseSettings
from scrapy.utils.job import job_dir
from scrapy.utils.request import request_from_dict

from scrapy_koster.crawl.messages.log import Log

# The priority is negated, so the highest priority comes first. All queues share the numbers.
Place: TypeAlias = tuple[int, int]
"""Priority and number of a request in its queue. The lowest place is the next."""

NAME = "koster-parked.sqlite3"
# A written request survives a crash of the process, but perhaps not a crash of the machine.
_BEGIN = """
    PRAGMA locking_mode = EXCLUSIVE;
    PRAGMA journal_mode = WAL;
    PRAGMA synchronous = NORMAL;
    CREATE TABLE IF NOT EXISTS parked (
        queue TEXT, priority INT, number INT, request BLOB, fingerprint BLOB,
        PRIMARY KEY (queue, priority, number)
    ) WITHOUT ROWID;
    CREATE TABLE IF NOT EXISTS failed (queue TEXT PRIMARY KEY, since REAL);
    DELETE FROM failed WHERE queue NOT IN (SELECT queue FROM parked)
    """
_INSERT = "INSERT INTO parked VALUES (?, ?, ?, ?, ?)"
_FORGET = "UPDATE parked SET fingerprint = NULL WHERE fingerprint NOTNULL"
_LEFT = "SELECT queue, priority, number, fingerprint FROM parked ORDER BY 1, 2, 3"
_AT = "FROM parked WHERE queue = ? AND priority = ? AND number = ?"


class ParkedFile:
    """Requests in an SQLite file in the JOBDIR, pickled as in the disk queues of Scrapy.

    Without a JOBDIR, and before ``resume``, no request is written.

    The file also has the fingerprints of the requests. If a process is killed, Scrapy's
    ``requests.seen`` may lack these requests. Without the fingerprints, the next run could fetch
    their pages twice. After an orderly end the next run does not need the fingerprints. With them,
    it would take a repeat in Scrapy's queue, which a dupefilter may allow, for the same request.
    """

    is_shared = is_silent = False

    def __init__(self, crawler: Crawler, folder: Path | None = None) -> None:
        """*folder* is the JOBDIR, or None."""
        self._crawler = crawler
        self._log = Log(__name__, crawler)
        self._path = None if folder is None else folder / NAME
        self._connection: sqlite3.Connection | None = None
        self._left: dict[bytes, int] = {}
        """The fingerprints of the requests that the last run has left.

        With the number of repeats that this run has queued, which the dupefilter allows.
        """
        self._failed: dict[str, float] = {}
        """When the site of a queue first failed, in seconds since the epoch, as in the file."""
        self._failed_before: dict[str, float] = {}
        """The same, as the last run has left it."""
        self._unloadable = 0

    @property
    def lasts(self) -> bool:
        """Whether the next run can resume the requests of this run."""
        return self._connection is not None

    def resume(self) -> list[tuple[str, Place]]:
        """Open the file. Return the queue and the place of each request that the last run has left.

        If the file cannot be opened, the list is empty, and the file is not used in this run.
        """
        if self._path is None:
            return []
        try:
            # If another process uses the file, there is an error at once (timeout=0).
            self._connection = sqlite3.connect(self._path, timeout=0, isolation_level=None)
            self._connection.executescript(_BEGIN)
            found = self._connection.execute(_LEFT).fetchall()
            self._failed = dict(self._connection.execute("SELECT queue, since FROM failed"))
            self._failed_before = dict(self._failed)
        except sqlite3.Error as error:
            self._log.warning(
                "%(path)s, the file of requests that wait, cannot be opened: %(error)s. In this run"
                " requests wait in memory. If no other crawl uses the file, repair it, or delete it"
                " to drop the requests that waited when the last run ended",
                path=self._path,
                error=error,
            )
            self._disconnect()
            return []
        self._left = dict.fromkeys((each for *_, each in found if each), 0)
        return [(queue, (priority, number)) for queue, priority, number, _ in found]

    def failed_since(self, queue: str, since: float) -> float:
        """Return when the site of *queue* first failed: *since*, or a time in an earlier run.

        The time is kept for later runs, in seconds since the epoch.
        """
        since = min(self._failed_before.get(queue, since), since)
        if self.lasts and self._failed.get(queue) != since:
            self._failed[queue] = since
            self._execute("INSERT OR REPLACE INTO failed VALUES (?, ?)", queue, since)
        return since

    def recovered(self, queue: str) -> None:
        """Forget when the site of *queue* failed."""
        self._failed_before.pop(queue, None)
        if self._failed.pop(queue, None) is not None:
            self._execute("DELETE FROM failed WHERE queue = ?", queue)

    def _execute(self, statement: str, *given: object) -> None:
        assert self._connection is not None
        try:
            self._connection.execute(statement, given)
        except sqlite3.Error as error:
            self._warn(error)

    def is_resumed(self, request: Request) -> bool:
        """Return whether the last run has left the same request in the file.

        A request with ``dont_filter`` is not compared.
        """
        left = self._left
        return bool(left) and not request.dont_filter and self._fingerprint(request) in left

    def add_repeat(self, request: Request) -> None:
        """Note that this run has queued *request*, which the last run has left, once more."""
        self._left[self._fingerprint(request)] += 1

    def has_twice(self, request: Request) -> bool:
        """Return whether *request*, from the queue on disk, is in the file, too.

        The queue of a killed run still has requests that were parked. Their pages must not be
        fetched twice, unless this run has queued them again.
        """
        if not self.is_resumed(request):
            return False
        fingerprint = self._fingerprint(request)
        repeats = self._left[fingerprint]
        self._left[fingerprint] = max(0, repeats - 1)
        return not repeats

    def write(self, queue: str, place: Place, request: Request) -> bool:
        """Write *request*. Return whether *request* could be written."""
        if self._connection is None:
            return False
        try:
            data = pickle.dumps(request.to_dict(spider=self._crawler.spider), protocol=4)
            # The dupefilter has not seen a request with dont_filter, unless Scrapy retries it.
            is_unseen = request.dont_filter and "retry_times" not in request.meta
            fingerprint = None if is_unseen else self._fingerprint(request)
            row = (queue, *place, data, fingerprint)
            self._connection.execute(_INSERT, row)
        except sqlite3.Error as error:
            self._warn(error)
            return False
        except Exception:  # noqa: BLE001  # not picklable, or a priority over 64 bits
            return False
        return True

    def _fingerprint(self, request: Request) -> bytes:
        """Return the fingerprint of *request*, as the dupefilter uses it."""
        fingerprinter = self._crawler.request_fingerprinter
        assert fingerprinter is not None  # set in a crawl
        return fingerprinter.fingerprint(request)

    def take(self, queue: str, place: Place) -> Request | None:
        """Return the request at *place*, and delete its row. None if it cannot be loaded.

        A row that cannot be loaded, or cannot be deleted, stays in the file.
        """
        request = None
        assert self._connection is not None  # the request is in the file
        try:
            row = self._connection.execute(f"SELECT request {_AT}", (queue, *place)).fetchone()
            fields = pickle.loads(row[0])  # noqa: S301  # written by write(), as Scrapy does
            request = request_from_dict(fields, spider=self._crawler.spider)
            self._connection.execute(f"DELETE {_AT}", (queue, *place))
        except sqlite3.Error as error:
            if request is not None:
                self._warn(error)
            elif self._log.is_first("lost"):
                self._log.defect(
                    "Requests that waited for %(site)s cannot be read back from their file, and are"
                    " lost. This is not logged again",
                    error,
                    site=queue,
                )
        except Exception:  # noqa: BLE001  # the code of the spider may have changed
            self._unloadable += 1
        return request

    def close(self) -> None:
        """Close the file. Delete the file if it is empty, or the fingerprints of its requests."""
        if self._connection is None or self._path is None:
            return
        if self._unloadable:
            self._log.warning(
                "Requests in %(path)s that cannot be loaded: %(count)d. This spider does not have"
                " their callbacks or classes. They stay in the file: to crawl them, run a version"
                " of the spider that has these",
                path=self._path,
                count=self._unloadable,
            )
        try:
            if not self._left:  # Scrapy's queue has no request of the file twice
                self._connection.execute(_FORGET)
            is_empty = self._connection.execute("SELECT 1 FROM parked").fetchone() is None
        except sqlite3.Error:
            is_empty = False
        self._disconnect()
        if is_empty:
            self._path.unlink(missing_ok=True)

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _warn(self, error: Exception) -> None:
        self._log.warning_once(
            "%(path)s cannot be written (%(error)s). Waiting requests are kept in memory only,"
            " and lost if this process is killed. The next run may crawl pages of this run"
            " again. Give the JOBDIR more room",
            path=self._path,
            error=error,
        )


def is_scrapys(scheduler: type) -> bool:
    """Return whether *scheduler* is Scrapy's scheduler, or a subclass."""
    # issubclass() is true for any class with the methods of a scheduler.
    return Scheduler in scheduler.__mro__


def folder_of(scheduler: type, settings: BaseSettings) -> Path | None:
    """Return the JOBDIR if the inner *scheduler* keeps requests there, or None."""
    folder = job_dir(settings)
    return Path(folder) if folder and is_scrapys(scheduler) else None

"""A storage in one SQLite file, which the processes of one machine can share."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import RLock
from typing import ClassVar

from scrapy_koster.protocol.access import CacheEntry
from scrapy_koster.protocol.site import Site
from scrapy_koster.storage.encoding import OCTETS_MAX, decoded, encoded, site_named
from scrapy_koster.storage.latest import LATE_SECS, recorded_at
from scrapy_koster.storage.port import Claimed, Setting, Settings, StorageError, lease_left

_APPLICATION_ID = 0x4B6F7374  # "Kost"
_IN_USE = (
    "SELECT (SELECT application_id FROM pragma_application_id),"
    " (SELECT user_version FROM pragma_user_version) OR EXISTS (SELECT * FROM sqlite_master)"
)
_PAGES = (
    "SELECT (SELECT freelist_count FROM pragma_freelist_count),"
    " (SELECT page_count FROM pragma_page_count)"
)
# The copy is last: a claim of the same size overwrites its own bytes only. A later version that
# needs other columns has to use other names. So two versions can use the same file.
_TABLES = """
    CREATE TABLE IF NOT EXISTS site (
        site TEXT, robot TEXT, learnt REAL, owner, until, known, PRIMARY KEY (site, robot)
    );
    CREATE TABLE IF NOT EXISTS lock (host TEXT PRIMARY KEY, owner TEXT, until REAL, secs REAL)
"""
# Each of these is a single statement, which is atomic without a transaction.
# A value of more than OCTETS_MAX bytes comes from another program, and might fill the memory.
_GET = "SELECT known FROM site WHERE site = ? AND robot = ? AND length(known) <= ?"
# The condition is that of ``supersedes``. The time 0 ends the claim of the given owner.
_PUT = (
    "INSERT INTO site (site, robot, known, learnt) VALUES (?, ?, ?, ?) ON CONFLICT (site, robot)"
    " DO UPDATE SET known = excluded.known, learnt = excluded.learnt, until = until * (owner <> ?)"
    " WHERE ifnull(NOT (learnt > excluded.learnt AND learnt <= ?), 1)"
)
# A claim of another owner stays unless it has expired, or was written by a wrong clock.
_CLAIM = (
    "INSERT INTO site (site, robot, owner, until) VALUES (?, ?, ?, ?) ON CONFLICT (site, robot)"
    " DO UPDATE SET owner = excluded.owner, until = excluded.until WHERE (? OR known IS NULL)"
    " AND (owner = excluded.owner OR ifnull(NOT (until > ? AND until <= ?), 1))"
)
_HELD = "SELECT max(until + 0.0 - ?) FROM site WHERE site = ? AND robot = ? AND owner <> ?"
_RELEASE = "UPDATE site SET until = 0.0 WHERE site = ? AND robot = ? AND owner = ?"
_DROP = "DELETE FROM site WHERE site = ? AND robot = ? AND length(known)"
_ANY_ROW = "SELECT abs(random() / 2) % (ifnull(max(rowid), 0) + 1) FROM site"
_LAST_ROW = "SELECT max(rowid) FROM (SELECT rowid FROM site WHERE rowid >= ? LIMIT ?)"
# A row with a claim stays.
_PRUNE = (
    "DELETE FROM site WHERE rowid BETWEEN ? AND ? AND (known IS NULL OR learnt < ?)"
    " AND NOT ifnull(until BETWEEN ? AND ?, 0)"
)
_PRUNE_LOCKS = "DELETE FROM lock WHERE rowid IN (SELECT rowid FROM lock WHERE until < ? LIMIT ?)"
_PRUNED_MOST, _MOVED_MOST, _AT_ONCE = 10_000, 10_000, 1000
"""The rows that ``prune`` examines at least, the pages of 4 kB moved, and both in a transaction."""
# The lock on a host: *owner* is '' while the host rests. :until is :now + :secs.
_LOCK = (
    "INSERT INTO lock VALUES (:host, {owner}, :until, :secs) ON CONFLICT DO UPDATE"
    " SET owner = excluded.owner, until = excluded.until, secs = excluded.secs"
    " WHERE owner = :owner OR ifnull(NOT (until > :now AND until <= :now + 2 * secs), 1)"
)
_BEGIN_VISIT = _LOCK.format(owner=":owner")
_END_VISIT = _LOCK.format(owner="''") + " OR (owner = '' AND until < excluded.until)"
_LEFT = "SELECT until - :now FROM lock WHERE host = :host"


class SQLiteStorage:
    """Keeps copies in the SQLite file *path*. The file is created if missing."""

    blocking: ClassVar[bool] = False
    SETTINGS: ClassVar[Mapping[str, Setting]] = {
        "KOSTER_SQLITE_PATH": Setting.path("koster/robots.sqlite3")
    }

    def __init__(self, path: str, robot: str = "") -> None:
        self._path = path
        self._robot = robot
        self._puts = 0
        self._lock = RLock()
        with self._errors():
            self._connection = _opened(path)

    @classmethod
    def from_settings(cls, settings: Settings) -> SQLiteStorage:
        """Return the storage in the file KOSTER_SQLITE_PATH."""
        return cls(settings["KOSTER_SQLITE_PATH"], settings.get("ROBOTSTXT_USER_AGENT") or "")

    def get(self, site: Site) -> CacheEntry | None:
        """Return the copy or failure of *site*, or None if no valid value is stored."""
        with self._errors():
            return self._stored(self._key(site))

    def _stored(self, key: tuple[str, str]) -> CacheEntry | None:
        row = self._connection.execute(_GET, (*key, OCTETS_MAX)).fetchone()
        try:
            return None if row is None else decoded(row[0])
        except ValueError:
            return None

    def put(self, site: Site, copy: CacheEntry, owner: str = "") -> None:
        """Commit *copy* if it ``supersedes`` the stored value. End the claim of *owner*."""
        key = self._key(site)
        with self._errors():
            self._puts += 1
            time = recorded_at(copy)
            given = (*key, encoded(copy), time, owner, time + LATE_SECS)
            if not self._connection.execute(_PUT, given).rowcount:
                self._connection.execute(_RELEASE, (*key, owner))

    def claim(
        self, site: Site, owner: str, *, now: float, secs: float, unless_known: bool = False
    ) -> Claimed:
        """Commit a claim of *site* for *owner*, unless another owner holds *site*."""
        key, execute = self._key(site), self._connection.execute
        with self._errors():
            # The usual case: a stored value is returned, and no claim is written.
            if unless_known and (known := self._stored(key)) is not None:
                return Claimed(known, 0.0)
            given = (*key, owner, now + secs, not unless_known, now, now + 2 * secs)
            if execute(_CLAIM, given).rowcount:
                return Claimed(None if unless_known else self._stored(key), 0.0)
            (left,) = execute(_HELD, (now, *key, owner)).fetchone()
            held, known = lease_left(left or 0.0, secs), self._stored(key)
            if held or (unless_known and known is not None):
                return Claimed(known, held)
            # Try again: the other owner's claim has just ended, or the stored value is invalid.
            return self.claim(site, owner, now=now, secs=secs)

    def release(self, site: Site, owner: str) -> None:
        """End the claim of *owner*, if any."""
        with self._errors():
            self._connection.execute(_RELEASE, (*self._key(site), owner))

    def begin_visit(self, host: str, owner: str, *, now: float, secs: float) -> float:
        """Commit a lock of *owner* on *host*, or return the seconds to wait."""
        given = {"host": host, "owner": owner, "now": now, "secs": secs, "until": now + secs}
        with self._errors():
            if self._connection.execute(_BEGIN_VISIT, given).rowcount:
                return 0.0
            (left,) = self._connection.execute(_LEFT, given).fetchone()
            return max(float(left), 0.001)  # it may have ended since

    def end_visit(self, host: str, owner: str, *, now: float, secs: float) -> None:
        """Commit the end of a lock of *owner*, and the rest of *host*."""
        given = {"host": host, "owner": owner, "now": now, "secs": secs, "until": now + secs}
        with self._errors():
            self._connection.execute(_END_VISIT, given)

    def sites(self) -> Iterator[tuple[Site, CacheEntry]]:
        """Iterate over the valid values of the robot, even while other processes write."""
        query = "SELECT site FROM site WHERE robot = ? AND known IS NOT NULL ORDER BY site"
        with self._errors():
            names = self._connection.execute(query, (self._robot,)).fetchall()
        for site in filter(None, (site_named(name) for (name,) in names)):
            if (known := self.get(site)) is not None:
                yield site, known

    def robots(self) -> list[str]:
        """Return the names of the robots that have values, sorted."""
        with self._errors():
            query = "SELECT DISTINCT robot FROM site WHERE known IS NOT NULL ORDER BY robot"
            return [str(name) for (name,) in self._connection.execute(query)]

    def forget(self, site: Site) -> bool:
        """Delete the row of *site*. Return False if it had no value: then a claim stays."""
        with self._errors():
            return self._connection.execute(_DROP, self._key(site)).rowcount > 0

    def prune(self, *, now: float, secs: float) -> None:
        """Delete values and visits older than *secs*, and rows without a value or a claim.

        At most 10,000 sites are examined, and two for each that was put, from a random one on. So
        a file does not grow for ever. Visits stay for a day at least.
        """
        before, execute = now - secs, self._connection.execute
        most = _PRUNED_MOST + 2 * self._puts
        with self._errors():
            (first,) = execute(_ANY_ROW).fetchone()
            for _ in range(0, most, _AT_ONCE):
                (last,) = execute(_LAST_ROW, (first, _AT_ONCE)).fetchone()
                if last is not None:
                    execute(_PRUNE, (first, last, before, now, now + LATE_SECS))
                first = 0 if last is None else last + 1
            execute(_PRUNE_LOCKS, (now - LATE_SECS, most))

    def close(self) -> None:
        """Return the space of deleted rows to the disk, and close the file."""
        with self._errors():
            with suppress(sqlite3.Error):  # closed already, or another process uses the file
                _shrink(self._connection)
            self._connection.close()

    def _key(self, site: Site) -> tuple[str, str]:
        return str(site), self._robot

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Let one thread at a time use the connection, and turn errors into StorageError."""
        try:
            with self._lock:
                yield
        except (sqlite3.Error, OSError, ValueError, OverflowError) as error:
            raise StorageError(
                f"the storage {self._path!r} failed: {error}. Free or repair the file, move it"
                " away, or set KOSTER_SQLITE_PATH to another one"
            ) from error


def _opened(path: str) -> sqlite3.Connection:
    file = Path(path).absolute()
    file.parent.mkdir(parents=True, exist_ok=True)
    # The timeout is long enough: transactions of other crawls take less than a millisecond.
    connection = sqlite3.connect(file, timeout=1.0, isolation_level=None, check_same_thread=False)
    try:
        _prepare(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def _shrink(connection: sqlite3.Connection) -> None:
    """Return free pages to the disk, if a quarter of the file is free.

    If few pages are in use, the file is copied. This also sets auto_vacuum in a file of an early
    version. If many pages are in use, only some pages are freed, a few in a transaction.
    """
    free, pages = connection.execute(_PAGES).fetchone()
    if free * 4 < pages:
        return
    if pages - free <= _MOVED_MOST:
        connection.executescript("PRAGMA auto_vacuum = INCREMENTAL; VACUUM")
        return
    for _ in range(0, _MOVED_MOST, _AT_ONCE):
        # Not execute(), which would free a single page.
        connection.executescript(f"PRAGMA incremental_vacuum({_AT_ONCE})")


def _prepare(connection: sqlite3.Connection) -> None:
    connection.text_factory = lambda octets: octets.decode("utf-8", "surrogateescape")
    # auto_vacuum has an effect on a new file only.
    connection.executescript(
        "PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON; PRAGMA auto_vacuum = INCREMENTAL"
    )
    application_id, is_in_use = connection.execute(_IN_USE).fetchone()
    if application_id != _APPLICATION_ID:
        if application_id or is_in_use:
            raise sqlite3.DatabaseError("it is a database of another program")
        # Before the tables: another process may open the file meanwhile.
        connection.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
    connection.executescript(_TABLES)
    # The switch to WAL fails if another process uses the file. Without WAL, readers wait for
    # writers. The next process that opens the file tries again.
    with suppress(sqlite3.OperationalError):
        connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = NORMAL")

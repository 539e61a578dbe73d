"""A storage in one SQLite file, which processes of one machine may share."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import Path
from threading import RLock
from typing import ClassVar

from scrapy_koster.protocol.access import Failure, Known, last_copy
from scrapy_koster.protocol.site import Site
from scrapy_koster.storage.encoding import (
    BODY_MAX_BYTES,
    COPY_FIELDS,
    FAILURE_FIELDS,
    TEXT_MAX_BYTES,
    copy_fields,
    failure_fields,
    known_from,
    site_named,
)
from scrapy_koster.storage.latest import supersedes
from scrapy_koster.storage.port import Claimed, Settings, StorageError, held_secs
from scrapy_koster.storage.setting import Setting
from scrapy_koster.storage.turns import Visited, turn

_APPLICATION_ID = 0x4B6F7374  # "Kost"
_MIGRATIONS = (
    (
        """
        CREATE TABLE known (
            site TEXT NOT NULL PRIMARY KEY,
            url TEXT, status INTEGER, body BLOB, etag TEXT, last_modified TEXT,
            fetched REAL, expires REAL,
            reason TEXT, attempts INTEGER, since REAL, asked REAL, retry REAL
        )
        """,
    ),
    (
        "ALTER TABLE known ADD COLUMN cut_bytes INTEGER",
        "ALTER TABLE known ADD COLUMN life_stated INTEGER",
    ),
    (
        """
        CREATE TABLE claim (
            site TEXT NOT NULL PRIMARY KEY, owner TEXT NOT NULL, until REAL NOT NULL
        )
        """,
    ),
    ("CREATE TABLE visit (host TEXT NOT NULL PRIMARY KEY, visited REAL NOT NULL)",),
    ("ALTER TABLE visit ADD COLUMN wanted REAL",),
    # A copy without a digest is a miss.
    ("ALTER TABLE known ADD COLUMN digest TEXT", "ALTER TABLE known ADD COLUMN record_id TEXT"),
)
"""The statements that make version n + 1 of the file out of version n."""

_BUSY_SECS = 2.0
_COLUMNS = (*COPY_FIELDS, *FAILURE_FIELDS)  # as _GET and _PUT name them
_GET = """
    SELECT url, status, body, etag, last_modified, fetched, expires, cut_bytes, life_stated,
           digest, record_id, reason, attempts, since, asked, retry
    FROM known WHERE site = :site
    AND ifnull(length(CAST(body AS BLOB)), 0) <= :body_max
    AND ifnull(length(CAST(url AS BLOB)), 0) <= :text_max
    AND ifnull(length(CAST(etag AS BLOB)), 0) <= :text_max
    AND ifnull(length(CAST(last_modified AS BLOB)), 0) <= :text_max
    AND ifnull(length(CAST(digest AS BLOB)), 0) <= :text_max
    AND ifnull(length(CAST(record_id AS BLOB)), 0) <= :text_max
    AND ifnull(length(CAST(reason AS BLOB)), 0) <= :text_max
"""
_PUT = """
    INSERT OR REPLACE INTO known (
        site, url, status, body, etag, last_modified, fetched, expires, cut_bytes, life_stated,
        digest, record_id, reason, attempts, since, asked, retry
    )
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
_LEFT_SECS = "SELECT until - ? FROM claim WHERE site = ? AND owner <> ?"
_CLAIM = "INSERT OR REPLACE INTO claim (site, owner, until) VALUES (?, ?, ?)"
_VISITED = "SELECT visited + 0.0, ifnull(wanted, 0) + 0.0 FROM visit WHERE host = ?"
_VISIT = "INSERT OR REPLACE INTO visit (host, visited, wanted) VALUES (?, ?, ?)"
_RELEASE = "DELETE FROM claim WHERE site = ? AND owner = ?"


class SQLiteStorage:
    """Keeps what is known in the file *path*, which is created if needed."""

    blocking: ClassVar[bool] = True
    SETTINGS: ClassVar[Mapping[str, Setting]] = {
        "KOSTER_SQLITE_PATH": Setting.path("koster/robots.sqlite3")
    }

    def __init__(self, path: str) -> None:
        self._guard = _Guard(path)
        self._is_together = False
        self._has_begun = False
        """Whether a call within ``together`` has begun its transaction."""
        with self._guard:
            self._connection = _opened(path)

    @classmethod
    def from_settings(cls, settings: Settings) -> SQLiteStorage:
        """Open the file KOSTER_SQLITE_PATH."""
        return cls(settings["KOSTER_SQLITE_PATH"])

    def get(self, site: Site) -> Known | None:
        """Return what is known of *site*; a row that is not valid is a miss."""
        with self._guard:
            return _read(self._connection, site)

    def claim(
        self, site: Site, owner: str, *, now: float, secs: float, unless_known: bool = False
    ) -> Claimed:
        """Commit a claim of *owner*, unless the file has one of another."""
        name, connection = str(site), self._connection
        with self._guard:
            # Most of what is known is fresh: no transaction is begun for that.
            if unless_known and not self._has_begun and (known := _read(connection, site)):
                return Claimed(known, 0.0)
            with self._writing():
                known = _read(connection, site)
                if unless_known and known is not None:
                    return Claimed(known, 0.0)
                row = connection.execute(_LEFT_SECS, (now, name, owner)).fetchone()
                held = 0.0 if row is None else held_secs(row[0] or 0.0, secs)
                if not held:
                    connection.execute(_CLAIM, (name, owner, now + secs))
                return Claimed(known, held)

    def visit(self, host: str, *, now: float, secs: float, begun: bool = False) -> float:
        """Commit a visit to *host*, unless the last was less than *secs* ago."""
        connection = self._connection
        with self._guard, self._writing():
            row = connection.execute(_VISITED, (host,)).fetchone()
            last = None if row is None else Visited(*row)
            left, visited = turn(last, now=now, secs=secs, begun=begun)
            if visited != last:
                connection.execute(_VISIT, (host, *visited))
            return left

    def put(self, site: Site, copy: Known, owner: str = "") -> None:
        """Commit *copy*, unless the file has a later one."""
        row, name, connection = _row(copy), str(site), self._connection
        with self._guard, self._writing():
            if supersedes(copy, _read(connection, site)):
                connection.execute(_PUT, (name, *row))
            connection.execute(_RELEASE, (name, owner))

    def release(self, site: Site, owner: str) -> None:
        """Delete the claim of *owner*, if there is one."""
        with self._guard, self._writing():
            self._connection.execute(_RELEASE, (str(site), owner))

    def sites(self) -> Iterator[tuple[Site, Known]]:
        """Iterate over the valid rows; others may write meanwhile."""
        with self._guard:
            names = self._connection.execute("SELECT site FROM known ORDER BY site")
            sites = [site_named(name) for (name,) in names]
        for site in filter(None, sites):
            known = self.get(site)
            if known is not None:
                yield site, known

    def forget(self, site: Site) -> bool:
        """Delete the row of *site*; False if there was none."""
        with self._guard:
            query = "DELETE FROM known WHERE site = ?"
            return self._connection.execute(query, (str(site),)).rowcount > 0

    def close(self) -> None:
        """Close the file."""
        with self._guard:
            self._connection.close()

    @contextmanager
    def together(self) -> Iterator[None]:
        """Commit what the calls in it write in one transaction, which the first of them begins."""
        with self._guard, self._connection:
            self._is_together = True
            try:
                yield
                if self._has_begun:
                    self._check(self._connection)
            finally:
                self._is_together = self._has_begun = False

    def _writing(self) -> AbstractContextManager[object]:
        """Return a context in which to write: a transaction, if there is none yet."""
        connection = self._connection
        if not self._is_together:
            return _transaction(connection)
        if not self._has_begun:
            _begin(connection)
            self._has_begun = True
        self._check(connection)
        # No savepoint: of the calls none writes more than one row that others build upon, and
        # a statement that fails leaves nothing behind.
        return _NO_CONTEXT

    @staticmethod
    def _check(connection: sqlite3.Connection) -> None:
        """Raise an error if the transaction has been rolled back, as SQLite does on a full disk."""
        if not connection.in_transaction:
            raise sqlite3.OperationalError("the transaction was rolled back")


class _Guard:
    """Lets one thread at a time use the connection, and raises what goes wrong as StorageError.

    Threads share the connection, and with it the transaction that is open on it. Within
    ``together`` its thread has the lock already.
    """

    # Not of @contextmanager, which takes four times as long: each call of a new site enters it.
    __slots__ = ("_lock", "_path")

    def __init__(self, path: str) -> None:
        self._path = path
        self._lock = RLock()

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        self._lock.release()
        if isinstance(error, (sqlite3.Error, OSError, ValueError, OverflowError)):
            raise StorageError(
                f"the storage {self._path!r} failed: {error}. Free or repair the "
                "file, move it away, or set KOSTER_SQLITE_PATH to another one"
            ) from error


_NO_CONTEXT = nullcontext()


@contextmanager
def _transaction(connection: sqlite3.Connection) -> Iterator[None]:
    with connection:
        _begin(connection)
        yield


def _begin(connection: sqlite3.Connection) -> None:
    # Not a plain BEGIN: a writer that came between the read and the write would be undone.
    connection.execute("BEGIN IMMEDIATE")


def _opened(path: str) -> sqlite3.Connection:
    file = Path(path).absolute()
    file.parent.mkdir(parents=True, exist_ok=True)
    connection = sqlite3.connect(
        file, timeout=_BUSY_SECS, isolation_level=None, check_same_thread=False
    )
    try:
        _prepare(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def _prepare(connection: sqlite3.Connection) -> None:
    connection.text_factory = _lenient_text
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.execute("PRAGMA cell_size_check = ON")
    with connection:
        # Read apart, the facts of a file that another process is creating
        # would be those of a database of another program.
        connection.execute("BEGIN")
        version = _version(connection)
    if version < len(_MIGRATIONS):
        _migrate(connection)
    # The switch fails where another process uses the file. Without it all
    # works, but readers wait for writers, until some process opens it alone.
    with suppress(sqlite3.OperationalError):
        connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = NORMAL")


def _version(connection: sqlite3.Connection) -> int:
    """Return the version of the file, 0 if it is new; refuse what is not ours."""
    version = _number(connection, "PRAGMA user_version")
    application_id = _number(connection, "PRAGMA application_id")
    tables = _number(connection, "SELECT count(*) FROM sqlite_master")
    if application_id != _APPLICATION_ID and (application_id or version or tables):
        raise sqlite3.DatabaseError("it is a database of another program")
    if version > len(_MIGRATIONS):
        raise sqlite3.DatabaseError(
            f"it is of version {version}, made by a newer scrapy-koster, "
            f"and this one reads up to version {len(_MIGRATIONS)}"
        )
    return version


def _migrate(connection: sqlite3.Connection) -> None:
    with connection:
        connection.execute("BEGIN IMMEDIATE")
        # Read again: another process may have migrated while this one waited.
        for statements in _MIGRATIONS[_version(connection) :]:
            for statement in statements:
                connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {len(_MIGRATIONS)}")


def _number(connection: sqlite3.Connection, query: str) -> int:
    return int(connection.execute(query).fetchone()[0])


def _lenient_text(octets: bytes) -> str:
    return octets.decode("utf-8", "surrogateescape")


def _read(connection: sqlite3.Connection, site: Site) -> Known | None:
    row = connection.execute(
        _GET, {"site": str(site), "body_max": BODY_MAX_BYTES, "text_max": TEXT_MAX_BYTES}
    ).fetchone()
    if row is None:
        return None
    try:
        copy, failure = row[: len(COPY_FIELDS)], row[len(COPY_FIELDS) :]
        return known_from(_fields(COPY_FIELDS, copy), _fields(FAILURE_FIELDS, failure))
    except ValueError:
        return None


def _row(known: Known) -> tuple[object, ...]:
    copy = last_copy(known)
    by_name: dict[str, object] = {} if copy is None else copy_fields(copy)
    if isinstance(known, Failure):
        by_name |= failure_fields(known)
    return tuple(map(by_name.get, _COLUMNS))


def _fields(names: tuple[str, ...], row: tuple[object, ...]) -> dict[str, object] | None:
    """Return the columns of a row by name, None where nothing is in them."""
    return None if row == (None,) * len(row) else dict(zip(names, row, strict=True))

"""A storage in one SQLite file, which processes of one machine may share."""

from __future__ import annotations

import math
import re
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Lock
from typing import ClassVar, TypeVar

from scrapy_koster.protocol.access import Copy, Failure, Known
from scrapy_koster.protocol.site import Site, site_of
from scrapy_koster.storage import StorageConfig, StorageError, supersedes

_T = TypeVar("_T")

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
)
"""The statements that make version n + 1 of the file out of version n."""

_BUSY_SECS = 2.0
_BODY_MAX_BYTES = 10 * 2**20
_TEXT_MAX_BYTES = 2**16
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")

_NO_COPY = (None,) * 9
_NO_FAILURE = (None,) * 5
_COPY, _FAILURE = slice(0, 9), slice(9, 14)

_GET = """
    SELECT url, status, body, etag, last_modified, fetched, expires, cut_bytes, life_stated,
           reason, attempts, since, asked, retry
    FROM known WHERE site = :site
    AND ifnull(length(CAST(body AS BLOB)), 0) <= :body_max
    AND ifnull(length(CAST(url AS BLOB)), 0) <= :text_max
    AND ifnull(length(CAST(etag AS BLOB)), 0) <= :text_max
    AND ifnull(length(CAST(last_modified AS BLOB)), 0) <= :text_max
    AND ifnull(length(CAST(reason AS BLOB)), 0) <= :text_max
"""
_PUT = """
    INSERT OR REPLACE INTO known (
        site, url, status, body, etag, last_modified, fetched, expires, cut_bytes, life_stated,
        reason, attempts, since, asked, retry
    )
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""


class SQLiteStorage:
    """Keeps what is known in the file *path*, which is created if needed."""

    blocking: ClassVar[bool] = True

    def __init__(self, path: str) -> None:
        self._path = path
        self._lock = Lock()
        with self._errors_told():
            self._connection = _opened(path)

    @classmethod
    def from_config(cls, config: StorageConfig) -> SQLiteStorage:
        """Open the file KOSTER_SQLITE_PATH."""
        return cls(config.sqlite_path)

    def get(self, site: Site) -> Known | None:
        """Return what is known of *site*; a row that is not valid is a miss."""
        with self._locked() as connection:
            return _read(connection, site)

    def put(self, site: Site, copy: Known) -> None:
        """Commit *copy*, unless the file has a later one."""
        row = _row(copy)
        with self._locked() as connection, connection:
            # Not a plain BEGIN: a writer that came between the read and the
            # write would be undone.
            connection.execute("BEGIN IMMEDIATE")
            if supersedes(copy, _read(connection, site)):
                connection.execute(_PUT, (str(site), *row))

    def sites(self) -> Iterator[tuple[Site, Known]]:
        """Iterate over the valid rows; others may write meanwhile."""
        with self._locked() as connection:
            names = connection.execute("SELECT site FROM known ORDER BY site")
            sites = [_site(name) for (name,) in names]
        for site in filter(None, sites):
            known = self.get(site)
            if known is not None:
                yield site, known

    def forget(self, site: Site) -> bool:
        """Delete the row of *site*; False if there was none."""
        with self._locked() as connection:
            query = "DELETE FROM known WHERE site = ?"
            return connection.execute(query, (str(site),)).rowcount > 0

    def close(self) -> None:
        """Close the file."""
        with self._locked() as connection:
            connection.close()

    @contextmanager
    def _locked(self) -> Iterator[sqlite3.Connection]:
        # One transaction at a time: threads share the connection, and with it
        # the transaction that is open on it.
        with self._lock, self._errors_told():
            yield self._connection

    @contextmanager
    def _errors_told(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError, ValueError, OverflowError) as error:
            raise StorageError(
                f"the storage {self._path!r} failed: {error}. Free or repair the "
                "file, move it away, or set KOSTER_SQLITE_PATH to another one"
            ) from error


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
    bounds = {"body_max": _BODY_MAX_BYTES, "text_max": _TEXT_MAX_BYTES}
    row = connection.execute(_GET, {"site": str(site), **bounds}).fetchone()
    if row is None:
        return None
    try:
        return _known(row[_COPY], row[_FAILURE])
    except ValueError:
        return None


def _row(known: Known) -> tuple[object, ...]:
    if isinstance(known, Copy):
        return (*_copy_row(known), *_NO_FAILURE)
    copy = _NO_COPY if known.stale is None else _copy_row(known.stale)
    failure = (known.reason, known.attempts, known.since, known.asked, known.retry)
    return (*copy, *failure)


def _copy_row(copy: Copy) -> tuple[object, ...]:
    if len(copy.body) > _BODY_MAX_BYTES:
        raise StorageError(
            f"a robots.txt of {len(copy.body)} bytes is not stored, only up to "
            f"{_BODY_MAX_BYTES} are: lower KOSTER_MAX_BYTES"
        )
    answer = (copy.url, copy.status, copy.body, copy.etag, copy.last_modified)
    return (*answer, copy.fetched, copy.expires, copy.cut_bytes, copy.life_stated)


def _site(name: object) -> Site | None:
    try:
        site = site_of(_text(name))
    except ValueError:
        return None
    return site if str(site) == name else None


def _known(copy: tuple[object, ...], failure: tuple[object, ...]) -> Known:
    stale = None if copy == _NO_COPY else _copy(copy)
    if failure != _NO_FAILURE:
        return _failure(failure, stale)
    if stale is None:
        raise ValueError("neither a copy nor a failure")
    return stale


def _copy(row: tuple[object, ...]) -> Copy:
    url, status, body, etag, last_modified, fetched, expires, cut_bytes, life_stated = row
    return Copy(
        url=_line(url),
        status=_count(status, range(100, 1000)),
        body=_typed(body, bytes),
        etag=None if etag is None else _line(etag),
        last_modified=None if last_modified is None else _line(last_modified),
        fetched=_time(fetched),
        expires=_time(expires),
        cut_bytes=None if cut_bytes is None else _count(cut_bytes, range(1, 2**63)),
        # None in version 1: stated, and so bounded by KOSTER_EXPIRY_MAX_SECS.
        life_stated=life_stated is None or bool(_count(life_stated, range(2))),
    )


def _failure(row: tuple[object, ...], stale: Copy | None) -> Failure:
    reason, attempts, since, asked, retry = row
    return Failure(
        reason=_text(reason),
        attempts=_count(attempts, range(1, 2**31)),
        since=_time(since),
        asked=_time(asked),
        retry=_time(retry),
        stale=stale,
    )


def _typed(value: object, kind: type[_T]) -> _T:
    if isinstance(value, kind):
        return value
    raise ValueError(f"not of type {kind.__name__}")


def _text(value: object) -> str:
    text = _typed(value, str)
    text.encode()  # UnicodeEncodeError, a ValueError, where it was not UTF-8
    return text


def _line(value: object) -> str:
    """Return a text that may be sent as a header and written to a terminal."""
    text = _text(value)
    if _CONTROL.search(text):
        raise ValueError("a control character")
    return text


def _count(value: object, allowed: range) -> int:
    number = _typed(value, int)
    if number not in allowed:
        raise ValueError(f"{number} is not of {allowed}")
    return number


def _time(value: object) -> float:
    time = _typed(value, float)
    if not math.isfinite(time):
        raise ValueError(f"{time} is not a time")
    return time

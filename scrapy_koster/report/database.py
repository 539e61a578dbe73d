"""The SQLite file of a report: written in batches while the crawl runs, read at any time."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from scrapy_koster.protocol.printable import printable
from scrapy_koster.protocol.site_status import SiteStatus
from scrapy_koster.report.tally import ALLOWED, REFUSED, TABLES, Columns, Tally

_APPLICATION_ID = 0x4B727074  # "Krpt"
_VERSION = 10
_BUSY_SECS = 5.0
_TEXT_CHARS = 400

_CLOSED_BY = tuple(int(each) for each in SiteStatus if each.is_closed)
_ALLOWED, _REFUSED = " + ".join(ALLOWED.values()), " + ".join(REFUSED.values())
_CHOSEN = "refused_rule + refused_delay + refused_override + refused_usage"
_WHOLE = f"ifnull(outcome IN {_CLOSED_BY}, 0)"
_COMPUTED = {
    "site": f", allowed AS ({_ALLOWED}), refused AS ({_REFUSED}), is_whole AS ({_WHOLE}),"
    f" is_closed AS ({_WHOLE} OR {_CHOSEN} > 0 AND {_ALLOWED} = 0)"
}
"""Columns computed from other columns. A site is closed (``is_closed``) if its outcome closes the
whole site (``is_whole``). A site is also closed if no request was allowed, and a rule, a delay, an
override or a usage preference refused a request."""


def _created(name: str, table: Columns) -> str:
    """Return the SQL statement that creates the table *name*."""
    columns = ", ".join((*table.keys, *table.facts, *table.counts)) + _COMPUTED.get(name, "")
    keys = ", ".join(table.keys)
    return f"CREATE TABLE IF NOT EXISTS {name} ({columns}, PRIMARY KEY ({keys})) WITHOUT ROWID"


def _upsert(name: str, table: Columns) -> str:
    """Return the SQL statement that adds a row, or updates the row with the same keys."""
    marks = ", ".join("?" * sum(map(len, table)))
    changes = ", ".join(
        [f"{fact} = coalesce(excluded.{fact}, {fact})" for fact in table.facts]
        + [f"{count} = {count} + excluded.{count}" for count in table.counts]
    )
    keys = ", ".join(table.keys)  # without these, SQLite before 3.35 raises an error
    return f"INSERT INTO {name} VALUES ({marks}) ON CONFLICT ({keys}) DO UPDATE SET {changes}"


class Writer:
    """Writes batches into a new file. Raises sqlite3.Error and OSError."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._connection: sqlite3.Connection | None = None

    def write(self, tally: Tally) -> None:
        """Commit the rows of *tally*, and clear *tally* if there was no error."""
        tally.put("about", "lost", value=tally.lost)
        with self._connection or self._opened() as connection:
            connection.execute("BEGIN IMMEDIATE")
            for name, table in TABLES.items():
                rows = (
                    (*key, *map(row.get, table.facts), *(row.get(n, 0) for n in table.counts))
                    for key, row in tally.rows[name].items()
                )
                connection.execute(_created(name, table))
                connection.executemany(_upsert(name, table), rows)
            connection.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version = {_VERSION}")
        tally.clear()

    def close(self) -> None:
        """Close the file. From now on, it can be read in a folder that is read-only."""
        if self._connection is not None:
            with suppress(sqlite3.Error):  # another process is reading
                self._connection.execute("PRAGMA journal_mode = DELETE")
            self._connection.close()
            self._connection = None

    def _opened(self) -> sqlite3.Connection:
        Path(self.path).absolute().parent.mkdir(parents=True, exist_ok=True)
        connection = sqlite3.connect(self.path, timeout=_BUSY_SECS, isolation_level=None)
        # With WAL, `scrapy robots report` and a running crawl do not wait for each other. If
        # another process is reading, this statement fails, which does no harm.
        with suppress(sqlite3.OperationalError):
            connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        self._connection = connection
        return connection


class DatabaseError(Exception):
    """The file of a report is missing, cannot be read, or is of another program or version."""


@contextmanager
def reading(path: str, *, against: str | None = None) -> Iterator[sqlite3.Connection]:
    """Open the file of a report, also during its crawl. Raises DatabaseError.

    The tables of an older file, *against*, have names such as ``old.site``. Text is made printable
    when it is read.
    """
    name = path
    try:
        connection = sqlite3.connect(":memory:", timeout=_BUSY_SECS, isolation_level=None)
        with closing(connection):
            connection.text_factory = _harmless
            connection.row_factory = sqlite3.Row
            connection.execute("PRAGMA trusted_schema = OFF")
            for schema, file in (("new", path), ("old", against)):
                if file is not None:
                    name = file
                    _attach(connection, file, schema)
            name = path
            connection.execute("PRAGMA query_only = ON")
            connection.execute("BEGIN")  # one snapshot for the whole read
            yield connection
    except sqlite3.Error as error:
        raise DatabaseError(f"{name} cannot be read as the file of a report: {error}") from error


def _harmless(octets: bytes) -> str:
    return printable(octets.decode("utf-8", "replace"), _TEXT_CHARS)


def _attach(connection: sqlite3.Connection, path: str, schema: str) -> None:
    if not Path(path).is_file():
        raise DatabaseError(f"{path} is not there. A crawl with KOSTER_REPORT writes such a file")
    connection.execute(f"ATTACH ? AS {schema}", (path,))
    [application_id] = connection.execute(f"PRAGMA {schema}.application_id").fetchone()
    [version] = connection.execute(f"PRAGMA {schema}.user_version").fetchone()
    if application_id != _APPLICATION_ID:
        raise sqlite3.DatabaseError("it is a database of another program")
    if version != _VERSION:
        raise sqlite3.DatabaseError(
            f"it is of version {version}, and this scrapy-koster reads version {_VERSION}"
        )

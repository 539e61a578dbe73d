"""The SQLite file of a report: written in batches while the crawl runs, read at any time."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from scrapy_koster.protocol.printable import printable
from scrapy_koster.protocol.usage import Preference
from scrapy_koster.report.tally import COUNTS, FACTS, SAMPLES

if TYPE_CHECKING:
    from scrapy_koster.report.tally import Tally

_APPLICATION_ID = 0x4B727074  # "Krpt"
_VERSION = 6
_BUSY_SECS = 5.0
# Of lines, sites and kinds that come later there are no samples.
_SAMPLES_MOST = 10_000
_REASONS_MOST = 1000
_TEXT_CHARS = 400


class _Table(NamedTuple):
    keys: tuple[str, ...]
    facts: tuple[str, ...] = ()
    """Columns in which a new value replaces the old one."""
    counts: tuple[str, ...] = ()
    """Columns to which a new value is added."""

    def created(self, name: str) -> str:
        """Return the statement that creates the table."""
        columns = ", ".join((*self.keys, *self.facts, *self.counts))
        keys = ", ".join(self.keys)
        return f"CREATE TABLE {name} ({columns}, PRIMARY KEY ({keys})) WITHOUT ROWID"

    def upsert(self, name: str) -> str:
        """Return the statement that writes a row, a value for each column."""
        marks = ", ".join("?" * sum(map(len, self)))
        changes = ", ".join(
            [f"{fact} = coalesce(excluded.{fact}, {fact})" for fact in self.facts]
            + [f"{count} = {count} + excluded.{count}" for count in self.counts]
        )
        return f"INSERT INTO {name} VALUES ({marks}) ON CONFLICT DO UPDATE SET {changes}"


_TABLES = {
    "site": _Table(("site",), FACTS, COUNTS),
    "rule": _Table(("site", "line", "text"), counts=("refused",)),
    "hazard": _Table(("site", "cause", "line", "text", "allows"), counts=("pages",)),
    "usage": _Table(("site", "line", "text", "label"), facts=("preference",)),
    "sample": _Table(("site", "kind", "line", "rank"), facts=("url",)),
    "override": _Table(("site", "text"), counts=("allowed", "refused")),
    "failure": _Table(("reason",), counts=("attempts",)),
    "minute": _Table(("minute",), counts=("asked", "answered", "deferred", "allowed", "refused")),
    "about": _Table(("name",), facts=("value",)),
}
_ADD_TO_ABOUT = (
    "INSERT INTO about VALUES (?, ?) ON CONFLICT DO UPDATE SET value = value + excluded.value"
)
_OF_A_KIND = "FROM sample WHERE site = ? AND kind = ? AND line = ?"
_BEYOND = f"SELECT rank {_OF_A_KIND} ORDER BY rank LIMIT -1 OFFSET {SAMPLES}"


class Writer:
    """Writes batches into a new file. Its methods are called in a thread, one at a time.

    They raise sqlite3.Error and OSError; a batch is written whole or not at all.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self._samples = 0
        self._reasons: set[str] = set()
        self._connection: sqlite3.Connection | None = None

    def write(
        self,
        tally: Tally,
        *,
        now: float,
        about: Iterable[tuple[str, object]] = (),
        added: Mapping[str, int] = MappingProxyType({}),
    ) -> None:
        """Commit a batch, with values of what is said *about* the crawl, and counts *added* to."""
        connection = self._opened()
        with connection:
            connection.execute("BEGIN IMMEDIATE")
            for name, rows in self._rows(tally, now, about):
                connection.executemany(_TABLES[name].upsert(name), rows)
            samples = self._write_samples(connection, tally)
            connection.executemany(_ADD_TO_ABOUT, {**added, "lost": tally.lost}.items())
        self._samples = samples

    def close(self) -> None:
        """Close the file."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _opened(self) -> sqlite3.Connection:
        if self._connection is None:
            self._connection = _created(self.path)
        return self._connection

    def _rows(
        self, tally: Tally, now: float, about: Iterable[tuple[str, object]]
    ) -> Iterator[tuple[str, Iterable[tuple[object, ...]]]]:
        """Yield the name of each table and its rows."""
        yield (
            "site",
            (
                (site, *(row.get(fact) for fact in FACTS), *(row.get(count, 0) for count in COUNTS))
                for site, row in tally.sites.items()
            ),
        )
        for name, counter in (("rule", tally.rules), ("hazard", tally.hazards)):
            yield name, ((*key, count) for key, count in counter.items())
        yield (
            "override",
            (
                (site, text, count * (what == "allowed"), count * (what == "refused"))
                for (site, text, what), count in tally.overrides.items()
            ),
        )
        yield (
            "usage",
            (
                (*key, label, preference.value)
                for key, stated in tally.stated.items()
                for label, preference in stated or (("", Preference.UNKNOWN),)
            ),
        )
        yield "failure", ((self._named(reason), n) for reason, n in tally.failures.items())
        if tally.minute:
            counts = _TABLES["minute"].counts
            yield "minute", [(int(now // 60), *(tally.minute[count] for count in counts))]
        yield "about", about

    def _named(self, reason: str) -> str:
        if reason in self._reasons or len(self._reasons) < _REASONS_MOST:
            self._reasons.add(reason)
            return reason
        return "other reasons"

    def _write_samples(self, connection: sqlite3.Connection, tally: Tally) -> int:
        """Merge the samples; return how many there are then, or a few more."""
        samples = self._samples
        for (site, kind, line), urls in tally.samples.items():
            key = (site, kind, line)
            if (
                samples >= _SAMPLES_MOST
                and not connection.execute(f"SELECT 1 {_OF_A_KIND}", key).fetchone()
            ):
                continue
            # Without the site, which it begins with.
            rows = ((*key, rank, url.removeprefix(site)) for rank, url in urls)
            connection.executemany(_TABLES["sample"].upsert("sample"), rows)
            gone = connection.execute(
                f"DELETE {_OF_A_KIND} AND rank IN ({_BEYOND})", (*key, *key)
            ).rowcount
            samples += len(urls) - gone
        return samples


def _created(path: str) -> sqlite3.Connection:
    Path(path).absolute().parent.mkdir(parents=True, exist_ok=True)
    connection = sqlite3.connect(
        path, timeout=_BUSY_SECS, isolation_level=None, check_same_thread=False
    )
    try:
        # Who makes the page of a crawl that runs does not wait, nor make it wait. The switch
        # fails where somebody reads at this moment; without it all works.
        with suppress(sqlite3.OperationalError):
            connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        with connection:
            connection.execute("BEGIN IMMEDIATE")
            for name, table in _TABLES.items():
                connection.execute(table.created(name))
            connection.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version = {_VERSION}")
    except BaseException:
        connection.close()
        raise
    return connection


class DatabaseError(Exception):
    """The file cannot be read, or is none of ours. The message says what to do."""


@contextmanager
def reading(path: str) -> Iterator[sqlite3.Connection]:
    """Open a report's file to read; a crawl may be writing it. Raises DatabaseError.

    All text that is read is printable.
    """
    if not Path(path).is_file():
        raise DatabaseError(f"{path} is not there. A crawl with KOSTER_REPORT writes such a file")
    connection = None
    try:
        connection = sqlite3.connect(path, timeout=_BUSY_SECS, isolation_level=None)
        connection.text_factory = _harmless
        connection.row_factory = sqlite3.Row
        connection.execute("PRAGMA query_only = ON")
        connection.execute("PRAGMA trusted_schema = OFF")
        _check(connection)
        connection.execute("BEGIN")  # all that is read is of one moment
        yield connection
    except sqlite3.Error as error:
        raise DatabaseError(f"{path} cannot be read as the file of a report: {error}") from error
    finally:
        if connection is not None:
            with suppress(sqlite3.Error):
                connection.close()


def _harmless(octets: bytes) -> str:
    return printable(octets.decode("utf-8", "replace"), _TEXT_CHARS)


def _check(connection: sqlite3.Connection) -> None:
    [application_id] = connection.execute("PRAGMA application_id").fetchone()
    [version] = connection.execute("PRAGMA user_version").fetchone()
    if application_id != _APPLICATION_ID:
        raise sqlite3.DatabaseError("it is a database of another program")
    if version != _VERSION:
        raise sqlite3.DatabaseError(
            f"it is of version {version}, and this scrapy-koster reads version {_VERSION}"
        )

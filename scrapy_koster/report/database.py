"""The SQLite file of a report: written in batches while the crawl runs, read at any time."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from scrapy_koster.protocol.printable import printable
from scrapy_koster.protocol.usage import Preference
from scrapy_koster.report.tally import COUNTS, FACTS, SAMPLES

if TYPE_CHECKING:
    from scrapy_koster.report.tally import Tally

_APPLICATION_ID = 0x4B727074  # "Krpt"
_VERSION = 6
_BUSY_SECS = 5.0
_MINUTE_COUNTS = ("asked", "answered", "deferred", "allowed", "refused")
# Of lines, sites and kinds that come later there are no samples.
_SAMPLES_MOST = 10_000
_REASONS_MOST = 1000
_SITE_CHARS = 300
_TEXT_CHARS = 400

_TABLES = {
    "site": f"site TEXT NOT NULL PRIMARY KEY, {', '.join((*FACTS, *COUNTS))}",
    "rule": """
        site TEXT NOT NULL, line INTEGER NOT NULL, text TEXT NOT NULL, refused INTEGER NOT NULL,
        PRIMARY KEY (site, line, text)
    """,
    "hazard": """
        site TEXT NOT NULL, cause TEXT NOT NULL, line INTEGER NOT NULL, text TEXT NOT NULL,
        allows TEXT NOT NULL, pages INTEGER NOT NULL, PRIMARY KEY (site, cause, line, text, allows)
    """,
    "usage": """
        site TEXT NOT NULL, line INTEGER NOT NULL, text TEXT NOT NULL, label TEXT NOT NULL,
        preference TEXT NOT NULL, PRIMARY KEY (site, line, text, label)
    """,
    "sample": """
        site TEXT NOT NULL, kind TEXT NOT NULL, line INTEGER NOT NULL, rank INTEGER NOT NULL,
        url TEXT NOT NULL, PRIMARY KEY (site, kind, line, rank)
    """,
    "override": """
        site TEXT NOT NULL, text TEXT NOT NULL, allowed INTEGER NOT NULL, refused INTEGER NOT NULL,
        PRIMARY KEY (site, text)
    """,
    "failure": "reason TEXT NOT NULL PRIMARY KEY, attempts INTEGER NOT NULL",
    "minute": "minute INTEGER NOT NULL PRIMARY KEY, "
    + ", ".join(f"{name} INTEGER NOT NULL" for name in _MINUTE_COUNTS),
    "about": "name TEXT NOT NULL PRIMARY KEY, value NOT NULL",
}
"""The columns of each."""

_UPSERT_SITE = (
    f"INSERT INTO site (site, {', '.join((*FACTS, *COUNTS))})"
    f" VALUES ({', '.join('?' * (1 + len(FACTS) + len(COUNTS)))})"
    " ON CONFLICT DO UPDATE SET "
    + ", ".join(
        [f"{name} = coalesce(excluded.{name}, {name})" for name in FACTS]
        + [f"{name} = {name} + excluded.{name}" for name in COUNTS]
    )
)
_UPSERT_RULE = (
    "INSERT INTO rule VALUES (?, ?, ?, ?)"
    " ON CONFLICT DO UPDATE SET refused = refused + excluded.refused"
)
_UPSERT_OVERRIDE = (
    "INSERT INTO override VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE SET"
    " allowed = allowed + excluded.allowed, refused = refused + excluded.refused"
)
_UPSERT_HAZARD = (
    "INSERT INTO hazard VALUES (?, ?, ?, ?, ?, ?)"
    " ON CONFLICT DO UPDATE SET pages = pages + excluded.pages"
)
_UPSERT_USAGE = (
    "INSERT INTO usage VALUES (?, ?, ?, ?, ?)"
    " ON CONFLICT DO UPDATE SET preference = excluded.preference"
)
_UPSERT_FAILURE = (
    "INSERT INTO failure VALUES (?, ?)"
    " ON CONFLICT DO UPDATE SET attempts = attempts + excluded.attempts"
)
_UPSERT_MINUTE = "INSERT INTO minute VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET " + (
    ", ".join(f"{name} = {name} + excluded.{name}" for name in _MINUTE_COUNTS)
)
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
            connection.executemany(_UPSERT_SITE, map(_site_row, tally.sites.items()))
            connection.executemany(_UPSERT_RULE, map(_rule_row, tally.rules.items()))
            connection.executemany(_UPSERT_OVERRIDE, map(_override_row, tally.overrides.items()))
            connection.executemany(_UPSERT_HAZARD, map(_hazard_row, tally.hazards.items()))
            connection.executemany(_UPSERT_USAGE, _usage_rows(tally))
            samples = self._write_samples(connection, tally)
            connection.executemany(_UPSERT_FAILURE, self._named(tally))
            if tally.minute:
                counts = (tally.minute[name] for name in _MINUTE_COUNTS)
                connection.execute(_UPSERT_MINUTE, (int(now // 60), *counts))
            connection.executemany("INSERT OR REPLACE INTO about VALUES (?, ?)", about)
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

    def _named(self, tally: Tally) -> Iterator[tuple[str, int]]:
        for reason, attempts in tally.failures.items():
            known = reason in self._reasons or len(self._reasons) < _REASONS_MOST
            if known:
                self._reasons.add(reason)
            yield (reason if known else "other reasons"), attempts

    def _write_samples(self, connection: sqlite3.Connection, tally: Tally) -> int:
        """Merge the samples; return how many there are then, or a few more."""
        samples = self._samples
        for (site, kind, line), urls in tally.samples.items():
            key = (_named_site(site), kind, line)
            if (
                samples >= _SAMPLES_MOST
                and not connection.execute(f"SELECT 1 {_OF_A_KIND}", key).fetchone()
            ):
                continue
            # Without the site, which it begins with.
            rows = ((*key, rank, url.removeprefix(site)) for rank, url in urls)
            connection.executemany("INSERT OR REPLACE INTO sample VALUES (?, ?, ?, ?, ?)", rows)
            gone = connection.execute(
                f"DELETE {_OF_A_KIND} AND rank IN ({_BEYOND})", (*key, *key)
            ).rowcount
            samples += len(urls) - gone
        return samples


def _site_row(item: tuple[str, dict[str, object]]) -> tuple[object, ...]:
    site, row = item
    facts = (row.get(name) for name in FACTS)
    return (_named_site(site), *facts, *(row.get(name, 0) for name in COUNTS))


def _rule_row(item: tuple[tuple[str, int, str], int]) -> tuple[object, ...]:
    (site, line, text), refused = item
    return _named_site(site), line, text, refused


def _override_row(item: tuple[tuple[str, str, str], int]) -> tuple[object, ...]:
    (site, text, what), count = item
    allowed = count if what == "allowed" else 0
    return _named_site(site), text, allowed, count - allowed


def _hazard_row(item: tuple[tuple[str, str, int, str, str], int]) -> tuple[object, ...]:
    (site, *hazard), pages = item
    return _named_site(site), *hazard, pages


def _usage_rows(tally: Tally) -> Iterator[tuple[object, ...]]:
    for (site, line, text), stated in tally.stated.items():
        for label, preference in stated or (("", Preference.UNKNOWN),):
            yield _named_site(site), line, text, label, preference.value


def _named_site(site: str) -> str:
    """Return a site as it is written: a host may be any text."""
    return printable(site, _SITE_CHARS)


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
            for name, columns in _TABLES.items():
                connection.execute(f"CREATE TABLE {name} ({columns}) WITHOUT ROWID")
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

"""What is SQLite's own: the file, its other users, and what is wrong with it."""

from __future__ import annotations

import os
import random
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from scrapy_koster.protocol.access import CachedRobots
from scrapy_koster.protocol.site import Site
from scrapy_koster.storage import StorageError
from scrapy_koster.storage.contract import COPY, FAILURE, A, B
from scrapy_koster.storage.sqlite import SQLiteStorage


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "robots.sqlite3"


@pytest.fixture
def storage(path: Path) -> Iterator[SQLiteStorage]:
    with closing(SQLiteStorage(str(path))) as opened:
        yield opened


def execute(path: Path, *statements: str) -> list[tuple[object, ...]]:
    """Do what another program could do to the file; return the last answer."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for statement in statements:
            answer = connection.execute(statement).fetchall()
    return answer


def refusal(path: Path) -> str:
    """Return what opening the file is refused with."""
    with pytest.raises(StorageError) as refused:
        SQLiteStorage(str(path))
    message = str(refused.value)
    assert str(path) in message
    assert "move it away, or set KOSTER_SQLITE_PATH" in message
    return message


# Files that cannot be used


def written(n: int) -> tuple[Site, CachedRobots]:
    site = Site("http", f"{n}.example", 80)
    return site, CachedRobots(site.robots_url, 200, b"x" * 5000, None, None, float(n), float(n))


def filled(path: Path) -> int:
    """Fill the file with 100 sites; return its size."""
    with closing(SQLiteStorage(str(path))) as storage:
        for n in range(100):
            storage.put(*written(n))
    return path.stat().st_size


def outcome(path: Path) -> str:
    """Return how it ends to read and write all sites: well, or with the error."""
    try:
        with closing(SQLiteStorage(str(path))) as storage:
            for n in range(100):
                storage.get(written(n)[0])
                storage.put(*written(n))
            list(storage.sites())
    except StorageError as error:
        return str(error)
    return "well"


CORRUPTIONS = int(os.environ.get("CORRUPTIONS", "40"))


@pytest.mark.slow
def test_octets_at_random(path: Path) -> None:
    """Whatever they are: a copy that was stored, nothing, or a StorageError."""
    filled(path)
    whole = path.read_bytes()
    rng = random.Random(1996)
    for number in range(CORRUPTIONS):
        octets = bytearray(whole)
        for _ in range(rng.choice([1, 10, 1000])):
            octets[rng.randrange(len(octets))] = rng.randrange(256)
        damaged = path.with_name(f"{number}.sqlite3")
        damaged.write_bytes(octets)
        assert outcome(damaged)


@pytest.mark.parametrize(
    "statement",
    ["CREATE TABLE known (site)", "PRAGMA application_id = 1", "PRAGMA user_version = 1"],
)
def test_a_database_of_another_program(path: Path, statement: str) -> None:
    execute(path, "PRAGMA journal_mode = DELETE", statement)
    before = path.read_bytes()
    assert "another program" in refusal(path)
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.slow
def test_a_put_into_a_locked_file(storage: SQLiteStorage, path: Path) -> None:
    storage.put(A, COPY)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(StorageError, match="locked"):
            storage.put(A, FAILURE)
        with pytest.raises(StorageError, match="locked"):
            storage.forget(A)
        assert storage.get(A) == COPY
        other.execute("ROLLBACK")
        storage.put(A, FAILURE)
        assert storage.get(A) == FAILURE


# Rows that nobody put


@pytest.mark.parametrize(
    "change",
    [
        "known = 'Disallow:'",
        "known = NULL",
        "known = substr(known, 1, 50)",
        "known = known || x'00'",
        "known = zeroblob(13000000)",
        "site = x'00'",
        "site = CAST(x'ff' AS TEXT)",
        "site = 'http://a.example:x'",
        "site = 'http://a.example/robots.txt'",
    ],
)
def test_a_tampered_row(storage: SQLiteStorage, path: Path, change: str) -> None:
    storage.put(A, COPY)
    storage.put(B, COPY)
    execute(path, f"UPDATE site SET {change} WHERE site = '{A}'")
    assert storage.get(A) is None
    assert dict(storage.sites()) == {B: COPY}
    storage.put(A, COPY)
    assert storage.get(A) == COPY


# What is old


DAY_SECS = 86400.0
NOW = 1e9


def test_prune_leaves_what_is_in_use(storage: SQLiteStorage, path: Path) -> None:
    storage.claim(A, "a", now=NOW, secs=10.0)
    storage.claim(B, "a", now=NOW - 10 * DAY_SECS, secs=10.0)
    storage.begin_visit("a.example", "a", now=NOW - DAY_SECS / 2, secs=9.0)
    storage.begin_visit("b.example", "a", now=NOW - 2 * DAY_SECS, secs=9.0)
    being_renewed = Site("http", "c.example", 80)
    storage.put(being_renewed, COPY)
    storage.claim(being_renewed, "a", now=NOW, secs=10.0)
    storage.prune(now=NOW, secs=60.0)
    assert execute(path, "SELECT site FROM site") == [(str(A),), (str(being_renewed),)]
    assert execute(path, "SELECT host FROM lock") == [("a.example",)]


def test_the_file_shrinks(path: Path) -> None:
    size = filled(path)
    with closing(SQLiteStorage(str(path))) as storage:
        storage.prune(now=NOW, secs=60.0)
        assert list(storage.sites()) == []
    assert path.stat().st_size < size / 2


def test_prune_is_bounded_and_reaches_all(storage: SQLiteStorage, path: Path) -> None:
    numbers = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 25000)"
    execute(path, f"INSERT INTO lock (host, until) {numbers} SELECT i || '.example', 1.0 FROM n")
    execute(path, f"INSERT INTO site (site) {numbers} SELECT i || '.example' FROM n")
    storage.prune(now=NOW, secs=60.0)
    assert execute(path, "SELECT count(*) FROM lock") == [(15000,)]
    assert execute(path, "SELECT count(*) >= 15000 FROM site") == [(1,)]
    for _ in range(8_000):  # a crawl that adds many sites prunes more
        storage.put(B, COPY)
    storage.prune(now=NOW, secs=60.0)
    for table in ("lock", "site"):
        assert execute(path, f"SELECT count(*) FROM {table}") == [(0,)]

"""Claims and visits of processes, of wrong clocks, and by somebody else, beyond the contract."""

from __future__ import annotations

import sqlite3
import time
from contextlib import closing
from pathlib import Path

import pytest
from harness.storages import place_of

from scrapy_koster.storage import Pacing, lease_left

HOST = "a.example"
SECS = 30.0


def begin(storage: Pacing, *, now: float | None = None) -> float:
    """The seconds until another process may visit the host."""
    return storage.begin_visit(HOST, "y", now=time.time() if now is None else now, secs=SECS)


# Clocks, of those who go by their own.


def test_a_claim_of_a_clock_that_ran_ahead_is_void() -> None:
    left = (-1.0, 0.0, 0.1, 60.0, 60.1, float("inf"))
    assert [lease_left(secs, 30.0) for secs in left] == [0.0, 0.0, 0.1, 60.0, 0.0, 0.0]


@pytest.mark.parametrize(
    ("ended", "left_secs"),
    [
        pytest.param(970.0, 0.0, id="just now over"),
        pytest.param(1029.0, 59.0, id="put back by less than a gap"),
        pytest.param(1031.0, 0.0, id="put back by more"),
        pytest.param(4e9, 0.0, id="a clock of another time"),
    ],
)
def test_a_clock_that_jumped(tmp_path: Path, ended: float, left_secs: float) -> None:
    with closing(place_of("sqlite", tmp_path).open()) as storage:
        storage.end_visit(HOST, "x", now=ended, secs=SECS)
        assert begin(storage, now=1000.0) == left_secs


# What somebody else put there.


@pytest.mark.parametrize("column", ["owner", "until", "secs"])
@pytest.mark.parametrize("value", ["x'00'", "9e999", "'x'", "NULL"])
def test_a_tampered_lock_holds_a_host_no_longer_than_it_says(
    tmp_path: Path, column: str, value: str
) -> None:
    """A row that makes no sense is void, or holds the host for no longer than it says."""
    place = place_of("sqlite", tmp_path)
    with closing(place.open()) as storage:
        storage.begin_visit(HOST, "x", now=time.time(), secs=SECS)
        with closing(sqlite3.connect(place.sqlite_path)) as connection, connection:
            connection.execute(f"UPDATE lock SET {column} = {value}")
        assert begin(storage) <= SECS
        storage.end_visit(HOST, "y", now=time.time(), secs=SECS)
        assert 0 < storage.begin_visit(HOST, "z", now=time.time(), secs=SECS) <= SECS

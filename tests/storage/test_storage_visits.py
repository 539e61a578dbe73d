"""The contract of a visit: of those who share a storage, one visits a host at a time."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path
from threading import Barrier
from typing import Any, TypeAlias

import pytest
import redis
from harness.storages import IMPLEMENTATIONS, SHARED, Place, output, place_of, start

from scrapy_koster.protocol.access import Copy
from scrapy_koster.protocol.site import Site
from scrapy_koster.storage import Storage, StorageError

HOST = "a.example"
SECS = 30.0
BOUND_SECS = 30.0
LATE_SECS = 5.0
"""What a slow machine may take between two calls."""
Open: TypeAlias = Callable[[], Storage]


@pytest.fixture(params=IMPLEMENTATIONS)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    return place_of(request.param, tmp_path)


@pytest.fixture
def another(place: Place) -> Iterator[Open]:
    """Opens the storage once more, as another process does; that in memory is one for all."""
    with ExitStack() as opened:
        one = opened.enter_context(closing(place.open()))
        shared = place.name in SHARED
        yield lambda: opened.enter_context(closing(place.open())) if shared else one


@pytest.fixture
def storage(another: Open) -> Storage:
    return another()


@pytest.fixture
def other(storage: Storage, another: Open) -> Storage:
    return another()


def visit(storage: Storage, host: str = HOST, *, secs: float = SECS, begun: bool = False) -> float:
    return storage.visit(host, now=time.time(), secs=secs, begun=begun)


# When it may begin.


def test_the_first_may_begin(storage: Storage) -> None:
    assert visit(storage) == 0.0


def test_the_next_may_not_yet(storage: Storage, other: Storage) -> None:
    visit(storage)
    for each in (storage, other):
        assert SECS - LATE_SECS < visit(each) <= SECS


def test_asking_early_puts_nothing_off(storage: Storage, other: Storage) -> None:
    visit(storage, secs=0.5)
    began, asked = time.monotonic(), 0
    while left := visit(other, secs=0.5):
        assert time.monotonic() - began < BOUND_SECS
        asked += 1
        time.sleep(min(left, 0.05))
    assert asked > 1
    assert time.monotonic() - began <= 0.5 + LATE_SECS


def test_not_before_its_time(storage: Storage, other: Storage) -> None:
    began = time.monotonic()
    visit(storage, secs=0.3)
    while left := visit(other, secs=0.3):
        assert time.monotonic() - began < BOUND_SECS
        time.sleep(left)
    assert time.monotonic() - began > 0.29


def test_each_host_has_its_own(storage: Storage, other: Storage) -> None:
    assert visit(storage, "a.example") == visit(other, "b.example") == 0.0
    assert visit(storage, "b.example") > 0
    assert visit(storage, "[::1]") == visit(other, "bücher.example") == 0.0


def test_one_that_has_begun_is_noted(storage: Storage, other: Storage) -> None:
    assert visit(storage, begun=True) == 0.0
    assert SECS - LATE_SECS < visit(other) <= SECS


def test_one_that_has_begun_counts_from_then(storage: Storage, other: Storage) -> None:
    visit(storage, secs=10.0)
    assert visit(other, secs=SECS, begun=True) == 0.0
    assert visit(storage, secs=SECS) > 10.0


def test_a_gap_of_nothing(storage: Storage) -> None:
    visit(storage, secs=1e-9)
    time.sleep(0.01)
    assert visit(storage, secs=1e-9) == 0.0


def test_a_gap_of_a_year(storage: Storage, other: Storage) -> None:
    year = 366 * 86400.0
    assert visit(storage, secs=year) == 0.0
    assert year - LATE_SECS < visit(other, secs=year) <= year


def test_visits_are_no_sites(storage: Storage) -> None:
    visit(storage)
    assert list(storage.sites()) == []
    site = Site("http", HOST, 80)
    assert storage.get(site) is None
    assert not storage.forget(site)
    assert visit(storage) > 0


# One of many.


def test_of_eight_threads_one_may(storage: Storage) -> None:
    threads, rounds = 8, 25
    together = Barrier(threads, timeout=BOUND_SECS)

    def mine() -> list[int]:
        won = []
        for n in range(rounds):
            together.wait()
            if not visit(storage, f"{n}.example"):
                won.append(n)
        return won

    with ThreadPoolExecutor(threads) as pool:
        futures = [pool.submit(mine) for _ in range(threads)]
        won = [n for future in futures for n in future.result(timeout=BOUND_SECS)]
    assert sorted(won) == list(range(rounds))


VISITOR = """
import random, sys, time
from harness.storages import Place

storage = Place.read(sys.argv[1]).open()
hosts = [f"{n}.example" for n in range(100)]
random.Random(sys.argv[2]).shuffle(hosts)
print("ready", flush=True)
sys.stdin.readline()
for host in hosts:
    if not storage.visit(host, now=time.time(), secs=60):
        print(host)
storage.close()
"""


def test_of_two_processes_one_may(tmp_path: Path) -> None:
    place = place_of("sqlite", tmp_path)
    processes = [start(VISITOR, place, seed) for seed in "ab"]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    won = [line for process in processes for line in output(process).splitlines()]
    assert sorted(won) == sorted(f"{n}.example" for n in range(100))


@pytest.mark.parametrize("name", SHARED)
def test_it_outlives_the_process(name: str, tmp_path: Path) -> None:
    place = place_of(name, tmp_path)
    with closing(place.open()) as storage:
        visit(storage)
    with closing(place.open()) as storage:
        assert visit(storage) > 0


def test_memory_is_bounded(tmp_path: Path) -> None:
    place = replace(place_of("memory", tmp_path), memory_sites=3)
    with closing(place.open()) as storage:
        for n in range(4):
            visit(storage, f"{n}.example")
        visit(storage, "1.example", begun=True)
        assert visit(storage, "3.example") > 0
        assert visit(storage, "0.example") == 0.0  # forgotten; now 2.example goes out
        assert visit(storage, "1.example") > 0


# Clocks, of those who go by their own.


@pytest.mark.parametrize("name", ["memory", "sqlite"])
@pytest.mark.parametrize(
    ("visited", "left_secs"),
    [
        pytest.param(970.0, 0.0, id="just now over"),
        pytest.param(970.5, 0.5, id="early"),
        pytest.param(1000.0, 30.0, id="now"),
        pytest.param(1029.0, 59.0, id="put back by less than a gap"),
        pytest.param(1031.0, 0.0, id="put back by more"),
        pytest.param(4e9, 0.0, id="a clock of another time"),
        pytest.param(-1e12, 0.0, id="long ago"),
    ],
)
def test_a_clock_that_jumped(tmp_path: Path, name: str, visited: float, left_secs: float) -> None:
    with closing(place_of(name, tmp_path).open()) as storage:
        storage.visit(HOST, now=visited, secs=SECS, begun=True)
        assert storage.visit(HOST, now=1000.0, secs=SECS) == left_secs
        # What is void is no more, whoever asks next.
        expected = left_secs or SECS
        assert storage.visit(HOST, now=1000.0, secs=SECS) == expected


# What somebody else put there.


@pytest.mark.parametrize("visited", ["'later'", "x'00'", "9e999", "-9e999"])
def test_in_the_file(tmp_path: Path, visited: str) -> None:
    place = place_of("sqlite", tmp_path)
    with closing(place.open()) as storage:
        visit(storage)
        with closing(sqlite3.connect(place.sqlite_path)) as connection, connection:
            connection.execute(f"UPDATE visit SET visited = {visited}")
        assert visit(storage) == 0.0
        assert SECS - LATE_SECS < visit(storage) <= SECS


@pytest.mark.parametrize("milliseconds", [None, 10**12, 2 * 30_000 + 5_000])
@pytest.mark.parametrize("kind", ["text", "list"])
def test_in_redis(tmp_path: Path, kind: str, milliseconds: int | None) -> None:
    place = place_of("redis", tmp_path)
    key = f"{place.redis_prefix}:1:visit:{{{HOST}}}"
    client: Any = redis.Redis.from_url(place.redis_url)
    with closing(client), closing(place.open()) as storage:
        if kind == "text":
            client.set(key, "x" * 1000)
        else:
            client.lpush(key, "x")
        if milliseconds is not None:
            client.pexpire(key, milliseconds)
        assert visit(storage) == 0.0
        assert 25_000 < client.pttl(key) <= 30_000
        assert visit(storage) > 0


def test_in_redis_it_ends_by_itself(tmp_path: Path) -> None:
    place = place_of("redis", tmp_path)
    client: Any = redis.Redis.from_url(place.redis_url)
    with closing(client), closing(place.open()) as storage:
        visit(storage, secs=0.2)
        storage.visit("b.example", now=0.0, secs=1e12)
        storage.put(Site("http", HOST, 80), Copy("u", 200, b"", None, None, 1.0, 2.0))
        head = f"{place.redis_prefix}:1:visit:"
        keys = {key.decode() for key in client.scan_iter(f"{head}*")}
        assert keys <= {f"{head}{{a.example}}", f"{head}{{b.example}}"}
        assert client.pttl(f"{head}{{b.example}}") > 0
        end = time.monotonic() + BOUND_SECS
        while client.exists(f"{head}{{a.example}}"):
            assert time.monotonic() < end
            time.sleep(0.02)


# Errors.


@pytest.mark.parametrize("name", IMPLEMENTATIONS)
@pytest.mark.parametrize("begun", [False, True])
def test_after_close(name: str, tmp_path: Path, begun: bool) -> None:
    storage = place_of(name, tmp_path).open()
    storage.close()
    with pytest.raises(StorageError):
        visit(storage, begun=begun)


def test_a_file_without_the_table(tmp_path: Path) -> None:
    place = place_of("sqlite", tmp_path)
    with closing(place.open()) as storage:
        with closing(sqlite3.connect(place.sqlite_path)) as connection, connection:
            connection.execute("DROP TABLE visit")
        with pytest.raises(StorageError, match="no such table"):
            visit(storage)

"""The contract of a claim: of those who share a storage, one asks a site."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path
from threading import Barrier
from typing import TypeAlias

import pytest
from harness.storages import SHARED, Place, output, place_of, start

from scrapy_koster.protocol.access import Copy
from scrapy_koster.protocol.site import Site
from scrapy_koster.storage import Claimed, Storage, StorageError, held_secs

A = Site("http", "a.example", 80)
B = Site("http", "b.example", 80)
COPY = Copy("http://a.example/robots.txt", 200, b"Disallow:\n", '"1"', "x", 1000.0, 2000.0)
LATER = replace(COPY, body=b"", fetched=1001.0)
SECS = 30.0
BOUND_SECS = 30.0
Open: TypeAlias = Callable[[], Storage]


@pytest.fixture(params=SHARED)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    return place_of(request.param, tmp_path)


@pytest.fixture
def another(place: Place) -> Iterator[Open]:
    """Opens the storage once more, as another process does."""
    with ExitStack() as opened:
        yield lambda: opened.enter_context(closing(place.open()))


@pytest.fixture
def storage(another: Open) -> Storage:
    return another()


@pytest.fixture
def other(storage: Storage, another: Open) -> Storage:
    return another()


def claim(storage: Storage, owner: str, *, secs: float = SECS, site: Site = A) -> Claimed:
    return storage.claim(site, owner, now=time.time(), secs=secs)


def is_held(claimed: Claimed) -> bool:
    return claimed.held_secs > 0


# 1. Exactly one is granted.


def test_of_eight_threads_one_is_granted(storage: Storage) -> None:
    threads, rounds = 8, 25
    together = Barrier(threads, timeout=BOUND_SECS)

    def granted(thread: int) -> list[int]:
        mine = []
        for n in range(rounds):
            together.wait()
            site = Site("http", f"{n}.example", 80)
            if not is_held(claim(storage, str(thread), site=site)):
                mine.append(n)
        return mine

    with ThreadPoolExecutor(threads) as pool:
        futures = [pool.submit(granted, thread) for thread in range(threads)]
        all_granted = [n for future in futures for n in future.result(timeout=BOUND_SECS)]
    assert sorted(all_granted) == list(range(rounds))


CLAIMANT = """
import random, sys, time
from scrapy_koster.protocol.site import Site
from harness.storages import Place

storage = Place.read(sys.argv[1]).open()
sites = [Site("http", f"{n}.example", 80) for n in range(100)]
random.Random(sys.argv[2]).shuffle(sites)
print("ready", flush=True)
sys.stdin.readline()
for site in sites:
    if not storage.claim(site, sys.argv[2], now=time.time(), secs=60).held_secs:
        print(site)
storage.close()
"""


def test_of_four_processes_one_is_granted(place: Place) -> None:
    processes = [start(CLAIMANT, place, owner) for owner in "abcd"]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    granted = [line for process in processes for line in output(process).splitlines()]
    assert sorted(granted) == sorted(f"http://{n}.example" for n in range(100))


def test_what_is_claimed_is_one_site(storage: Storage, other: Storage) -> None:
    assert not is_held(claim(storage, "a", site=A))
    assert not is_held(claim(other, "b", site=B))


# 2. After its time, not before.


def test_a_claim_that_has_run_out_is_granted_to_another(storage: Storage, other: Storage) -> None:
    began = time.monotonic()
    claim(storage, "a", secs=0.3)
    held = claim(other, "b", secs=0.3).held_secs
    assert 0 < held <= 0.3
    while is_held(claimed := claim(other, "b", secs=SECS)):
        assert time.monotonic() - began < BOUND_SECS
        time.sleep(claimed.held_secs)
    assert time.monotonic() - began > 0.29
    assert is_held(claim(storage, "a"))


def test_for_how_long_it_is_held(storage: Storage, other: Storage) -> None:
    claim(storage, "a")
    assert SECS - 5 < claim(other, "b").held_secs <= SECS


# 3. No gap between put and release.


def test_who_is_granted_knows_what_was_put(storage: Storage, other: Storage) -> None:
    def next_owner() -> Claimed:
        end = time.monotonic() + BOUND_SECS
        while is_held(claimed := claim(other, "b")):
            assert time.monotonic() < end
        return claimed

    with ThreadPoolExecutor(1) as pool:
        for n in range(30):
            known = replace(COPY, fetched=1000.0 + n)
            assert not is_held(claim(storage, "a"))
            claimed = pool.submit(next_owner)
            storage.put(A, known, "a")
            assert claimed.result(timeout=BOUND_SECS) == Claimed(known, 0.0)
            other.release(A, "b")


def test_who_is_not_granted_knows_it_too(storage: Storage, other: Storage) -> None:
    storage.put(A, COPY)
    claim(storage, "a")
    assert claim(other, "b").known == COPY


# 4. Again.


def test_ones_own_claim_is_prolonged(storage: Storage, other: Storage) -> None:
    claim(storage, "a", secs=1)
    assert not is_held(claim(storage, "a", secs=SECS))
    assert claim(other, "b").held_secs > 1


# 5. and 6. Who ends it.


def test_release_ends_it(storage: Storage, other: Storage) -> None:
    claim(storage, "a")
    storage.release(A, "a")
    storage.release(A, "a")
    assert not is_held(claim(other, "b"))


@pytest.mark.parametrize("owner", ["b", "", "*"])
def test_what_another_does_ends_nothing(storage: Storage, other: Storage, owner: str) -> None:
    claim(storage, "a")
    other.put(A, COPY, owner)
    other.release(A, owner)
    other.put(A, LATER)
    claimed = claim(other, "c")
    assert is_held(claimed)
    assert claimed.known == LATER


def test_a_put_that_is_superseded_ends_the_claim(storage: Storage, other: Storage) -> None:
    other.put(A, LATER)
    claim(storage, "a")
    storage.put(A, COPY, "a")
    assert claim(other, "b") == Claimed(LATER, 0.0)


def test_forget_and_list_know_no_claims(storage: Storage) -> None:
    claim(storage, "a")
    assert list(storage.sites()) == []
    assert not storage.forget(A)


# 7. Clocks.


@pytest.mark.parametrize(
    ("left_secs", "held"),
    [(-1.0, 0.0), (0.0, 0.0), (0.1, 0.1), (60.0, 60.0), (60.1, 0.0), (float("inf"), 0.0)],
)
def test_a_claim_of_a_clock_that_ran_ahead_is_void(left_secs: float, held: float) -> None:
    assert held_secs(left_secs, 30.0) == held


def test_one_in_the_file(tmp_path: Path) -> None:
    place = place_of("sqlite", tmp_path)
    with closing(place.open()) as storage, closing(place.open()) as other:
        storage.claim(A, "a", now=time.time() + 3600, secs=SECS)
        assert not is_held(claim(other, "b"))
        assert is_held(claim(storage, "a"))


# 8. Errors.


@pytest.mark.parametrize(
    "call",
    [
        lambda storage: claim(storage, "a"),
        lambda storage: storage.release(A, "a"),
        lambda storage: storage.put(A, COPY, "a"),
    ],
    ids=["claim", "release", "put"],
)
@pytest.mark.parametrize("name", SHARED)
def test_after_close(name: str, tmp_path: Path, call: Callable[[Storage], object]) -> None:
    storage = place_of(name, tmp_path).open()
    storage.close()
    with pytest.raises(StorageError):
        call(storage)


# One process alone.


def test_memory_grants_always(tmp_path: Path) -> None:
    with closing(place_of("memory", tmp_path).open()) as storage:
        storage.put(A, COPY, "a")
        assert claim(storage, "a") == claim(storage, "b") == Claimed(COPY, 0.0)
        storage.release(A, "a")
    with pytest.raises(StorageError):
        claim(storage, "a")


# Unless something is known.


def test_what_is_known_is_said_and_nothing_is_claimed(storage: Storage, other: Storage) -> None:
    storage.put(A, COPY)
    found = storage.claim(A, "a", now=time.time(), secs=SECS, unless_known=True)
    assert found == Claimed(COPY, 0.0)
    assert not is_held(claim(other, "b"))


def test_what_is_not_known_is_claimed(storage: Storage, other: Storage) -> None:
    found = storage.claim(A, "a", now=time.time(), secs=SECS, unless_known=True)
    assert found == Claimed(None, 0.0)
    assert is_held(claim(other, "b"))
    assert is_held(other.claim(A, "b", now=time.time(), secs=SECS, unless_known=True))
    storage.put(A, COPY, "a")
    found = other.claim(A, "b", now=time.time(), secs=SECS, unless_known=True)
    assert found == Claimed(COPY, 0.0)

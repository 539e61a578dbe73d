"""The contract of a storage, run over every implementation."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from harness.storages import IMPLEMENTATIONS, SHARED, place_of
from scrapy.utils.misc import load_object

from scrapy_koster.protocol.access import CachedRobots, CacheEntry
from scrapy_koster.protocol.policy import Policy
from scrapy_koster.protocol.site import Site
from scrapy_koster.storage import Claimed, Claiming, Pacing, Storage, StorageError, contract
from scrapy_koster.storage.contract import COPY, FAILURE, A, B, Check
from scrapy_koster.storage.latest import clamped_to_policy, is_newer
from scrapy_koster.storage.memory import MemoryStorage


def opening(name: str, folder: Path) -> Callable[[str], Storage]:
    """Opens storages as other processes do; one in memory is the same for all of a robot."""
    place, of_robots = place_of(name, folder), {}

    def opens(robot: str) -> Any:
        if name in SHARED or robot not in of_robots:
            of_robots[robot] = place.open(robot)
        return of_robots[robot]

    return opens


CASES = [
    pytest.param(name, check, id=f"{name}: {what}")
    for name, path in IMPLEMENTATIONS.items()
    for what, check in contract.checks(load_object(path)).items()
]


@pytest.mark.parametrize(("name", "check"), CASES)
def test_the_contract(name: str, check: Check, tmp_path: Path) -> None:
    check(opening(name, tmp_path))


def test_the_part_of_the_contract_that_each_has() -> None:
    classes = {name: load_object(path) for name, path in IMPLEMENTATIONS.items()}
    count = {name: len(contract.checks(kind)) for name, kind in classes.items()}
    assert count["sqlite"] > count["redis"] > count["memory"]
    assert not issubclass(MemoryStorage, Pacing)
    assert not issubclass(MemoryStorage, Claiming)


# A contract that never fails would say nothing.


class Keeps(MemoryStorage):
    """One defect each, below."""

    def __init__(self) -> None:
        super().__init__(1000)


class Forgetful(Keeps):
    def put(self, site: Site, copy: CacheEntry) -> None:
        pass


class LastWins(Keeps):
    def put(self, site: Site, copy: CacheEntry) -> None:
        self.forget(site)
        super().put(site, copy)


class OfAllRobots(Keeps):
    """The same for each robot."""


class GrantsAll(Keeps):
    def claim(self, site: Site, owner: str, **how: Any) -> Claimed:
        return Claimed(self.get(site), 0.0)

    def release(self, site: Site, owner: str) -> None:
        pass


class Hasty(Keeps):
    def begin_visit(self, host: str, owner: str, **how: Any) -> float:
        return 0.0

    def end_visit(self, host: str, owner: str, **how: Any) -> None:
        pass


@pytest.mark.parametrize(
    ("defective", "found"),
    [
        (Forgetful, "get_returns_the_value_that_was_put"),
        (LastWins, "the_later_value_is_kept"),
        (OfAllRobots, "each_robot_has_its_own_values"),
        (GrantsAll, "one_of_eight_claims_succeeds"),
        (GrantsAll, "a_claim_is_of_one_site_and_robot"),
        (Hasty, "a_host_is_locked_until_the_visit_ends"),
        (Hasty, "a_host_rests_after_a_visit"),
    ],
)
def test_the_contract_finds_a_defect(defective: type[Keeps], found: str) -> None:
    of_robots = {"a": defective(), "b": defective()}
    if defective is OfAllRobots:
        of_robots["b"] = of_robots["a"]
    with pytest.raises(AssertionError):
        contract.checks(defective)[found](lambda robot: of_robots[robot])


@pytest.mark.parametrize("name", SHARED)
def test_a_value_that_would_not_be_read_back_is_not_stored(name: str, tmp_path: Path) -> None:
    strange = Site("http", "\udcff", 80)
    largest = replace(COPY, body=bytes(10 * 2**20))
    with closing(place_of(name, tmp_path).open()) as storage:
        calls: list[Callable[[], object]] = [
            lambda: storage.put(A, replace(FAILURE, reason="\udcff")),
            lambda: storage.put(strange, COPY),
            lambda: storage.get(strange),
            lambda: storage.put(A, replace(COPY, body=bytes(10 * 2**20 + 1))),
        ]
        for call in calls:
            with pytest.raises(StorageError):
                call()
        assert storage.get(A) is None
        storage.put(A, largest)
        assert storage.get(A) == largest


def test_memory_gives_up_the_least_recently_used() -> None:
    storage = MemoryStorage(600)
    storage.put(A, COPY)
    storage.put(B, COPY)
    storage.get(A)
    c = Site("http", "c.example", 80)
    storage.put(c, COPY)
    assert dict(storage.sites()) == {A: COPY, c: COPY}


# What is read back, by the settings of today.

POLICY = Policy(expiry_secs=1000, restricted_expiry_secs=100, expiry_max_secs=5000)
BODY = b"User-agent: *\nDisallow: /a\nDisallow: /b\n"
WHOLE = replace(COPY, body=BODY, fetched=0.0, expires=9e9)
CUT = replace(WHOLE, cut_bytes=50)


POLICY_OF_AGES = Policy(expiry_secs=1e10, expiry_max_secs=1e10)


def test_a_file_that_was_cut_shorter_than_the_limit_of_today_is_not_known() -> None:
    for max_bytes in (50, 30):
        assert clamped_to_policy(CUT, policy=POLICY_OF_AGES, max_bytes=max_bytes) == CUT
    assert clamped_to_policy(CUT, policy=POLICY, max_bytes=51) is None
    failure = replace(FAILURE, stale=CUT)
    assert clamped_to_policy(failure, policy=POLICY, max_bytes=51) == replace(FAILURE, stale=None)


@pytest.mark.parametrize(
    ("stored", "life_secs"),
    [
        pytest.param(replace(WHOLE, life_stated=True), 5000, id="stated"),
        pytest.param(replace(WHOLE, life_stated=True, expires=9.0), 9, id="stated, shorter"),
        pytest.param(WHOLE, 1000, id="by default"),
        pytest.param(replace(WHOLE, status=403), 100, id="restricted, by default"),
        pytest.param(replace(WHOLE, status=403, life_stated=True), 5000, id="restricted, stated"),
    ],
)
def test_a_copy_lives_no_longer_than_today(stored: CachedRobots, life_secs: float) -> None:
    for fetched in (0.0, 7.0):
        moved = replace(stored, fetched=fetched, expires=stored.expires + fetched)
        found = clamped_to_policy(moved, policy=POLICY, max_bytes=100)
        assert isinstance(found, CachedRobots)
        assert found.expires == fetched + life_secs


# What a claim says is taken where it is newer.


@pytest.mark.parametrize(
    ("found", "known", "taken"),
    [
        pytest.param(COPY, None, True, id="nothing was known"),
        pytest.param(COPY, COPY, False, id="the same"),
        pytest.param(COPY, replace(COPY, fetched=1000.0), True, id="newer"),
        pytest.param(COPY, replace(COPY, fetched=1001.0), False, id="older"),
        pytest.param(COPY, replace(FAILURE, asked=1001.0), False, id="older than a failure"),
        pytest.param(replace(COPY, fetched=1e9), None, False, id="of a clock that runs ahead"),
        pytest.param(replace(COPY, fetched=1e9), COPY, False, id="newer, of such a clock"),
        pytest.param(COPY, replace(COPY, fetched=1e9), True, id="in place of such a one"),
    ],
)
def test_what_is_news(found: CacheEntry, known: CacheEntry | None, *, taken: bool) -> None:
    assert is_newer(found, known, now=3000.0) is taken

"""What a storage with claims promises: of several owners one may fetch a robots.txt."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from threading import Barrier
from typing import Any

from scrapy_koster.protocol.site import Site
from scrapy_koster.storage.contract.check import (
    BOUND_SECS,
    COPY,
    NEWER,
    ROUNDS,
    SECS,
    SLOW_SECS,
    A,
    B,
    Checks,
    fails,
    in_threads,
)
from scrapy_koster.storage.port import Claimed

CHECKS = Checks()


def _claim(storage: Any, owner: str, *, secs: float = SECS, site: Site = A) -> Claimed:
    claimed: Claimed = storage.claim(site, owner, now=time.time(), secs=secs)
    return claimed


def _is_held(claimed: Claimed) -> bool:
    return claimed.held_secs > 0


@CHECKS.add
def of_eight_owners_one_succeeds(one: Any, two: Any) -> None:
    def granted(thread: int, together: Barrier) -> list[int]:
        mine = []
        for n in range(ROUNDS):
            together.wait()
            site = Site("http", f"{n}.example", 80)
            if not _is_held(_claim((one, two)[thread % 2], str(thread), site=site)):
                mine.append(n)
        return mine

    won = [n for mine in in_threads(granted) for n in mine]
    assert sorted(won) == list(range(ROUNDS))


@CHECKS.add
def a_claim_is_of_one_site(one: Any, two: Any) -> None:
    assert not _is_held(_claim(one, "a", site=A))
    assert not _is_held(_claim(two, "b", site=B))


@CHECKS.add
def a_claim_that_has_run_out_goes_to_another_owner(one: Any, two: Any) -> None:
    began = time.monotonic()
    _claim(one, "a", secs=0.3)
    held = _claim(two, "b", secs=0.3).held_secs
    assert 0 < held <= 0.3
    while _is_held(claimed := _claim(two, "b")):
        assert time.monotonic() - began < BOUND_SECS
        time.sleep(claimed.held_secs)
    assert time.monotonic() - began > 0.29
    assert _is_held(_claim(one, "a"))


@CHECKS.add
def a_claim_that_fails_says_for_how_long(one: Any, two: Any) -> None:
    _claim(one, "a")
    assert SECS - SLOW_SECS < _claim(two, "b").held_secs <= SECS


@CHECKS.add
def put_and_the_end_of_the_claim_are_one_step(one: Any, two: Any) -> None:
    def next_owner() -> Claimed:
        end = time.monotonic() + BOUND_SECS
        while _is_held(claimed := _claim(two, "b")):
            assert time.monotonic() < end
        return claimed

    with ThreadPoolExecutor(1) as pool:
        for n in range(30):
            known = replace(COPY, fetched=1000.0 + n)
            assert not _is_held(_claim(one, "a"))
            claimed = pool.submit(next_owner)
            one.put(A, known, "a")
            assert claimed.result(timeout=BOUND_SECS) == Claimed(known, 0.0)
            two.release(A, "b")


@CHECKS.add
def a_claim_that_fails_says_what_is_known(one: Any, two: Any) -> None:
    one.put(A, COPY)
    _claim(one, "a")
    assert _claim(two, "b").known == COPY


@CHECKS.add
def an_owner_prolongs_its_claim(one: Any, two: Any) -> None:
    _claim(one, "a", secs=1)
    assert not _is_held(_claim(one, "a"))
    assert _claim(two, "b").held_secs > 1


@CHECKS.add
def release_ends_a_claim(one: Any, two: Any) -> None:
    _claim(one, "a")
    one.release(A, "a")
    one.release(A, "a")
    assert not _is_held(_claim(two, "b"))


@CHECKS.each({"b": "b", "no name": "", "*": "*"})
def another_owner_ends_nothing(one: Any, two: Any, owner: str) -> None:
    _claim(one, "a")
    two.put(A, COPY, owner)
    two.release(A, owner)
    two.put(A, NEWER)
    claimed = _claim(two, "c")
    assert _is_held(claimed)
    assert claimed.known == NEWER


@CHECKS.add
def a_put_that_is_superseded_ends_the_claim(one: Any, two: Any) -> None:
    two.put(A, NEWER)
    _claim(one, "a")
    one.put(A, COPY, "a")
    assert _claim(two, "b") == Claimed(NEWER, 0.0)


@CHECKS.add
def a_claimed_site_is_not_a_known_one(one: Any, two: Any) -> None:
    _claim(one, "a")
    assert list(one.sites()) == []
    assert one.get(A) is None
    assert not one.forget(A)


@CHECKS.add
def a_claim_after_close_fails(one: Any, two: Any) -> None:
    one.close()
    fails(lambda: _claim(one, "a"))
    fails(lambda: one.release(A, "a"))
    fails(lambda: one.put(A, COPY, "a"))


@CHECKS.add
def a_known_site_is_not_claimed_unless_it_is_unknown(one: Any, two: Any) -> None:
    one.put(A, COPY)
    found = one.claim(A, "a", now=time.time(), secs=SECS, unless_known=True)
    assert found == Claimed(COPY, 0.0)
    assert not _is_held(_claim(two, "b"))


@CHECKS.add
def an_unknown_site_is_claimed(one: Any, two: Any) -> None:
    def claim(storage: Any, owner: str) -> Any:
        return storage.claim(A, owner, now=time.time(), secs=SECS, unless_known=True)

    assert claim(one, "a") == Claimed(None, 0.0)
    assert _is_held(_claim(two, "b"))
    assert _is_held(claim(two, "b"))
    one.put(A, COPY, "a")
    assert claim(two, "b") == Claimed(COPY, 0.0)


@CHECKS.add
def what_is_shared_outlives_who_put_it(one: Any, two: Any) -> None:
    one.put(A, COPY)
    _claim(one, "a", site=B)
    one.close()
    assert two.get(A) == COPY
    assert _is_held(_claim(two, "b", site=B))

"""What a storage with pipelines promises: calls sent together are as good as one by one."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from threading import Barrier
from typing import Any

from scrapy_koster.protocol.site import Site
from scrapy_koster.storage.contract.check import (
    COPY,
    FAILURE,
    NEWER,
    ROUNDS,
    SECS,
    A,
    B,
    Check,
    Checks,
    fails,
    in_threads,
)
from scrapy_koster.storage.port import Claimed, Claiming, Pacing, StorageError

_ALWAYS = Checks()
_WITH_CLAIMS = Checks()
_WITH_VISITS = Checks()


def checks(storage: type[object]) -> Mapping[str, Check]:
    """Return those for the class *storage*, which may have claims and visits as well."""
    found = dict(_ALWAYS)
    if issubclass(storage, Claiming):
        found |= _WITH_CLAIMS
    if issubclass(storage, Pacing):
        found |= _WITH_VISITS
    return found


@_ALWAYS.add
def what_is_put_in_a_pipeline_is_there_afterwards(one: Any, two: Any) -> None:
    with one.pipeline() as calls:
        calls.put(A, COPY)
        calls.put(B, FAILURE)
    assert dict(two.sites()) == {A: COPY, B: FAILURE}


@_ALWAYS.add
def a_pipeline_returns_what_the_methods_return(one: Any, two: Any) -> None:
    two.put(A, COPY)
    with one.pipeline() as calls:
        got = [calls.get(A), calls.get(B)]
        assert [each.result() for each in got] == [COPY, None]
        put = [calls.put(A, NEWER), calls.put(B, FAILURE)]
        assert [each.result() for each in put] == [None, None]
        got = [calls.get(A), calls.get(B)]
        assert [each.result() for each in reversed(got)] == [FAILURE, NEWER]


@_ALWAYS.add
def a_pipeline_of_nothing(one: Any, two: Any) -> None:
    for _ in range(2):
        with one.pipeline():
            pass
    two.put(A, COPY)
    assert one.get(A) == COPY


@_ALWAYS.add
def a_call_that_fails_fails_alone(one: Any, two: Any) -> None:
    with one.pipeline() as calls:
        before = calls.put(A, COPY)
        with suppress(StorageError):  # what no UTF-8 has may be stored, or not
            calls.put(Site("http", "\udcff", 80), replace(FAILURE, reason="\udcff")).result()
        after = calls.put(B, COPY)
        assert (before.result(), after.result()) == (None, None)
    assert (two.get(A), two.get(B)) == (COPY, COPY)


@_ALWAYS.add
def a_pipeline_after_close_fails(one: Any, two: Any) -> None:
    def get() -> None:
        with one.pipeline() as calls:
            calls.get(A).result()

    one.close()
    fails(get)


@_ALWAYS.add
def pipelines_of_eight_threads(one: Any, two: Any) -> None:
    def use(thread: int, together: Barrier) -> None:
        storage = (one, two)[thread % 2]
        together.wait()
        for n in range(ROUNDS):
            sites = [Site("http", f"{thread}-{n}-{part}.example", 80) for part in "ab"]
            copies = [replace(COPY, url=site.robots_url) for site in sites]
            with storage.pipeline() as calls:
                for put in [calls.put(*each) for each in zip(sites, copies, strict=True)]:
                    put.result()
                assert [got.result() for got in [calls.get(site) for site in sites]] == copies

    in_threads(use)


@_WITH_CLAIMS.add
def of_eight_owners_with_pipelines_one_succeeds(one: Any, two: Any) -> None:
    sites = [Site("http", f"{n}.example", 80) for n in range(ROUNDS)]

    def granted(thread: int, together: Barrier) -> list[Site]:
        owner = str(thread)
        together.wait()
        with (one, two)[thread % 2].pipeline() as calls:
            claims = [calls.claim(site, owner, now=time.time(), secs=SECS) for site in sites]
            results = [claim.result() for claim in claims]
        return [site for site, result in zip(sites, results, strict=True) if not result.held_secs]

    won = [site for mine in in_threads(granted) for site in mine]
    assert sorted(map(str, won)) == sorted(map(str, sites))


@_WITH_CLAIMS.add
def a_claim_in_a_pipeline_ends(one: Any, two: Any) -> None:
    def claim(calls: Any, site: Site, owner: str) -> Any:
        return calls.claim(site, owner, now=time.time(), secs=SECS, unless_known=True)

    with one.pipeline() as calls:
        claims = [claim(calls, site, "a") for site in (A, B)]
        assert [each.result() for each in claims] == [Claimed(None, 0.0)] * 2
        claims = [claim(calls, site, "b") for site in (A, B)]
        assert all(each.result().held_secs > 0 for each in claims)
        for each in (calls.put(A, COPY, "a"), calls.release(B, "a")):
            assert each.result() is None
    assert claim(two, A, "b") == Claimed(COPY, 0.0)
    assert claim(two, B, "b") == Claimed(None, 0.0)


@_WITH_VISITS.add
def of_visits_in_a_pipeline_one_may_begin(one: Any, two: Any) -> None:
    with one.pipeline() as calls:
        visits = [calls.visit("a.example", now=time.time(), secs=SECS) for _ in range(3)]
        other = calls.visit("b.example", now=time.time(), secs=SECS)
        assert sorted(each.result() > 0 for each in visits) == [False, True, True]
        assert other.result() == 0.0
    assert two.visit("a.example", now=time.time(), secs=SECS) > 0

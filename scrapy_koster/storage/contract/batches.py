"""What a storage with batches promises: calls made together are kept together."""

from __future__ import annotations

from threading import Barrier
from typing import Any

from scrapy_koster.protocol.site import Site
from scrapy_koster.storage.contract.check import (
    COPY,
    FAILURE,
    NEWER,
    ROUNDS,
    THREADS,
    A,
    B,
    Checks,
    in_threads,
)

CHECKS = Checks()


@CHECKS.add
def what_is_put_together_is_there_afterwards(one: Any, two: Any) -> None:
    with one.together():
        one.put(A, COPY)
        one.put(B, FAILURE)
    assert dict(two.sites()) == {A: COPY, B: FAILURE}


@CHECKS.add
def a_call_sees_those_before_it(one: Any, two: Any) -> None:
    one.put(A, COPY)
    with one.together():
        assert one.get(A) == COPY
        one.put(A, NEWER)
        one.put(B, COPY)
        assert (one.get(A), one.get(B)) == (NEWER, COPY)


@CHECKS.add
def a_batch_of_nothing(one: Any, two: Any) -> None:
    for _ in range(2):
        with one.together():
            pass
    two.put(A, COPY)
    assert one.get(A) == COPY


@CHECKS.add
def others_wait_and_lose_nothing(one: Any, two: Any) -> None:
    def puts(thread: int, together: Barrier) -> None:
        storage = (one, two)[thread % 2]
        together.wait()
        for n in range(ROUNDS):
            with storage.together():
                storage.put(Site("http", f"{thread}-{n}-a.example", 80), COPY)
                storage.put(Site("http", f"{thread}-{n}-b.example", 80), FAILURE)

    in_threads(puts)
    assert len(dict(one.sites())) == 2 * THREADS * ROUNDS

"""What a storage with visits promises: those to a host are as far apart as they have to be."""

from __future__ import annotations

import time
from threading import Barrier
from typing import Any

from scrapy_koster.storage.contract.check import (
    BOUND_SECS,
    ROUNDS,
    SECS,
    SLOW_SECS,
    A,
    Checks,
    fails,
    in_threads,
)

HOST = "a.example"
CHECKS = Checks()


def _visit(storage: Any, host: str = HOST, *, secs: float = SECS, begun: bool = False) -> float:
    left: float = storage.visit(host, now=time.time(), secs=secs, begun=begun)
    return left


@CHECKS.add
def the_first_visit_may_begin_and_the_next_not_yet(one: Any, two: Any) -> None:
    assert _visit(one) == 0.0
    for each in (one, two):
        assert SECS - SLOW_SECS < _visit(each) <= SECS


@CHECKS.add
def a_visit_that_is_too_early_puts_nothing_off(one: Any, two: Any) -> None:
    _visit(one, secs=0.5)
    began, tried = time.monotonic(), 0
    while left := _visit(two, secs=0.5):
        assert time.monotonic() - began < BOUND_SECS
        tried += 1
        time.sleep(min(left, 0.05))
    assert tried > 1
    assert time.monotonic() - began <= 0.5 + SLOW_SECS


@CHECKS.add
def a_visit_does_not_begin_before_its_time(one: Any, two: Any) -> None:
    began = time.monotonic()
    _visit(one, secs=0.3)
    while left := _visit(two, secs=0.3):
        assert time.monotonic() - began < BOUND_SECS
        time.sleep(left)
    assert time.monotonic() - began > 0.29


@CHECKS.add
def each_host_has_visits_of_its_own(one: Any, two: Any) -> None:
    assert _visit(one, "a.example") == _visit(two, "b.example") == 0.0
    assert _visit(one, "b.example") > 0
    assert _visit(one, "[::1]") == _visit(two, "b\xfccher.example") == 0.0


@CHECKS.add
def a_visit_that_has_begun_is_recorded(one: Any, two: Any) -> None:
    assert _visit(one, begun=True) == 0.0
    assert SECS - SLOW_SECS < _visit(two) <= SECS


@CHECKS.add
def a_visit_that_has_begun_counts_from_then(one: Any, two: Any) -> None:
    _visit(one, secs=10.0)
    assert _visit(two, secs=SECS, begun=True) == 0.0
    assert _visit(one, secs=SECS) > 10.0


@CHECKS.add
def a_visit_of_a_shorter_delay_is_judged_by_a_longer_one(one: Any, two: Any) -> None:
    assert _visit(one, secs=0.05) == 0.0
    time.sleep(0.1)
    assert SECS - SLOW_SECS < _visit(two, secs=SECS) <= SECS
    assert _visit(two, secs=SECS, begun=True) == 0.0
    time.sleep(0.1)
    assert _visit(one, secs=0.05) == 0.0


@CHECKS.add
def a_visitor_of_a_longer_delay_comes_to_its_turn(one: Any, two: Any) -> None:
    began, visits = time.monotonic(), 0
    while _visit(two, secs=0.5):
        assert time.monotonic() - began < BOUND_SECS
        visits += not _visit(one, secs=0.1)
        time.sleep(0.01)
    assert visits < 3
    assert not _visit(one, "b.example", secs=0.1)
    while _visit(one, secs=0.1):
        assert time.monotonic() - began < BOUND_SECS
        time.sleep(0.01)


@CHECKS.add
def a_visitor_of_a_longer_delay_that_comes_no_more_is_not_waited_for(one: Any, two: Any) -> None:
    assert not _visit(one, secs=0.05)
    assert _visit(two, secs=SECS)
    began = time.monotonic()
    while _visit(one, secs=0.05):
        assert time.monotonic() - began < BOUND_SECS
        time.sleep(0.01)
    assert time.monotonic() - began < SLOW_SECS


@CHECKS.add
def a_delay_of_next_to_nothing(one: Any, two: Any) -> None:
    _visit(one, secs=1e-9)
    time.sleep(0.01)
    assert _visit(one, secs=1e-9) == 0.0


@CHECKS.add
def a_delay_of_a_year(one: Any, two: Any) -> None:
    year = 366 * 86400.0
    assert _visit(one, secs=year) == 0.0
    assert year - SLOW_SECS < _visit(two, secs=year) <= year


@CHECKS.add
def a_visited_host_is_not_a_known_site(one: Any, two: Any) -> None:
    _visit(one)
    assert list(one.sites()) == []
    assert one.get(A) is None
    assert not one.forget(A)
    assert _visit(one) > 0


@CHECKS.add
def a_visit_after_close_fails(one: Any, two: Any) -> None:
    one.close()
    fails(lambda: _visit(one))
    fails(lambda: _visit(one, begun=True))


@CHECKS.add
def of_eight_visits_at_once_one_may_begin(one: Any, two: Any) -> None:
    def mine(thread: int, together: Barrier) -> list[int]:
        won = []
        for n in range(ROUNDS):
            together.wait()
            if not _visit((one, two)[thread % 2], f"{n}.example"):
                won.append(n)
        return won

    won = [n for each in in_threads(mine) for n in each]
    assert sorted(won) == list(range(ROUNDS))

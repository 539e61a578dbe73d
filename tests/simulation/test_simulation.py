"""Simulated histories: what must hold does, and three bugs put in on purpose are found."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from scrapy.utils.defer import maybe_deferred_to_future
from twisted.internet.defer import Deferred

from scrapy_koster.crawl.enforcement import Enforcement
from scrapy_koster.crawl.sites import Sites
from scrapy_koster.crawl.storage_calls import StorageCalls
from scrapy_koster.protocol.access import FetchFailure
from scrapy_koster.protocol.step import waits
from simulation.__main__ import told
from simulation.machine import Machine, machine


@pytest.fixture
def simulated() -> Iterator[Machine]:
    with machine() as running:
        yield running


# A worker that its user had paused kept others from a host; a slow page kept a worker from one.
@pytest.mark.parametrize("first", [0, 10, 20, 30, 555_623, 602_879])
def test_what_must_hold_holds_in_each_history(simulated: Machine, first: int) -> None:
    for seed in range(first, first + 10):
        history = simulated.run(seed)
        assert history.watch.found is None, told(history)
    gc.collect()


def test_a_seed_is_one_history(simulated: Machine) -> None:
    for seed in range(3):
        assert told(simulated.run(seed)) == told(simulated.run(seed))


# Bugs that are put in on purpose: each breaks an invariant within 300 seeds.


def assert_found(simulated: Machine, *invariants: str) -> None:
    """A history breaks one of *invariants*, and none before it another."""
    for seed in range(300):
        found = simulated.run(seed).watch.found
        if found is not None:
            assert found.invariant in invariants, f"seed {seed}: {found}"
            return
        if not seed % 20:
            gc.collect()
    raise AssertionError("no history finds it")


@pytest.mark.long
def test_one_deferred_that_waiters_share_is_found(
    simulated: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in Scrapy's own middleware: who waits later is told None, and takes that for a yes."""

    async def wait(self: Any, state: Any, request: Any) -> Any:
        self.busy()
        step = self.current_step(state)
        if waits(step):
            waiting = self.served.get(state)
            if waiting is None or not waiting.in_place:
                self.serve(state, request, Deferred())
                waiting = self.served[state]
            with self.in_place.waiting(request):
                step = await maybe_deferred_to_future(next(iter(waiting.in_place)))
        return step

    enforce = Enforcement.enforce

    def believe(self: Any, request: Any, state: Any, robot: Any, step: Any) -> None:
        if step is not None:
            enforce(self, request, state, robot, step)

    monkeypatch.setattr(Sites, "wait", wait)
    monkeypatch.setattr(Enforcement, "enforce", believe)
    assert_found(simulated, "nothing is fetched that is not allowed")


@pytest.mark.long
def test_a_claim_that_is_ignored_is_found(
    simulated: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    claim = StorageCalls.claim

    async def ignore(self: Any, site: Any, **how: Any) -> Any:
        return replace(await claim(self, site, **how), lease_left=0.0)

    monkeypatch.setattr(StorageCalls, "claim", ignore)
    asked = "a site is asked once at a time", "a fresh copy is not fetched again"
    assert_found(simulated, *asked)


@pytest.mark.long
def test_a_retry_that_is_forgotten_is_found(
    simulated: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A site that has failed twice has no task any more."""
    end_waits = Sites._end_waits

    def forgets(self: Any, state: Any, waiting: Any) -> bool:
        failed_again = isinstance(state.known, FetchFailure) and state.known.attempts > 1
        return end_waits(self, state, waiting) and not failed_again

    monkeypatch.setattr(Sites, "_end_waits", forgets)
    # Which of them is seen first is a matter of chance.
    waits = "a site is asked while requests wait for it", "nothing waits that could go"
    assert_found(simulated, *waits, "each crawl ends")

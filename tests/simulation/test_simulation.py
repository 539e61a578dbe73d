"""Simulated histories: what must hold does, and three bugs put in on purpose are found."""

from __future__ import annotations

import gc
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from scrapy.utils.defer import maybe_deferred_to_future
from twisted.internet.defer import Deferred

import scrapy_koster.crawl
from scrapy_koster.crawl.downloadermiddleware import KosterMiddleware
from scrapy_koster.crawl.fetching.permits import NoTurnError
from scrapy_koster.crawl.fetching.retriever import Asker
from scrapy_koster.crawl.keeping.keeper import Keeper
from scrapy_koster.crawl.keeping.retry_timer import RetryTimer
from scrapy_koster.protocol.access import last_copy
from scrapy_koster.protocol.step import waits
from scrapy_koster.protocol.verdict import Source
from simulation.__main__ import told
from simulation.machine import MONOTONIC, TOKENS, Machine, machine

CRAWL = Path(scrapy_koster.crawl.__file__).parent

# Histories that were broken once, and what was wrong. (The one that found that a scheduler which
# has closed opened its file again was made up before the storages claimed as they do now.)
FOUND = {
    34: "the watch: a copy is fresh by a clock that is behind",
    684: "the pipeline: a process that was killed asks for no more pictures",
    6376: "the watch: a refusal by a copy that the keeper has no room for any more",
    7569: "the watch: a copy says nothing by a clock that is far behind",
    15485: "the chance of the simulation: a pause that a clock jumps in lasts as long",
    1301: "the ledger: what is in Scrapy's queue is not parked",
    1477: "the ledger: a redirect that was lost, beside its page in the journal",
    3102: "the ledger: pictures come as often as their page",
    38961: "the ledger: what waits in the file is known again, but not the page that led to it",
    39841: "the disk: a call that takes long, and a pause meanwhile, outlast a claim",
    62546: "the ledger: what comes out of the file is held by the process that took it",
    96339: "the ledger: what came out for its site and waits for a turn, unknown to Redis",
    97787: "the watch: the clock of a process that has ended",
    34447: "the sites: one left the memory while a request waited in place for its turn",
}


@pytest.fixture
def simulated() -> Iterator[Machine]:
    with machine() as running:
        yield running


@pytest.mark.parametrize("block", range(4))
def test_every_invariant_holds(simulated: Machine, block: int) -> None:
    for seed in range(50 * block, 50 * block + 50):
        history = simulated.run(seed)
        assert history.watch.found is None, told(history)
    gc.collect()


@pytest.mark.parametrize("seed", FOUND)
def test_what_was_found_stays_mended(simulated: Machine, seed: int) -> None:
    assert simulated.run(seed).watch.found is None


def test_a_seed_is_one_history(simulated: Machine) -> None:
    for seed in range(40):
        assert told(simulated.run(seed)) == told(simulated.run(seed))


def test_nothing_else_reads_a_clock_or_makes_a_name() -> None:
    """What is not asked of the loop has to be replaced in ``simulation.machine``."""
    reads: dict[str, set[str]] = {"monotonic": set(), "token_hex": set()}
    for path in CRAWL.rglob("*.py"):
        module = ".".join(path.relative_to(CRAWL).with_suffix("").parts)
        text = path.read_text("utf-8")
        for name, modules in reads.items():
            if re.search(rf"^from \w+ import .*\b{name}\b", text, re.MULTILINE):
                modules.add(module)
        assert not re.search(r"^import (time|secrets)$", text, re.MULTILINE)
    # No simulated crawl has a report.
    assert reads == {"monotonic": set(MONOTONIC), "token_hex": {*TOKENS, "report"}}


# Bugs that are put in on purpose: each breaks an invariant within 1,000 seeds.


def first_broken(simulated: Machine, *invariants: str) -> int:
    """Return the first seed that breaks one of *invariants*, and no other before."""
    for seed in range(1000):
        found = simulated.run(seed).watch.found
        if found is not None:
            assert found.invariant in invariants, f"seed {seed}: {found}"
            return seed
        if not seed % 20:
            gc.collect()
    raise AssertionError("no history finds it")


@pytest.mark.long
def test_one_deferred_that_waiters_share_is_found(
    simulated: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in Scrapy's own middleware: who waits later is told None, and takes that for a yes."""

    async def wait(self: Any, state: Any, request: Any) -> Any:
        self.patience.busy()
        self.ask_for(state, request)
        step = self._told(state)
        if waits(step) and not self._closing:
            state.waiters = state.waiters or [Deferred()]
            state.on_behalf_of = request
            self._ask_or_schedule(state)
            with self.in_place.waiting(request, gives_place=self.on_change is not None):
                step = await maybe_deferred_to_future(state.waiters[0])
        return step

    def decided(self: Any, request: Any, state: Any, robot: Any, step: Any) -> None:
        if step is not None:
            decide(self, request, state, robot, step)

    decide = KosterMiddleware._decide
    monkeypatch.setattr(Keeper, "wait", wait)
    monkeypatch.setattr(KosterMiddleware, "_decide", decided)
    first_broken(simulated, "nothing is fetched that is not allowed")


@pytest.mark.long
def test_a_claim_that_is_taken_before_the_turn_is_found(
    simulated: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It runs out while its turn has not come."""

    async def claims_first(self: Any, state: Any, page: Any, began: float) -> float:
        claimed = await self._claimed(state, page)
        if self._is_settled(state) or claimed.held_secs:
            return float(claimed.held_secs)
        try:
            async with self._turn(state):
                if self._is_settled(state):
                    return 0.0
                self._fetching.add(state)
                result = await self._fetch.fetch(state.site, page, last_copy(state.known))
        except NoTurnError:
            return 1.0
        known = self._after(result, state.known, began)
        if self.pacer is not None:
            known = self.pacer.lengthened(state, known)
        await self._store.put(state.site, known)
        await self._take(state, known, Source.FETCHED, page)
        return 0.0

    monkeypatch.setattr(Asker, "_ask", claims_first)
    first_broken(
        simulated, "a site is asked by whose claim it is", "a site is asked once at a time"
    )


@pytest.mark.long
def test_a_retry_that_is_forgotten_is_found(
    simulated: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One timer for all, and what comes while it runs is not noted."""
    schedule = RetryTimer.schedule

    def forgets(self: Any, state: Any, secs: float) -> None:
        if self._alarm._timer is None:
            schedule(self, state, secs)

    monkeypatch.setattr(RetryTimer, "schedule", forgets)
    first_broken(simulated, "who waits has a site asked again")

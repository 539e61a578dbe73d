"""By how much the next visit to a host is put off, for what the last may have come late."""

from __future__ import annotations

from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest
from harness.clocks import StillClock, sleep

from scrapy_koster.crawl.pacing.host_turns import HostTurns
from scrapy_koster.crawl.pacing.hosts import Host, Hosts
from scrapy_koster.crawl.states import Facts, SiteState
from scrapy_koster.protocol.access import Copy
from scrapy_koster.protocol.site import Site
from scrapy_koster.protocol.verdict import Source


@pytest.fixture
def host() -> Host:
    return Host(SiteState(Site("http", "a.example", 80)))


def learn(state: SiteState, body: bytes) -> None:
    copy = Copy(state.site.robots_url, 200, body, None, None, fetched=0.0, expires=9e9)
    state.learn(Facts(copy, Source.FETCHED))


def test_what_is_not_known_of_a_quick_visit_counts_as_late(host: Host) -> None:
    """Where all visits so far came late, the quickest of them did too."""
    took = [0.16, 0.12, 0.12, 0.06, 0.1, 0.03, 0.03]
    late = [0.16, 0.12, 0.0, 0.06, 0.04, 0.03, 0.0]
    assert [host.lateness(secs) for secs in took] == pytest.approx(late)


def test_a_site_that_was_forgotten_asks_for_its_delay_until_it_is_known() -> None:
    """Its /robots.txt is asked for anew, and that is a visit like any other."""
    site = Site("http", "a.example", 80)
    asked = SiteState(site)
    learn(asked, b"User-agent: *\nCrawl-delay: 2\n")
    anew = SiteState(site)
    delays: Any = SimpleNamespace(kept=lambda state, _="": 2.0 if state is asked else 0.0)
    engine: Any = SimpleNamespace(under_way=())
    hosts = Hosts(engine, delays, StillClock(), limit=9, own_secs=0.0, waiting_for_turn=lambda _: 0)
    assert hosts.of_site(asked, "figtree") is not None
    again = hosts.of_site(anew, "figtree")
    assert again is not None
    assert hosts.gap(again) == 2.0
    assert hosts.named("a.example") is again
    learn(anew, b"User-agent: *\n")
    assert hosts.of_site(anew, "figtree") is None
    assert hosts.gap(again) == 0.0


async def test_when_the_next_visit_may_begin(host: Host) -> None:
    async def nothing(*_: Any, **__: Any) -> float:
        return 0.0

    hosts: Any = SimpleNamespace(gap=lambda _: 1.0, is_awaited=lambda _: False)
    store: Any = SimpleNamespace(visit=nothing)
    stats: Any = SimpleNamespace(paced=lambda _: None)
    clock = StillClock()
    turns = HostTurns(hosts, store, stats, clock, lambda _: None)
    visits = [
        (0.05, 0.05),  # the first may have come as late as its answer, and no later
        (0.04, 0.04),
        (0.06, 0.03),  # by so much, and a hundredth of the gap
        (0.04, 0.01),
        (9.0, 0.51),  # half a second at most
    ]
    for took, added in visits:
        began = clock.now()
        async with turns.visit(host, nullcontext):
            assert host.next_visit == began + 1.0
            clock.secs += took
        assert host.next_visit - began == pytest.approx(1.0 + added)
        clock.secs += 10.0


@pytest.mark.parametrize(("took", "noted"), [(0.002, []), (0.05, [True]), (0.4, [True])])
async def test_a_storage_that_takes_its_time_to_grant_a_visit_is_told_when_it_began(
    host: Host, took: float, noted: list[bool]
) -> None:
    """It has it as earlier than it was, and the next process would come too early."""
    clock = StillClock()
    visits: list[bool] = []

    async def visit(*_: Any, begun: bool) -> float:
        visits.append(begun)
        clock.secs += took
        return 0.0

    hosts: Any = SimpleNamespace(gap=lambda _: 1.0, is_awaited=lambda _: False)
    store: Any = SimpleNamespace(visit=visit)
    stats: Any = SimpleNamespace(paced=lambda _: None)
    turns = HostTurns(hosts, store, stats, clock, lambda _: None)
    async with turns.visit(host, nullcontext):
        await sleep(0.01)
    assert visits == [False, *noted]

"""The table of states: what is in it, what is not, and what becomes of requests that wait."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import pytest
from harness.state_tables import fates, moves, written

from scrapy_koster.crawl.states import (
    FATES,
    TABLE,
    Action,
    Event,
    Fate,
    State,
    event_of,
)
from scrapy_koster.protocol.access import Copy, Failure
from scrapy_koster.protocol.step import Ask, Defer, Obey, Pass, Refuse, Step

COPY = Copy("http://a.example/robots.txt", 200, b"", None, None, 0.0, 0.0)
FAILURE = Failure("HTTP 503", 1, 0.0, 0.0, 10.0, None)
OF_THE_CRAWL = {Event.NEEDED, Event.IDLE, Event.CLOSING}
DECIDED = {State.SETTLED, State.GIVEN_UP}

STEPS: list[tuple[Step, State]] = [
    (Obey(COPY, 1.0), State.SETTLED),
    (Pass(FAILURE, 1.0), State.SETTLED),
    (Refuse(FAILURE, 1.0), State.GIVEN_UP),
    (Defer(FAILURE, 1.0), State.DEFERRED),
    (Ask(None), State.UNKNOWN),
    (Ask(COPY), State.UNKNOWN),
]


@pytest.mark.parametrize("state", State)
@pytest.mark.parametrize(("step", "then"), STEPS, ids=str)
def test_the_state_follows_the_step(state: State, step: Step, then: State) -> None:
    """Whatever it was: a clock may have been put back."""
    assert TABLE[state, event_of(step)][0] is then


def test_what_is_not_in_the_table() -> None:
    """A request whose site is decided does not wait, for anything."""
    missing = set(product(State, Event)) - set(TABLE)
    assert missing == set(product(DECIDED, OF_THE_CRAWL))


@pytest.mark.parametrize("event", [Event.IDLE, Event.CLOSING])
def test_the_end_of_a_crawl_moves_no_site(event: Event) -> None:
    for state in set(State) - DECIDED:
        assert TABLE[state, event][0] is state


def test_an_attempt_begins_where_none_is_under_way() -> None:
    begins = {state for (state, _), (_, action) in TABLE.items() if action is Action.FETCH}
    assert begins == {State.UNKNOWN}
    leads = {start for (start, _), (state, _) in TABLE.items() if state is State.FETCHING}
    assert leads == {State.UNKNOWN, State.FETCHING}


WAITS, GOES, ENDS, STAYS = Fate.WAIT, Fate.GO, Fate.GIVE_UP, Fate.KEEP
ROWS = [
    (Event.ANSWERED, GOES, GOES, GOES),
    (Event.LIMIT, ENDS, ENDS, ENDS),
    (Event.FAILED, WAITS, WAITS, WAITS),
    (Event.DUE, WAITS, WAITS, WAITS),
    (Event.NEEDED, WAITS, WAITS, WAITS),
    (Event.IDLE, ENDS, ENDS, STAYS),
    (Event.CLOSING, ENDS, STAYS, STAYS),
]


@pytest.mark.parametrize(("event", "in_place", "parked", "kept"), ROWS, ids=lambda each: each.value)
def test_what_becomes_of_those_who_wait(
    event: Event, in_place: Fate, parked: Fate, kept: Fate
) -> None:
    for (_, happened), (_, action) in TABLE.items():
        if happened is event:
            found = FATES[action]
            assert found == (in_place, parked, kept)


def test_nothing_goes_on_that_is_not_decided() -> None:
    goes = {event for (_, event), (_, action) in TABLE.items() if Fate.GO in FATES[action]}
    assert goes == {Event.ANSWERED}


@pytest.mark.parametrize("table", [moves, fates])
def test_the_tables_of_the_page_are_those_of_the_code(table: Callable[[], str]) -> None:
    head = table().partition(" | ")[0].removeprefix("| ")
    assert written(head) == table()

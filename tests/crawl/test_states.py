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
    moved_by,
)
from scrapy_koster.protocol.access import Copy, Failure
from scrapy_koster.protocol.step import Ask, Defer, Obey, Pass, Refuse, Step

COPY = Copy("http://a.example/robots.txt", 200, b"", None, None, 0.0, 0.0)
FAILURE = Failure("HTTP 503", 1, 0.0, 0.0, 10.0, None)
DECIDED = {State.SETTLED, State.GIVEN_UP}

STEPS: list[tuple[Step, State, Action]] = [
    (Obey(COPY, 1.0), State.SETTLED, Action.LET_GO),
    (Pass(FAILURE, 1.0), State.SETTLED, Action.LET_GO),
    (Refuse(FAILURE, 1.0), State.GIVEN_UP, Action.REFUSE),
    (Defer(FAILURE, 1.0), State.DEFERRED, Action.NOTHING),
    (Ask(None), State.UNKNOWN, Action.NOTHING),
    (Ask(COPY), State.UNKNOWN, Action.NOTHING),
]


@pytest.mark.parametrize(("step", "then", "action"), STEPS, ids=str)
def test_the_state_follows_the_step(step: Step, then: State, action: Action) -> None:
    """Whatever it was: a clock may have been put back."""
    assert moved_by(step) == (then, action)


def test_what_is_not_in_the_table() -> None:
    """A request whose site is decided does not wait, for anything."""
    missing = set(product(State, Event)) - set(TABLE)
    assert missing == set(product(DECIDED, Event))


WAITS, GOES, ENDS, STAYS = Fate.WAIT, Fate.GO, Fate.GIVE_UP, Fate.KEEP
ROWS = [
    (Action.LET_GO, GOES, GOES, GOES),
    (Action.REFUSE, ENDS, ENDS, ENDS),
    (Action.GIVE_UP, ENDS, ENDS, STAYS),
    (Action.HOLD, ENDS, STAYS, STAYS),
    *((action, WAITS, WAITS, WAITS) for action in (Action.NOTHING, Action.FETCH, Action.SET_TIMER)),
]


@pytest.mark.parametrize(("action", "in_place", "parked", "kept"), ROWS)
def test_what_becomes_of_those_who_wait(
    action: Action, in_place: Fate, parked: Fate, kept: Fate
) -> None:
    """None goes on but by a step: no event of the crawl decides a request."""
    assert FATES[action] == (in_place, parked, kept)
    by_events = {action for _, action in TABLE.values()}
    assert Action.LET_GO not in by_events


@pytest.mark.parametrize("table", [moves, fates])
def test_the_tables_of_the_page_are_those_of_the_code(table: Callable[[], str]) -> None:
    head = table().partition(" | ")[0].removeprefix("| ")
    assert written(head) == table()

"""The states of a site: which follows from a step, and the tables of the page about them."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from harness.state_tables import fates, moves, written

from scrapy_koster.crawl.states import Action, State, moved_by
from scrapy_koster.protocol.access import Copy, Failure
from scrapy_koster.protocol.step import Ask, Defer, Obey, Pass, Refuse, Step

COPY = Copy("http://a.example/robots.txt", 200, b"", None, None, 0.0, 0.0)
FAILURE = Failure("HTTP 503", 1, 0.0, 0.0, 10.0, None)

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


@pytest.mark.parametrize("table", [moves, fates])
def test_the_tables_of_the_page_are_those_of_the_code(table: Callable[[], str]) -> None:
    head = table().partition(" | ")[0].removeprefix("| ")
    assert written(head) == table()

"""The table of states: what is in it, and what is not."""

from __future__ import annotations

from itertools import product
from typing import Any, get_args

import pytest
from harness.documents import text
from harness.state_table import table

from scrapy_koster.crawl.sites import Sites
from scrapy_koster.crawl.states import STATES, TABLE, Event, SiteState, State
from scrapy_koster.protocol.access import Failure
from scrapy_koster.protocol.site import site_of
from scrapy_koster.protocol.step import Refuse, Step

DECIDED = {State.SETTLED, State.GIVEN_UP}


def test_each_step_has_a_state() -> None:
    assert set(STATES) == set(get_args(Step))
    assert {*STATES.values(), State.FETCHING} == set(State)


def test_what_is_not_in_the_table() -> None:
    """A request whose site is decided does not wait, for anything."""
    missing = set(product(State, Event)) - set(TABLE)
    assert missing == set(product(DECIDED, Event))


@pytest.mark.parametrize("event", Event)
def test_an_event_that_is_not_in_the_table_raises(event: Event) -> None:
    class Retriever:
        under_way: frozenset[Any] = frozenset()

    site = site_of("http://a.example/")
    assert site is not None
    sites, state = Sites.__new__(Sites), SiteState(site)
    sites.retriever = Retriever()  # type: ignore[assignment]
    state.step = Refuse(Failure("HTTP 503", 1, 0.0, 0.0, 10.0, None), 1.0)
    with pytest.raises(KeyError):
        sites.happens(state, state.step, event)


def test_the_table_of_the_page_is_that_of_the_code() -> None:
    assert f"\n\n{table()}\n\n" in text("docs/architecture.md")

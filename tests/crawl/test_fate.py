"""What becomes of a request that waits, as a table."""

from __future__ import annotations

import pytest
from harness.fate_table import COPY, FAILURE, STEPS, table, written

from scrapy_koster.crawl.keeping.fate import Crawl, Fate, Place, fate
from scrapy_koster.protocol.step import Ask, Defer, Obey, Pass, Refuse, Step

WAITING: tuple[Step, ...] = (Ask(None), Ask(COPY), Defer(FAILURE, 1.0))
EVERYWHERE = [(crawl, place) for crawl in Crawl for place in Place]


@pytest.mark.parametrize("has_failed", [False, True])
@pytest.mark.parametrize(("crawl", "place"), EVERYWHERE)
def test_what_is_settled_goes_on_or_is_refused_whatever_the_crawl_does(
    crawl: Crawl, place: Place, has_failed: bool
) -> None:
    for step in (Obey(COPY, 1.0), Pass(FAILURE, 1.0)):
        assert fate(step, crawl, place, has_failed=has_failed) is Fate.GO
    assert fate(Refuse(FAILURE, 1.0), crawl, place, has_failed=has_failed) is Fate.GIVE_UP


@pytest.mark.parametrize("step", WAITING, ids=str)
@pytest.mark.parametrize(
    ("crawl", "has_failed", "fates"),
    [
        (Crawl.BUSY, False, (Fate.WAIT, Fate.WAIT, Fate.WAIT)),
        (Crawl.BUSY, True, (Fate.WAIT, Fate.WAIT, Fate.WAIT)),
        (Crawl.IDLE, False, (Fate.WAIT, Fate.WAIT, Fate.WAIT)),
        (Crawl.IDLE, True, (Fate.WAIT, Fate.WAIT, Fate.WAIT)),
        (Crawl.OVER, False, (Fate.WAIT, Fate.WAIT, Fate.WAIT)),
        (Crawl.OVER, True, (Fate.GIVE_UP, Fate.GIVE_UP, Fate.KEEP)),
        (Crawl.CLOSING, False, (Fate.GIVE_UP, Fate.KEEP, Fate.KEEP)),
        (Crawl.CLOSING, True, (Fate.GIVE_UP, Fate.KEEP, Fate.KEEP)),
    ],
)
def test_what_waits(
    step: Step, crawl: Crawl, has_failed: bool, fates: tuple[Fate, Fate, Fate]
) -> None:
    found = tuple(fate(step, crawl, place, has_failed=has_failed) for place in Place)
    assert found == fates


def test_nothing_passes_that_is_not_known() -> None:
    """A request goes on by a copy, or by KOSTER_UNAVAILABLE, and by nothing else."""
    for step in STEPS:
        for crawl, place in EVERYWHERE:
            for has_failed in (False, True):
                goes = fate(step, crawl, place, has_failed=has_failed) is Fate.GO
                assert goes is isinstance(step, Obey | Pass)


def test_the_table_of_the_page_is_that_of_the_code() -> None:
    assert written() == table()

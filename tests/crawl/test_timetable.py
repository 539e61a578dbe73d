"""One timer for all items that are due some time."""

from __future__ import annotations

from harness.crawling import Crawl

from scrapy_koster.crawl.clock import Clock
from scrapy_koster.crawl.timetable import Timetable

CLOCK = Clock()


def set_in(timetable: Timetable[str], item: str, secs: float) -> None:
    timetable.set(item, CLOCK.now() + secs)


async def test_it_fires_in_order_and_once(crawl: Crawl) -> None:
    fired: list[str] = []
    timer = Timetable(CLOCK, fired.append)
    for item, secs in (("a", 0.04), ("b", 0.02), ("a", 0.06), ("c", 0.05), ("c", 0.01)):
        set_in(timer, item, secs)
    await crawl.until(lambda: len(fired) == 3)
    set_in(timer, "b", 0.05)
    await crawl.until(lambda: len(fired) == 4)
    assert fired == ["c", "b", "a", "b"]


async def test_what_fires_may_schedule(crawl: Crawl) -> None:
    fired: list[str] = []

    def again(item: str) -> None:
        fired.append(item)
        if len(fired) < 3:
            set_in(timer, item, 0.01)

    timer = Timetable(CLOCK, again)
    set_in(timer, "a", 0.0)
    await crawl.until(lambda: len(fired) == 3)


async def test_what_is_cleared_is_not_due(crawl: Crawl) -> None:
    fired: list[str] = []
    timer = Timetable(CLOCK, fired.append)
    set_in(timer, "a", 0.01)
    timer.clear()
    set_in(timer, "b", 0.02)
    await crawl.until(lambda: fired)
    assert fired == ["b"]

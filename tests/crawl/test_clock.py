"""One clock for each crawl."""

from __future__ import annotations

import pytest
from harness.clocks import StillClock
from harness.crawling import Crawl
from scrapy import Spider
from scrapy.crawler import Crawler

from scrapy_koster.crawl.clock import LONG_AGO, NEVER, Clock, Instant, clock_of, set_clock


def test_each_crawl_has_one() -> None:
    first, second = Crawler(Spider), Crawler(Spider)
    assert clock_of(first) is clock_of(first)
    assert clock_of(first) is not clock_of(second)


def test_it_is_set_before_anything_is_built() -> None:
    crawler, clock = Crawler(Spider), StillClock()
    set_clock(crawler, clock)
    set_clock(crawler, clock)
    assert clock_of(crawler) is clock
    with pytest.raises(RuntimeError, match="set it before anything is built"):
        set_clock(crawler, StillClock())


def test_the_bounds_of_time() -> None:
    assert LONG_AGO < Clock().now() < NEVER
    assert Instant(3.0) - Instant(1.0) == 2.0


async def test_what_is_called_every_so_often(crawl: Crawl) -> None:
    calls: list[int] = []
    ticks = Clock().every(0.005, lambda: calls.append(len(calls)))
    assert calls == []
    await crawl.until(lambda: len(calls) >= 3)
    ticks.stop()
    ticks.stop()
    seen = len(calls)
    await Clock().sleep(0.02)
    assert len(calls) == seen

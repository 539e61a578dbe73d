"""One clock for each crawl."""

from __future__ import annotations

import pytest
from harness.clocks import StillClock, set_clock
from harness.crawling import Crawl
from scrapy import Spider
from scrapy.crawler import Crawler

from scrapy_koster.crawl.clock import Clock, clock_of


def test_it_is_set_before_anything_is_built() -> None:
    crawler, clock = Crawler(Spider), StillClock()
    set_clock(crawler, clock)
    set_clock(crawler, clock)
    assert clock_of(crawler) is clock
    with pytest.raises(RuntimeError, match="set it before anything is built"):
        set_clock(crawler, StillClock())


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

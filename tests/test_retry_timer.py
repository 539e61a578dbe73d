"""The one timer for all sites that are due some time."""

from __future__ import annotations

import time

from crawling import Crawl

from scrapy_koster.crawl.retry_timer import RetryTimer
from scrapy_koster.crawl.sites import SiteState
from scrapy_koster.protocol.site import Site

A, B, C = (SiteState(Site("http", host, 80)) for host in "abc")


async def test_it_fires_in_order_and_once(crawl: Crawl) -> None:
    fired: list[SiteState] = []
    timer = RetryTimer(fired.append, time.time)
    now = time.time()
    for state, secs in ((A, 0.04), (B, 0.02), (A, 0.06), (C, 0.05), (C, 0.01)):
        timer.schedule(state, now + secs)
    await crawl.until(lambda: len(fired) == 3)
    timer.schedule(B, now + 0.08)
    await crawl.until(lambda: len(fired) == 4)
    assert fired == [C, B, A, B]


async def test_what_fires_may_schedule(crawl: Crawl) -> None:
    fired: list[float] = []

    def again(state: SiteState) -> None:
        fired.append(time.time())
        if len(fired) < 3:
            timer.schedule(state, time.time() + 0.01)

    timer = RetryTimer(again, time.time)
    timer.schedule(A, time.time())
    await crawl.until(lambda: len(fired) == 3)


async def test_stop(crawl: Crawl) -> None:
    fired: list[SiteState] = []
    timer = RetryTimer(fired.append, time.time)
    timer.schedule(A, time.time() + 0.01)
    timer.stop()
    timer.schedule(B, time.time() + 0.02)
    await crawl.until(lambda: fired)
    assert fired == [B]


async def test_a_clock_that_is_put_back_fires_later(crawl: Crawl) -> None:
    ahead = [60.0]
    fired: list[SiteState] = []
    timer = RetryTimer(fired.append, lambda: time.time() + ahead[0])
    timer.schedule(A, time.time() + ahead[0] + 0.01)
    ahead[0] = 0.0
    timer.schedule(B, time.time() + 0.05)
    await crawl.until(lambda: fired)
    assert fired == [B]
    timer.stop()

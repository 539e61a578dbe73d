"""The one timer for all sites that are due some time."""

from __future__ import annotations

from harness.crawling import Crawl

from scrapy_koster.crawl.keeping.retry_timer import RetryTimer
from scrapy_koster.crawl.sites import SiteState
from scrapy_koster.protocol.site import Site

A, B, C = (SiteState(Site("http", host, 80)) for host in "abc")


async def test_it_fires_in_order_and_once(crawl: Crawl) -> None:
    fired: list[SiteState] = []
    timer = RetryTimer(fired.append)
    for state, secs in ((A, 0.04), (B, 0.02), (A, 0.06), (C, 0.05), (C, 0.01)):
        timer.schedule(state, secs)
    await crawl.until(lambda: len(fired) == 3)
    timer.schedule(B, 0.05)
    await crawl.until(lambda: len(fired) == 4)
    assert fired == [C, B, A, B]


async def test_what_fires_may_schedule(crawl: Crawl) -> None:
    fired: list[SiteState] = []

    def again(state: SiteState) -> None:
        fired.append(state)
        if len(fired) < 3:
            timer.schedule(state, 0.01)

    timer = RetryTimer(again)
    timer.schedule(A, 0.0)
    await crawl.until(lambda: len(fired) == 3)


async def test_stop(crawl: Crawl) -> None:
    fired: list[SiteState] = []
    timer = RetryTimer(fired.append)
    timer.schedule(A, 0.01)
    timer.stop()
    timer.schedule(B, 0.02)
    await crawl.until(lambda: fired)
    assert fired == [B]

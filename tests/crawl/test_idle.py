"""For how long a crawl with nothing else to do waits for its sites."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from harness.crawling import Crawl

from scrapy_koster.crawl.clock import Clock
from scrapy_koster.crawl.idle import IdleTimeout
from scrapy_koster.protocol.access import Failure

FAILURE = Failure("HTTP 503", 1, since=1, asked=2, retry=3, stale=None)


def nobody() -> None:
    raise AssertionError


def timeout(limit_secs: float, over: Callable[[], object] = nobody) -> IdleTimeout:
    engine: Any = None
    return IdleTimeout(
        Clock(), engine, limit_secs, over=over, closing=nobody, has_turns=lambda: False
    )


def test_a_long_reason_leaves_room_for_that() -> None:
    long = Failure("x" * 999, 1, since=1, asked=2, retry=3, stale=None)
    reason = timeout(9.5).given_up(long).reason
    assert reason.startswith("x" * 97 + "...; there was nothing")


async def test_it_is_over_once_and_begins_anew(crawl: Crawl) -> None:
    over: list[bool] = []
    patience = timeout(0.02, lambda: over.append(patience.is_over))
    assert not patience.is_over
    for _ in range(3):
        patience.idle()
    await crawl.until(lambda: bool(over))
    patience.busy()
    assert not patience.is_over
    patience.idle()
    await crawl.until(lambda: len(over) == 2)
    assert over == [True, True]

"""For how long a storage that has failed is let alone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any, ClassVar

import pytest
from harness.clocks import StillClock, set_clock
from scrapy import Spider
from scrapy.utils.test import get_crawler

from scrapy_koster.crawl.config import Config
from scrapy_koster.crawl.storage_calls import StorageCalls
from scrapy_koster.protocol.site import Site
from scrapy_koster.storage.memory import MemoryStorage

SITE = Site("http", "a.example", 80)
STEP_SECS = 0.25


class Failing(MemoryStorage):
    """Notes when it is called, and fails for as long as it is told to."""

    clock: ClassVar[StillClock]
    called: ClassVar[list[float]]
    fails: ClassVar[bool]

    def get(self, site: Site) -> Any:
        self.called.append(self.clock.secs)
        if self.fails:
            raise OSError("it is away")
        return super().get(site)


@pytest.fixture
def storage() -> type[Failing]:
    members = {"clock": StillClock(0.0), "called": [], "fails": True}
    return type("Storage", (Failing,), members)


@pytest.fixture
def breaker(storage: type[Failing]) -> Iterator[StorageCalls]:
    crawler = get_crawler(Spider, {"KOSTER_STORAGE": storage})
    crawler.spider = Spider("x")
    set_clock(crawler, storage.clock)
    breaker = StorageCalls(crawler, Config.from_crawler(crawler))
    with closing(breaker._threads):
        yield breaker


async def asked_for(secs: float, breaker: StorageCalls, storage: type[Failing]) -> list[float]:
    """Ask it again and again for so long; return when it was called, from the beginning of that."""
    storage.called.clear()
    began = storage.clock.secs
    while storage.clock.secs < began + secs:
        await breaker.get(SITE)
        storage.clock.secs += STEP_SECS
    return [at - began for at in storage.called]


async def test_the_first_rest_is_short_and_each_is_longer_up_to_30_seconds(
    breaker: StorageCalls, storage: type[Failing]
) -> None:
    assert await asked_for(100, breaker, storage) == [0, 1, 3, 7, 15, 31, 61, 91]


async def test_one_that_is_back_is_called_at_once(
    breaker: StorageCalls, storage: type[Failing]
) -> None:
    """A failover of less than a second."""
    await breaker.get(SITE)
    storage.fails = False
    [first, *others] = await asked_for(10, breaker, storage)
    assert first == 1
    assert len(others) == (10 - 1) / STEP_SECS - 1
    storage.fails = True
    assert await asked_for(5, breaker, storage) == [0, 1, 3]

"""Waiting on whichever loop a test runs on, and clocks that a test sets."""

from __future__ import annotations

from scrapy.crawler import Crawler

from harness.virtual import TestClock
from scrapy_koster.crawl.clock import Clock, Instant
from scrapy_koster.crawl.engine.private import per_crawler

sleep = Clock().sleep


class JumpingClock(TestClock):
    """The clock of a machine that is put forward: what waits in the process waits as long."""

    def __init__(self) -> None:
        self.ahead = 0.0

    def epoch(self) -> float:
        return super().epoch() + self.ahead


class StillClock(TestClock):
    """Tells the time that a test has set. Its timers are those of the loop."""

    def __init__(self, secs: float = 1000.0) -> None:
        self.secs = secs

    def epoch(self) -> float:
        return self.secs

    def now(self) -> Instant:
        return Instant(self.secs)


def set_clock(crawler: Crawler, clock: Clock) -> None:
    """Set the clock of *crawler*. Raises RuntimeError if the crawl has another clock already."""
    if per_crawler(crawler, Clock, lambda: clock) is not clock:
        raise RuntimeError("the crawl has a clock already: set it before anything is built")

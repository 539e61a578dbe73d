"""One crawl in a process of its own. Its arguments come as JSON, and so does what it cost.

urls       to be requested
settings   of Scrapy
queued     whether all are in the scheduler's queue before the first is sent
cpu_secs   the crawl is stopped when it has used so many; None: when it is done
watched    whether the loop is watched, which costs something
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import resource
import sys
import time
from collections.abc import AsyncIterator, Callable
from typing import Any

from scrapy import Request, Spider, signals
from scrapy.crawler import AsyncCrawlerProcess, Crawler, CrawlerProcess

SAMPLE_SECS = 0.05
LOOK_SECS = 0.001
OCTETS = 1024 if sys.platform == "linux" else 1
"""In which getrusage() counts memory."""


def cpu_secs() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


class Held:
    """The longest times for which the loop was held, in CPU seconds of its thread.

    That of ours is without garbage collections: they fall to whoever allocates next.
    """

    def __init__(self) -> None:
        self.by_any = self.by_scheduler = self.by_ours = 0.0
        self._in_wrapped = 0.0
        self._collected = self._collection_began = 0.0
        gc.callbacks.append(self._collects)

    def _collects(self, phase: str, _: object) -> None:
        if phase == "start":
            self._collection_began = time.thread_time()
        else:
            self._collected += time.thread_time() - self._collection_began

    def watch_loop(self) -> None:
        """Measure what others use between two looks, which are as close as the loop allows."""
        loop, last = asyncio.get_running_loop(), time.thread_time()

        def look() -> None:
            nonlocal last
            last, before = time.thread_time(), last
            self.by_any = max(self.by_any, last - before)
            loop.call_later(LOOK_SECS, look)

        look()

    def watch_scheduler(self, scheduler: Any) -> None:
        """Measure a call of the scheduler, and of ours how much of it is not the wrapped one's."""
        wrapped = getattr(scheduler, "_scheduler", None)
        if wrapped is not None:
            self._watch(wrapped, self._wrapped_ends)
        self._watch(scheduler, self._scheduler_ends)

    def _watch(self, scheduler: Any, ends: Callable[[float, float], None]) -> None:
        next_request = scheduler.next_request

        def timed() -> Any:
            began, collected = time.thread_time(), self._collected
            try:
                return next_request()
            finally:
                ends(time.thread_time() - began, self._collected - collected)

        scheduler.next_request = timed

    def _wrapped_ends(self, secs: float, collected: float) -> None:
        self._in_wrapped += secs - collected

    def _scheduler_ends(self, secs: float, collected: float) -> None:
        self.by_scheduler = max(self.by_scheduler, secs)
        self.by_ours = max(self.by_ours, secs - collected - self._in_wrapped)
        self._in_wrapped = 0.0


class Many(Spider):
    """Requests its URLs, and notes when the first page has come."""

    name = "many"
    urls: list[str]
    queued: bool
    is_full = False
    """Whether all are in the queue."""
    pages = failed = 0
    began = began_cpu = first_cpu_secs = first_secs = 0.0

    async def start(self) -> AsyncIterator[Request]:
        self._begin()
        for url in self.urls:
            request = Request(url, errback=self.fail)
            if self.queued:
                self.crawler.engine.crawl(request)
            else:
                yield request
        if self.queued:
            self._begin()
            self.is_full = True

    def _begin(self) -> None:
        self.began, self.began_cpu = time.monotonic(), cpu_secs()

    def parse(self, *_: Any) -> None:
        if not self.pages:
            self.first_secs = time.monotonic() - self.began
            self.first_cpu_secs = cpu_secs() - self.began_cpu
        self.pages += 1

    def fail(self, *_: Any) -> None:
        self.failed += 1


class Measured:
    """A crawl, and what it costs."""

    def __init__(self, arguments: dict[str, Any]) -> None:
        self._arguments = arguments
        self._held = Held()
        self._attempts = 0
        settings = arguments["settings"]
        has_reactor = settings.get("TWISTED_REACTOR_ENABLED", True)
        self._process = (CrawlerProcess if has_reactor else AsyncCrawlerProcess)(settings)
        self._crawler: Crawler = self._process.create_crawler(Many)

    def run(self) -> None:
        arguments = self._arguments
        self._crawler.signals.connect(self._opened, signals.engine_started)
        self._process.crawl(self._crawler, urls=arguments["urls"], queued=arguments["queued"])
        self._process.start()
        self._tell()

    def _opened(self) -> None:
        if self._arguments["cpu_secs"] is not None:
            self._stop_in_time()
        if self._arguments["watched"]:
            slot: Any = self._crawler.engine._slot  # noqa: SLF001
            self._held.watch_loop()
            self._held.watch_scheduler(slot.scheduler)
            self._sample()

    def _sample(self) -> None:
        context: Any = getattr(self._crawler, "_koster_context", None)
        if context is not None:
            under_way = context.sites.served
            self._attempts = max(self._attempts, len(under_way))
        asyncio.get_running_loop().call_later(SAMPLE_SECS, self._sample)

    def _stop_in_time(self) -> None:
        spider: Any = self._crawler.spider
        if spider.is_full and cpu_secs() - spider.began_cpu >= self._arguments["cpu_secs"]:
            self._tell()
            os._exit(0)  # what it would do at its end is not of interest
        asyncio.get_running_loop().call_later(SAMPLE_SECS, self._stop_in_time)

    def _tell(self) -> None:
        spider: Any = self._crawler.spider
        found = {
            "pages": spider.pages,
            "failed": spider.failed,
            "first_secs": spider.first_secs if spider.pages else None,
            "first_cpu_secs": spider.first_cpu_secs if spider.pages else None,
            "secs": time.monotonic() - spider.began,
            # Not what it takes to import and build everything: that is no cost of a site.
            "cpu_secs": cpu_secs() - spider.began_cpu,
            "memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * OCTETS,
            "held_secs": self._held.by_any,
            "scheduler_held_secs": self._held.by_scheduler,
            "ours_held_secs": self._held.by_ours,
            "attempts": self._attempts,
        }
        print(json.dumps(found), flush=True)


if __name__ == "__main__":
    Measured(json.loads(sys.stdin.read())).run()

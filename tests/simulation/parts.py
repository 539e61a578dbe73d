"""What Scrapy has for each crawl, as light as it can be: signals, stats, the scraper."""

from __future__ import annotations

import inspect
from collections import Counter
from typing import TYPE_CHECKING, Any

from scrapy import Request
from scrapy.http import Response
from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

if TYPE_CHECKING:
    from simulation.process import Crawler, Process


class Counts(Counter[str]):
    """The stats."""

    def __bool__(self) -> bool:
        """Return True: Scrapy 2.17 takes what is false for none, and these begin empty."""
        return True

    def inc_value(self, key: str, count: int = 1, start: int = 0, spider: Any = None) -> None:
        self[key] += count

    def get_value(self, key: str, default: Any = None, spider: Any = None) -> Any:
        return self.get(key, default)

    def open_spider(self) -> None:
        """Scrapy calls it."""

    def close_spider(self, reason: str) -> None:
        """Scrapy calls it."""


class Signals:
    """As Scrapy's SignalManager."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self._receivers: dict[Any, list[tuple[Any, tuple[str, ...]]]] = {}
        self.sender = self
        """By which Scrapy finds who listens: here nobody does to robots_parsed."""

    def connect(self, receiver: Any, signal: Any) -> None:
        names = tuple(inspect.signature(receiver).parameters)
        self._receivers.setdefault(signal, []).append((receiver, names))

    def disconnect(self, receiver: Any, signal: Any) -> None:
        left = [each for each in self._receivers[signal] if each[0] != receiver]
        self._receivers[signal] = left

    def send_catch_log(self, signal: Any, **said: Any) -> list[tuple[Any, Any]]:
        expected = said.pop("dont_log", ())
        answers: list[tuple[Any, Any]] = []
        for receiver, names in self._receivers.get(signal, ()):
            try:
                answer = receiver(**{name: said[name] for name in names})
            except expected:
                answer = Failure()
            answers.append((receiver, answer))
        return answers

    async def send_catch_log_async(self, signal: Any, **said: Any) -> list[tuple[Any, Any]]:
        answers = []
        for receiver, answer in self.send_catch_log(signal, **said):
            answers.append((receiver, await answer if inspect.isawaitable(answer) else answer))
        return answers


class _Slot:
    """Of what is being scraped."""

    def __init__(self) -> None:
        self.active: set[Request] = set()
        self.queue: list[Any] = []
        self.active_size, self.max_active_size = 0, 5_000_000

    def is_idle(self) -> bool:
        return not self.active

    def needs_backout(self) -> bool:
        return False


class Scraper:
    """Calls the spider."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._process = crawler.process
        self.slot: _Slot | None = None
        self.spidermw = self
        self._closing: Deferred[None] | None = None

    async def process_start(self) -> Any:
        return self._crawler.spider.start()

    async def open_spider_async(self) -> None:
        self.slot = _Slot()

    async def close_spider_async(self) -> None:
        assert self.slot is not None
        if not self.slot.is_idle():
            self._closing = Deferred()
            await self._closing.asFuture(self._process.loop)

    def enqueue_scrape(self, result: Response | Failure, request: Request) -> Deferred[None]:
        assert self.slot is not None
        self.slot.active.add(request)
        done: Deferred[None] = Deferred()
        self._process.loop.call_soon(self._scrape, result, request, done)
        return done

    def _scrape(self, result: Response | Failure, request: Request, done: Deferred[None]) -> None:
        process = self._process
        process.history.ledger.ended(request, process, result)
        if isinstance(result, Response):
            for link in process.history.plan.nodes[request.meta["n"]].links:
                self._crawler.engine.crawl(link.request())
        self._scraped(request, done)

    def _scraped(self, request: Request, done: Deferred[None]) -> None:
        assert self.slot is not None
        self.slot.active.discard(request)
        done.callback(None)
        if self._closing is not None and self.slot.is_idle():
            self._closing.callback(None)

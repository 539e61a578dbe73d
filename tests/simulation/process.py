"""One simulated process: the real crawl of one worker, in a loop of virtual time."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from harness.clocks import set_clock
from scrapy import Request, Spider
from scrapy.core.engine import ExecutionEngine
from scrapy.http import Response
from scrapy.settings import BaseSettings
from scrapy.utils.defer import deferred_from_coro
from twisted.internet.defer import inlineCallbacks

from scrapy_koster.crawl.clock import Clock, Instant
from scrapy_koster.crawl.components.downloadermiddleware import KosterMiddleware
from scrapy_koster.crawl.components.scheduler import DeferringScheduler
from scrapy_koster.crawl.config import Config
from scrapy_koster.crawl.context import Parts, context_of
from scrapy_koster.crawl.engine.downloader import checking_downloader
from scrapy_koster.crawl.fetching.lookahead import FetchLimiter, LookaheadLimit
from scrapy_koster.storage.memory import MemoryStorage
from simulation.loop import EPOCH, Loop
from simulation.parts import Counts, Signals
from simulation.queues import InMemory
from simulation.store import Store

if TYPE_CHECKING:
    from simulation.history import History


@lru_cache(maxsize=1000)
def _config(items: tuple[tuple[str, Any], ...]) -> Config:
    crawler: Any = Crawler.__new__(Crawler)
    crawler.settings, crawler.spider = BaseSettings(dict(items)), None
    return Config.from_crawler(crawler)


class Crawler:
    """What Scrapy's components ask of a crawler."""

    def __init__(self, process: Process, settings: dict[str, Any]) -> None:
        self.process = process
        self.settings: Any = BaseSettings(settings)
        self.signals = Signals(process)
        self.stats = Counts()
        self.logformatter = self
        self.request_fingerprinter = self
        self.spider: Any = None
        self.engine: Any = None
        self.koster: Any = None
        self.running = True

    def crawled(self, *_: object) -> None:
        """Have nothing logged."""

    def fingerprint(self, request: Request) -> bytes:
        return f"{request.meta['n']} {request.url}".encode()

    def get_downloader_middleware(self, kind: type) -> Any:
        return self.koster if isinstance(self.koster, kind) else None

    async def crawl(self) -> None:
        self.engine = ExecutionEngine(self, lambda _: self.stop())  # type: ignore[arg-type]
        await self.engine.open_spider_async()
        await self.engine.start_async()

    async def stop(self) -> None:
        if self.running:
            self.running = False
            if self.engine.running:
                await self.engine.stop_async()


class CrawlSpider(Spider):
    """Asks for what the history has for it."""

    name = "simulated"

    async def start(self) -> AsyncIterator[Request]:
        process: Process = self.process  # type: ignore[attr-defined]
        for wait, request in process.start:
            if wait:
                await asyncio.sleep(wait)
            yield request()


class Downloader:
    """As Scrapy's: places, and one middleware. There is nothing but the simulated web behind."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._process = crawler.process
        self._places: int = crawler.settings.getint("CONCURRENT_REQUESTS")
        self.active: set[Request] = set()
        self.handlers: Any = self
        self.middleware = self

    def needs_backout(self) -> bool:
        return len(self.active) >= self._places

    @inlineCallbacks
    def fetch(self, request: Request) -> Any:
        self.active.add(request)
        self._process.idle_since = math.inf
        try:
            result = yield deferred_from_coro(self.download_async(self._page, request))
            return result
        finally:
            self.active.remove(request)
            if not self.active:
                self._process.idle_since = self._process.history.clock.now

    def close(self) -> None:
        pass

    async def download_async(self, download: Callable[[Request], Any], request: Request) -> Any:
        await self._crawler.koster.process_request(request)
        return await download(request)

    async def _page(self, request: Request) -> Response | Request:
        history = self._process.history
        history.watch.page(self._process, request)
        if history.slots is not None:  # as one with a delay of its own
            await asyncio.sleep(history.slots.choice((0.0, 0.0, 1.0, 5.0, 20.0)))
        response: Response = await self.handlers.download_request_async(request)
        if response.status == 302:
            return request.replace(url=request.meta["to"], dont_filter=False)
        return response

    def _get_handler(self, scheme: str) -> Any:
        return self

    async def download_request_async(self, request: Request) -> Response:
        process, watch = self._process, self._process.history.watch
        if process.dead:
            raise ConnectionError("the process is dead")
        if not request.url.endswith(".txt"):
            watch.sent(process, request)
            try:
                return await self._reply(request)
            finally:
                watch.answered(process, request)
        flight, response = watch.asks(process, request), None
        try:
            response = await self._reply(request)
            return response
        finally:
            watch.asked(flight, request, response)

    async def _reply(self, request: Request) -> Response:
        process = self._process
        reply = process.history.web.reply(request, process.history.clock.now)
        if reply.response is None and reply.error is None:
            await process.loop.create_future()  # it hangs
        if reply.secs:
            await asyncio.sleep(reply.secs)
        if reply.error is not None:
            raise reply.error
        assert reply.response is not None
        return reply.response


class ProcessClock(Clock):
    """The clocks of one process: that of its machine may be wrong, and jump."""

    def __init__(self, process: Process) -> None:
        self.process = process

    def epoch(self) -> float:
        self.process.history.stand_still(self.process)
        return self.process.wall()

    def now(self) -> Instant:
        return Instant(self.process.history.clock.now)


class WatchedScheduler(DeferringScheduler):
    """The real one; the history is told what it hands out."""

    def next_request(self) -> Request | None:
        request = super().next_request()
        if request is not None:
            process: Process = self._crawler.process  # type: ignore[attr-defined]
            process.history.ledger.handed_out(request, process)
        return request


class Process:
    """A worker: what it is given by its operating system, and the crawl that runs in it."""

    def __init__(
        self,
        history: History,
        name: str,
        *,
        start: list[tuple[float, Callable[[], Request]]],
    ) -> None:
        self.history = history
        self.name = name
        self.start = start
        self.dead = False
        self.paused_until = 0.0
        self.doomed: int | None = None
        """How many more callbacks it runs before it is killed."""
        self.ran = False
        self.checked = False
        self.stopped = False
        self.owner = ""
        """By which name it claims sites."""
        self.offset = 0.0
        self.idle_since = 0.0
        """When its downloader last had nothing to do; infinite while it has something."""
        self.resumed_at = 0.0
        """When its user last had it go on after a pause."""
        self.loop = Loop(history.clock, self._failed)
        self.loop.owner = self
        self.crawler = Crawler(self, self._settings())
        self.main: asyncio.Task[None] | None = None

    def _settings(self) -> dict[str, Any]:
        return self.history.settings | {
            "DOWNLOADER": checking_downloader(Downloader),
            "SCHEDULER": WatchedScheduler if self.history.defers else InMemory,
            "KOSTER_FALLBACK_SCHEDULER": InMemory,
        }

    def wall(self) -> float:
        """Return the time by the clock of this machine."""
        return EPOCH + self.history.clock.now + self.offset

    def begin(self) -> None:
        """Start the crawl; to be called in its loop."""
        crawler: Any = self.crawler
        history = self.history
        config = _config(tuple(sorted(history.koster.items())))
        config = replace(config, storage=self._storage(), fallback_scheduler=InMemory)
        crawler.spider = CrawlSpider()
        crawler.spider.process = self
        clock = ProcessClock(self)
        set_clock(crawler, clock)
        context_of(
            crawler,
            Parts(
                config=config,
                chance=history.chance.random,
                lookahead=lambda clock, has_room, has_memory, _young, _waiting, served: (
                    LookaheadLimit(
                        clock, has_room, has_memory, history.first, history.waiting, served
                    )
                ),
                limiter=lambda clock, young, _: FetchLimiter(clock, young, history.sockets),
            ),
        )
        crawler.koster = KosterMiddleware(crawler)
        self.main = self.loop.create_task(crawler.crawl())

    def _storage(self) -> Any:
        if not self.history.shares:
            return MemoryStorage
        process = self

        class Mine(Store):
            @classmethod
            def from_settings(cls, settings: Any) -> Mine:
                return cls(process.history.disk, process)

        return Mine

    def _failed(self, context: dict[str, Any]) -> None:
        if not self.dead:
            self.history.watch.broken("nothing goes wrong unseen", self, repr(context))

    def die(self) -> None:
        """Have no effect on anything any more, as after a kill."""
        self.dead = True
        if self.crawler.engine is not None:
            self.crawler.engine.paused = True

    @property
    def ended(self) -> bool:
        return self.dead or (self.main is not None and self.main.done())

    @property
    def is_open(self) -> bool:
        """Whether its crawl has begun, and can be stopped."""
        return self.slot is not None and self.slot.closing is None and self.crawler.engine.running

    @property
    def is_paused_by_user(self) -> bool:
        engine, slot = self.crawler.engine, self.slot
        return bool(slot is not None and slot.closing is None and engine.paused)

    @property
    def slot(self) -> Any:
        return self.crawler.engine and self.crawler.engine._slot

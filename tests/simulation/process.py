"""One simulated process: the real crawl of one worker, in a loop of virtual time."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

from harness.clocks import set_clock
from scrapy import Request, Spider
from scrapy.core.engine import ExecutionEngine
from scrapy.http import Response
from scrapy.settings import BaseSettings
from scrapy.utils.defer import deferred_from_coro
from twisted.internet.defer import inlineCallbacks

from scrapy_koster.crawl.assembly import Parts, assembly_of
from scrapy_koster.crawl.clock import Clock, Instant
from scrapy_koster.crawl.components.downloadermiddleware import KosterMiddleware
from scrapy_koster.crawl.components.scheduler import DeferringScheduler
from scrapy_koster.crawl.config import Config
from scrapy_koster.crawl.engine.downloader import checking_downloader
from scrapy_koster.crawl.fetching.fetcher import Fetcher
from scrapy_koster.crawl.fetching.lookahead import FetchLimiter, LookaheadLimit
from scrapy_koster.crawl.parking.parked_requests import ParkedRequests
from scrapy_koster.crawl.site_records import SiteRecords
from scrapy_koster.protocol.access import Failure
from scrapy_koster.protocol.step import given_up_at
from scrapy_koster.storage.memory import MemoryStorage
from simulation.fakeredis import Server
from simulation.loop import EPOCH, Loop
from simulation.parts import Counts, Signals
from simulation.queues import InMemory, InRedis, JobDir, OnDisk
from simulation.store import BatchedStore, Store

if TYPE_CHECKING:
    from scrapy_koster.crawl.states import SiteState
    from scrapy_koster.protocol.access import Answer, Copy, NoAnswer
    from scrapy_koster.protocol.site import Site
    from simulation.history import History

_QUEUES = {"memory": InMemory, "jobdir": OnDisk, "redis": InRedis}


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

    def log(self, *_: Any, **__: Any) -> None:
        """Say nothing: scrapy-redis tells by it that it goes on, which Scrapy warns of."""

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
        try:
            result = yield deferred_from_coro(self.download_async(self._page, request))
            return result
        finally:
            self.active.remove(request)

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
        process = self._process
        if process.dead:
            raise ConnectionError("the process is dead")
        process.history.watch.sent(process, request)
        reply = process.history.web.reply(request, process.history.clock.now)
        clock = process.history.clock
        is_answered = reply.response is not None or reply.error is not None
        until = clock.now + reply.secs if is_answered else math.inf
        try:
            if not is_answered:
                await process.loop.create_future()  # it hangs
            if reply.secs:
                await asyncio.sleep(reply.secs)
        finally:
            process.history.watch.answered(process, request, min(until, clock.now))
        if reply.error is not None:
            raise reply.error
        assert reply.response is not None
        process.history.watch.received(process, request, reply.response)
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


class WatchedSites(SiteRecords):
    """The real ones; the process keeps those that it has met."""

    def __init__(self, process: Process, **given: Any) -> None:
        super().__init__(**given)
        self._met = process.states

    def state_of(self, url: str) -> SiteState | None:
        state = super().state_of(url)
        if state is not None:
            self._met[str(state.site)] = state
        return state


class WatchedParked(ParkedRequests):
    """The real one; the history is told what is parked."""

    def __init__(self, crawler: Any, **collaborators: Any) -> None:
        super().__init__(crawler, **collaborators)
        self._process: Process = crawler.process

    def push(self, key: str, request: Request) -> None:
        self._process.history.ledger.parks(request, self._process)
        super().push(key, request)


class WatchedScheduler(DeferringScheduler):
    """The real one; the history is told what it hands out."""

    def next_request(self) -> Request | None:
        request = super().next_request()
        if request is not None:
            process: Process = self._crawler.process  # type: ignore[attr-defined]
            process.history.ledger.handed_out(request, process)
        return request


class WatchedFetcher(Fetcher):
    """The real one; the history is told when a site is asked."""

    async def fetch(
        self, site: Site, page: Request, stale: Copy | None, **how: Any
    ) -> Answer | NoAnswer:
        process = self.crawler.process  # type: ignore[attr-defined]
        watch = process.history.watch
        watch.asks(process, site)
        try:
            return await super().fetch(site, page, stale, **how)
        finally:
            watch.asked(process, site)


class Process:
    """A worker: what it is given by its operating system, and the crawl that runs in it."""

    def __init__(
        self,
        history: History,
        name: str,
        *,
        start: list[tuple[float, Callable[[], Request]]],
        jobdir: JobDir | None = None,
        share: int | None = None,
    ) -> None:
        self.history = history
        self.name = name
        self.start = start
        self.jobdir = jobdir
        self.dead = False
        self.paused_until = 0.0
        self.doomed: int | None = None
        """How many more callbacks it runs before it is killed."""
        self.share = share
        self.ran = False
        self.checked = False
        self.stopped = False
        self.has_handed_back = False
        """Whether its scheduler has closed, so that Redis has what it had."""
        self.states: dict[str, SiteState] = {}
        """The sites that it has met, by their origin."""
        self.overdue: dict[Any, tuple[Any, float]] = {}
        """What each of them is waited for by, and until when."""
        self.offset = 0.0
        self.failed_at = -1000.0
        self.journal_failed_at = -1000.0
        self.disturbed_at = -1000.0
        """When it was last paused, or its clock put to another time."""
        self.resumed_at = -1000.0
        """When its user last had it go on after a pause."""
        self.loop = Loop(history.clock, self._failed)
        self.loop.owner = self
        self.redis = Server(history.redis, self)
        self.crawler = Crawler(self, self._settings())
        self._scheduler: Any = None
        self.main: asyncio.Task[None] | None = None

    def _settings(self) -> dict[str, Any]:
        settings = dict(self.history.settings)
        if self.history.queue_kind == "jobdir":
            assert self.jobdir is not None
            settings["JOBDIR"] = str(self.jobdir.folder)
        return settings | {
            "DOWNLOADER": checking_downloader(Downloader),
            "SCHEDULER": WatchedScheduler if self.history.defers else self._fallback(),
            "KOSTER_FALLBACK_SCHEDULER": self._fallback(),
        }

    def _fallback(self) -> type:
        return _QUEUES[self.history.queue_kind]

    def wall(self) -> float:
        """Return the time by the clock of this machine."""
        return EPOCH + self.history.clock.now + self.offset

    def moments(self) -> list[float]:
        """Return when time alone decides what is done with requests, in seconds since the epoch."""
        policy = self.sites.config.policy
        moments = []
        for state in self.states.values():
            if isinstance(state.known, Failure):
                moments += [state.known.retry, given_up_at(state.known, policy=policy)]
            elif state.known is not None:
                moments.append(state.known.expires)
        return moments

    def begin(self) -> None:
        """Start the crawl; to be called in its loop."""
        crawler: Any = self.crawler
        history = self.history
        config = _config(tuple(sorted(history.koster.items())))
        fallback = self._fallback()
        config = replace(config, storage=self._storage(), fallback_scheduler=fallback)
        crawler.spider = CrawlSpider()
        crawler.spider.process = self
        clock = ProcessClock(self)
        set_clock(crawler, clock)
        self.parts = assembly_of(
            crawler,
            Parts(
                config=config,
                chance=history.chance.random,
                records=partial(WatchedSites, self),
                fetcher=WatchedFetcher,
                lookahead=lambda clock, has_room, has_memory, _young, _waiting, served: (
                    LookaheadLimit(
                        clock, has_room, has_memory, history.first, history.waiting, served
                    )
                ),
                limiter=lambda clock, young, _: FetchLimiter(clock, young, history.sockets),
                parked=WatchedParked,
            ),
        )
        self.sites = self.parts.sites
        self.store: Any = self.sites.retriever.store
        crawler.koster = KosterMiddleware(crawler)
        self.main = self.loop.create_task(crawler.crawl())

    def _storage(self) -> Any:
        if not self.history.shares:
            return MemoryStorage
        process = self

        kind = BatchedStore if self.history.batches else Store

        class Mine(kind):  # type: ignore[misc,valid-type]
            @classmethod
            def from_settings(cls, settings: Any) -> Mine:
                return cls(process.history.disk, process)

        return Mine

    def answered(self, secs: float) -> None:
        """A call of the storage has taken so long."""
        if secs >= self.history.koster["KOSTER_TIMEOUT_SECS"]:  # it is taken for one that hangs
            self.failed_at = self.history.clock.now

    def _failed(self, context: dict[str, Any]) -> None:
        if not self.dead:
            self.history.watch.broken("nothing goes wrong unseen", self, repr(context))

    def die(self) -> None:
        """Have no effect on anything any more: what is on the disk is there, as after a kill."""
        self.dead = True
        if self.crawler.engine is not None:
            self.crawler.engine.paused = True
        if (file := self.parked_file) is not None and file._connection is not None:
            file._connection.close()  # it raises what a disk raises that is gone

    @property
    def outlasted_at(self) -> float:
        """When claims may have run out last, though it did nothing wrong."""
        return max(self.disturbed_at, self.history.stood_still_at)

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

    @property
    def scheduler(self) -> Any:
        if self.slot is not None:
            self._scheduler = self.slot.scheduler
        return self._scheduler

    @property
    def parked_file(self) -> Any:
        """The file of what is parked; None where there is no scheduler of ours."""
        defers = self.history.defers and self.scheduler is not None
        return self.parts.parked._file if defers else None

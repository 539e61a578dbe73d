"""Real crawls inside tests, written once for every kind of reactor and for none:

    async def test_forbidden_pages_are_not_fetched(crawl, server):
        site = server.site()
        site.robots = "User-agent: *\nDisallow: /private"
        urls = [site.url("/"), site.url("/private")]
        result = await crawl(urls=urls, settings={"CONCURRENT_REQUESTS": 4})
        assert result.fetched == (site.url("/"),)
        [(url, error)] = result.refused
        assert isinstance(error, RobotsForbidden)
        assert result.stats["robotstxt/forbidden"] == 1

    pytest                       asyncio reactor
    pytest --reactor=default     Twisted's own reactor, without asyncio
    pytest -p no:twisted         no reactor (TWISTED_REACTOR_ENABLED False)

`crawl(...)` takes the `urls` (or requests) of `RecordingSpider`, or of the subclass given first,
the `settings`, and

- `robots="koster"`: scrapy_koster.Addon (the default); `"scrapy"`: Scrapy's own middleware;
  `None`: what the settings say;
- `meta` and `headers` for each request;
- `arguments={"name": value}` for the spider's constructor, where they become attributes.

What happens in the middle of a crawl:

        running = crawl.start(urls=[...])                       # the same arguments
        await crawl.until(lambda: site.asked("/robots.txt"))    # or: await crawl.sleep(0.2)
        result = await running.stop()                           # as Ctrl-C; or: running.result()

Several at once: `first, second = await crawl.together(crawl(...), crawl(...))`.

A test may await these, and what Scrapy lets components await (scrapy.utils.asyncio,
maybe_deferred_to_future), but neither asyncio's functions nor Deferreds directly. When it has
ended it must have left nothing behind: no timer, no task, no error that nobody took. It fails when
it takes longer than 60 s, or `@pytest.mark.bound(seconds)`.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias, TypeVar

import scrapy
from scrapy import Request, Spider, signals
from scrapy.crawler import Crawler
from scrapy.http import Response
from scrapy.settings import default_settings
from scrapy.utils.asyncio import is_asyncio_available
from scrapy.utils.defer import deferred_from_coro, maybe_deferred_to_future
from scrapy.utils.reactor import is_asyncio_reactor_installed, is_reactor_installed
from twisted.internet.defer import Deferred, DeferredList
from twisted.python.failure import Failure

from harness.clocks import set_clock, sleep
from harness.virtual import TIME, TestClock
from scrapy_koster.crawl.clock import Clock
from scrapy_koster.protocol.verdict import Verdict

T = TypeVar("T")
Robots: TypeAlias = Literal["koster", "scrapy"] | None

OBEYING: Mapping[Robots, Mapping[str, Any]] = {
    "koster": {"ADDONS": {"scrapy_koster.Addon": 500}},
    "scrapy": {"ROBOTSTXT_OBEY": True},
    None: {},
}
IN_PLACE: dict[str, Any] = {
    "ROBOTSTXT_OBEY": True,
    "DOWNLOADER_MIDDLEWARES": {
        "scrapy.downloadermiddlewares.robotstxt.RobotsTxtMiddleware": None,
        "scrapy_koster.KosterMiddleware": 100,
    },
}
"""For a crawl without the add-on, and so without the scheduler that holds requests back."""
IDLE_LEVEL = logging.INFO
"""Of the root logger in a test: `log_level` of pyproject.toml."""
LOUD = ("asyncio", "twisted", "scrapy.core", "scrapy.utils", "scrapy_koster")
"""Loggers whose errors are always a defect: of what was raised where nobody expected it."""


class RecordingSpider(Spider):
    """Requests its `urls`, and keeps what was fetched and what was refused.

    Subclasses override `page` to yield items, or further requests made by `ask`.
    """

    name = "recording"
    urls: Sequence[str | Request] = ()
    meta: Mapping[str, Any] = {}
    headers: Mapping[str, str] = {}

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.fetched: list[str] = []
        self.refused: list[tuple[str, BaseException]] = []

    async def start(self) -> AsyncIterator[Any]:
        for url in self.urls:
            yield self.ask(url)

    def ask(self, url: str | Request, **arguments: Any) -> Request:
        request = (
            url
            if isinstance(url, Request)
            else Request(url, headers=dict(self.headers), meta=dict(self.meta))
        )
        return request.replace(
            cls=Request, **{"callback": self.parse, "errback": self.fail, **arguments}
        )

    def parse(self, response: Response, **arguments: Any) -> Any:
        self.fetched.append(response.url)
        return self.page(response)

    def page(self, response: Response) -> Any:
        return None

    def fail(self, failure: Failure) -> Any:
        request: Request = failure.request  # type: ignore[attr-defined]  # set by Scrapy
        assert failure.value is not None
        self.refused.append((request.url, failure.value))


class Leads(RecordingSpider):
    """Its first page leads to others."""

    then: Sequence[str | Request] = ()

    def page(self, response: Response) -> Any:
        return map(self.ask, self.then) if response.url.endswith("/first") else None


class WithFiles(RecordingSpider):
    """Each page has an item with the files that are to be downloaded."""

    media: Sequence[str] = ()

    def page(self, response: Response) -> Any:
        yield {"url": response.url, "file_urls": self.media}


@dataclass(frozen=True)
class CrawlResult:
    crawler: Crawler
    stats: Mapping[str, Any]
    fetched: Sequence[str]
    """URLs whose callback ran, in order."""
    refused: Sequence[tuple[str, BaseException]]
    """URLs whose errback ran, in order, with the exception."""
    items: Sequence[Any]
    log: Sequence[logging.LogRecord]
    """All records from DEBUG up (or LOG_LEVEL) while it ran."""
    seconds: float

    @property
    def finish_reason(self) -> str:
        reason: str = self.stats["finish_reason"]
        return reason

    @property
    def verdicts(self) -> list[Verdict]:
        """Why each of `refused` was."""
        return [error.verdict for _, error in self.refused]  # type: ignore[attr-defined]

    @property
    def warnings(self) -> list[str]:
        """The messages of ours from WARNING up."""
        return self.logged(logging.WARNING, "scrapy_koster")

    @property
    def errors(self) -> dict[str, type[BaseException]]:
        """What each of `refused` was refused with."""
        return {url: type(error) for url, error in self.refused}

    def logged(self, level: int = logging.NOTSET, name: str = "") -> list[str]:
        """The messages of this level or above, of loggers whose name begins so."""
        return [r.getMessage() for r in self.log if r.levelno >= level and r.name.startswith(name)]


class _Keep(logging.Handler):
    def __init__(self, level: int | str) -> None:
        super().__init__(level)
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)


@contextmanager
def kept_log(level: int | str = logging.DEBUG) -> Iterator[list[logging.LogRecord]]:
    """The records of all loggers while it is open."""
    root, handler = logging.getLogger(), _Keep(level)
    root.addHandler(handler)
    _log_what_is_kept(root)
    try:
        yield handler.records
    finally:
        root.removeHandler(handler)
        _log_what_is_kept(root)


def _log_what_is_kept(root: logging.Logger) -> None:
    """Crawls that overlap end in any order: what level there is depends on those that remain."""
    kept = [handler.level for handler in root.handlers if isinstance(handler, _Keep)]
    root.setLevel(min([*kept, IDLE_LEVEL]))


class Running:
    """A crawl that has been started."""

    def __init__(self, crawler: Crawler, arguments: Mapping[str, Any]) -> None:
        self.crawler = crawler
        self._items: list[Any] = []
        crawler.signals.connect(self._item_scraped, signal=signals.item_scraped)
        self._ended: Deferred[CrawlResult] = deferred_from_coro(self._run(arguments))

    async def result(self) -> CrawlResult:
        """Wait for its end. Who stops waiting, as a test that takes too long, does not end it."""
        told: Deferred[CrawlResult] = Deferred()
        self._ended.addBoth(_tell, told)
        return await maybe_deferred_to_future(told)

    async def stop(self) -> CrawlResult:
        """End it gracefully: what is in flight is finished, what is scheduled is not."""
        # Scrapy forgets a stop that comes before its engine runs, and then never ends.
        await Crawl.until(lambda: self._ended.called or self._engine_runs())
        if self.crawler.crawling:
            await self.crawler.stop_async()
        return await self.result()

    def _engine_runs(self) -> bool:
        # crawler.engine of Scrapy 2.18 is not there to be asked before it runs.
        engine = getattr(self.crawler, "_engine" if scrapy.version_info >= (2, 18) else "engine")
        return engine is not None and engine.running

    async def _run(self, arguments: Mapping[str, Any]) -> CrawlResult:
        began = TIME.now()
        with kept_log(self.crawler.settings["LOG_LEVEL"]) as log:
            await (
                self.crawler.crawl_async(**arguments)
                if is_asyncio_available()
                else self.crawler.crawl(**arguments)
            )
        _refuse_loud_errors(log)
        spider = self.crawler.spider
        return CrawlResult(
            crawler=self.crawler,
            stats=dict(self.crawler.stats.get_stats()),
            fetched=tuple(getattr(spider, "fetched", ())),
            refused=tuple(getattr(spider, "refused", ())),
            items=tuple(self._items),
            log=tuple(log),
            seconds=TIME.now() - began,
        )

    def _item_scraped(self, item: Any) -> None:
        self._items.append(item)


def _tell(outcome: Any, told: Deferred[Any]) -> Any:
    told.callback(outcome)
    return None if isinstance(outcome, Failure) else outcome


def _refuse_loud_errors(log: Sequence[logging.LogRecord]) -> None:
    errors = [
        r for r in log if r.levelno >= logging.ERROR and r.name.startswith(LOUD) and r.exc_info
    ]
    if errors:
        told = "\n".join(
            logging.Formatter("%(name)s: %(message)s").format(record) for record in errors
        )
        raise AssertionError(f"the crawl logged errors that nobody expected:\n{told}")


@dataclass
class Crawl:
    """What the fixture `crawl` is: see the top of this file."""

    folder: Path
    """For what a crawl writes."""
    runs: list[Running] = field(default_factory=list)
    always: dict[str, Any] = field(default_factory=dict)
    """Settings of all its crawls."""
    clock: Clock | None = None
    """By which all its crawls go."""

    async def __call__(
        self, spider: type[Spider] = RecordingSpider, **arguments: Any
    ) -> CrawlResult:
        return await self.start(spider, **arguments).result()

    def start(
        self,
        spider: type[Spider] = RecordingSpider,
        *,
        urls: Sequence[str | Request] = (),
        settings: Mapping[str, Any] | None = None,
        robots: Robots = "koster",
        meta: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        arguments: Mapping[str, Any] | None = None,
    ) -> Running:
        crawler = Crawler(spider, self.settings(robots, settings or {}))
        set_clock(crawler, self.clock or TestClock())
        given = {"urls": urls, "meta": meta, "headers": headers}
        running = Running(
            crawler, {name: value for name, value in given.items() if value} | dict(arguments or {})
        )
        self.runs.append(running)
        return running

    def settings(self, robots: Robots, given: Mapping[str, Any]) -> dict[str, Any]:
        """What a crawl gets that is given these."""
        return {
            "LOG_ENABLED": False,
            "LOG_LEVEL": "DEBUG",
            "TELNETCONSOLE_ENABLED": False,
            "REMOTE_CONTROL_ENABLED": False,
            "DOWNLOAD_TIMEOUT": 20,
            "CONCURRENT_ITEMS": 2,  # Scrapy makes so many tasks for each page
            "KOSTER_SQLITE_PATH": str(self.folder / "robots.sqlite3"),
            **reactor_settings(),
            **OBEYING[robots],
            **self.always,
            **given,
        }

    @staticmethod
    async def together(*running: Awaitable[T]) -> list[T]:
        """Await them at the same time; the first error is raised once all have ended."""
        started = [deferred_from_coro(each) for each in running]
        ended = await maybe_deferred_to_future(DeferredList(started, consumeErrors=True))
        for _, outcome in ended:
            if isinstance(outcome, Failure):
                outcome.raiseException()
        return [outcome for _, outcome in ended]

    sleep = staticmethod(sleep)

    @staticmethod
    async def until(condition: Callable[[], object], *, seconds: float = 60.0) -> None:
        """Wait until it is true, and fail if it does not become so."""
        end = TIME.now() + seconds
        if TIME.is_virtual:
            await TIME.until(lambda: condition() or TIME.now() > end, at=end)
        while not condition():
            if TIME.now() > end:
                raise AssertionError(f"not so after {seconds} s")
            await sleep(0.01)

    def unfinished(self) -> list[Running]:
        return [running for running in self.runs if running.crawler.crawling]

    async def stop_all(self) -> None:
        for running in self.unfinished():
            await running.stop()


def reactor_settings() -> dict[str, Any]:
    """What makes Scrapy use the reactor that is installed, or none."""
    if not is_reactor_installed():
        return {"TWISTED_REACTOR_ENABLED": False}
    if is_asyncio_reactor_installed():
        return {}
    return {"TWISTED_REACTOR": None}


# In its place were settings that are deprecated where it is.
_HAS_JITTER = hasattr(default_settings, "DOWNLOAD_DELAY_JITTER")
STEADY: dict[str, Any] = (
    {"DOWNLOAD_DELAY_JITTER": 0} if _HAS_JITTER else {"RANDOMIZE_DOWNLOAD_DELAY": False}
)
"""Settings with which Scrapy's delays last as long as they say."""

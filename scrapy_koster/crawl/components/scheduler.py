"""The scheduler that holds back the requests of sites that cannot be asked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from scrapy import signals
from scrapy.core.scheduler import BaseScheduler
from scrapy.downloadermiddlewares.robotstxt import RobotsTxtMiddleware
from scrapy.exceptions import DontCloseSpider
from scrapy.utils.misc import build_from_crawler, load_object
from twisted.internet.defer import Deferred

from scrapy_koster.crawl.assembly import assembly_of
from scrapy_koster.crawl.components.downloadermiddleware import KosterMiddleware
from scrapy_koster.crawl.components.linkfilter import LinkFilterMiddleware
from scrapy_koster.crawl.components.spidermiddleware import RobotsMetaMiddleware
from scrapy_koster.crawl.components.usagemiddleware import UsageMiddleware
from scrapy_koster.crawl.config import config_of
from scrapy_koster.crawl.idle import Crawl
from scrapy_koster.crawl.messages.log import Log, ServerLog
from scrapy_koster.crawl.parking.choosing import Choosing
from scrapy_koster.crawl.parking.journal import Journal, NoJournal, journal_of
from scrapy_koster.crawl.parking.lastrun import LastRun
from scrapy_koster.crawl.parking.remaining import Remaining
from scrapy_koster.crawl.parking.workers import server_of
from scrapy_koster.crawl.parking.wrapped import Wrapped
from scrapy_koster.crawl.scrapy_internals import check_internals, missing_internal

if TYPE_CHECKING:
    from collections.abc import Sized

    from scrapy import Request, Spider
    from scrapy.crawler import Crawler

    from scrapy_koster.crawl.assembly import Assembly
    from scrapy_koster.crawl.config import Config

_UNWRITTEN = "What of them is not in Redis is lost: it cannot be written to"
_LOST = "Those that cannot be written to Redis are lost"


class DeferringScheduler(BaseScheduler):
    """Scheduler that wraps yours, and holds requests back until their robots.txt is known.

    3.1: "On the request attempt resulted in temporary failure a robot should
    defer visits to the site until such time as the resource can be retrieved."

    Waiting requests use no place of CONCURRENT_REQUESTS. When their site is decided, they come
    before those of the wrapped scheduler (KOSTER_FALLBACK_SCHEDULER), but by turns with those
    while all places are taken.
    """

    def __init__(self, crawler: Crawler, scheduler: BaseScheduler, parts: Assembly) -> None:
        self._crawler = crawler
        self._scheduler = scheduler
        self._parts = parts
        self._log = Log(__name__, crawler)
        self._sites = parts.sites
        self._parking = parts.parking
        self._waiting = parts.waiting
        self._wrapped = Wrapped(crawler, scheduler, folder=parts.folder)
        self._last_run = LastRun(crawler)
        self._choosing = Choosing(
            crawler,
            parts.clock,
            parts.engine,
            sites=parts.sites,
            parking=parts.parking,
            waiting=parts.waiting,
            wrapped=self._wrapped,
            last_run=self._last_run,
        )
        self._remaining = Remaining(crawler)
        self._journal: Journal | NoJournal = NoJournal()

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> DeferringScheduler:
        """Create it, and the wrapped scheduler. Raises ValueError if a setting is invalid."""
        parts = assembly_of(crawler)
        return cls(crawler, build_from_crawler(parts.config.fallback_scheduler, crawler), parts)

    def __getattr__(self, name: str) -> Any:
        # What is not in Scrapy's scheduler interface (len(), the queues that
        # the telnet console shows) is the wrapped scheduler's.
        return getattr(self._scheduler, name)

    def __len__(self) -> int:
        return len(self._scheduler) + len(self._parking)  # type: ignore[arg-type]

    @property
    def mqs(self) -> Sized:
        """The queue in memory, parked requests included: Scrapy's engine status shows it."""
        return range(len(getattr(self._scheduler, "mqs", ())) + len(self._parking))

    def open(self, spider: Spider) -> Deferred[None] | None:
        """Open the wrapped scheduler. RuntimeError if the crawl would not obey robots.txt."""
        if missing_internal(self._crawler) is not None:
            if hasattr(self._scheduler, "open"):
                self._scheduler.open(spider)  # what is closed after an error has to be open
            check_internals(self._crawler)
        middleware = self._crawler.get_downloader_middleware(KosterMiddleware)
        if middleware is not None and not self._parts.is_replay:
            is_by_hand = self._parts.engine.is_by_hand
            self._waiting.open(is_kept=self._wrapped.keeps_requests and not is_by_hand)
            if is_by_hand:
                self._sites.idle_timeout.have_none()
        # What is closed after an error has to be open.
        opened = self._scheduler.open(spider) if hasattr(self._scheduler, "open") else None
        if self._crawler.settings.getbool("ROBOTSTXT_OBEY"):
            _check_built(self._crawler)
        self._crawler.signals.connect(self._spider_idle, signals.spider_idle)
        if isinstance(opened, Deferred):
            return opened.addCallback(self._opened)
        self._opened()
        return None

    def _opened(self, _: None = None) -> None:
        parts = self._parts
        server = server_of(getattr(self._scheduler, "queue", None))
        log = ServerLog(Journal.__module__, self._crawler, server)
        hold_secs = parts.config.policy.defer_limit_secs
        self._journal = journal_of(
            self._scheduler, log, parts.engine, parts.clock, hold_secs=hold_secs
        )
        if self._journal.is_on:
            self._wrapped.leave_alone_while(self._journal.is_silent)
        self._journal.open(anew=getattr(self._scheduler, "flush_on_start", False))
        count = self._parking.begin(self._journal, self._take_back)
        if count:
            self._log.info(
                "Requests that waited for their site when the last run ended, and wait again:"
                " %(count)d",
                count=count,
            )

    def _take_back(self, request: Request) -> None:
        self._wrapped.mark_seen(request)
        self._last_run.add(request)

    def close(self, reason: str) -> Deferred[None] | None:
        """Hand the parked requests back to the wrapped scheduler and close it.

        A persistent scheduler keeps them for the next run. With a JOBDIR they stay in a separate
        file; with scrapy-redis the journal moves its requests to the queue.
        """
        waiting = self._parking.by_site()
        self._remaining.tell(waiting, self._hand_back())
        self._parking.close()
        return self._scheduler.close(reason) if hasattr(self._scheduler, "close") else None

    def _hand_back(self) -> str:
        if self._journal.is_on:
            parked = self._parking.drain_places()
            lost = self._journal.close(parked, keep=self._wrapped.keeps_requests)
            if lost is None:
                return _UNWRITTEN
            if lost:
                return f"{self._wrapped.fate}. {_LOST}: {lost}"
        elif self._wrapped.takes_back:
            return self._wrapped.give_back(self._parking.drain())
        return self._wrapped.fate

    def has_pending_requests(self) -> bool:
        """Whether there are requests to crawl now.

        Parked requests do not count: a crawl with no other requests is idle, so handlers of
        ``spider_idle`` can add some. See ``_spider_idle``.
        """
        return (
            self._parking.has_next
            or self._choosing.is_cut_short
            or self._waiting.has_turn
            or self._last_run.is_new
            or self._wrapped.has_pending_requests()
        )

    def _spider_idle(self) -> None:
        """Keep the crawl open while the time of requests that wait may come."""
        if not self._waiting.is_open:
            return
        sites, idle_timeout = self._sites, self._sites.idle_timeout
        if len(self._parking) or len(sites.in_place):
            idle_timeout.idle()
            is_paced = self._parts.pacer.has_waiting()
            is_over = (
                idle_timeout.crawl is Crawl.OVER and not sites.is_retrieving() and not is_paced
            )
            if not (self._waiting.is_kept and is_over):
                raise DontCloseSpider
        if self._journal.others_wait():
            raise DontCloseSpider

    def enqueue_request(self, request: Request) -> bool:
        """Pass *request* to the wrapped scheduler."""
        return self._scheduler.enqueue_request(request)

    def next_request(self) -> Request | None:
        """Return a request that can be decided at once, or None."""
        return self._choosing.next_request()


def _check_built(crawler: Crawler) -> None:
    """Raise RuntimeError where a crawl that is to obey lacks a component for it.

    Another add-on, the settings or a subclass may have taken it out. Scrapy's
    own middleware obeys too. Where RobotsMetaMiddleware has no place in the
    settings, or nothing to look at, that is the user's choice.
    """
    downloader = (KosterMiddleware, RobotsTxtMiddleware)
    if not any(crawler.get_downloader_middleware(each) for each in downloader):
        raise RuntimeError(
            "ROBOTSTXT_OBEY is True, but there is no KosterMiddleware in the crawl. Enable it in"
            " DOWNLOADER_MIDDLEWARES, or set ROBOTSTXT_OBEY = False."
        )
    _check_spider_middlewares(crawler, config_of(crawler))


def _check_spider_middlewares(crawler: Crawler, config: Config) -> None:
    if (
        config.filter_links
        and not config.dry_run
        and crawler.get_spider_middleware(LinkFilterMiddleware) is None
    ):
        raise RuntimeError(
            "KOSTER_FILTER_LINKS is True, but LinkFilterMiddleware is not in the crawl. Add"
            ' "scrapy_koster.LinkFilterMiddleware": 1000 to SPIDER_MIDDLEWARES, or use the add-on.'
        )
    enabled = crawler.settings.get_component_priority_dict_with_base("SPIDER_MIDDLEWARES")
    if (
        any(issubclass(load_object(path), RobotsMetaMiddleware) for path in enabled)
        and config.page_directives
        and crawler.get_spider_middleware(RobotsMetaMiddleware) is None
    ):
        raise RuntimeError(
            "RobotsMetaMiddleware is in SPIDER_MIDDLEWARES, but not in the crawl: it was disabled"
            " when it was built. Fix the cause, or set KOSTER_PAGE_DIRECTIVES = []."
        )
    if config.usage.reads_metas and crawler.get_spider_middleware(UsageMiddleware) is None:
        raise RuntimeError(
            "KOSTER_USAGE_PURPOSES or KOSTER_USAGE_FIELD is set, but there is no UsageMiddleware in"
            " the crawl: it was disabled when it was built. Fix the cause, or unset both settings."
        )

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
from scrapy_koster.crawl.clock import LONG_AGO
from scrapy_koster.crawl.components.downloadermiddleware import KosterMiddleware
from scrapy_koster.crawl.components.linkfilter import LinkFilterMiddleware
from scrapy_koster.crawl.components.spidermiddleware import RobotsMetaMiddleware
from scrapy_koster.crawl.components.usagemiddleware import UsageMiddleware
from scrapy_koster.crawl.config import config_of
from scrapy_koster.crawl.keeping.fate import Crawl
from scrapy_koster.crawl.messages.log import Log, ServerLog
from scrapy_koster.crawl.parking.journal import Journal, NoJournal, journal_of
from scrapy_koster.crawl.parking.lastrun import LastRun
from scrapy_koster.crawl.parking.remaining import Remaining
from scrapy_koster.crawl.parking.workers import server_of
from scrapy_koster.crawl.parking.wrapped import Wrapped
from scrapy_koster.protocol.path import is_robots_txt
from scrapy_koster.protocol.step import waits

if TYPE_CHECKING:
    from collections.abc import Sized

    from scrapy import Request, Spider
    from scrapy.crawler import Crawler

    from scrapy_koster.crawl.assembly import Assembly
    from scrapy_koster.crawl.config import Config
    from scrapy_koster.crawl.sites import SiteState

# Requests that are parked in one call, and for how long, before the loop goes on. A queue may need
# milliseconds for each request, as Scrapy's own does with 10,000 hosts in it.
_PARKED_AT_ONCE = 16
_PARKED_SECS = 0.025
# No new sites are looked for beside so many that are ready, for each place.
_READY_PER_PLACE = 2
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
        self._epoch = parts.clock.epoch
        self._now = parts.clock.now
        self._keeper = parts.keeper
        self._ahead = parts.keeper.ahead
        self._patience = parts.keeper.patience
        self._parking = parts.parking
        self._waiting = parts.waiting
        self._places = crawler.settings.getint("CONCURRENT_REQUESTS")
        self._first: Request | None = None
        """The first that was returned. When its page has been scraped the crawl has begun."""
        self._is_beginning = True
        self._is_cut_short = False
        """Whether it has yet to look for more: the engine is about to ask again."""
        self._is_theirs = False
        """Whether those that are ready come next: a new one has come before them."""
        self._wrapped = Wrapped(crawler, scheduler, folder=parts.folder)
        self._last_run = LastRun(crawler)
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
        middleware = self._crawler.get_downloader_middleware(KosterMiddleware)
        if middleware is not None and not self._parts.replay.is_on:
            is_by_hand = self._parts.engine.is_by_hand
            self._waiting.open(is_kept=self._wrapped.keeps_requests and not is_by_hand)
            if is_by_hand:
                self._keeper.patience.have_none()
        opened = self._scheduler.open(spider)  # what is closed after an error has to be open
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

    def close(self, reason: str) -> Deferred[None] | None:
        """Hand the parked requests back to the wrapped scheduler and close it.

        A persistent scheduler keeps them for the next run. With a JOBDIR they stay in a separate
        file; with scrapy-redis the journal moves its requests to the queue.
        """
        waiting = self._parking.by_site()
        self._remaining.tell(waiting, self._hand_back())
        self._parking.close()
        return self._scheduler.close(reason)

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
            or self._is_cut_short
            or self._waiting.has_turn
            or self._last_run.is_new
            or self._wrapped.has_pending_requests()
        )

    def _spider_idle(self) -> None:
        """Keep the crawl open while the time of requests that wait may come."""
        if not self._waiting.is_open:
            return
        keeper, patience = self._keeper, self._keeper.patience
        if len(self._parking) or len(keeper.in_place):
            patience.idle()
            is_paced = self._parts.pacer.has_waiting()
            is_over = patience.crawl is Crawl.OVER and not keeper.is_retrieving() and not is_paced
            if not (self._waiting.is_kept and is_over):
                raise DontCloseSpider
        if self._journal.others_wait():
            raise DontCloseSpider

    def enqueue_request(self, request: Request) -> bool:
        """Pass *request* to the wrapped scheduler."""
        return self._scheduler.enqueue_request(request)

    def next_request(self) -> Request | None:
        """Return a request that can be decided at once, or None.

        The requests of sites that have opened come first. Where they fill all places, one other is
        looked at before each of them: Scrapy asks for none while all are taken, and then no site
        would be known when they are free. Where none is ready new ones are looked for in the
        wrapped queue until enough sites wait, and for some milliseconds at a time.
        """
        parking, waiting, until = self._parking, self._waiting, LONG_AGO
        self._is_cut_short = False
        if self._is_beginning:
            self._begin()
        if parking.ready and (request := self._next_by_turns()) is not None:
            return request
        for _ in range(_PARKED_AT_ONCE):
            request = parking.pop() if parking.ready else None
            if request is None:
                request = (waiting.is_paced and waiting.next_for_turn()) or self._next()
            if request is None:
                return None
            if self._may_go(request):
                if self._first is None:
                    self._first = request
                    self._ahead.first_sent()
                return request
            if until == LONG_AGO:
                until = self._now() + _PARKED_SECS
            elif until <= self._now():
                break
        self._is_cut_short = True
        self._parts.engine.wake()
        return None

    def _begin(self) -> None:
        """Look whether the crawl has begun, and go on with the requests of the last run."""
        ahead, first = self._ahead, self._first
        # Not as soon as its page has come: the spider would wait for what the other sites cost.
        engine = self._parts.engine
        if not ahead.has_begun and first is not None and first not in engine.in_progress:
            ahead.begun()
        if self._last_run.is_new:
            self._ask_again()
        self._is_beginning = self._last_run.is_new or not ahead.has_begun

    def _next_by_turns(self) -> Request | None:
        """Look at one that is not ready if those that are fill all places.

        It is returned if it can be decided at once, and then one of those that are ready is next:
        there may always be some. One that waits for a turn comes before a new one, which is looked
        at only while those that are ready are not many.
        """
        ready = len(self._parking.ready)
        if self._is_theirs or ready < self._places - len(self._parts.engine.under_way):
            self._is_theirs = False
            return None
        request = self._waiting.next_for_turn()
        if request is None and ready < _READY_PER_PLACE * self._places:
            request = self._next()
        if request is None or not self._may_go(request):
            return None
        self._is_theirs = True
        return request

    def _may_go(self, request: Request) -> bool:
        """Whether *request* can be decided at once; else it waits from now on."""
        waiting = self._waiting
        if not waiting.is_open or (waiting.has_given_up and request in waiting.given_up):
            return True
        if self._patience.crawl is not Crawl.BUSY:
            self._patience.busy()
        if (state := self._held_back(request)) is not None:
            waiting.park(state, request)
            return False
        return not (waiting.is_paced and waiting.holds(request))

    def _next(self) -> Request | None:
        if self._ahead.is_full:
            return None
        while (request := self._wrapped.next_request()) is not None:
            if not (self._last_run.waiting and self._last_run.has(request)):
                break
            self._log.debug("%(request)s waits already, since the last run", request=request)
        return request

    # What the last run has left behind.

    def _take_back(self, request: Request) -> None:
        self._wrapped.mark_seen(request)
        self._last_run.add(request)

    def _ask_again(self) -> None:
        """Have the sites asked: not before the crawl is open, and its components are ready."""
        until = self._now() + _PARKED_SECS
        while self._last_run.is_new and not self._ahead.is_full:
            if until < self._now():
                self._parts.engine.wake()
                break
            site, request = self._last_run.take_first()
            state = self._keeper.state_of(request.url) if self._waiting.is_open else None
            if state is None or not waits(self._keeper.current_step(state)):
                self._parking.open(site)
            elif self._parking.waiting_for(site):  # else it was asked and has opened since
                self._keeper.ask_for(state, request)

    # Holding back.

    def _held_back(self, request: Request) -> SiteState | None:
        """Return the site for which *request* has to wait, None if for none."""
        if request.meta.get("dont_obey_robotstxt"):
            return None
        try:
            state = self._keeper.state_of(request.url)
        except ValueError:  # the middleware says so to the request's errback
            return None
        # In this order: most requests are to a site that is open.
        if state is None or self._epoch() < state.until_epoch or is_robots_txt(request.url):
            return None
        return state if waits(self._keeper.current_step(state)) else None


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

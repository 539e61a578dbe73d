"""The scheduler that holds requests back until their site is known, and their host may be visited.

``next_request`` looks at requests one after the other until it finds one that can be decided at
once. They come from, in this order:

1. hosts with a Crawl-delay that may be visited now;
2. by turns, the queues of sites that have opened, and the inner scheduler. Only by turns: the
   downloader asks for no request while all of its places are taken, and then no new site would be
   known when they are free.

A request that cannot be decided is parked, and its robots.txt is retrieved.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

from scrapy import signals
from scrapy.core.scheduler import BaseScheduler
from scrapy.exceptions import CloseSpider, DontCloseSpider
from scrapy.utils.misc import build_from_crawler
from twisted.internet.defer import Deferred

from scrapy_koster.crawl.assembly import assembly_of
from scrapy_koster.crawl.components.downloadermiddleware import KosterMiddleware, check_built
from scrapy_koster.crawl.finish import WAITING
from scrapy_koster.crawl.idle import Crawl
from scrapy_koster.crawl.messages.log import Log
from scrapy_koster.crawl.parking.inner import InnerScheduler
from scrapy_koster.crawl.parking.redis_backup import RedisBackup, backup_of
from scrapy_koster.crawl.scrapy_internals import check_internals
from scrapy_koster.protocol.path import is_robots_txt
from scrapy_koster.protocol.step import waits

if TYPE_CHECKING:
    from scrapy import Request, Spider
    from scrapy.crawler import Crawler

    from scrapy_koster.crawl.assembly import Assembly
    from scrapy_koster.crawl.states import SiteState

# For how long requests are looked at in one call. A queue may need milliseconds for each of them,
# as that of Scrapy does with 10,000 hosts in it.
_LOOK_SECS = 0.025
_SITES_NAMED = 10
_UNWRITTEN = "What of them is not in Redis is lost: it cannot be written to"
_LOST = "Those that cannot be written to Redis are lost"


class DeferringScheduler(BaseScheduler):
    """Scheduler that wraps yours, and holds requests back until their robots.txt is known.

    3.1: "On the request attempt resulted in temporary failure a robot should
    defer visits to the site until such time as the resource can be retrieved."

    Waiting requests use no place of CONCURRENT_REQUESTS. When their site is decided, they come by
    turns with those of the inner scheduler (KOSTER_FALLBACK_SCHEDULER).
    """

    def __init__(self, crawler: Crawler, scheduler: BaseScheduler, parts: Assembly) -> None:
        self._crawler = crawler
        self._scheduler = scheduler
        self._parts = parts
        self._log = Log(__name__, crawler)
        self._clock = parts.clock
        self._sites = parts.sites
        self._pacer = parts.pacer
        self._parked = parts.parked
        self._inner = InnerScheduler(crawler, scheduler, folder=parts.folder)
        self._backup: RedisBackup | None = None
        self._resumed: deque[str] = deque()
        """The sites of the last run whose robots.txt is to be retrieved."""
        self._turns = [self._parked.pop, self._next_inner]
        self._has_more = False
        """Whether the last call ended before it had found a request: the engine calls again."""

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> DeferringScheduler:
        """Create it, and the inner scheduler. Raises ValueError if a setting is invalid."""
        parts = assembly_of(crawler)
        return cls(crawler, build_from_crawler(parts.config.fallback_scheduler, crawler), parts)

    def __getattr__(self, name: str) -> Any:
        # Attributes that are not in Scrapy's scheduler interface, such as the queues that the
        # telnet console shows, are those of the inner scheduler.
        return getattr(self._scheduler, name)

    def __len__(self) -> int:
        return len(self._scheduler) + len(self._parked)  # type: ignore[arg-type]

    # The start and the end.

    def open(self, spider: Spider) -> Deferred[None] | None:
        """Open the inner scheduler. RuntimeError if the crawl would not obey robots.txt."""
        # What is closed after an error has to be open.
        opened = self._scheduler.open(spider) if hasattr(self._scheduler, "open") else None
        check_internals(self._crawler)
        middleware = self._crawler.get_downloader_middleware(KosterMiddleware)
        if middleware is not None and not self._parts.is_replay:
            is_by_hand = self._parts.engine.is_by_hand
            self._parked.open(is_kept=self._inner.keeps_requests and not is_by_hand)
            if is_by_hand:
                self._sites.idle_timeout.have_none()
        if self._crawler.settings.getbool("ROBOTSTXT_OBEY"):
            check_built(self._crawler)
        self._crawler.signals.connect(self._spider_idle, signals.spider_idle)
        if isinstance(opened, Deferred):
            return opened.addCallback(self._opened)
        self._opened()
        return None

    def _opened(self, _: None = None) -> None:
        self._backup = backup_of(self._crawler, self._scheduler, self._parts.engine, self._clock)
        if self._backup is not None:
            self._backup.open(anew=getattr(self._scheduler, "flush_on_start", False))
        self._resumed.extend(self._parked.resume(self._backup))
        if count := len(self._parked):
            self._log.info(
                "Requests that waited for their site when the last run ended, and wait again:"
                " %(count)d",
                count=count,
            )

    def close(self, reason: str) -> Deferred[None] | None:
        """Hand the parked requests back to the inner scheduler and close it.

        A persistent scheduler keeps them for the next run. With a JOBDIR they stay in a separate
        file; with scrapy-redis the backup moves its requests to the queue.
        """
        waiting = self._parked.by_name()
        becomes = self._hand_back()
        if count := waiting.total():
            most = waiting.most_common(_SITES_NAMED)
            self._crawler.stats.inc_value("koster/parked", count)
            self._log.info(
                "Requests that still wait for their site: %(waiting)d, of %(sites)d sites."
                " %(becomes)s. Sites with the most: %(most)s",
                waiting=count,
                sites=len(waiting),
                becomes=becomes,
                most=", ".join(f"{site} ({requests})" for site, requests in most),
            )
        self._parked.close()
        return self._scheduler.close(reason) if hasattr(self._scheduler, "close") else None

    def _hand_back(self) -> str:
        """Return what becomes of the requests that still wait."""
        if self._backup is not None:
            keep = self._inner.keeps_requests
            lost = self._backup.close(self._parked.unwritten(), keep=keep)
            if keep and lost is None:
                return _UNWRITTEN
            becomes = self._inner.fate
            return f"{becomes}. {_LOST}: {lost}" if keep and lost else becomes
        if self._inner.takes_back:
            return self._inner.take_back(request for _, request in self._parked.unwritten())
        return self._inner.fate

    # What the engine asks.

    def has_pending_requests(self) -> bool:
        """Return whether a request may come out soon. Requests that wait do not count: the spider
        is idle while there are no others, and can add some.
        """
        return bool(
            self._parked.has_next
            or self._has_more
            or self._resumed
            or self._parked.is_held  # a call of scrapy-redis would block the crawl
            or self._inner.has_pending_requests()
        )

    def _spider_idle(self) -> None:
        """Keep the crawl open while requests may still come out.

        If some wait for the next run it ends with a reason of its own.
        """
        if not self._parked.is_open:
            return
        sites, idle_timeout = self._sites, self._sites.idle_timeout
        if len(self._parked) or len(sites.in_place):
            idle_timeout.idle()
            is_paced = self._pacer is not None and self._pacer.has_waiting()
            is_over = (
                idle_timeout.crawl is Crawl.OVER and not sites.is_retrieving() and not is_paced
            )
            if not (self._parked.is_kept and is_over):
                raise DontCloseSpider
        if self._backup is not None and self._backup.others_wait():
            raise DontCloseSpider
        if len(self._parked):
            raise CloseSpider(WAITING)

    def enqueue_request(self, request: Request) -> bool:
        """Pass *request* to the inner scheduler."""
        if self._parked.is_resumed(request):
            self._inner.mark_seen(request)  # so that its dupefilter drops the request
        return self._scheduler.enqueue_request(request)

    def next_request(self) -> Request | None:
        """Return a request that can be decided at once, or None."""
        self._has_more = False
        until = self._clock.now() + _LOOK_SECS
        while (request := self._next()) is not None and not self._may_go(request):
            if self._clock.now() >= until:
                self._has_more = True
                self._parts.engine.wake()
                return None
        return request

    def _next(self) -> Request | None:
        """Return the request that is looked at next, or None."""
        if self._resumed and not self._sites.ahead.is_full:
            # Its first request waits again: that closes the queue, and the site is retrieved.
            self._parked.let_out(self._resumed.popleft())
        self._turns.reverse()
        for source in (self._parked.pop_visit, *self._turns):
            if (request := source()) is not None:
                # The dupefilter of a run that was killed may not have written it.
                if self._parked.has_resumed:
                    self._inner.mark_seen(request)
                return request
        return None

    def _next_inner(self) -> Request | None:
        """Return the next request of the inner scheduler, unless enough sites are retrieved."""
        if self._sites.ahead.is_full or self._parked.is_held:
            return None
        while (request := self._inner.next_request()) and self._parked.is_resumed(request):
            self._log.debug("%(request)s waits already, since the last run", request=request)
        return request

    def _may_go(self, request: Request) -> bool:
        """Return whether *request* can be decided at once. Otherwise it is parked."""
        parked = self._parked
        if not parked.is_open or request in parked.given_up:
            return True
        self._sites.idle_timeout.busy()
        if (state := self._unknown_site(request)) is not None:
            parked.park(state, request)
            return False
        if self._pacer is None or (host := self._pacer.host_to_wait_for(request)) is None:
            return True
        parked.push(host.name, request)
        self._pacer.want(host)
        return False

    def _unknown_site(self, request: Request) -> SiteState | None:
        """Return the site for which *request* has to wait, or None."""
        if request.meta.get("dont_obey_robotstxt"):
            return None
        try:
            state = self._sites.state_of(request.url)
        except ValueError:  # the errback of the request gets the error of the middleware
            return None
        # In this order: most requests are to a site that is open.
        if state is None or self._clock.epoch() < state.until_epoch or is_robots_txt(request.url):
            return None
        return state if waits(self._sites.current_step(state)) else None

"""The scheduler that parks requests until their site is known, and their host can be visited.

``next_request`` returns a request that can be decided at once. Other requests are parked, and their
robots.txt is retrieved. ``next_request`` takes requests in turns from the inner scheduler and from
the open queues of parked requests, so new sites are found before the open queues are empty. A site
gets more than its share of the downloader only if the inner scheduler has no request.
"""

from __future__ import annotations

import math
from typing import Any

from scrapy import Request, Spider, signals
from scrapy.core.scheduler import BaseScheduler
from scrapy.crawler import Crawler
from scrapy.downloadermiddlewares.robotstxt import RobotsTxtMiddleware
from scrapy.exceptions import CloseSpider, DontCloseSpider
from scrapy.utils.misc import build_from_crawler
from twisted.internet.defer import Deferred, succeed

from scrapy_koster.crawl.components.downloadermiddleware import KosterMiddleware
from scrapy_koster.crawl.context import CrawlContext, context_of
from scrapy_koster.crawl.engine.private import dupefilter_of
from scrapy_koster.crawl.messages.log import Log
from scrapy_koster.crawl.parking.parked_file import is_scrapys
from scrapy_koster.crawl.parking.redis_queues import RedisQueues, queues_of
from scrapy_koster.crawl.scrapy_internals import check_internals
from scrapy_koster.protocol.path import is_robots_txt
from scrapy_koster.protocol.step import waits

# After this time, a call of next_request looks at no further request. To get one request out of
# Scrapy's queue can take milliseconds, for example with 10,000 hosts. Meanwhile, nothing is sent or
# received.
_TIME_SLICE_SECS = 0.003
_SITES_NAMED = 10


class DeferringScheduler(BaseScheduler):
    """Scheduler that wraps your scheduler, and parks requests until their robots.txt is known.

    3.1: "On the request attempt resulted in temporary failure a robot should
    defer visits to the site until such time as the resource can be retrieved."

    Waiting requests take up no CONCURRENT_REQUESTS slot. When a site is known, its requests take
    turns with the requests of the inner scheduler (KOSTER_FALLBACK_SCHEDULER).
    """

    def __init__(self, crawler: Crawler, scheduler: BaseScheduler, parts: CrawlContext) -> None:
        self._crawler = crawler
        self._scheduler = scheduler
        self._parts = parts
        self._log = Log(__name__, crawler)
        self._sites = parts.sites
        self._parked = parts.parked
        self._persist = getattr(scheduler, "persist", None)  # scrapy-redis has it
        self._is_kept = parts.folder is not None or bool(self._persist)
        """Whether the inner scheduler keeps its requests for the next run."""
        self._is_broken = False
        """Whether the inner scheduler raises errors, and its queue no longer gets shorter."""
        self._redis: RedisQueues | None = None
        self._turns = [self._parked.pop_fair, self._next_inner]

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> DeferringScheduler:
        """Create this scheduler and the inner one. Raises ValueError for an invalid setting."""
        parts = context_of(crawler)
        return cls(crawler, build_from_crawler(parts.config.fallback_scheduler, crawler), parts)

    def __getattr__(self, name: str) -> Any:
        # For users of the inner scheduler's attributes, such as the telnet console.
        return getattr(self._scheduler, name)

    def __len__(self) -> int:
        return len(self._scheduler) + len(self._parked)  # type: ignore[arg-type]

    # The crawl starts and ends.

    def open(self, spider: Spider) -> Deferred[None]:
        """Open both schedulers. Raises RuntimeError if the crawl would not obey robots.txt.

        The Deferred fires when both are open.
        """
        # The inner scheduler is opened first, because Scrapy closes it after an error below.
        opened = self._scheduler.open(spider) if hasattr(self._scheduler, "open") else None
        check_internals(self._crawler)
        middleware = self._crawler.get_downloader_middleware(KosterMiddleware)
        if middleware is not None and not middleware.replays:
            is_interactive = self._parts.engine.is_interactive
            self._parked.open(is_kept=self._is_kept and not is_interactive)
            if is_interactive:
                self._sites.begin_interactive()
        # Another add-on, or the settings, may have removed KosterMiddleware.
        is_obeyed = middleware or self._crawler.get_downloader_middleware(RobotsTxtMiddleware)
        if self._crawler.settings.getbool("ROBOTSTXT_OBEY") and not is_obeyed:
            raise RuntimeError(
                "ROBOTSTXT_OBEY is True, but there is no KosterMiddleware in the crawl. Enable it"
                " in DOWNLOADER_MIDDLEWARES, or set ROBOTSTXT_OBEY = False."
            )
        self._crawler.signals.connect(self._spider_idle, signals.spider_idle)
        ready = opened if isinstance(opened, Deferred) else succeed(None)
        return ready.addCallback(self._opened)

    def _opened(self, _: None) -> None:
        sites = self._sites
        self._redis = queues_of(self._crawler, self._scheduler, sites.engine, sites.clock)
        if self._redis is not None and getattr(self._scheduler, "flush_on_start", False):
            self._redis.drop()
        if not self._sites.is_interactive:  # `scrapy fetch` leaves them to the next crawl
            self._parked.resume(self._redis)
        if count := len(self._parked):
            what = "Requests that waited for their site when the last run ended, and wait again"
            if self._redis is not None:  # of which nobody counts the requests
                what = "Sites with requests that wait in Redis"
            self._log.info("%(what)s: %(count)d", what=what, count=count)

    def close(self, reason: str) -> Deferred[None] | None:
        """Hand the parked requests back to the inner scheduler, and close both schedulers.

        Requests in the file of a JOBDIR, or in Redis, stay there for the next run. If a scheduler
        of Scrapy or scrapy-redis keeps no requests, the parked requests are dropped.
        """
        waiting = self._parked.by_name()
        becomes = self._hand_back()
        if count := waiting.total():
            most = waiting.most_common(_SITES_NAMED)
            self._crawler.stats.inc_value("koster/parked", count)
            self._log.info(
                "Requests that were not sent yet: %(waiting)d, of %(sites)d sites."
                " %(becomes)s. Sites with the most: %(most)s",
                waiting=count,
                sites=len(waiting),
                becomes=becomes,
                most=", ".join(f"{site} ({requests})" for site, requests in most),
            )
        self._parked.close()
        return self._scheduler.close(reason) if hasattr(self._scheduler, "close") else None

    def _hand_back(self) -> str:
        """Hand back or drop the waiting requests. Return a sentence about them for the log."""
        unwritten = self._parked.unwritten()
        is_of_scrapy = is_scrapys(type(self._scheduler))
        if not self._is_kept and (is_of_scrapy or self._persist is not None):
            if self._redis is not None:
                self._redis.drop()
            setting = "JOBDIR" if is_of_scrapy else "SCHEDULER_PERSIST = True"
            return f"They are dropped: set {setting} to keep them for the next run"
        lost = len(unwritten)  # at most: the inner scheduler may be able to write some
        try:
            for request in unwritten:  # the dupefilter has seen these requests
                self._scheduler.enqueue_request(request.replace(dont_filter=True))
        except Exception as error:  # noqa: BLE001  # the scheduler may be of the project
            self._log.warning_once("Waiting requests are lost: %(error)s", error=error)
        if not self._is_kept:
            return "They go back to the scheduler that is wrapped, which may keep them"
        suffix = f". Those that may be lost, if they cannot be written: {lost}" if lost else ""
        return f"They are kept for the next run: start the same crawl again to go on{suffix}"

    # Calls of the engine.

    def has_pending_requests(self) -> bool:
        """Return whether a request may come out soon.

        Parked requests in closed queues do not count. If only such requests are left, the spider is
        idle, and handlers of ``spider_idle`` can add requests.
        """
        return bool(
            self._parked.has_next
            or self._parked.unopened
            or self._parked.redis_unavailable  # Redis hangs: do not call the inner scheduler
            or (not self._is_broken and self._scheduler.has_pending_requests())
        )

    def _spider_idle(self) -> None:
        """Raise DontCloseSpider while waiting requests may still come out, also in other workers.

        If the remaining requests wait for the next run, raise CloseSpider with the reason
        ``robotstxt_waiting``.
        """
        if not self._parked.is_open:
            return
        if self._parked.adopts():
            self._parts.engine.wake()
            raise DontCloseSpider
        if self._parked:
            self._sites.idle()
            is_over = self._sites.is_idle_over and not self._sites.is_retrieving()
            if not (self._parked.is_kept and is_over):
                raise DontCloseSpider
            raise CloseSpider("robotstxt_waiting")

    def enqueue_request(self, request: Request) -> bool:
        """Pass *request* to the inner scheduler. Return False if *request* is rejected."""
        is_left = self._parked.is_resumed(request)
        if is_left and (dupefilter := dupefilter_of(self._scheduler)) is not None:
            # requests.seen of a killed run may lack it. A filter that allows repeats, allows it.
            dupefilter.request_seen(request)
        is_accepted = self._scheduler.enqueue_request(request)
        if is_left and is_accepted:
            self._parked.add_repeat(request)
        return is_accepted

    def next_request(self) -> Request | None:
        """Return the next request that need not wait, or None. Other requests are parked."""
        self._parts.pacer.take_turns()
        until = self._parts.clock.now() + _TIME_SLICE_SECS
        while (request := self._next()) is not None and not self._may_go(request):
            if self._parts.clock.now() >= until:
                self._parts.engine.wake()
                return None
        return request

    def _next(self) -> Request | None:
        """Return the next request from any source, or None."""
        if self._parked.unopened and not self._sites.ahead.is_full:
            # This opens the queue. Its first request comes out, and ``_may_go`` parks it again,
            # which closes the queue and starts the retrieval.
            self._parked.let_out(next(iter(self._parked.unopened)))
        self._turns.reverse()
        request = self._turns[0]() or self._turns[1]() or self._parked.pop()
        dupefilter = dupefilter_of(self._scheduler)
        if request and dupefilter is not None and self._parked.is_resumed(request):
            dupefilter.request_seen(request)  # requests.seen of a killed run may lack it
        return request

    def _next_inner(self) -> Request | None:
        """Return the next request of the inner scheduler, or None.

        Returns None without a call if enough sites wait, or while Redis does not answer. Requests
        that the last run has parked are skipped.
        """
        if self._sites.ahead.is_full or self._parked.redis_unavailable:
            return None
        while (request := self._next_readable()) and self._parked.has_twice(request):
            self._log.debug("%(request)s waits already, since the last run", request=request)
        return request

    def _next_readable(self) -> Request | None:
        """Return the next request of the inner scheduler that can be read, or None.

        Scrapy's disk queue writes the number of its requests only when it closes. If a crawl was
        killed, requests may be missing in the JOBDIR: the queue raises an error, and the request is
        skipped. Without a JOBDIR, the error is raised.
        """
        self._is_broken, left = False, math.inf
        while not self._is_broken:
            try:
                return self._scheduler.next_request()
            except Exception as error:
                if self._parts.folder is None:
                    raise
                if self._log.is_first("broken"):
                    self._log.defect(
                        "Part of the queue in the JOBDIR cannot be read, probably because a run was"
                        " killed. These requests are lost, the rest are crawled",
                        error,
                    )
                # len() is slow: it adds up the queues of all hosts. So call it only after an error.
                before, left = left, len(self._scheduler)  # type: ignore[arg-type]
                self._is_broken = left >= before
        return None

    def _may_go(self, request: Request) -> bool:
        """Return whether *request* can leave the scheduler now. If not, park *request*.

        A request is parked if it has to wait for the robots.txt of its site, or for the turn of its
        host.
        """
        parked = self._parked
        if not parked.is_open or request in parked.given_up:
            return True
        self._sites.busy()
        try:
            state = self._sites.records.state_of(request.url)
        except ValueError:  # KosterMiddleware raises it again, and the errback gets it
            return True
        if state is None or request.meta.get("dont_obey_robotstxt"):
            return True
        if waits(self._sites.current_step(state)) and not is_robots_txt(request.url):
            parked.push(str(state.site), request)
            self._parts.announcer.begins_to_wait(state)
            self._sites.serve(state, request)
            return False
        return not (self._parts.pacer.is_open and self._parts.pacer.parks(request, state))

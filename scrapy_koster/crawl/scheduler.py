"""The scheduler that holds back the requests of sites that cannot be asked."""

from __future__ import annotations

from operator import setitem
from typing import TYPE_CHECKING, Any

from scrapy.core.scheduler import BaseScheduler, Scheduler
from scrapy.downloadermiddlewares.robotstxt import RobotsTxtMiddleware
from scrapy.utils.job import job_dir
from scrapy.utils.misc import build_from_crawler, load_object
from twisted.internet.defer import Deferred

from scrapy_koster.crawl.config import DEFAULTS, FALLBACK_SCHEDULER, Config
from scrapy_koster.crawl.downloadermiddleware import KosterMiddleware
from scrapy_koster.crawl.engine import wake
from scrapy_koster.crawl.parking.memory import Parking
from scrapy_koster.crawl.spidermiddleware import RobotsMetaMiddleware
from scrapy_koster.protocol.path import is_robots_txt
from scrapy_koster.protocol.step import Refuse, waits

if TYPE_CHECKING:
    from scrapy import Request, Spider
    from scrapy.crawler import Crawler

    from scrapy_koster.crawl.keeper import Keeper
    from scrapy_koster.crawl.sites import SiteState
    from scrapy_koster.protocol.step import Step

_RETURNED = "koster_returned"
# Requests that are parked in one go, before other things get their turn.
_PARKED_AT_ONCE = 500


class DeferringScheduler(BaseScheduler):
    """Wraps a scheduler, and parks requests until their site may be visited.

    3.1: "On the request attempt resulted in temporary failure a robot should
    defer visits to the site until such time as the resource can be retrieved."

    A request whose site's robots.txt is not known is held back here, before it
    takes a slot of the downloader, and the site is asked. Once that is settled
    its requests come before those of the wrapped scheduler, which is named by
    KOSTER_FALLBACK_SCHEDULER.
    """

    def __init__(self, crawler: Crawler, scheduler: BaseScheduler) -> None:
        self._crawler = crawler
        self._scheduler = scheduler
        self._keeper: Keeper | None = None
        self._parking = Parking(crawler)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> DeferringScheduler:
        """Build the scheduler that is wrapped. ValueError if that is this one."""
        path = crawler.settings.get(FALLBACK_SCHEDULER) or DEFAULTS[FALLBACK_SCHEDULER]
        wrapped = load_object(path)
        if wrapped is cls:
            raise ValueError(
                f"{FALLBACK_SCHEDULER} = {path!r} names the scheduler that falls back to"
                f' it. Name another, such as "{DEFAULTS[FALLBACK_SCHEDULER]}".'
            )
        return cls(crawler, build_from_crawler(wrapped, crawler))

    def __getattr__(self, name: str) -> Any:
        # What is not in Scrapy's scheduler interface (len(), the queues that
        # the telnet console shows) is the wrapped scheduler's.
        return getattr(self._scheduler, name)

    def __len__(self) -> int:
        return len(self._scheduler) + len(self._parking)  # type: ignore[arg-type]

    def open(self, spider: Spider) -> Deferred[None] | None:
        """Open the wrapped scheduler. RuntimeError if the crawl would not be obedient."""
        middleware = self._crawler.get_downloader_middleware(KosterMiddleware)
        if middleware is not None:
            self._keeper = middleware.keeper
            self._keeper.on_change = self._on_change
        opened = self._scheduler.open(spider)  # what is closed after an error has to be open
        if self._crawler.settings.getbool("ROBOTSTXT_OBEY"):
            _check_built(self._crawler)
        return opened

    def close(self, reason: str) -> Deferred[None] | None:
        """Hand the parked requests back to the wrapped scheduler and close it.

        A scheduler that keeps its requests (JOBDIR) keeps these as well.
        """
        if self._keeps_requests():
            for request in self._parking.drain():
                self._scheduler.enqueue_request(_returned(request))
        self._parking.close()
        return self._scheduler.close(reason)

    def _keeps_requests(self) -> bool:
        # Scrapy's own without a JOBDIR would only take the memory for them.
        return bool(job_dir(self._crawler.settings)) or type(self._scheduler) is not Scheduler

    def has_pending_requests(self) -> bool:
        """Whether requests wait, here or in the wrapped scheduler."""
        return bool(len(self._parking)) or self._scheduler.has_pending_requests()

    def enqueue_request(self, request: Request) -> bool:
        """Have the wrapped scheduler take *request*."""
        return self._scheduler.enqueue_request(request)

    def next_request(self) -> Request | None:
        """Return a request that may be decided on at once, None if there is none now."""
        if self._keeper is None:
            return self._scheduler.next_request()
        for _ in range(_PARKED_AT_ONCE):
            request = self._parking.pop() or self._next()
            if request is None:
                return None
            if request in self._keeper.given_up:
                return request
            state = self._held_back(request, self._keeper)
            if state is None:
                return request
            self._park(state, request, self._keeper)
        wake(self._crawler)
        return None

    def _next(self) -> Request | None:
        request = self._scheduler.next_request()
        if request is not None and request.meta.pop(_RETURNED, False):
            # A redirect of this request must meet the dupefilter again.
            request = request.replace(dont_filter=False)
        return request

    def _held_back(self, request: Request, keeper: Keeper) -> SiteState | None:
        """Return the site for which *request* has to wait, None if for none."""
        if request.meta.get("dont_obey_robotstxt"):
            return None
        try:
            state = keeper.state_of(request.url)
        except ValueError:  # the middleware says so to the request's errback
            return None
        now = keeper.clock()
        if state is None or now < state.until or is_robots_txt(request.url):
            return None
        return state if waits(keeper.current_step(state, now)) else None

    def _park(self, state: SiteState, request: Request, keeper: Keeper) -> None:
        state.parked = self._parking.push(str(state.site), request)
        keeper.ask_for(state, request)

    def _on_change(self, state: SiteState) -> None:
        if state.parked and not waits(state.step):
            state.parked = 0
            self._open(str(state.site), state.step)
        wake(self._crawler)

    def _open(self, site: str, step: Step) -> None:
        match step:
            case Refuse(failure):
                assert self._keeper is not None  # it told
                given_up = self._keeper.given_up
                self._parking.give_up(site, lambda request: setitem(given_up, request, failure))
            case _:
                self._parking.open(site)


def _returned(request: Request) -> Request:
    """Return a copy that the wrapped scheduler takes although it has seen it."""
    if request.dont_filter:
        return request
    return request.replace(dont_filter=True, meta={**request.meta, _RETURNED: True})


def _check_built(crawler: Crawler) -> None:
    """Raise RuntimeError where a crawl that is to obey lacks a component for it.

    Another add-on, the settings or a subclass may have taken it out. Scrapy's
    own middleware obeys too. Where RobotsMetaMiddleware has no place in the
    settings, or nothing to look at, that is the user's choice.
    """
    downloader = (KosterMiddleware, RobotsTxtMiddleware)
    if not any(crawler.get_downloader_middleware(each) for each in downloader):
        raise RuntimeError(
            "ROBOTSTXT_OBEY is True, and there is no KosterMiddleware in the crawl to obey"
            " robots.txt. Look in DOWNLOADER_MIDDLEWARES for what takes it out; to crawl without"
            " it set ROBOTSTXT_OBEY = False."
        )
    enabled = crawler.settings.get_component_priority_dict_with_base("SPIDER_MIDDLEWARES")
    if (
        any(load_object(path) is RobotsMetaMiddleware for path in enabled)
        and Config.from_crawler(crawler).page_directives
        and crawler.get_spider_middleware(RobotsMetaMiddleware) is None
    ):
        raise RuntimeError(
            "RobotsMetaMiddleware has a place in SPIDER_MIDDLEWARES, and is not in the crawl. To"
            " crawl without it set KOSTER_PAGE_DIRECTIVES = []."
        )

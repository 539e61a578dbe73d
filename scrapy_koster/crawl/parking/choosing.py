"""Which request comes next: one whose site has opened, one whose host has a turn, or a new one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy_koster.crawl.clock import LONG_AGO
from scrapy_koster.crawl.idle import Crawl
from scrapy_koster.crawl.messages.log import Log
from scrapy_koster.protocol.path import is_robots_txt
from scrapy_koster.protocol.step import waits

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.crawler import Crawler

    from scrapy_koster.crawl.clock import Clock
    from scrapy_koster.crawl.engine.private import Engine
    from scrapy_koster.crawl.parking.lastrun import LastRun
    from scrapy_koster.crawl.parking.parking import Parking
    from scrapy_koster.crawl.parking.waiting import Waiting
    from scrapy_koster.crawl.parking.wrapped import Wrapped
    from scrapy_koster.crawl.sites import Sites
    from scrapy_koster.crawl.states import SiteState

# Requests that are parked in one call, and for how long, before the loop goes on. A queue may need
# milliseconds for each request, as Scrapy's own does with 10,000 hosts in it.
_PARKED_AT_ONCE = 16
_PARKED_SECS = 0.025
# No new sites are looked for beside so many that are ready, for each place.
_READY_PER_PLACE = 2


class Choosing:
    """Takes requests out of the parking and the wrapped scheduler, and parks those that wait.

    It runs for each request, and so it is apart from the scheduler: a class with ``__getattr__``
    is slow to find its own attributes, too.
    """

    def __init__(
        self,
        crawler: Crawler,
        clock: Clock,
        engine: Engine,
        *,
        sites: Sites,
        parking: Parking,
        waiting: Waiting,
        wrapped: Wrapped,
        last_run: LastRun,
    ) -> None:
        self._log = Log(__name__, crawler)
        self._epoch = clock.epoch
        self._now = clock.now
        self._engine = engine
        self._sites = sites
        self._ahead = sites.ahead
        self._idle_timeout = sites.idle_timeout
        self._parking = parking
        self._waiting = waiting
        self._wrapped = wrapped
        self._last_run = last_run
        self._places = crawler.settings.getint("CONCURRENT_REQUESTS")
        self._first: Request | None = None
        """The first that was returned. When its page has been scraped the crawl has begun."""
        self._is_beginning = True
        self.is_cut_short = False
        """Whether it has yet to look for more: the engine is about to ask again."""
        self._is_theirs = False
        """Whether those that are ready come next: a new one has come before them."""

    def next_request(self) -> Request | None:
        """Return a request that can be decided at once, or None.

        The requests of sites that have opened come first. Where they fill all places, one other is
        looked at before each of them: Scrapy asks for none while all are taken, and then no site
        would be known when they are free. Where none is ready new ones are looked for in the
        wrapped queue until enough sites wait, and for some milliseconds at a time.
        """
        parking, waiting, until = self._parking, self._waiting, LONG_AGO
        self.is_cut_short = False
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
        self.is_cut_short = True
        self._engine.wake()
        return None

    def _begin(self) -> None:
        """Look whether the crawl has begun, and go on with the requests of the last run."""
        ahead, first = self._ahead, self._first
        # Not as soon as its page has come: the spider would wait for what the other sites cost.
        if not ahead.has_begun and first is not None and first not in self._engine.in_progress:
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
        if self._is_theirs or ready < self._places - len(self._engine.under_way):
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
        if self._idle_timeout.crawl is not Crawl.BUSY:
            self._idle_timeout.busy()
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

    def _ask_again(self) -> None:
        """Have the sites of the last run asked: not before the components of the crawl are open."""
        until = self._now() + _PARKED_SECS
        while self._last_run.is_new and not self._ahead.is_full:
            if until < self._now():
                self._engine.wake()
                break
            site, request = self._last_run.take_first()
            state = self._sites.state_of(request.url) if self._waiting.is_open else None
            if state is None or not waits(self._sites.current_step(state)):
                self._parking.open(site)
            elif self._parking.waiting_for(site):  # else it was asked and has opened since
                self._sites.ask_for(state, request)

    def _held_back(self, request: Request) -> SiteState | None:
        """Return the site for which *request* has to wait, None if for none."""
        if request.meta.get("dont_obey_robotstxt"):
            return None
        try:
            state = self._sites.state_of(request.url)
        except ValueError:  # the middleware says so to the request's errback
            return None
        # In this order: most requests are to a site that is open.
        if state is None or self._epoch() < state.until_epoch or is_robots_txt(request.url):
            return None
        return state if waits(self._sites.current_step(state)) else None

"""What is known of each site, and the waiting for what is not.

How the parts meet: ``sites`` has the states of the sites, ``asking`` learns
what is not known, ``retry_timer`` says when a site that failed is due again, ``patience``
how long that is waited for, ``announcer`` tells the user. See docs/architecture.md.
"""

from __future__ import annotations

import random
from time import time
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from scrapy.utils.defer import maybe_deferred_to_future
from twisted.internet.defer import Deferred

from scrapy_koster.crawl.fetching.fetcher import Fetcher
from scrapy_koster.crawl.fetching.retriever import Asker
from scrapy_koster.crawl.fetching.storage_breaker import StorageBreaker
from scrapy_koster.crawl.keeping.inplace import InPlace
from scrapy_koster.crawl.keeping.patience import Patience
from scrapy_koster.crawl.keeping.retry_timer import RetryTimer
from scrapy_koster.crawl.messages.announcer import Announcer
from scrapy_koster.crawl.messages.log import Log
from scrapy_koster.crawl.pacing.pacer import Pacer
from scrapy_koster.crawl.report import CountedFetch, counts_of
from scrapy_koster.crawl.sites import Sites
from scrapy_koster.protocol.access import Failure
from scrapy_koster.protocol.step import Ask, Defer, Obey, Pass, Refuse, waits

if TYPE_CHECKING:
    from collections.abc import Callable

    from scrapy import Request
    from scrapy.crawler import Crawler

    from scrapy_koster.crawl.config import Config
    from scrapy_koster.crawl.fetching.ports import Fetch, Store
    from scrapy_koster.crawl.messages.stats import Stats
    from scrapy_koster.crawl.robot import Robot
    from scrapy_koster.crawl.sites import SiteState
    from scrapy_koster.protocol.step import Step


class Keeper:
    """Keeps what is known of each site, and has those asked that requests wait for.

    Each of the requests that wait for a site is told by itself, once it is
    settled what to do with them.
    """

    def __init__(
        self,
        crawler: Crawler,
        config: Config,
        stats: Stats,
        *,
        fetch: Fetch,
        store: Store,
        clock: Callable[[], float] = time,
        chance: Callable[[], float] = random.random,
        announcer: Announcer | None = None,
    ) -> None:
        """*clock* tells the seconds since the epoch, *chance* is from 0 to 1."""
        self._crawler, self._policy, self._store = crawler, config.policy, store
        self.clock = clock
        self.announcer = announcer or Announcer(crawler, config, stats)
        self._asker = Asker(
            crawler,
            config,
            self.announcer,
            fetch=fetch,
            store=store,
            clock=clock,
            chance=chance,
            learnt=self._notify,
        )
        self.sites = Sites(config.memory_sites, lambda s: s.is_awaited or self._asker.asks(s))
        self.state_of = self.sites.state_of
        self.pacer: Pacer | None = None
        self._retries = RetryTimer(self._due)
        self.patience = Patience(config.idle_limit_secs, self._give_up_waiting)
        self.in_place = InPlace(crawler, self.patience, self._close)
        self._closing = False
        self.on_change: Callable[[SiteState, Step], None] | None = None
        """Called when the step for a site may have become another. It is the scheduler's, where
        that holds requests back."""
        self.keeps_parked = False  # whether what is parked can wait for the next run
        self.given_up: WeakKeyDictionary[Request, Failure] = WeakKeyDictionary()
        """Requests that waited in vain: refused when they come out, though the site may be due."""

    @classmethod
    def from_crawler(
        cls, crawler: Crawler, config: Config, stats: Stats, *, clock: Callable[[], float] = time
    ) -> Keeper:
        """Return the keeper of a crawl, which asks sites and has the storage of the settings."""
        announcer = Announcer(crawler, config, stats)
        announcer.counts = counts_of(crawler)
        fetch: Fetch = Fetcher(crawler, config, stats)
        if announcer.counts.is_on:
            fetch = CountedFetch(fetch, announcer.counts)
        return cls(
            crawler,
            config,
            stats,
            fetch=fetch,
            store=StorageBreaker(config, stats, Log(StorageBreaker.__module__, crawler), clock),
            clock=clock,
            announcer=announcer,
        )

    def keep_delays(self, config: Config, stats: Stats, robot: Robot) -> None:
        """Have a pacer keep the delays that sites ask of *robot* (KOSTER_CRAWL_DELAY)."""
        self.pacer = self._asker.pacer = Pacer(
            self._crawler,
            config,
            stats,
            robot=robot,
            sites=self.sites,
            store=self._store,
            clock=self.clock,
            renew=self._ask_or_schedule,
        )

    def current_step(self, state: SiteState, now: float) -> Step:
        """Return what to do *now* with a request to the site."""
        return state.take_step(now=now, policy=self._policy)

    def ask_for(self, state: SiteState, request: Request) -> None:
        """Have the site asked, now or when it may be: *request* begins to wait."""
        self.announcer.begins_to_wait(state)
        state.on_behalf_of = request
        self._ask_or_schedule(state)
        if self.patience.is_by_hand and self._asker.asks(state):
            self.announcer.awaited(state)
        if self.patience.is_over:
            self._notify(state)

    async def wait(self, state: SiteState, request: Request) -> Step:
        """Wait in place until the site is not asked or deferred any more; return the step then.

        At the latest until KOSTER_DEFER_LIMIT_SECS have passed since it first
        failed, or until the crawl closes.
        """
        self.patience.busy()
        self.ask_for(state, request)
        step = self._told(state)
        while waits(step) and not self._closing:
            told: Deferred[Step] = Deferred()
            state.waiters.append(told)
            # Again: what it waited for may have ended meanwhile, with nobody to wait for it.
            state.on_behalf_of = request
            self._ask_or_schedule(state)
            with self.in_place.waiting(request, gives_place=self.on_change is not None):
                step = await maybe_deferred_to_future(told)
        return step

    def is_asking(self) -> bool:
        """Whether an answer is on its way that requests wait for."""
        return any(state.wanted and not self._has_failed(state) for state in self._asker.asked)

    def _ask_or_schedule(self, state: SiteState) -> None:
        if self._closing:  # a timer would stay behind
            return
        match self.current_step(state, self.clock()):
            case Ask():
                assert state.on_behalf_of is not None  # somebody waits
                self._asker.ask(state, state.on_behalf_of)
            case Defer(until=until):
                self._retries.schedule(state, until - self.clock())
            case Obey() | Pass() | Refuse():
                pass

    def _due(self, state: SiteState) -> None:
        step = self.current_step(state, self.clock())
        if state.wanted and waits(step):
            self._ask_or_schedule(state)
        else:
            self._notify(state)

    def _notify(self, state: SiteState) -> None:
        """Tell those who wait for the site that its step may be another."""
        told = self._told(state)
        parked_told = state.step if self.keeps_parked else told
        self.announcer.announce(state, parked_told)
        if self._closing or not waits(told):
            waiters, state.waiters = state.waiters, []
            for waiter in waiters:
                waiter.callback(told)
        if self.on_change is not None:
            self.on_change(state, told)
        if state.wanted:
            # A failure is tried again in its time, which may have come already.
            self._ask_or_schedule(state)
        else:
            state.on_behalf_of = None

    # The end of waiting.

    def _told(self, state: SiteState) -> Step:
        """Return the step for those who wait for the site now."""
        step = self.current_step(state, self.clock())
        if waits(step) and self.patience.is_over and self._has_failed(state):
            assert isinstance(state.known, Failure)
            return Refuse(self.patience.given_up(state.known), self.clock())
        return step

    def _has_failed(self, state: SiteState) -> bool:
        """Whether the site could not be asked, and is not being asked at this moment."""
        return isinstance(state.known, Failure) and not self._asker.is_fetching(state)

    def _give_up_waiting(self) -> None:
        if self._crawler.engine.paused:
            self.patience.busy()
            return
        for state in self.sites:
            if state.wanted:
                self._notify(state)

    def _close(self) -> None:
        self._closing = True
        self.patience.busy()
        self._retries.stop()
        if self.pacer is not None:
            self.pacer.close()
        self._asker.cancel()
        for state in self.sites:
            if state.waiters:
                self._notify(state)

    async def close(self) -> None:
        """End what is under way and close the storage. Nothing is left behind."""
        self._close()
        await self._asker.close()

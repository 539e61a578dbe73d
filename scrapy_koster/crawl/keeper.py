"""What is known of each site, and the waiting for what is not.

How the parts meet: ``sites`` has the states of the sites, ``asking`` learns
what is not known, ``retry_timer`` says when a site that failed is due again,
``announcer`` tells the user. See docs/architecture.md.
"""

from __future__ import annotations

import random
from time import time
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from scrapy.utils.asyncio import create_looping_call
from scrapy.utils.defer import maybe_deferred_to_future
from twisted.internet.defer import Deferred

from scrapy_koster.crawl.announcer import Announcer
from scrapy_koster.crawl.asking import Asker
from scrapy_koster.crawl.engine import is_closing
from scrapy_koster.crawl.fetcher import Fetcher
from scrapy_koster.crawl.log import Log
from scrapy_koster.crawl.retry_timer import RetryTimer
from scrapy_koster.crawl.sites import Sites
from scrapy_koster.crawl.storage_breaker import StorageBreaker
from scrapy_koster.protocol.step import Ask, Defer, Obey, Pass, Refuse, waits

if TYPE_CHECKING:
    from collections.abc import Callable

    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.utils.asyncio import AsyncioLoopingCall
    from twisted.internet.task import LoopingCall

    from scrapy_koster.crawl.asking import Fetch, Store
    from scrapy_koster.crawl.config import Config
    from scrapy_koster.crawl.sites import SiteState
    from scrapy_koster.crawl.stats import Stats
    from scrapy_koster.protocol.access import Failure
    from scrapy_koster.protocol.step import Step

# Scrapy sends no signal when a crawl begins to close: while requests wait in
# place, which keep it from closing, that is looked up this often.
_CLOSING_SECS = 0.5


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
    ) -> None:
        """*clock* tells the seconds since the epoch, *chance* is from 0 to 1."""
        self._crawler = crawler
        self._policy = config.policy
        self.clock = clock
        self.announcer = Announcer(crawler, config.policy, stats)
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
        self.sites = Sites(config.memory_sites, lambda s: s.wanted or self._asker.asks(s))
        self.state_of = self.sites.state_of
        self._retries = RetryTimer(self._due)
        self._closing_watch: AsyncioLoopingCall | LoopingCall | None = None
        self._in_place = 0
        self._closing = False
        self.on_change: Callable[[SiteState], None] | None = None
        """Called when the step for a site may have become another."""
        self.given_up: WeakKeyDictionary[Request, Failure] = WeakKeyDictionary()
        """Requests that waited in vain. They are refused when their turn comes, however late that
        is: their site may be due again by then, and they would wait without end."""

    @classmethod
    def from_crawler(
        cls, crawler: Crawler, config: Config, stats: Stats, *, clock: Callable[[], float] = time
    ) -> Keeper:
        """Return the keeper of a crawl, which asks sites and has the storage of the settings."""
        return cls(
            crawler,
            config,
            stats,
            fetch=Fetcher(crawler, config, stats),
            store=StorageBreaker(config, stats, Log(StorageBreaker.__module__, crawler)),
            clock=clock,
        )

    def current_step(self, state: SiteState, now: float) -> Step:
        """Return what to do *now* with a request to the site."""
        return state.take_step(now=now, policy=self._policy)

    def ask_for(self, state: SiteState, request: Request) -> None:
        """Have the site asked, now or when it may be: *request* begins to wait."""
        self.announcer.begins_to_wait(state)
        state.on_behalf_of = request
        self._ask_or_schedule(state)

    async def wait(self, state: SiteState, request: Request) -> Step:
        """Wait in place until the site is not asked or deferred any more; return the step then.

        At the latest until KOSTER_DEFER_LIMIT_SECS have passed since it first
        failed, or until the crawl closes.
        """
        self.ask_for(state, request)
        step = self.current_step(state, self.clock())
        while waits(step) and not self._closing:
            told: Deferred[Step] = Deferred()
            state.waiters.append(told)
            # Again: what it waited for may have ended meanwhile, with nobody to wait for it.
            state.on_behalf_of = request
            self._ask_or_schedule(state)
            self._watch_closing(1)
            try:
                step = await maybe_deferred_to_future(told)
            finally:
                self._watch_closing(-1)
        return step

    def _ask_or_schedule(self, state: SiteState) -> None:
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
        step = self.current_step(state, self.clock())
        self.announcer.announce(state, step)
        if state.wanted:
            # A failure is tried again in its time, which may have come already.
            self._ask_or_schedule(state)
        if self._closing or not waits(step):
            waiters, state.waiters = state.waiters, []
            for waiter in waiters:
                waiter.callback(step)
        if self.on_change is not None:
            self.on_change(state)
        if not state.wanted:
            state.on_behalf_of = None

    # Closing.

    def _watch_closing(self, more: int) -> None:
        self._in_place += more
        if self._in_place and self._closing_watch is None:
            self._closing_watch = create_looping_call(self._close_with_the_crawl)
            self._closing_watch.start(_CLOSING_SECS, now=False)
        elif not self._in_place and self._closing_watch is not None:
            self._closing_watch.stop()
            self._closing_watch = None

    def _close_with_the_crawl(self) -> None:
        if is_closing(self._crawler):
            self._close()

    def _close(self) -> None:
        self._closing = True
        self._retries.stop()
        self._asker.cancel()
        for state in self.sites:
            if state.waiters:
                self._notify(state)

    async def close(self) -> None:
        """End what is under way and close the storage. Nothing is left behind."""
        self._close()
        await self._asker.close()

"""Runs the table of ``states``: has sites retrieved, and tells the requests that wait for them.

``site_records`` has what is known of each site, and ``fetching.retriever`` learns what is not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy.utils.defer import maybe_deferred_to_future
from twisted.internet.defer import Deferred

from scrapy_koster.crawl.idle import Crawl, IdleTimeout, InPlace
from scrapy_koster.crawl.states import FATES, TABLE, Action, Event, Fate, State, event_of
from scrapy_koster.protocol.access import Failure
from scrapy_koster.protocol.step import Defer, Refuse, waits

if TYPE_CHECKING:
    from scrapy import Request

    from scrapy_koster.crawl.clock import Clock
    from scrapy_koster.crawl.config import Config
    from scrapy_koster.crawl.engine.private import Engine
    from scrapy_koster.crawl.fetching.lookahead import LookaheadLimit
    from scrapy_koster.crawl.fetching.retriever import Retriever
    from scrapy_koster.crawl.messages.announcer import Announcer
    from scrapy_koster.crawl.pacing.pacer import Pacer
    from scrapy_koster.crawl.parking.parked_requests import ParkedRequests
    from scrapy_koster.crawl.site_records import SiteRecords
    from scrapy_koster.crawl.states import SiteState
    from scrapy_koster.protocol.step import Settled, Step

# Some loops cannot set a timer for longer. A site is looked at again then.
_TIMER_MOST_SECS = 86400.0


class Sites:
    """The sites of a crawl, and the requests that wait for them."""

    def __init__(
        self,
        config: Config,
        *,
        clock: Clock,
        engine: Engine,
        records: SiteRecords,
        retriever: Retriever,
        announcer: Announcer,
        parked: ParkedRequests | None,
        pacer: Pacer | None,
        ahead: LookaheadLimit,
    ) -> None:
        """*parked* has the requests that wait in the scheduler, if any do. *pacer* is closed with
        the sites.
        """
        self._policy = config.policy
        self._clock = clock
        self._engine = engine
        self._records = records
        self._retriever = retriever
        self._announcer = announcer
        self._parked = parked
        self._pacer = pacer
        self.ahead = ahead
        self.state_of = records.state_of
        self.in_memory = records.in_memory
        self.idle_timeout = IdleTimeout(clock, config.idle_limit_secs, self._give_up_waiting)
        self.in_place = InPlace(
            engine,
            clock,
            timeout=self.idle_timeout,
            close=self._close,
        )

    def prepare(self) -> None:
        """Have ready what a retrieval needs, before a request waits for it."""
        self._retriever.open()

    def current_step(self, state: SiteState) -> Step:
        """Return what to do now with a request to the site."""
        return state.take_step(now=self._clock.epoch(), policy=self._policy)

    # Which requests wait.

    def waiting_for(self, state: SiteState) -> int:
        """Return how many requests wait for the site."""
        # Parked requests are counted by site: one that left the memory may have a new state.
        if state.page is None:
            return 0
        parked = 0 if self._parked is None else self._parked.waiting_in(str(state.site))
        return parked + len(state.waiters)

    def is_awaited(self, state: SiteState) -> bool:
        """Return whether requests wait for the site, or have since it was last looked at."""
        return state.page is not None

    def is_retrieving(self) -> bool:
        """Return whether an answer is on its way that requests wait for."""
        under_way = self._retriever.under_way
        return any(self.waiting_for(each) and not self._has_failed(each) for each in under_way)

    def _has_failed(self, state: SiteState) -> bool:
        """Return whether the last attempt failed, and the site is not being fetched from."""
        return isinstance(state.known, Failure) and not self._retriever.is_fetching(state)

    # Requests begin to wait.

    def ask_for(self, state: SiteState, request: Request) -> None:
        """Have the site retrieved, now or when it is due: *request* is parked for it.

        It waits because of the step that was taken last.
        """
        self._announcer.begins_to_wait(state)
        state.page = request
        self._need(state, state.step)
        if self.idle_timeout.is_by_hand and state.state is State.FETCHING:
            self._announcer.awaited(state)
        if self.idle_timeout.crawl is Crawl.OVER:
            self.look(state)

    async def wait(self, state: SiteState, request: Request) -> Settled:
        """Wait in place until requests to the site can be decided; return the step then.

        At the latest until KOSTER_DEFER_LIMIT_SECS have passed since it first failed, or until the
        crawl closes.
        """
        if self.idle_timeout.crawl is not Crawl.OVER or not isinstance(state.known, Failure):
            self.idle_timeout.busy()  # else nothing was fetched since the site was given up
        self.ask_for(state, request)
        step = self.current_step(state)
        if (ending := self._ending(state, step)) is not None:
            step = self._refusal(state, ending)
        gives_place = self._parked is not None and self._parked.is_open
        while waits(step):
            told: Deferred[Step] = Deferred()
            # Again: what it waited for may have ended meanwhile, with no request that waited.
            state.page = request
            state.waiters = (*state.waiters, told)
            self._need(state, step)
            with self.in_place.waiting(request, gives_place=gives_place):
                step = await maybe_deferred_to_future(told)
        return step

    def renew(self, state: SiteState) -> None:
        """Have a site retrieved for which requests wait, or set the time of its next attempt."""
        self._need(state, self.current_step(state))

    def _need(self, state: SiteState, step: Step) -> None:
        """Start an attempt or a timer for the requests that wait because of *step*.

        By now the step may be another: time may have decided it. What is started here looks at the
        site when it ends.
        """
        if self.idle_timeout.crawl is Crawl.CLOSING or not waits(step):
            return
        self.ahead.begins(state)
        if state.state is not State.FETCHING:
            self.happens(state, event_of(step))
        self.happens(state, Event.NEEDED)

    # The table.

    def happens(self, state: SiteState, event: Event) -> Action:
        """Move the site, and start what the table says. Return the action.

        KeyError if the table has no such move.
        """
        state.state, action = TABLE[state.state, event]
        if state.state is not State.DEFERRED:
            self._stop_timer(state)
        if action is Action.FETCH:
            assert state.page is not None  # a request needs it
            self._retriever.retrieve(state, state.page)
        elif action is Action.SET_TIMER and state.timer is None and isinstance(state.step, Defer):
            secs = max(0.0, state.step.until - self._clock.epoch())
            state.timer = self._clock.call_later(min(secs, _TIMER_MOST_SECS), self._due, state)
        return action

    @staticmethod
    def _stop_timer(state: SiteState) -> None:
        if state.timer is not None:
            state.timer.cancel()
            state.timer = None

    def _due(self, state: SiteState) -> None:
        state.timer = None
        self.look(state)

    def ended(self, state: SiteState) -> None:
        """Tell the requests that wait what the attempt has led to."""
        self.ahead.ends(state)
        step = self.current_step(state)
        if isinstance(step, Defer) and step.failure.attempts == 1:
            # The attempt may have taken all of the time, and there shall be a second one.
            self.idle_timeout.begin_anew()
        self._look(state, self.happens(state, event_of(step)))

    def look(self, state: SiteState) -> None:
        """Tell the requests that wait for the site if time or the crawl has decided about them."""
        self.ahead.ends(state)
        step, action = self.current_step(state), Action.NOTHING
        if state.state is not State.FETCHING:
            action = self.happens(state, event_of(step))
        self._look(state, action)

    def _look(self, state: SiteState, action: Action) -> None:
        step = told = state.step
        if (ending := self._ending(state, step)) is not None:
            action = self.happens(state, ending)
            told = self._refusal(state, ending)
        fates = FATES[action]
        is_kept = self._parked is not None and self._parked.is_kept
        parked = fates.kept if is_kept else fates.parked
        announced = step if parked is Fate.KEEP else told
        self._announcer.announce(state, announced, self.waiting_for(state))
        if fates.in_place is not Fate.WAIT:
            waiters, state.waiters = state.waiters, ()
            for waiter in waiters:
                waiter.callback(told)
        if self._parked is not None and self.idle_timeout.crawl is not Crawl.CLOSING:
            self._parked.settled(state, parked, told)
        if self.waiting_for(state):
            # A failure is tried again in its time, which may have come already.
            self._need(state, step)
        else:
            state.page = None

    # The end of waiting.

    def _ending(self, state: SiteState, step: Step) -> Event | None:
        """Return the event by which the crawl ends the wait for the site, if it does."""
        if not waits(step):
            return None
        if self.idle_timeout.crawl is Crawl.CLOSING:
            return Event.CLOSING
        if self.idle_timeout.crawl is Crawl.OVER and self._has_failed(state):
            return Event.IDLE
        return None

    def _refusal(self, state: SiteState, ending: Event) -> Refuse:
        """Return the step of the requests that do not wait any longer."""
        if ending is Event.CLOSING:
            return self.closing()
        assert isinstance(state.known, Failure)  # it has failed
        return Refuse(self.idle_timeout.given_up(state.known), self._clock.epoch())

    def closing(self) -> Refuse:
        """Return the step of a site that is not known when the crawl closes."""
        now = self._clock.epoch()
        return Refuse(Failure("the crawl is closing", 0, now, now, now, None), now)

    def _give_up_waiting(self) -> None:
        self._engine.when_fetching(self.idle_timeout.busy)
        for state in self._records:
            if self.waiting_for(state):
                self.look(state)

    def _close(self) -> None:
        self.idle_timeout.close()
        self._retriever.cancel()
        self.ahead.close()
        if self._pacer is not None:
            self._pacer.close()
        for state in self._records:
            self._stop_timer(state)
            if state.waiters:
                self.look(state)

    async def close(self) -> None:
        """End what is under way and close the storage. Nothing is left behind."""
        self._close()
        await self._retriever.close()

    # Eviction.

    def forget(self, state: SiteState) -> bool:
        """Return whether a site may leave the memory; if so, nothing of it is left here.

        Later the site has another state, for which requests may wait.
        """
        if self._is_busy(state):
            return False
        state.page = None
        self._stop_timer(state)
        return True

    def _is_busy(self, state: SiteState) -> bool:
        return (
            state.state is State.FETCHING
            or self.waiting_for(state) > 0
            or self._is_under_way(state)
        )

    def _is_under_way(self, state: SiteState) -> bool:
        """Return whether the downloader has a request to the site, which is checked once more."""
        requests = (*self._engine.under_way, *self.in_place)
        return any(self._records.met(request.url) is state for request in requests)

"""Runs the table of ``states``: starts retrievals, and ends the waits of requests.

``site_records`` has the sites in memory, and ``fetching.retriever`` retrieves robots.txt files.

A crawl that only waits for failing sites ends after KOSTER_IDLE_LIMIT_SECS. If requests wait only
in the scheduler, Scrapy sends ``spider_idle``. Scrapy does not send this signal while a request
waits in place, inside the downloader. Requests of media pipelines and of ``engine.download_async``
wait there. So while requests wait in place, the downloader is checked twice a second. The crawl is
idle if the downloader has no other requests.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from scrapy import Request
from scrapy.utils.asyncio import CallLaterResult
from scrapy.utils.defer import maybe_deferred_to_future
from twisted.internet.defer import Deferred

from scrapy_koster.crawl.clock import TIMER_MOST_SECS, Clock, Ticks
from scrapy_koster.crawl.config import Config
from scrapy_koster.crawl.engine.private import Engine
from scrapy_koster.crawl.fetching.retriever import Retriever
from scrapy_koster.crawl.messages.announcer import Announcer
from scrapy_koster.crawl.pacing.pacer import Pacer
from scrapy_koster.crawl.parking.parked_requests import ParkedRequests
from scrapy_koster.crawl.site_records import SiteRecords
from scrapy_koster.crawl.states import STATES, TABLE, Action, Event, SiteState, State
from scrapy_koster.protocol.access import Failure
from scrapy_koster.protocol.printable import printable
from scrapy_koster.protocol.step import Defer, Refuse, Settled, Step, waits

# The reason of a failure is cut to this number of characters. The reason for giving up follows.
_REASON_CHARS = 100
# The time between two checks. Scrapy has no signal for an idle downloader, or for a crawl that
# begins to close.
_LOOK_SECS = 0.5


@dataclass(kw_only=True, eq=False)
class Sites:
    """The sites of a crawl, and the requests that wait for sites."""

    config: Config
    clock: Clock
    engine: Engine
    records: SiteRecords
    retriever: Retriever
    announcer: Announcer
    parked: ParkedRequests
    """The requests that wait in the scheduler."""
    pacer: Pacer
    """``close`` closes the pacer, too."""

    def __post_init__(self) -> None:
        """Begin without waits, and take over attributes of the collaborators."""
        self.open = self.retriever.open
        self.ahead = self.retriever.limit
        self.state_of = self.records.state_of
        self.in_memory = self.records.in_memory
        self.in_place = self.engine.hooks.in_place
        self._ticks: Ticks | None = None
        self._idle_timer: CallLaterResult | None = None
        self.is_by_hand = False
        """Whether a command fetches a page for a waiting person."""
        self.is_idle_over = self.is_closing = False

    def current_step(self, state: SiteState) -> Step:
        """Return the step for a request to the site now."""
        return state.take_step(now=self.clock.epoch(), policy=self.config.policy)

    # Which requests wait.

    def waiting_for(self, state: SiteState) -> int:
        """Return the number of requests that wait for the site."""
        # A site may get a new state after an eviction, so parked requests are counted by name.
        if state.page is None:
            return 0
        return self.parked.waiting_in(str(state.site)) + len(state.waiters)

    def is_retrieving(self) -> bool:
        """Return whether requests wait for an attempt that is under way.

        At a failed site, an attempt counts only while the robots.txt is being fetched.
        """
        under_way = self.retriever.under_way
        return any(self.waiting_for(each) and not self._has_failed(each) for each in under_way)

    def _has_failed(self, state: SiteState) -> bool:
        """Return whether the last attempt failed, and the robots.txt is not being fetched."""
        return isinstance(state.known, Failure) and state not in self.retriever.fetching

    # Requests begin to wait.

    def ask_for(self, state: SiteState, request: Request) -> None:
        """Start an attempt for *request*, or the timer of the next attempt.

        *request* has to wait by ``state.step``, and is parked already or will wait in place.
        """
        self.announcer.begins_to_wait(state)
        state.page = request
        self._need(state, state.step)
        if self.is_by_hand and state in self.retriever.under_way:
            self.announcer.awaited(state)
        if self.is_idle_over or self.is_closing:
            self.look(state)

    async def wait(self, state: SiteState, request: Request) -> Settled:
        """Return the step that decides *request*, after a wait in place if necessary.

        The wait ends when an attempt settles the site, when the site is given up
        (KOSTER_DEFER_LIMIT_SECS, KOSTER_IDLE_LIMIT_SECS), or when the crawl closes.
        """
        step = self.current_step(state)
        if waits(step) and not isinstance(state.known, Failure):
            self.busy()
        while waits(step):
            told: Deferred[Step] = Deferred(lambda ended: state.waiters.pop(ended, None))
            state.waiters[told] = None
            self.ask_for(state, request)
            with self.waiting(request):
                step = await maybe_deferred_to_future(told)
        return step

    @contextmanager
    def waiting(self, request: Request) -> Iterator[None]:
        """Return the context in which *request* waits in place.

        *request* uses no place of CONCURRENT_REQUESTS within this context. If the scheduler parks
        no requests, it uses one, because then only the places limit the number of waiting requests.
        """
        self.in_place[request] += 1
        self.engine.wake()  # there may be a free place
        if self._ticks is None:
            self._ticks = Ticks(self.clock, _LOOK_SECS, self._look_for_work)
        try:
            yield
        finally:
            self.in_place[request] -= 1
            if not self.in_place[request]:
                del self.in_place[request]
            if not self.in_place and self._ticks is not None:
                self._ticks.stop()
                self._ticks = None

    def _need(self, state: SiteState, step: Step) -> None:
        """Start an attempt, or the timer of the next one, if requests wait because of *step*.

        At the end of the attempt or of the timer, ``look`` takes the next step.
        """
        if self.is_closing or not waits(step):
            return
        self.ahead.begins(state)
        action = self.happens(state, step, Event.NEEDED)
        if action is Action.FETCH:
            assert state.page is not None  # a request waits
            self.retriever.retrieve(state, state.page)
        elif action is Action.SET_TIMER and state.timer is None and isinstance(step, Defer):
            secs = max(0.0, step.until - self.clock.epoch())
            state.timer = self.clock.call_later(min(secs, TIMER_MOST_SECS), self._due, state)

    def happens(self, state: SiteState, step: Step, event: Event) -> Action:
        """Return the action on *event*. Raises KeyError if the table has none in this state."""
        is_fetching = state in self.retriever.under_way
        return TABLE[State.FETCHING if is_fetching else STATES[type(step)], event]

    @staticmethod
    def _stop_timer(state: SiteState) -> None:
        if state.timer is not None:
            state.timer.cancel()
            state.timer = None

    def _due(self, state: SiteState) -> None:
        state.timer = None
        self.look(state)

    def ended(self, state: SiteState) -> None:
        """End the waits of requests that can be decided after an attempt."""
        step = self.current_step(state)
        if isinstance(step, Defer) and step.failure.attempts == 1:
            # A first attempt that hung may have used up the idle time. A second attempt needs some.
            self.busy()
        self.look(state)

    def look(self, state: SiteState) -> None:
        """Take the current step of the site, and end the waits of requests that the step decides.

        An idle or closing crawl ends waits, too. If the queue is kept for the next run (JOBDIR,
        scrapy-redis), an idle crawl refuses only parked requests that are not in the file of the
        JOBDIR. If requests still wait, start an attempt or a timer.
        """
        self.ahead.ends(state)
        step = told = self.current_step(state)
        is_kept = False
        if ending := self._ending(state, step):
            event, told = ending
            is_held = self.happens(state, step, event) is Action.HOLD
            is_kept = is_held or self.parked.is_kept
        self.announcer.announce(state, step if is_kept else told, self.waiting_for(state))
        if not waits(told):
            waiters, state.waiters = state.waiters, {}
            for waiter in waiters:
                if not waiter.called:  # the callback of another one may cancel it
                    waiter.callback(told)
        if not self.is_closing:
            self.parked.settled(state, told, is_kept=is_kept)
        if self.waiting_for(state):
            # The next attempt may be due already.
            self._need(state, step)
        else:
            state.page = None

    # The end of waiting.

    def _ending(self, state: SiteState, step: Step) -> tuple[Event, Refuse] | None:
        """Return the event by which the crawl ends the waits for the site, with a Refuse step.

        Returns None if the waits go on, or if *step* lets no request wait.
        """
        if not waits(step):
            return None
        if self.is_closing:
            return Event.CLOSING, self.closing()
        if self.is_idle_over and isinstance(state.known, Failure) and self._has_failed(state):
            return Event.IDLE, Refuse(self._given_up(state.known), self.clock.epoch())
        return None

    def _given_up(self, failure: Failure) -> Failure:
        """Return *failure* with a second reason: why the site is given up."""
        secs = self.config.idle_limit_secs
        why = f"no page was downloaded for {secs:g} s, KOSTER_IDLE_LIMIT_SECS"
        if self.is_by_hand:
            why = "scrapy fetch, shell, view and parse do not wait for a site to recover"
        return replace(failure, reason=f"{printable(failure.reason, _REASON_CHARS)}; {why}")

    def closing(self) -> Refuse:
        """Return the step that refuses waiting requests when the crawl closes."""
        now = self.clock.epoch()
        return Refuse(Failure("the crawl is closing", 0, now, now, now, None), now)

    def begin_by_hand(self) -> None:
        """End the idle time now and for good: a person waits for a page, and can try again."""
        self.is_by_hand = self.is_idle_over = True

    def idle(self) -> None:
        """Start the idle time, after which failing sites are given up (KOSTER_IDLE_LIMIT_SECS).

        It starts only if it does not run and is not over. Requests that wait for the turn of their
        host are work.
        """
        if self.pacer.has_waiting():
            self.busy()
        elif self._idle_timer is None and not (self.is_idle_over or self.is_closing):
            secs = self.config.idle_limit_secs
            self._idle_timer = self.clock.call_later(secs, self._give_up_waiting)

    def busy(self) -> None:
        """Stop the idle time, and wait for failing sites again."""
        if self._idle_timer is not None:
            self._idle_timer.cancel()
            self._idle_timer = None
        self.is_idle_over = self.is_by_hand and not self.is_closing

    def _look_for_work(self) -> None:
        if self.engine.is_closing:
            self._close()
        elif self.engine.has_only(self.in_place):
            self.idle()
        else:
            self.busy()

    def _give_up_waiting(self) -> None:
        self._idle_timer = None
        self.is_idle_over = True
        for state in self.records:
            if self.waiting_for(state) and state not in self.retriever.fetching:
                self.look(state)

    def _close(self) -> None:
        self.is_closing = True
        self.busy()
        self.retriever.cancel()
        self.ahead.close()
        self.pacer.close()
        for state in self.records:
            self._stop_timer(state)
            if state.waiters:
                self.look(state)

    async def close(self) -> None:
        """Cancel attempts and timers, and close the storage."""
        self._close()
        await self.retriever.close()

    # Eviction.

    def forget(self, state: SiteState) -> bool:
        """Return whether the state of a site can be evicted. If so, stop its timer and its count.

        Later requests to the site get a new state.
        """
        is_busy = state in self.retriever.under_way or self.waiting_for(state) > 0
        # A request in the downloader needs the state for the check before it is sent.
        requests = (*self.engine.under_way, *self.in_place)
        if is_busy or any(self.records.in_memory(each.url) is state for each in requests):
            return False
        state.page = None
        self._stop_timer(state)
        self.ahead.ends(state)
        return True

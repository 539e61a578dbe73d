"""The sites of a crawl, and the requests that wait for sites: one task for each site.

A site is served by a task from the first request that waits until no request waits. The task asks
the site, pauses until the next attempt, and ends the waits when the step of the site is settled.
The requests wait in the scheduler (``parking.parked_requests``), or *in place*.

Two events end waits, too: the crawl has had no other work for KOSTER_IDLE_LIMIT_SECS, and the crawl
closes. ``Sites`` ends the waits at once. Then a task without waiting requests ends.

A crawl that only waits for failing sites ends after KOSTER_IDLE_LIMIT_SECS. If requests wait only
in the scheduler, Scrapy sends ``spider_idle``. Scrapy does not send this signal while a request
waits in place, inside the downloader. Requests of media pipelines and of ``engine.download_async``
wait there. So while requests wait in place, the downloader is checked twice a second. The crawl is
idle if the downloader has no other requests.
"""

from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from scrapy import Request
from scrapy.utils.asyncio import CallLaterResult
from scrapy.utils.defer import deferred_from_coro, maybe_deferred_to_future
from twisted.internet.defer import Deferred

from scrapy_koster.crawl.clock import TIMER_MOST_SECS, Clock, Ticks
from scrapy_koster.crawl.config import Config
from scrapy_koster.crawl.engine.private import CANCELLED, Engine
from scrapy_koster.crawl.fetching.lookahead import LookaheadLimit
from scrapy_koster.crawl.fetching.retriever import Retriever
from scrapy_koster.crawl.messages.announcer import Announcer
from scrapy_koster.crawl.pacing.pacer import Pacer
from scrapy_koster.crawl.parking.parked_requests import ParkedRequests
from scrapy_koster.crawl.site_records import SiteRecords
from scrapy_koster.crawl.states import SiteState, Waiting
from scrapy_koster.protocol.access import Failure
from scrapy_koster.protocol.printable import printable
from scrapy_koster.protocol.step import Ask, Defer, Refuse, Settled, Step, waits

# The reason of a failure is cut to this number of characters. The reason for giving up follows.
_REASON_CHARS = 100
# The time between two checks. Scrapy has no signal for an idle downloader, or for a crawl that
# begins to close.
_LOOK_SECS = 0.5


@dataclass(kw_only=True, eq=False)
class Sites:
    """The sites of a crawl, and the tasks that serve the requests that wait for sites."""

    config: Config
    clock: Clock
    engine: Engine
    records: SiteRecords
    served: dict[SiteState, Waiting]
    """The sites that requests wait for. Each has a task. Only this class changes the dict."""
    ahead: LookaheadLimit
    retriever: Retriever
    announcer: Announcer
    parked: ParkedRequests
    """The requests that wait in the scheduler."""
    pacer: Pacer
    """``close`` closes the pacer, too."""

    def __post_init__(self) -> None:
        """Begin without waits."""
        self._tasks: set[Deferred[None]] = set()
        self._ticks: Ticks | None = None
        self._idle_timer: CallLaterResult | None = None
        self.is_by_hand = False
        """Whether a command fetches a page for a waiting person."""
        self.is_idle_over = False

    def open(self) -> None:
        """Begin to open the storage, so that the first attempt need not wait for it."""
        self._begin(self.retriever.store.open())

    def current_step(self, state: SiteState) -> Step:
        """Return the step for a request to the site now."""
        return state.take_step(now=self.clock.epoch(), policy=self.config.policy)

    # Requests begin to wait.

    async def wait(self, state: SiteState, request: Request) -> Settled:
        """Return the step that decides *request*, after a wait in place if necessary.

        The wait ends when an attempt settles the site, when the site is given up
        (KOSTER_DEFER_LIMIT_SECS, KOSTER_IDLE_LIMIT_SECS), or when the crawl closes.
        """
        step = self.current_step(state)
        if not waits(step):
            return step
        if self.engine.is_closing:
            return self.closing()
        if not isinstance(state.known, Failure):
            self.busy()
        told: Deferred[Settled] = Deferred(partial(self._leaves, state))
        self.serve(state, request, told)
        with self.waiting(request):
            return await maybe_deferred_to_future(told)

    def serve(
        self, state: SiteState, request: Request, told: Deferred[Settled] | None = None
    ) -> None:
        """Serve *request*, which has to wait by ``state.step``.

        *request* is parked already, or waits in place for *told*.
        """
        self.announcer.begins_to_wait(state)
        served = self.served.get(state)
        waiting = served or Waiting(request)
        waiting.page = request
        if told is not None:
            waiting.in_place[told] = None
        if self.is_by_hand and isinstance(state.step, Ask):
            self.announcer.awaited(state)
        if served is None:
            self.served[state] = waiting
            self.ahead.begins(state)
            self._begin(self._serve(state, waiting))
        elif self.is_idle_over:
            self._end_waits(state, waiting)

    def _leaves(self, state: SiteState, told: Deferred[Settled]) -> None:
        """Forget a request that waited in place: its download was cancelled."""
        if waiting := self.served.get(state):
            waiting.in_place.pop(told, None)
            if waiting.timer and not self.waiting_for(state):
                self._end_service(state, waiting)

    def waiting_for(self, state: SiteState) -> int:
        """Return the number of requests that wait for the site."""
        # A site may get a new state after an eviction, so parked requests are counted by name.
        if (waiting := self.served.get(state)) is None:
            return 0
        return self.parked.waiting_in(str(state.site)) + len(waiting.in_place)

    # The task of a site.

    def _begin(self, coroutine: Coroutine[Any, Any, None]) -> None:
        task = deferred_from_coro(coroutine)
        self._tasks.add(task)
        task.addBoth(lambda _: self._tasks.discard(task))

    def _resume(self, state: SiteState, waiting: Waiting) -> None:
        waiting.timer = None
        self._begin(self._serve(state, waiting))

    async def _serve(self, state: SiteState, waiting: Waiting) -> None:
        """Ask the site until no request waits, or until the next attempt is not due yet."""
        try:
            while self._end_waits(state, waiting):
                if isinstance(state.step, Defer):
                    secs = min(max(0.0, state.step.until - self.clock.epoch()), TIMER_MOST_SECS)
                    waiting.timer = self.clock.call_later(secs, self._resume, state, waiting)
                    return
                is_awaited = partial(self.waiting_for, state)
                await self.retriever.attempt(state, waiting, is_awaited)
                self._attempted(state)
        except CANCELLED:  # the crawl closes, or the loop ends
            self.engine.close()
        except Exception as error:  # noqa: BLE001  # logged here: nobody reads the task's error
            self.announcer.failed(state, error)
        self._end_service(state, waiting)

    def _end_service(self, state: SiteState, waiting: Waiting) -> None:
        if waiting.timer is not None:
            waiting.timer.cancel()
        self.ahead.ends(state)
        del self.served[state]

    def _attempted(self, state: SiteState) -> None:
        self.ahead.ends(state)
        if self.parked.is_open:
            self.engine.wake()  # there may be room for another site
        step = self.current_step(state)
        if isinstance(step, Defer) and step.failure.attempts == 1:
            # A first attempt that hung may have used up the idle time. A second attempt needs some.
            self.busy()

    # The ends of waits.

    def _end_waits(self, state: SiteState, waiting: Waiting) -> bool:
        """End the waits that can end now. Return whether requests still wait, and can be served.

        The step of the site ends waits if it is settled. An idle or closing crawl ends waits, too.
        If the queue is kept for the next run (JOBDIR, scrapy-redis), an idle crawl refuses only
        parked requests that are not in the file of the JOBDIR.
        """
        step = told = self.current_step(state)
        is_closing, is_kept = self.engine.is_closing, False
        if waits(step) and is_closing:
            told, is_kept = self.closing(), True
        elif waits(step) and self.is_idle_over and self._has_failed(state, waiting):
            told, is_kept = self._given_up(state), self.parked.is_kept
        self.announcer.announce(state, step if is_kept else told, self.waiting_for(state))
        if not waits(told):
            in_place, waiting.in_place = waiting.in_place, {}
            for each in in_place:
                if not each.called:  # the callback of another one may cancel it
                    each.callback(told)
            if not is_closing:
                self.parked.settled(state, told, is_kept=is_kept)
        still_wait = self.waiting_for(state) > 0
        if waiting.timer and not still_wait:
            self._end_service(state, waiting)
        return still_wait and not is_closing

    @staticmethod
    def _has_failed(state: SiteState, waiting: Waiting) -> bool:
        """Return whether the last attempt failed, and the robots.txt is not being fetched."""
        return isinstance(state.known, Failure) and not waiting.is_fetching

    def is_retrieving(self) -> bool:
        """Return whether requests wait for an attempt that is under way.

        At a failed site, an attempt counts only while the robots.txt is being fetched.
        """
        return any(
            self.waiting_for(state) and not self._has_failed(state, waiting)
            for state, waiting in self.served.items()
        )

    def _given_up(self, state: SiteState) -> Refuse:
        """Return the step that refuses waiting requests, with why the site is given up."""
        failure: Any = state.known
        secs = self.config.idle_limit_secs
        why = f"there was nothing else to crawl for KOSTER_IDLE_LIMIT_SECS = {secs:g} s"
        if self.is_by_hand:
            why = "scrapy fetch, shell, view and parse do not wait for a site to recover"
        reason = f"{printable(failure.reason, _REASON_CHARS)}; {why}"
        return Refuse(replace(failure, reason=reason), self.clock.epoch())

    def closing(self) -> Refuse:
        """Return the step that refuses waiting requests when the crawl closes."""
        now = self.clock.epoch()
        return Refuse(Failure("the crawl is closing", 0, now, now, now, None), now)

    # The time without other work, and the close of the crawl.

    @contextmanager
    def waiting(self, request: Request) -> Iterator[None]:
        """Return the context in which *request* waits in place.

        *request* uses no place of CONCURRENT_REQUESTS within this context. If the scheduler parks
        no requests, it uses one, because then only the places limit the number of waiting requests.
        """
        in_place = self.engine.hooks.in_place
        in_place[request] += 1
        self.engine.wake()  # there may be a free place
        if self._ticks is None:
            self._ticks = Ticks(self.clock, _LOOK_SECS, self._look_for_work)
        try:
            yield
        finally:
            in_place[request] -= 1
            if not in_place[request]:
                del in_place[request]
            if not in_place and self._ticks is not None:
                self._ticks.stop()
                self._ticks = None

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
        elif self._idle_timer is None and not (self.is_idle_over or self.engine.is_closing):
            secs = self.config.idle_limit_secs
            self._idle_timer = self.clock.call_later(secs, self._give_up_waiting)

    def busy(self) -> None:
        """Stop the idle time, and wait for failing sites again."""
        if self._idle_timer is not None:
            self._idle_timer.cancel()
            self._idle_timer = None
        self.is_idle_over = self.is_by_hand

    def _look_for_work(self) -> None:
        if self.engine.is_closing:
            self._refuse_in_place()
        elif self.engine.has_only(self.engine.hooks.in_place):
            self.idle()
        else:
            self.busy()

    def _give_up_waiting(self) -> None:
        self._idle_timer = None
        self.is_idle_over = True
        for state, waiting in list(self.served.items()):
            if not waiting.is_fetching:  # a running fetch is awaited, even after the time limit
                self._end_waits(state, waiting)

    def _refuse_in_place(self) -> None:
        for state, waiting in list(self.served.items()):
            if waiting.in_place:
                self._end_waits(state, waiting)
        self.pacer.close()

    async def close(self) -> None:
        """End the waits in place and the tasks, and close the storage."""
        self.engine.close()
        self.busy()
        self._refuse_in_place()
        self.ahead.close()
        tasks = list(self._tasks)
        for task in tasks:  # only once: a cancelled task still releases its claim
            task.cancel()
        for task in tasks:
            await maybe_deferred_to_future(task)
        for state, waiting in list(self.served.items()):  # or the task never began
            self._end_service(state, waiting)
        await self.pacer.closed()
        await self.retriever.close()

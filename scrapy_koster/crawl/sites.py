"""The sites of a crawl, and the requests that wait for sites: one task for each site.

A site is served by a task from the first request that waits until no request waits. The task asks
the site, pauses until the next attempt, and ends the waits when the step of the site is settled.

Requests in the scheduler wait until the site recovers (``parking.parked_requests``). Other requests
wait *in place*, inside the downloader: those of media pipelines, of ``engine.download_async``, and
of a crawl with another scheduler. They wait for the first answer only, not for a recovery: they
hold up their items, and so the whole crawl. If the site has failed, they are refused at once, and
an attempt that is due runs beside them.

Two events end waits, too: the crawl has had no other work for KOSTER_IDLE_LIMIT_SECS, and the crawl
closes. ``Sites`` ends the waits at once. Then a task without waiting requests ends.
"""

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from scrapy import Request
from scrapy.utils.asyncio import CallLaterResult
from scrapy.utils.defer import maybe_deferred_to_future
from twisted.internet.defer import Deferred

from scrapy_koster.crawl.clock import TIMER_MOST_SECS, Clock
from scrapy_koster.crawl.config import Config
from scrapy_koster.crawl.engine.private import CANCELLED, Engine
from scrapy_koster.crawl.fetching.lookahead import LookaheadLimit
from scrapy_koster.crawl.fetching.retriever import Retriever
from scrapy_koster.crawl.in_place import InPlace
from scrapy_koster.crawl.messages.announcer import Announcer
from scrapy_koster.crawl.pacing.pacer import Pacer
from scrapy_koster.crawl.parking.parked_requests import ParkedRequests
from scrapy_koster.crawl.site_records import SiteRecords
from scrapy_koster.crawl.states import SiteState, Waiting
from scrapy_koster.crawl.tasks import Tasks
from scrapy_koster.protocol.access import FetchFailure, last_copy
from scrapy_koster.protocol.site import Site
from scrapy_koster.protocol.step import (
    Ask,
    Defer,
    Obey,
    Refuse,
    Settled,
    closed,
    given_up,
    step_between,
    waits,
)


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
    in_place: InPlace
    pacer: Pacer
    """``close`` closes the pacer, too."""

    def __post_init__(self) -> None:
        """Begin without waits."""
        self.in_place.when_closing(self._refuse_in_place)
        self.current_step = self.retriever.current_step
        self._tasks = Tasks(self.retriever.crawler)
        self._idle_timer: CallLaterResult | None = None
        self.is_interactive = False
        """Whether a command fetches a page for a waiting person."""
        self.is_idle_over = False

    def open(self) -> None:
        """Begin to open the storage, so that the first attempt need not wait for it."""
        self._tasks.begin(self.retriever.store.open())

    # Requests begin to wait.

    async def wait(self, state: SiteState, request: Request) -> Settled:
        """Return the step that decides *request*, after a wait in place if necessary.

        The wait ends with an attempt, or when the crawl closes. If the site has failed, there is
        no wait.
        """
        while waits(step := self.current_step(state)):
            if self.engine.is_closing:
                return closed(self.clock.epoch())
            if isinstance(state.known, FetchFailure):
                if isinstance(step, Ask):
                    self.serve(state, request)
                return self._step_between(state.site, state.known)
            self.busy()
            self.announcer.begins_to_wait(state)
            future: Deferred[Settled] = Deferred(partial(self._leaves, state))
            self.serve(state, request, future)
            state.in_place += 1
            try:
                with self.in_place.waiting(request):
                    end = await maybe_deferred_to_future(future)
            finally:
                state.in_place -= 1
            # The copy may be replaced before this request goes on.
            if not isinstance(end, Obey) or end.copy is last_copy(state.known):
                return end
        return step

    def _step_between(self, site: Site, failure: FetchFailure) -> Settled:
        now = self.clock.epoch()
        return step_between(failure, now=now, policy=self.config.policy.at(site, now))

    def serve(
        self, state: SiteState, request: Request, future: Deferred[Settled] | None = None
    ) -> None:
        """Serve *request*, which has to wait by ``state.step``.

        *request* waits in place for *future*, is parked already, or does not wait for the attempt.
        """
        served = self.served.get(state)
        waiting = served or Waiting()
        waiting.add_template(request, self.config.page_meta)
        if future is not None:
            waiting.in_place[future] = None
        elif isinstance(state.step, Ask):
            waiting.is_due = True
        if self.is_interactive and isinstance(state.step, Ask):
            self.announcer.awaited(state)
        if served is None:
            self.served[state] = waiting
            self.ahead.begins(state)
            self._tasks.begin(self._serve(state, waiting))
        elif self.is_idle_over:
            self._end_waits(state, waiting)

    def _leaves(self, state: SiteState, future: Deferred[Settled]) -> None:
        """Forget a request that waited in place: its download was cancelled."""
        if waiting := self.served.get(state):
            waiting.in_place.pop(future, None)
            if waiting.timer and not self.waiting_for(state):
                self._end_service(state, waiting)

    def waiting_for(self, state: SiteState) -> int:
        """Return the number of requests that wait for the site."""
        # A site may get a new state after an eviction, so parked requests are counted by name.
        if (waiting := self.served.get(state)) is None:
            return 0
        return self.parked.waiting_in(str(state.site)) + len(waiting.in_place)

    # The task of a site.

    def _resume(self, state: SiteState, waiting: Waiting) -> None:
        waiting.timer = None
        self._tasks.begin(self._serve(state, waiting))

    async def _serve(self, state: SiteState, waiting: Waiting) -> None:
        """Ask the site until no request waits, or until the next attempt is not due yet."""
        try:
            while self._end_waits(state, waiting):
                if isinstance(state.step, Defer):
                    secs = min(max(0.0, state.step.until - self.clock.epoch()), TIMER_MOST_SECS)
                    waiting.timer = self.clock.call_later(secs, self._resume, state, waiting)
                    return
                await self.retriever.attempt(state, waiting, partial(self._is_wanted, state))
                waiting.is_due = False
                self._attempted(state)
        except CANCELLED:  # the crawl closes, or the loop ends
            self.engine.close()
        except Exception as error:  # noqa: BLE001  # a defect must not leave requests waiting
            self._answer_with(error, state, waiting)
        self._end_service(state, waiting)

    def _is_wanted(self, state: SiteState) -> bool:
        """Return whether an attempt has a purpose: requests wait, or one has found it due."""
        return self.served[state].is_due or self.waiting_for(state) > 0

    def _answer_with(self, error: Exception, state: SiteState, waiting: Waiting) -> None:
        """Refuse the waiting requests: the task of the site has failed with *error*."""
        failure = self.retriever.failed(state, error)
        waiting.tell(Refuse(failure, failure.retry))
        self.parked.let_out(str(state.site), failure)
        self.engine.wake()

    def _end_service(self, state: SiteState, waiting: Waiting) -> None:
        if waiting.timer is not None:
            waiting.timer.cancel()
        self.ahead.ends(state)
        del self.served[state]

    def _attempted(self, state: SiteState) -> None:
        self.ahead.ends(state)
        if self.parked.is_open:
            self.engine.wake()  # there may be room for another site
        if isinstance(failure := state.known, FetchFailure):
            since = self.parked.failed_since(str(state.site), failure.since)
            state.learn(state.facts._replace(known=replace(failure, since=since)))
        step = self.current_step(state)
        # Attempts that hang use up the idle time. After each of the first two, the next needs some.
        if isinstance(step, Defer) and step.failure.attempts <= 2:
            self.busy()

    # The ends of waits.

    def _end_waits(self, state: SiteState, waiting: Waiting) -> bool:
        """End the waits that can end now. Return whether an attempt is still wanted.

        The step of the site ends waits if it is settled. An idle or closing crawl ends waits, too.
        If the queue is kept for the next run (JOBDIR, scrapy-redis), an idle crawl refuses only
        parked requests that are not in the file of the JOBDIR. A failure ends the waits in place.
        """
        step = outcome = self.current_step(state)
        is_closing, is_kept = self.engine.is_closing, False
        if waits(step) and is_closing:
            outcome, is_kept = closed(self.clock.epoch()), True
        elif waits(step) and self.is_idle_over and self._has_failed(state, waiting):
            outcome, is_kept = self._given_up(state), self.parked.is_kept
            if not is_kept:
                state.learn(state.facts._replace(known=outcome.failure))
        self.announcer.announce(state, step if is_kept else outcome, self.waiting_for(state))
        if not waits(outcome):
            waiting.tell(outcome)
            if not is_closing:
                self.parked.release(state, outcome, is_kept=is_kept)
        elif isinstance(state.known, FetchFailure):
            waiting.tell(self._step_between(state.site, state.known))
        is_wanted = self._is_wanted(state)
        if waiting.timer and not is_wanted:
            self._end_service(state, waiting)
        return is_wanted and not is_closing

    @staticmethod
    def _has_failed(state: SiteState, waiting: Waiting) -> bool:
        """Return whether the last attempt failed, and the robots.txt is not being fetched."""
        return isinstance(state.known, FetchFailure) and not waiting.is_fetching

    def is_retrieving(self) -> bool:
        """Return whether requests wait for an attempt that is under way.

        At a failed site, an attempt counts only while the robots.txt is being fetched.
        """
        return any(
            self.waiting_for(state) and not self._has_failed(state, waiting)
            for state, waiting in self.served.items()
        )

    def _given_up(self, state: SiteState) -> Refuse:
        failure: Any = state.known
        secs = self.config.idle_limit_secs
        why = f"no page was downloaded for {secs:g} s, KOSTER_IDLE_LIMIT_SECS"
        if self.is_interactive:
            why = "scrapy fetch, shell, view and parse do not wait for a site to recover"
        return given_up(failure, why, now=self.clock.epoch(), policy=self.config.policy)

    # The time without other work, and the close of the crawl.

    def begin_interactive(self) -> None:
        """End the idle time now and for good: a person waits for a page, and can try again."""
        self.is_interactive = self.is_idle_over = True

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
        self.is_idle_over = self.is_interactive

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
        self.retriever.limiter.close()
        self._tasks.cancel()  # only once: a cancelled task still releases its claim
        await self._tasks.ended()
        for state, waiting in list(self.served.items()):  # or the task never began
            self._end_service(state, waiting)
        await self.pacer.closed()
        await self.retriever.close()

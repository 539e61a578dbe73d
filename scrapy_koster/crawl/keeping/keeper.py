"""The requests that wait for a site: who waits, for how long, and what becomes of them.

``sites`` has what is known of each site, ``fetching.retriever`` learns what is not known, and
``fate`` decides what becomes of those who wait. See docs/architecture.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy.utils.defer import maybe_deferred_to_future
from twisted.internet.defer import Deferred

from scrapy_koster.crawl.keeping.fate import Crawl, Fate, Place, fate
from scrapy_koster.crawl.keeping.inplace import InPlace, Movement
from scrapy_koster.crawl.keeping.patience import Patience
from scrapy_koster.crawl.timetable import Timetable
from scrapy_koster.protocol.access import Failure
from scrapy_koster.protocol.step import Ask, Defer, Obey, Pass, Refuse, waits

if TYPE_CHECKING:
    from scrapy import Request

    from scrapy_koster.crawl.clock import Clock
    from scrapy_koster.crawl.config import Config
    from scrapy_koster.crawl.engine.private import Engine
    from scrapy_koster.crawl.fetching.retriever import Retriever
    from scrapy_koster.crawl.keeping.ahead import Ahead
    from scrapy_koster.crawl.keeping.parked import Parked, TurnPacer
    from scrapy_koster.crawl.messages.announcer import Announcer
    from scrapy_koster.crawl.sites import Sites, SiteState
    from scrapy_koster.protocol.access import Known
    from scrapy_koster.protocol.step import Settled, Step


class _Awaited:
    """Who waits for a site."""

    __slots__ = ("page", "waiters")

    def __init__(self, page: Request) -> None:
        self.page = page
        """The request on whose behalf the robots.txt is fetched next."""
        self.waiters: list[Deferred[Step]] = []
        """Of the requests that wait in place."""


class Keeper:
    """Has sites retrieved that requests wait for, and tells these once it is settled."""

    def __init__(
        self,
        config: Config,
        *,
        clock: Clock,
        engine: Engine,
        sites: Sites,
        retriever: Retriever,
        announcer: Announcer,
        parked: Parked,
        pacer: TurnPacer,
        ahead: Ahead,
    ) -> None:
        """*parked* has the requests that wait in the scheduler, *pacer* those that wait for a turn
        of their host.
        """
        self._policy = config.policy
        self._clock = clock
        self._engine = engine
        self._sites = sites
        self._retriever = retriever
        self._announcer = announcer
        self._parked = parked
        self._pacer = pacer
        self.ahead = ahead
        self.state_of = sites.state_of
        self.in_memory = sites.in_memory
        self._awaited: dict[SiteState, _Awaited] = {}
        self._retries: Timetable[SiteState] = Timetable(clock, self._due)
        self.patience = Patience(clock, config.idle_limit_secs, self._give_up_waiting)
        self.in_place = InPlace(
            engine,
            clock,
            patience=self.patience,
            movement=Movement(engine, clock, config.idle_limit_secs),
            close=self._close,
        )

    def prepare(self) -> None:
        """Have ready what a retrieval needs, before a request waits for it."""
        self._retriever.open()

    def current_step(self, state: SiteState) -> Step:
        """Return what to do now with a request to the site."""
        return state.take_step(now=self._clock.epoch(), policy=self._policy)

    def waiting_for(self, state: SiteState) -> int:
        """Return how many requests wait for the site."""
        awaited = self._awaited.get(state)
        # Parked requests are counted by site: one that left the memory may have a new state.
        return 0 if awaited is None else self._parked.count(state) + len(awaited.waiters)

    def is_awaited(self, state: SiteState) -> bool:
        """Whether the site is to be asked: requests wait for it, or have since it was settled."""
        return state in self._awaited

    def forget(self, state: SiteState) -> bool:
        """Forget who waited for a site that is to leave the memory; return False if it may not.

        Later the site has another state, for which requests may wait.
        """
        if self._is_busy(state):
            return False
        self._awaited.pop(state, None)
        return True

    def _is_busy(self, state: SiteState) -> bool:
        return (
            state in self._retriever.under_way
            or self.waiting_for(state) > 0
            or self._pacer.is_waited_for(state)
            or self._is_under_way(state)
        )

    def _is_under_way(self, state: SiteState) -> bool:
        """Whether the downloader has a request to the site, which is looked at once more."""
        return any(self._sites.met(request.url) is state for request in self._engine.under_way)

    def is_retrieving(self) -> bool:
        """Whether an answer is on its way that requests wait for."""
        return any(
            self.waiting_for(state) and not self._has_failed(state)
            for state in self._retriever.under_way
        )

    def ask_for(self, state: SiteState, request: Request) -> None:
        """Have the site retrieved, now or when it is due: *request* begins to wait.

        It waits because of the step that was taken last.
        """
        self._announcer.begins_to_wait(state)
        self._awaits(state, request)
        self._renew(state, state.step)
        if self.patience.is_by_hand and state in self._retriever.under_way:
            self._announcer.awaited(state)
        if self.patience.crawl is Crawl.OVER:
            self.retrieved(state)

    async def wait(self, state: SiteState, request: Request) -> Settled:
        """Wait in place until the site is not asked or deferred any more; return the step then.

        At the latest until KOSTER_DEFER_LIMIT_SECS have passed since it first
        failed, or until the crawl closes.
        """
        if self.patience.crawl is not Crawl.OVER or not isinstance(state.known, Failure):
            self.patience.busy()  # else nothing was fetched since the site was given up
        self.ask_for(state, request)
        _, step = self._decided(state, self.current_step(state), Place.IN_PLACE)
        while waits(step):
            told: Deferred[Step] = Deferred()
            # Again: what it waited for may have ended meanwhile, with nobody to wait for it.
            self._awaits(state, request).waiters.append(told)
            self._renew(state, step)
            with self.in_place.waiting(request, gives_place=self._parked.is_open):
                step = await maybe_deferred_to_future(told)
        return step

    def renew(self, state: SiteState) -> None:
        """Have a site retrieved for which requests wait, or set the time of its next attempt."""
        self._renew(state, self.current_step(state))

    def _renew(self, state: SiteState, step: Step) -> None:
        """The same for those who wait because of *step*.

        By now the step may be another: time may have decided it, and nobody would tell them. What
        is set off here looks again when it ends.
        """
        if self.patience.crawl is Crawl.CLOSING:  # a timer would stay behind
            return
        match step:
            case Ask():
                self.ahead.begins(state)
                self._retriever.retrieve(state, self._awaited[state].page)
            case Defer(until=until_epoch):
                self.ahead.begins(state)
                secs = until_epoch - self._clock.epoch()
                self._retries.set(state, self._clock.now() + secs)
            case Obey() | Pass() | Refuse():
                pass

    def retrieved(self, state: SiteState) -> None:
        """Tell those who wait for the site that its step may be another."""
        self.ahead.ends(state)
        current = self.current_step(state)
        where = Place.KEPT if self._parked.is_kept else Place.PARKED
        parked, told_parked = self._decided(state, current, where)
        self._announcer.announce(
            state, told_parked if parked is not Fate.KEEP else current, self.waiting_for(state)
        )
        told, step = self._decided(state, current, Place.IN_PLACE)
        if told is not Fate.WAIT and (awaited := self._awaited.get(state)):
            waiters, awaited.waiters = awaited.waiters, []
            for waiter in waiters:
                waiter.callback(step)
        if self.patience.crawl is not Crawl.CLOSING:
            self._parked.settled(state, parked, told_parked)
        if self.waiting_for(state):
            # A failure is tried again in its time, which may have come already.
            self._renew(state, current)
        else:
            self._awaited.pop(state, None)

    def _awaits(self, state: SiteState, request: Request) -> _Awaited:
        awaited = self._awaited.setdefault(state, _Awaited(request))
        awaited.page = request
        return awaited

    def _due(self, state: SiteState) -> None:
        step = self.current_step(state)
        if self.waiting_for(state) and waits(step):
            self._renew(state, step)
        else:
            self.retrieved(state)

    def _decided(self, state: SiteState, step: Step, place: Place) -> tuple[Fate, Step]:
        """Return what becomes of those who wait for the site, and the step that they are told."""
        decided = fate(step, self.patience.crawl, place, has_failed=self._has_failed(state))
        if waits(step) and decided is not Fate.WAIT:
            return decided, self._given_up(state.known)
        return decided, step

    def _given_up(self, known: Known | None) -> Refuse:
        if self.patience.crawl is Crawl.CLOSING:
            return self.closing()
        assert isinstance(known, Failure)  # it has failed
        return Refuse(self.patience.given_up(known), self._clock.epoch())

    def _has_failed(self, state: SiteState) -> bool:
        """Whether the last attempt failed, and the site is not fetched from at this moment."""
        return isinstance(state.known, Failure) and not self._retriever.is_fetching(state)

    # The end of waiting.

    def _give_up_waiting(self) -> None:
        if self._engine.is_paused:
            self.patience.busy()
            return
        self._engine.when_fetching(self.patience.busy)
        for state in list(self._awaited):
            if self.waiting_for(state):
                self.retrieved(state)

    def _close(self) -> None:
        self.patience.close()
        self._retries.clear()
        self.ahead.close()
        self._retriever.cancel()
        self._pacer.close()
        for state, awaited in list(self._awaited.items()):
            if awaited.waiters:
                self.retrieved(state)

    def closing(self) -> Refuse:
        """Return the step of a site that is not known when the crawl closes."""
        now = self._clock.epoch()
        return Refuse(Failure("the crawl is closing", 0, now, now, now, None), now)

    async def close(self) -> None:
        """End what is under way and close the storage. Nothing is left behind."""
        self._close()
        await self._retriever.close()

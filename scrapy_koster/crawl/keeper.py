"""What is known of each site, and the asking for what is not."""

from __future__ import annotations

import heapq
import itertools
import logging
import random
from collections import Counter, OrderedDict
from dataclasses import replace
from time import time
from typing import TYPE_CHECKING

from scrapy import signals
from scrapy.utils.asyncio import call_later
from scrapy.utils.defer import deferred_from_coro, maybe_deferred_to_future
from scrapy.utils.log import failure_to_exc_info
from scrapy.utils.misc import build_from_crawler
from twisted.internet.defer import Deferred, DeferredList, DeferredSemaphore
from twisted.python.failure import Failure as TwistedFailure

from scrapy_koster.crawl.engine import is_closing
from scrapy_koster.crawl.fetcher import Fetcher
from scrapy_koster.crawl.storage_breaker import StorageBreaker
from scrapy_koster.protocol.access import (
    Access,
    Answer,
    Ask,
    Copy,
    Defer,
    Failure,
    Known,
    NoAnswer,
    Obey,
    Pass,
    Refuse,
    Step,
    access,
    after_answer,
    next_step,
)
from scrapy_koster.protocol.robotstxt import url_path
from scrapy_koster.protocol.site import site_of
from scrapy_koster.protocol.verdict import Source

if TYPE_CHECKING:
    from collections.abc import Callable

    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.robotstxt import RobotParser
    from scrapy.utils.asyncio import CallLaterResult

    from scrapy_koster.crawl.config import Config
    from scrapy_koster.crawl.stats import Stats
    from scrapy_koster.protocol.site import Site

logger = logging.getLogger(__name__)

# Sites that are asked at the same time, for each request that the crawl may
# have under way: a robots.txt is small, and one that hangs waits in here.
_FETCHES_PER_SLOT = 4
_ALIASES_KEPT = 8
# Sites that requests wait for stay; so many are passed over for each new one.
_EVICTED_AT_ONCE = 16
# Scrapy sends no signal when a crawl begins to close: while requests wait in
# place, which keep it from closing, that is looked up this often.
_CLOSING_SECS = 0.5

_UNAVAILABLE = "unavailable"
_STANDING = {
    Access.RULES: "obeyed",
    Access.UNRESTRICTED: "without robots.txt",
    Access.RESTRICTED: "restricted",
}


def is_robots_txt(url: str) -> bool:
    """Whether *url* is "the /robots.txt URL", always allowed (3.2.2)."""
    return url_path(url) == "/robots.txt"


def _everything(_url: str, _robot: str | bytes) -> bool:
    return True


def _robots_txt_only(url: str, _robot: str | bytes) -> bool:
    return is_robots_txt(url)


class SiteState:
    """What is known of one site, in memory.

    ``allows(url, robot)`` answers for the site until ``until``, in seconds
    since the epoch; from then on ``Keeper.current_step`` has to be asked first.
    """

    __slots__ = (
        "aliases",
        "allows",
        "asked_for",
        "asking",
        "body",
        "counted_as",
        "due",
        "known",
        "looked_up",
        "origin",
        "parked",
        "parser",
        "site",
        "source",
        "step",
        "until",
        "waiters",
    )

    def __init__(self, site: Site) -> None:
        self.site = site
        self.origin = f"{site}/"
        self.aliases: list[str] = []
        self.looked_up = False
        self.known: Known | None = None
        self.source = Source.FETCHED
        self.body: bytes | None = None
        self.parser: RobotParser | None = None
        self.step: Step = Ask(None)
        self.until = 0.0
        self.allows: Callable[[str, str | bytes], bool] = _everything
        self.asking = False
        self.asked_for: Request | None = None
        self.waiters: list[Deferred[None]] = []
        self.parked = 0
        self.due: float | None = None
        self.counted_as: str | None = None

    @property
    def wanted(self) -> int:
        """How many requests wait for the site."""
        return len(self.waiters) + self.parked


class Keeper:
    """Keeps what is known of each site, and asks for what is not.

    One request for a robots.txt is under way for a site at a time, however
    many requests wait for it, and each of those that wait is told by itself.
    """

    def __init__(self, crawler: Crawler, config: Config, stats: Stats) -> None:
        self._crawler = crawler
        self._config = config
        self._stats = stats
        self._fetcher = Fetcher(crawler, config, stats)
        self._storage = StorageBreaker(config, stats)
        self.states: OrderedDict[str, SiteState] = OrderedDict()
        """By origin, without a default port; the most recently used is last."""
        self._aliases: dict[str, SiteState] = {}
        concurrent = crawler.settings.getint("CONCURRENT_REQUESTS")
        self._turns = DeferredSemaphore(_FETCHES_PER_SLOT * max(concurrent, 16))
        self._tasks: set[Deferred[None]] = set()
        self._due: list[tuple[float, int, SiteState]] = []
        self._due_number = itertools.count()
        self._timer: CallLaterResult | None = None
        self._in_place = 0
        self.closing = False
        self.counts: Counter[str] = Counter()
        """Sites by what is known of them, and how it was learnt."""
        self.on_change: Callable[[SiteState], None] | None = None
        """Called when the step for a site may have become another."""

    def state_of(self, url: str) -> SiteState | None:
        """Return the state of the site of *url*, None if robots.txt is not for it.

        Raises ValueError for an http or https URL that names no site.
        """
        end = url.find("/", 8)
        origin = url if end < 0 else url[:end]
        state = self.states.get(origin)
        if state is None:
            return self._find(url, origin)
        self.states.move_to_end(origin)
        return state

    def _find(self, url: str, origin: str) -> SiteState | None:
        state = self._aliases.get(origin)
        site = site_of(url) if state is None else state.site
        if site is None:
            return None
        name = str(site)
        state = self.states.get(name)
        if state is None:
            self._make_room()
            state = self.states[name] = SiteState(site)
        elif origin not in self._aliases and len(state.aliases) < _ALIASES_KEPT:
            state.aliases.append(origin)
            self._aliases[origin] = state
        self.states.move_to_end(name)
        return state

    def _make_room(self) -> None:
        """KOSTER_MEMORY_SITES: least recently used out first."""
        for _ in range(_EVICTED_AT_ONCE):
            if len(self.states) < self._config.memory_sites:
                return
            name, state = next(iter(self.states.items()))
            if state.asking or state.wanted:
                self.states.move_to_end(name)
                continue
            del self.states[name]
            for alias in state.aliases:
                del self._aliases[alias]

    def current_step(self, state: SiteState, now: float) -> Step:
        """Return what to do *now* with a request to the site."""
        if now >= state.until and state.looked_up:
            state.step = next_step(state.known, now=now, policy=self._config.policy)
            state.until = 0.0
            match state.step:
                case Obey(copy, until):
                    state.allows, state.until = self._allows(state, copy), until
                case Pass(until=until):
                    state.allows, state.until = _everything, until
                case Refuse(until=until):
                    state.allows, state.until = _robots_txt_only, until
                case Ask() | Defer():
                    pass
        return state.step

    def _allows(self, state: SiteState, copy: Copy) -> Callable[[str, str | bytes], bool]:
        match access(copy, self._config.policy):
            case Access.RULES:
                assert state.parser is not None  # _keep() has built it
                return state.parser.allowed
            case Access.RESTRICTED:
                return _robots_txt_only
            case Access.UNRESTRICTED:
                return _everything

    def ask_for(self, state: SiteState, request: Request) -> None:
        """Have the site asked, now or when it may be: *request* begins to wait."""
        if state.counted_as == _UNAVAILABLE:  # those from before are counted as it is announced
            self._stats.requests_deferred(1)
        self._ask_or_schedule(state, request)

    def _ask_or_schedule(self, state: SiteState, request: Request | None) -> None:
        assert request is not None  # somebody wants it
        match self.current_step(state, time()):
            case Ask():
                self._ask(state, request)
            case Defer(until=until):
                state.asked_for = request
                self._remind(state, until)
            case Obey() | Pass() | Refuse():
                pass

    async def wait(self, state: SiteState, request: Request) -> None:
        """Wait in place until the site is not asked or deferred any more.

        At the latest until KOSTER_DEFER_LIMIT_SECS have passed, or until the
        crawl closes.
        """
        self.ask_for(state, request)
        while isinstance(self.current_step(state, time()), (Ask, Defer)) and not self.closing:
            told: Deferred[None] = Deferred()
            state.waiters.append(told)
            self._in_place += 1
            self._ask_or_schedule(state, request)
            self._set_timer()
            try:
                await maybe_deferred_to_future(told)
            finally:
                self._in_place -= 1

    # Asking.

    def _ask(self, state: SiteState, request: Request) -> None:
        if state.asking or self.closing:
            return
        state.asking = True
        state.asked_for = request
        task = deferred_from_coro(self._learn(state, request))
        self._tasks.add(task)
        task.addBoth(self._learnt, state, task)

    def _learnt(self, result: object, state: SiteState, task: Deferred[None]) -> None:
        self._tasks.discard(task)
        state.asking = False
        if isinstance(result, TwistedFailure) and not self.closing:
            logger.error(
                "Error while asking for the robots.txt of %(site)s",
                {"site": state.site},
                exc_info=failure_to_exc_info(result),
                extra={"spider": self._crawler.spider},
            )
            state.looked_up = True
            state.known = self._received(NoAnswer(f"error: {result.value}"), state.known)
            state.until = 0.0
        self._notify(state)

    async def _learn(self, state: SiteState, request: Request) -> None:
        if not state.looked_up:
            stored = await self._storage.get(state.site)
            await self._keep(state, stored, self._storage.source, request)
            if isinstance(self.current_step(state, time()), Obey):
                self.counts["from storage"] += 1
        ask = self.current_step(state, time())
        if not isinstance(ask, Ask):
            return
        await maybe_deferred_to_future(self._turns.acquire())
        try:
            result = await self._fetcher.fetch(state.site, request, ask.stale)
        finally:
            self._turns.release()
        if self.closing:
            return
        known = self._received(result, state.known)
        self._count_copy(result, known)
        await self._storage.put(state.site, known)
        await self._keep(state, known, Source.FETCHED, request)

    def _received(self, result: Answer | NoAnswer, known: Known | None) -> Known:
        now = time()
        learnt = after_answer(
            result, known, now=now, policy=self._config.policy, jitter=random.random()
        )
        if isinstance(learnt, Copy):
            # Whatever its life, it decides for those who have waited for it.
            learnt = replace(learnt, expires=max(learnt.expires, now + 1))
        return learnt

    def _count_copy(self, result: Answer | NoAnswer, known: Known) -> None:
        match result, known:
            case Answer(status=304), Copy():
                self._stats.revalidated()
                self.counts["revalidated"] += 1
            case _, Copy():
                self.counts["fetched"] += 1
            case _:
                pass

    async def _keep(
        self, state: SiteState, known: Known | None, source: Source, request: Request
    ) -> None:
        copy = known.stale if isinstance(known, Failure) else known
        has_rules = copy is not None and access(copy, self._config.policy) is Access.RULES
        if copy is not None and has_rules and state.body != copy.body:
            state.parser = await self._parse(copy.body, request)
            state.body = copy.body
        state.known = known
        state.source = source
        state.looked_up = True
        state.until = 0.0

    async def _parse(self, body: bytes, request: Request) -> RobotParser:
        parser = build_from_crawler(self._config.parser, self._crawler, body)
        await self._crawler.signals.send_catch_log_async(
            signal=signals.robots_parsed, robotparser=parser, request=request
        )
        return parser

    # Telling.

    def _notify(self, state: SiteState) -> None:
        """Tell those who wait for the site that its step may be another."""
        self._announce(state, self.current_step(state, time()))
        if state.wanted:
            # A failure is tried again in its time, which may have come already.
            self._ask_or_schedule(state, state.asked_for)
        waiters, state.waiters = state.waiters, []
        for waiter in waiters:
            waiter.callback(None)
        if self.on_change is not None:
            self.on_change(state)

    def _announce(self, state: SiteState, now_is: Step) -> None:
        match now_is:
            case Obey(copy):
                before = state.counted_as
                self._count_as(state, _STANDING[access(copy, self._config.policy)])
                if before == _UNAVAILABLE:
                    self._log("%(site)s answers again: HTTP %(status)d", state, status=copy.status)
            case Defer(failure) if state.counted_as != _UNAVAILABLE:
                self._count_as(state, _UNAVAILABLE)
                self._deferred(state, failure)
            case Refuse(failure):
                self._count_as(state, _UNAVAILABLE)
                if state.wanted:
                    self._gave_up(state, failure)
            case Pass():
                self._count_as(state, _UNAVAILABLE)
            case Defer() | Ask():
                pass

    def _deferred(self, state: SiteState, failure: Failure) -> None:
        self._stats.site_deferred()
        self._stats.requests_deferred(state.wanted)
        self._log(
            "Deferring visits to %(site)s: its robots.txt cannot be retrieved (%(reason)s)."
            " Requests that wait: %(wanted)d. It is asked again in %(secs).0f seconds",
            state,
            reason=failure.reason,
            wanted=state.wanted,
            secs=failure.retry - failure.asked,
        )

    def _gave_up(self, state: SiteState, failure: Failure) -> None:
        self._log(
            "Giving up %(site)s: its robots.txt cannot be retrieved (%(reason)s), attempts:"
            " %(attempts)d. Requests that are refused: %(wanted)d",
            state,
            reason=failure.reason,
            attempts=failure.attempts,
            wanted=state.wanted,
        )

    def _log(self, message: str, state: SiteState, **values: object) -> None:
        logger.info(message, {"site": state.site, **values}, extra={"spider": self._crawler.spider})

    def _count_as(self, state: SiteState, standing: str) -> None:
        if state.counted_as is not None:
            self.counts[state.counted_as] -= 1
        self.counts[standing] += 1
        state.counted_as = standing

    # Waiting.

    def _remind(self, state: SiteState, when: float) -> None:
        if state.due is None or when < state.due:
            state.due = when
            heapq.heappush(self._due, (when, next(self._due_number), state))
            self._set_timer()

    def _set_timer(self) -> None:
        """One timer: for the site that is due first."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        delays = [self._due[0][0] - time()] if self._due else []
        if self._in_place:
            delays.append(_CLOSING_SECS)
        if delays and not self.closing:
            self._timer = call_later(max(0.0, min(delays)), self._ring)

    def _ring(self) -> None:
        self._timer = None
        if self._in_place and is_closing(self._crawler):
            self._close()
            return
        now = time()
        while self._due and self._due[0][0] <= now:
            when, _, state = heapq.heappop(self._due)
            if state.due != when:
                continue
            state.due = None
            if state.wanted and isinstance(self.current_step(state, now), (Ask, Defer)):
                self._ask_or_schedule(state, state.asked_for)
            else:
                self._notify(state)
        self._set_timer()

    # Closing.

    def _close(self) -> None:
        self.closing = True
        self._fetcher.cancel()
        for state in list(self.states.values()):
            if state.waiters:
                self._notify(state)

    async def close(self) -> None:
        """End what is under way and close the storage. Nothing is left behind."""
        self._close()
        self._set_timer()
        for task in list(self._tasks):
            task.cancel()
        await maybe_deferred_to_future(DeferredList(list(self._tasks), consumeErrors=True))
        await self._storage.close()

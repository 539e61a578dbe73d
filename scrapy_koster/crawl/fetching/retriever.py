"""Retrieves the robots.txt of sites: from the storage first, then from the site."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from scrapy.utils.misc import build_from_crawler
from twisted.python.failure import Failure as TwistedFailure

from scrapy_koster import signals
from scrapy_koster.crawl.clock import LateError
from scrapy_koster.crawl.engine.compat import robots_parsed
from scrapy_koster.crawl.engine.private import CANCELLED
from scrapy_koster.crawl.engine.tasks import Told, begin, when_ended
from scrapy_koster.crawl.fetching.lookahead import NoSocketError
from scrapy_koster.crawl.fetching.ports import TurnNeededError
from scrapy_koster.crawl.states import Facts
from scrapy_koster.protocol.access import (
    Answer,
    Copy,
    Failure,
    Known,
    NoAnswer,
    after_answer,
    last_copy,
    standing_of,
)
from scrapy_koster.protocol.defect import checked_parser, guarded
from scrapy_koster.protocol.printable import error_text
from scrapy_koster.protocol.standing import Access
from scrapy_koster.protocol.step import Ask, Obey, given_up_at
from scrapy_koster.protocol.usage_lines import UsageLines, usage_lines
from scrapy_koster.protocol.verdict import Source
from scrapy_koster.storage.latest import is_news
from scrapy_koster.storage.port import Claimed

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from contextlib import AbstractAsyncContextManager

    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.robotstxt import RobotParser

    from scrapy_koster.crawl.clock import Clock
    from scrapy_koster.crawl.config import Config
    from scrapy_koster.crawl.engine.tasks import Task
    from scrapy_koster.crawl.fetching.examiner import Examiner
    from scrapy_koster.crawl.fetching.lookahead import LookaheadLimit
    from scrapy_koster.crawl.fetching.ports import Archive, Fetch, FetchPacer, Store
    from scrapy_koster.crawl.messages.announcer import Announcer
    from scrapy_koster.crawl.states import SiteState
    from scrapy_koster.protocol.policy import Policy
    from scrapy_koster.protocol.step import Step

# Beyond the time-out of a fetch, for what has to be stored then.
_CLAIM_SPARE_SECS = 5.0
_LOOK_FIRST_SECS = 0.1
_LOOK_LAST_SECS = 1.0

_NO_SOCKET = NoAnswer("it was not asked again in time: too many other sites hang")


class Retriever:
    """Learns what is not known of sites, each by one attempt at a time."""

    def __init__(
        self,
        crawler: Crawler,
        config: Config,
        announcer: Announcer,
        *,
        clock: Clock,
        chance: Callable[[], float],
        fetch: Fetch,
        store: Store,
        limit: LookaheadLimit,
        pacer: FetchPacer,
        archive: Archive,
        examiner: Examiner | None,
        is_awaited: Callable[[SiteState], bool],
        retrieved: Callable[[SiteState], None],
    ) -> None:
        # is_awaited: do requests wait for a site? retrieved: to be called after each attempt.
        self._crawler = crawler
        self._config = config
        self._announcer = announcer
        self._clock = clock
        self._chance = chance
        self._fetch = fetch
        self._store = store
        self._limit = limit
        self._pacer = pacer
        self._archive = archive
        self._examiner = examiner
        self._is_awaited = is_awaited
        self._retrieved = retrieved
        self.under_way: set[SiteState] = set()
        """Sites for which an attempt is under way, or waits for a socket."""
        self._fetching: set[SiteState] = set()
        self._tasks: set[Task] = set()
        self._all_ended: Told[None] | None = None
        self._cancelled = False

    def open(self) -> None:
        """Have the storage prepared, before a request waits for it."""
        self._begin(self._store.open(), lambda _: None)

    def is_fetching(self, state: SiteState) -> bool:
        """Whether the site is being fetched from now, by whichever process, or its answer read."""
        return state in self._fetching

    def retrieve(self, state: SiteState, page: Request) -> None:
        """Begin an attempt on behalf of *page*, unless one is under way."""
        if self._cancelled or state in self.under_way:
            return
        self.under_way.add(state)
        self._begin(self._attempt(state, page), partial(self._settle, state))

    def _begin(
        self, coroutine: Coroutine[Any, Any, None], ended: Callable[[object], object]
    ) -> None:
        task = begin(coroutine)
        self._tasks.add(task)
        when_ended(task, partial(self._ended, ended, task))

    def cancel(self) -> None:
        """End what is under way, and begin nothing any more."""
        self._cancelled = True
        self._fetch.cancel()

    async def close(self) -> None:
        """Wait until all has ended, and close the storage."""
        self.cancel()
        for task in list(self._tasks):
            task.cancel()
        if self._tasks:
            self._all_ended = Told()
            await self._all_ended
        await self._archive.close()
        await self._store.close()

    def _ended(self, ended: Callable[[object], object], task: Task, result: object) -> None:
        try:
            ended(result)
        finally:
            self._tasks.discard(task)
            if self._all_ended is not None and not self._tasks:
                self._all_ended.tell(None)

    def _settle(self, state: SiteState, result: object) -> None:
        self.under_way.discard(state)
        self._fetching.discard(state)
        if isinstance(result, TwistedFailure) and result.check(*CANCELLED):
            # Nobody else cancels it: the process ends, and its loop has no time for more.
            self._cancelled = True
        if isinstance(result, TwistedFailure) and not self._cancelled:
            assert result.value is not None
            self._announcer.failed(state, result.value)
            defect = NoAnswer(error_text(result.value), is_defect=True)
            known = self._after(defect, state.known, self._clock.epoch())
            known = _decisive(known, now=self._clock.epoch(), policy=self._config.policy)
            state.learn(state.facts._replace(known=known, source=Source.FETCHED, defect=result))
        self._retrieved(state)

    async def _attempt(self, state: SiteState, page: Request) -> None:
        began = self._clock.epoch()
        # If a socket is free, the claim returns the stored copy in one call.
        if state.known is None and not self._limit.is_free(state):
            stored = await self._store.get(state.site)
            if stored is not None:
                await self._take_stored(state, stored, page)
        after: TurnNeededError | None = None
        while isinstance(self._step(state), Ask):
            has_turn = await self._pacer.turn_to_ask(state, after)
            try:
                held_secs = await self._ask(state, page, began, after=after, has_turn=has_turn)
            except TurnNeededError as needed:
                after = needed
                continue
            finally:
                # Where nothing was stored: another has learnt it, or there was an error.
                await self._store.release(state.site)
            if not held_secs:
                return
            waited_secs = self._clock.epoch() - began
            after = None
            await self._clock.sleep(_look_secs(waited_secs, held_secs, self._chance()))

    async def _ask(
        self,
        state: SiteState,
        page: Request,
        began: float,
        *,
        after: TurnNeededError | None,
        has_turn: bool,
    ) -> float:
        """Ask the site, unless another does; return for how long that may last, in seconds.

        TurnNeededError if a host has to have a turn for that first. It is waited for without a
        socket and without a claim.
        """
        try:
            async with self._socket(state):
                if self._is_settled(state):
                    return 0.0
                # Not before there is a socket: the claim would run out while it waits.
                claimed = await self._claimed(state, page)
                if self._is_settled(state):
                    return 0.0
                self._fetching.add(state)
                if claimed.held_secs:
                    return claimed.held_secs
                url = state.site.robots_url if after is None else after.url or state.site.robots_url
                if not has_turn and self._pacer.needs_turn(url):
                    raise after or TurnNeededError  # an old copy that was stored names a delay
                async with self._pacer.asking(state, after):
                    result = await self._fetched(state, page, after)
        except NoSocketError:
            result = _NO_SOCKET
        if not self._cancelled:
            await self._learn(state, page, result, began)
        return 0.0

    async def _learn(
        self, state: SiteState, page: Request, result: Answer | NoAnswer, began: float
    ) -> None:
        """Take what came of the request, and store it for others before anybody is told."""
        known = self._pacer.lengthened(state, self._after(result, state.known, began))
        known = await self._archive.learnt(
            state.site,
            known,
            source=Source.FETCHED,
            exchanges=result.exchanges,
            stale=last_copy(state.known),
        )
        self._announcer.answered(state.site, result, known)
        if result is not _NO_SOCKET:  # that says nothing about the site to anybody else
            await self._pacer.note(state, known)
            await self._store.put(state.site, known)
        await self._take(state, known, Source.FETCHED, page)

    async def _fetched(
        self, state: SiteState, page: Request, after: TurnNeededError | None
    ) -> Answer | NoAnswer:
        stale = last_copy(state.known)
        if after is None:
            self._announcer.send(signals.robots_requested, site=state.site)
        if after is None or after.url is None:
            return await self._fetch.fetch(state.site, page, stale)
        return await self._fetch.fetch(state.site, page, stale, after=after)

    def _socket(self, state: SiteState) -> AbstractAsyncContextManager[None]:
        left_secs = given_up_at(state.known, policy=self._config.policy) - self._clock.epoch()
        # A site that is asked although it was given up has no such limit.
        return self._limit.socket(state, left_secs if left_secs > 0 else math.inf)

    def _is_settled(self, state: SiteState) -> bool:
        """Whether there is nothing to ask, or nobody waits for it."""
        return (
            self._cancelled or not self._is_awaited(state) or not isinstance(self._step(state), Ask)
        )

    async def _claimed(self, state: SiteState, page: Request) -> Claimed:
        """Claim the site, and take what is stored, or what another has learnt meanwhile."""
        secs = self._config.timeout_secs + _CLAIM_SPARE_SECS
        for unless_known in (True, False) if state.known is None else (False,):
            claimed = await self._store.claim(state.site, secs=secs, unless_known=unless_known)
            if (found := claimed.known) is None:
                break
            if unless_known or is_news(found, state.known, now=self._clock.epoch()):
                await self._take_stored(state, found, page)
            if self._is_settled(state):
                break
        return claimed

    def _step(self, state: SiteState) -> Step:
        return state.take_step(now=self._clock.epoch(), policy=self._config.policy)

    def _after(self, result: Answer | NoAnswer, known: Known | None, began: float) -> Known:
        now, policy, chance = self._clock.epoch(), self._config.policy, self._chance()
        return after_answer(result, known, now=now, policy=policy, jitter=chance, began=began)

    async def _take_stored(self, state: SiteState, known: Known, page: Request) -> None:
        source = self._store.source
        known = await self._archive.learnt(state.site, known, source=source)
        met = _met(known, state.known, now=self._clock.epoch())
        await self._take(state, met, source, page)
        if isinstance(step := self._step(state), Obey):
            self._announcer.from_storage(state.site, step.copy)

    async def _take(self, state: SiteState, known: Known, source: Source, page: Request) -> None:
        before = state.facts
        read = await self._read(state, last_copy(known), page)
        if source is Source.FETCHED:
            known = _decisive(known, now=self._clock.epoch(), policy=self._config.policy)
        state.learn(read._replace(known=known, source=source))
        try:
            self._step(state)
        except Exception:
            # A parser or a storage may be anybody's. Nobody could be told of this step.
            state.learn(before)
            raise

    async def _read(self, state: SiteState, copy: Copy | None, page: Request) -> Facts:
        """Return what the file of *copy* is read as: the site's own facts if it is the same."""
        if copy is None or standing_of(copy, self._config.policy).access is not Access.BY_RULES:
            return Facts()
        before = last_copy(state.known)
        if state.parser is not None and before is not None and _is_same(before, copy):
            return state.facts
        if copy.cut_bytes is not None:
            self._announcer.cut(state, copy.cut_bytes)
        self._announcer.odd(state, copy)
        kind, body = self._config.parser, copy.in_utf8
        build = partial(build_from_crawler, kind, self._crawler, body)
        parser: RobotParser = checked_parser(kind, guarded(kind, "from_crawler", build))
        if self._announcer.has_receivers(robots_parsed):
            await self._tell(state, parser, page)
        usage, watch = self._usage(copy, parser), None
        if self._examiner is not None:
            self._examiner.read(state.site, copy, parser, usage, page)
            watch = self._examiner.watch(parser)
        return Facts(parser=parser, watch=watch, usage=usage if self._config.usage.is_on else None)

    async def _tell(self, state: SiteState, parser: RobotParser, page: Request) -> None:
        told = self._crawler.signals.send_catch_log_async(
            signal=robots_parsed, robotparser=parser, request=page
        )
        try:
            await self._clock.within(self._config.timeout_secs, told)
        except LateError:
            self._announcer.not_heeded(state, self._config.timeout_secs)

    def _usage(self, copy: Copy, parser: object) -> UsageLines | None:
        if not (self._config.usage.is_on or self._announcer.has_receivers(signals.robots_read)):
            return None
        labels = self._config.usage.labels
        return usage_lines(copy.in_utf8, parser, labels=labels, digest=copy.digest)


def _look_secs(waited_secs: float, held_secs: float, chance: float) -> float:
    """Return when to look again whether another has done: the later, the longer it takes."""
    secs = min(max(waited_secs / 4, _LOOK_FIRST_SECS), _LOOK_LAST_SECS, held_secs)
    return secs * (0.75 + 0.5 * chance)


def _is_same(before: Copy, copy: Copy) -> bool:
    """Return whether what was read of *before* holds for *copy*; usage statements name a digest."""
    return (before.body, before.digest) == (copy.body, copy.digest)


def _met(stored: Known, known: Known | None, *, now: float) -> Known:
    """Return *stored*; this crawl has waited for a site that failed only since it met that."""
    match stored, known:
        case Failure(), Failure(since=since):
            return replace(stored, since=since)
        case Failure(), _:
            return replace(stored, since=now)
        case _:
            return stored


def _decisive(known: Known, *, now: float, policy: Policy) -> Known:
    """Return *known*, which decides for those who have waited for it, whatever its life.

    That may be over already: storing and parsing take their time.
    """
    match known:
        case Copy(expires=expires):
            return known if expires >= now + 1 else replace(known, expires=now + 1)
        case Failure(retry=retry) if now >= given_up_at(known, policy=policy):
            return replace(known, retry=max(retry, now + 1))
        case Failure():  # pragma: no branch
            return known

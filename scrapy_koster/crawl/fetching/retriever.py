"""Retrieves the robots.txt of sites: from the storage first, then from the site."""

from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from functools import partial

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.exceptions import IgnoreRequest
from scrapy.robotstxt import RobotParser
from scrapy.utils.misc import build_from_crawler
from twisted.python.failure import Failure

from scrapy_koster import signals
from scrapy_koster.archive.record import Attempt
from scrapy_koster.crawl.clock import Clock, LateError
from scrapy_koster.crawl.config import Config
from scrapy_koster.crawl.engine.compat import robots_parsed
from scrapy_koster.crawl.engine.private import CANCELLED, Engine
from scrapy_koster.crawl.fetching.archiver import Archiver
from scrapy_koster.crawl.fetching.fetcher import CLAIM_SPARE_SECS, Fetcher
from scrapy_koster.crawl.fetching.lookahead import FetchLimiter
from scrapy_koster.crawl.messages.announcer import Announcer
from scrapy_koster.crawl.pacing.pacer import Pacer
from scrapy_koster.crawl.robot import Robot
from scrapy_koster.crawl.site_records import SiteRecords
from scrapy_koster.crawl.states import Facts, SiteState, Waiting
from scrapy_koster.crawl.storage_calls import StorageCalls
from scrapy_koster.protocol.access import (
    Answer,
    CachedRobots,
    CacheEntry,
    FetchFailure,
    NoAnswer,
    after_answer,
    last_copy,
    status_of_copy,
)
from scrapy_koster.protocol.defect import checked_parser, guarded
from scrapy_koster.protocol.hazard import watch_of
from scrapy_koster.protocol.printable import error_text
from scrapy_koster.protocol.reading import Reading
from scrapy_koster.protocol.site import Site
from scrapy_koster.protocol.site_status import Ground
from scrapy_koster.protocol.step import Ask, Obey, Step, given_up_at
from scrapy_koster.protocol.usage_statements import UsageLines, usage_lines
from scrapy_koster.protocol.verdict import Source
from scrapy_koster.storage.latest import clamped_to_policy, is_newer

# The mean sleep before the next look at the storage, while another process has the claim.
_CLAIM_POLL_SECS = 0.4


@dataclass(kw_only=True, eq=False)
class Retriever:
    """Retrieves the robots.txt of sites. The caller begins one attempt at a time for a site.

    An attempt claims the site in the storage. The claim also returns the stored copy. If this copy
    does not decide, the attempt fetches the robots.txt. While another process has the claim, the
    attempt claims the site again and again. Before each claim, the attempt waits for the turn of
    the host (Crawl-delay).
    """

    crawler: Crawler
    config: Config
    announcer: Announcer
    clock: Clock
    engine: Engine
    chance: Callable[[], float]
    fetcher: Fetcher
    store: StorageCalls
    records: SiteRecords
    limiter: FetchLimiter
    pacer: Pacer
    archiver: Archiver | None
    robot: Robot

    def __post_init__(self) -> None:
        """Note when the crawl begins. Earlier failures of sites do not count."""
        self._began = self.clock.epoch()
        self._claim_secs = self.config.timeout_secs + CLAIM_SPARE_SECS

    async def close(self) -> None:
        """Close the archive and the storage, after the last attempt."""
        if self.archiver is not None:
            self.archiver.close()
        await self.store.close()

    async def attempt(
        self, state: SiteState, waiting: Waiting, is_awaited: Callable[[], object]
    ) -> None:
        """Learn the stored copy or failure of the site, or the result of a fetch.

        No fetch begins if the crawl closes, or if *is_awaited* returns False: no request waits.
        """
        try:
            await self._attempt(state, waiting, is_awaited)
        except CANCELLED:  # the crawl closes, or the loop ends
            raise
        except Exception as error:  # noqa: BLE001  # of a parser or a middleware of the project
            if not self.engine.is_closing:
                self.failed(state, error)
        finally:
            waiting.is_fetching = False

    def failed(self, state: SiteState, error: Exception) -> FetchFailure:
        """Record a failure of the site with *error*, a defect of a component of the crawl.

        KOSTER_UNAVAILABLE = "allow" does not open a site with this failure.
        """
        if not isinstance(error, IgnoreRequest):  # with which a middleware refuses on purpose
            self.announcer.failed(state, error)
        defect = NoAnswer(error_text(error), is_defect=True)
        known = self._after(defect, state.known, self.clock.epoch())
        self._learn(state, state.facts._replace(known=known, defect=Failure(error)))
        assert isinstance(state.known, FetchFailure)
        return state.known

    async def _attempt(
        self, state: SiteState, waiting: Waiting, is_awaited: Callable[[], object]
    ) -> None:
        began, lease_left, page = self.clock.epoch(), 0.0, waiting.next_template()
        is_new = True

        def goes_on() -> object:
            is_asking = isinstance(self.current_step(state), Ask)
            return is_asking and is_awaited() and not self.engine.is_closing

        while goes_on():
            if lease_left:
                await self.clock.sleep(_CLAIM_POLL_SECS * (0.5 + self.chance()))
            load = partial(self.take_last, state, page)
            try:
                async with self.pacer.turn(state, load), AsyncExitStack() as place:
                    await self.limiter.enter(place, state, is_new=is_new)
                    # Claim after the wait for the limiter, or the claim could expire meanwhile.
                    if goes_on():
                        lease_left = await self._claimed(state, page)
                    if not goes_on():
                        return
                    waiting.is_fetching = True
                    if not lease_left:
                        await self._fetch(state, page, began, place)
                        return
            except LateError:  # another visit to the host came first: claim again
                waiting.is_fetching = is_new = False
            finally:
                # Has an effect only if no result was stored, because ``put`` ends the claim.
                await self.store.release(state.site)

    async def _fetch(
        self, state: SiteState, page: Request, began: float, place: AsyncExitStack
    ) -> None:
        """Fetch the robots.txt, store the result, and replace the facts about the site."""
        stale = last_copy(state.known)

        async def load(url: str) -> None:
            to = self.records.state_of(url) if self.pacer.is_open else None
            if to is not None and to.known is None:
                await self.take_last(to, page)

        result = await self.fetcher.fetch(state, page, place, load)
        if self.engine.is_closing:
            return
        known = await self.pacer.on_fetched(state, self._after(result, state.known, began))
        if isinstance(known, FetchFailure) and self.clock.epoch() > began + self._claim_secs:
            # A redirect that waits for its turn can outlast the claim, and another process fetch.
            await self.take_last(state, page)
            if not isinstance(self.current_step(state), Ask):
                return
        if self.archiver is not None:
            now, exchanges = self.clock.epoch(), result.exchanges
            attempt = Attempt(state.site, known, Source.FETCHED.value, now, exchanges, stale)
            known = self.archiver.archive(attempt)
        self.announcer.log_retrieved(state.site, known, result)
        # A failure may be that of our proxy or component. The other processes ask for themselves.
        if not (isinstance(known, FetchFailure) and (result.proxy or known.is_defect)):
            await self.store.put(state.site, known)
        self._learn(state, await self._read(state, known, page))

    def _learn(self, state: SiteState, facts: Facts) -> None:
        """Learn *facts*, the result of a fetch.

        A copy, or a failure by which the site is given up, is valid for at least a second. Storing
        and parsing take time: a short life could be over before the waiting requests are decided.
        """
        now, known = self.clock.epoch(), facts.known
        if isinstance(known, CachedRobots):
            if known.expires < now + 1:
                known = replace(known, expires=now + 1)
        elif known and now >= given_up_at(known, policy=self.config.policy):
            known = replace(known, retry=max(known.retry, now + 1))
        self.records.learn(state, facts._replace(known=known, source=Source.FETCHED))

    async def _claimed(self, state: SiteState, page: Request) -> float:
        """Claim the site. Return the remaining seconds of another process's claim, or 0.

        A stored copy or failure that is newer than the known one is learnt. If the site was unknown
        before and is settled by this, nothing is claimed.
        """
        secs, is_first = self._claim_secs, state.known is None
        claimed = await self.store.claim(state.site, secs=secs, unless_known=is_first)
        await self._take_stored(state, claimed.known, page)
        if is_first and claimed.known is not None and isinstance(self.current_step(state), Ask):
            # The storage has a copy or failure, so the first call claimed nothing. But the copy or
            # failure does not settle the site.
            claimed = await self.store.claim(state.site, secs=secs, unless_known=False)
            await self._take_stored(state, claimed.known, page)
        if is_first and state.known is None and not claimed.lease_left:
            self.crawler.stats.inc_value("koster/storage/miss")
        return claimed.lease_left

    def current_step(self, state: SiteState) -> Step:
        """Return the step for a request to the site now."""
        return state.take_step(now=self.clock.epoch(), policy=self.config.policy)

    def _after(
        self, result: Answer | NoAnswer, known: CacheEntry | None, began: float
    ) -> CacheEntry:
        now, policy, chance = self.clock.epoch(), self.config.policy, self.chance()
        return after_answer(result, known, now=now, policy=policy, jitter=chance, began=began)

    async def take_last(self, state: SiteState, page: Request) -> None:
        """Learn the stored copy or failure of an unknown site, even if expired. Do not fetch."""
        await self._take_stored(state, await self.store.get(state.site), page)

    async def _take_stored(
        self, state: SiteState, stored: CacheEntry | None, page: Request
    ) -> None:
        """Learn *stored*, adapted to the settings, if it is newer than the known one.

        *stored* is ignored if None, or if of no use under the settings (``clamped_to_policy``). A
        failure from before this crawl is ignored, too: the crawl may have failed then, and not the
        site. Only its stale copy counts. A failure that another process of a fleet has just seen
        counts.
        """
        policy, now, before = self.config.policy, self.clock.epoch(), state.known
        known = clamped_to_policy(stored, policy=policy, max_bytes=self.config.max_bytes)
        if isinstance(known, FetchFailure) and known.asked <= self._began:
            known = known.stale
        if known is None or not (before is None or is_newer(known, before, now=now)):
            return
        if before is None:
            self.crawler.stats.inc_value("koster/storage/hit")
        source = self.store.source
        if self.archiver is not None:
            known = self.archiver.archive(Attempt(state.site, known, source.value, now))
        facts = await self._read(state, known, page)
        self.records.learn(state, facts._replace(source=source))
        if not isinstance(step := self.current_step(state), Ask):
            self.announcer.log_retrieved(state.site, step.copy if isinstance(step, Obey) else known)

    async def _read(self, state: SiteState, known: CacheEntry, page: Request) -> Facts:
        """Return the facts in the file of *known*. The file is parsed unless it is in memory.

        Without rules that decide, for example after a 404, *known* is the only fact.
        """
        copy = last_copy(known)
        if copy is None or status_of_copy(copy, self.config.policy).ground is not Ground.RULE:
            return Facts(known)
        copy, facts = self.records.shared(copy)
        known = replace(known, stale=copy) if isinstance(known, FetchFailure) else copy
        if state.digest != copy.digest:
            self.announcer.odd(state, copy)
        elif facts is not None and state.facts.parser is facts.parser:
            return facts._replace(known=known, defect=state.facts.defect)
        kind, body = self.config.parser, copy.in_utf8
        if facts is None:
            build = partial(build_from_crawler, kind, self.crawler, body)
            parser: RobotParser = checked_parser(kind, guarded(kind, "from_crawler", build))
            watch = watch_of(body, parser)
        else:
            assert facts.parser is not None
            parser, watch = facts.parser, facts.watch
        if self.announcer.has_receivers(robots_parsed):
            await self.crawler.signals.send_catch_log_async(
                signal=robots_parsed, robotparser=parser, request=page
            )
        usage = None
        is_shown = self.announcer.has_receivers(signals.robots_read)
        if self.config.usage.is_on or is_shown:
            usage = usage_lines(body, parser, labels=self.config.usage.labels, digest=copy.digest)
        if is_shown:
            self._show(state.site, copy, parser, usage)
        usage = usage if self.config.usage.is_on else None
        return Facts(known, parser=parser, watch=watch, usage=usage)

    def _show(
        self, site: Site, copy: CachedRobots, parser: RobotParser, usage: UsageLines | None
    ) -> None:
        """Send the record of the crawl's robot to the receivers of ``signals.robots_read``."""
        record, robot = None, self.robot.name
        if isinstance(parser, Reading):
            record = guarded(parser, "record", lambda: parser.record(robot))
        statements = () if usage is None else usage.listed(robot)
        named = {"site": site, "copy": copy, "record": record, "statements": statements}
        self.announcer.send(signals.robots_read, **named)

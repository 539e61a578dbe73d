"""The downloader middleware, which decides about every request."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from scrapy import Request, signals
from scrapy.exceptions import NotConfigured

from scrapy_koster.crawl.assembly import assembly_of
from scrapy_koster.crawl.components.enabled import check_enabled
from scrapy_koster.crawl.config import checked_robot
from scrapy_koster.crawl.engine.notconfigured import not_disabled
from scrapy_koster.crawl.exceptions import RobotsForbidden, unavailable
from scrapy_koster.crawl.fetching.examiner import checked_watch
from scrapy_koster.crawl.messages.log import Log
from scrapy_koster.crawl.replaying.elsewhere import Elsewhere, may_end_elsewhere
from scrapy_koster.crawl.replaying.replay import Replay
from scrapy_koster.crawl.sending import Sending
from scrapy_koster.crawl.sites import SiteState
from scrapy_koster.protocol.defect import ParserDefectError
from scrapy_koster.protocol.path import is_robots_txt
from scrapy_koster.protocol.rewriting import is_plain
from scrapy_koster.protocol.site import Site, site_of
from scrapy_koster.protocol.standing import Ground
from scrapy_koster.protocol.step import Obey, Refuse, Step, waits
from scrapy_koster.protocol.verdict import forbidden_spelling, permission, verdict_on

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from scrapy.crawler import Crawler
    from scrapy.http import Response
    from typing_extensions import Self

    from scrapy_koster.crawl.assembly import Assembly
    from scrapy_koster.protocol.delay import Delay
    from scrapy_koster.protocol.verdict import Verdict


class KosterMiddleware:
    """Allows or refuses each request by the robots.txt of its site.

    The errback of a refused request gets RobotsForbidden, or RobotsUnavailable if the robots.txt
    could not be retrieved.
    """

    def __init__(self, crawler: Crawler, parts: Assembly) -> None:
        """See ``from_crawler``, which has the parts built."""
        self._log = Log(__name__, crawler)
        self._epoch = parts.clock.epoch
        self._config = parts.config
        self._stats = parts.stats
        self._keeper = parts.keeper
        self._waiting = parts.waiting
        self._replay = parts.replay
        self._announcer = parts.announcer
        self._counts = parts.counts
        self._parts = parts
        self._stated = parts.stated
        self._is_counting = parts.counts.is_on or parts.overridden.is_on
        # Most requests are to the site of the one before.
        self._last = SiteState(Site("http", "", 80))
        self._origin = self._last.origin
        self._robot = parts.robot
        self._name = parts.robot.name
        if may_end_elsewhere(crawler):  # else Scrapy need not ask for each response
            elsewhere = _elsewhere(crawler, parts, self._decide)
            # A subclass may have one of its own.
            own = getattr(self, "process_response", None)
            self.process_response = elsewhere.before(own)
        self._sending = _sending(crawler, parts, self._decide)
        self._pacer = parts.pacer
        self._is_paced = False
        self._has_told_of_parser = False
        check_enabled(crawler, parts.config)
        crawler.signals.connect(self._spider_opened, signal=signals.spider_opened)
        crawler.signals.connect(self._spider_closed, signal=signals.spider_closed)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Create it. Raises ValueError, which stops the crawl, if a setting is invalid."""
        if not crawler.settings.getbool("ROBOTSTXT_OBEY"):
            raise NotConfigured
        with not_disabled(cls.__name__):
            return cls(crawler, assembly_of(crawler))

    def process_request(self, request: Request) -> Coroutine[None, None, Response | None] | None:
        """Allow or refuse *request*, after waiting for its robots.txt if necessary."""
        meta = request.meta
        if meta.get("dont_obey_robotstxt"):
            return None
        url = request.url
        path = url.removeprefix(self._origin)
        if path != url:
            state = self._last
        else:
            found = self._keeper.state_of(url)
            if found is None:
                return None
            state = self._last = found
            self._origin = state.origin
            path = url.removeprefix(self._origin)
        # Not "in request.headers", which folds the case of the name each time.
        if "robotstxt_user_agent" in meta or dict.__contains__(request.headers, b"User-Agent"):
            robot = self._robot.name_of(request)
        else:
            robot = self._name
        if self._epoch() >= state.until_epoch:
            return self._wait(request, robot)
        if self._is_paced and self._pacer.concerns(state, robot):
            return self._wait(request, robot)
        allowed = state.allows(url, robot)
        if (
            not (allowed and is_plain(path))
            or "verbatim_url" in meta
            or state.facts.usage is not None
        ):
            if isinstance(state.step, Refuse) and self._replay.is_on:
                return self._wait(request, robot)
            self._decide(request, state, robot, state.step, None if allowed else url)
        elif self._is_counting or state.facts.watch is not None or robot is not self._name:
            self._passes(request, state, robot)
        return None

    def process_exception(
        self,
        request: Request,  # noqa: ARG002  # Scrapy gives it by name
        exception: Exception,
    ) -> None:
        """Log once that the parser returned a wrong type. The errback gets the error, too."""
        self._parts.finish.ended_with(exception)
        if isinstance(exception, ParserDefectError) and not self._has_told_of_parser:
            self._has_told_of_parser = True
            self._log.defect(
                "KOSTER_PARSER = %(parser)s has a defect. Requests whose robots.txt it cannot"
                " answer for are not sent, and this is not logged again",
                exception,
                parser=self._config.parser.__qualname__,
            )

    async def _wait(self, request: Request, robot: str) -> Response | None:
        state = self._keeper.state_of(request.url)
        if state is None:
            return None
        if is_robots_txt(request.url):
            await self._take_turn(request, state, robot, state.step)
            self._counts.allowed(state, request.url, robot)
            return None
        if isinstance(self._replay, Replay) and (page := self._replay.answer(request)):
            last, step = await self._replay.last_known(state, request)
            self._decide(request, last, robot, step)
            return page
        if failure := self._waiting.given_up.pop(request, None):
            step = Refuse(failure, 0.0)
        elif self._epoch() < state.until_epoch:
            step = state.step
        else:
            step = await self._keeper.wait(state, request)
        step = await self._take_turn(request, state, robot, step)
        self._decide(request, state, robot, step)
        return None

    async def _take_turn(self, request: Request, state: SiteState, robot: str, step: Step) -> Step:
        """Wait in place until *request* has the turn of its host; return the step then."""
        pacer = self._pacer
        if not self._is_paced:
            return step
        while not isinstance(step, Refuse) and (host := pacer.held(request, state, robot)):
            with self._keeper.in_place.waiting(request, gives_place=True):
                if not await pacer.turn(state, host, request):
                    return self._keeper.closing()
            if self._epoch() >= state.until_epoch and not is_robots_txt(request.url):
                step = await self._keeper.wait(state, request)
        return step

    def _decide(
        self,
        request: Request,
        state: SiteState,
        robot: str,
        step: Step,
        forbidden: str | None = None,
    ) -> None:
        """Let *request* pass or refuse it; *forbidden* is a spelling that is known to be."""
        verdict = self._verdict(request, state, robot, step, forbidden)
        if verdict is None:
            self._passes(request, state, robot)
        else:
            self._refuse(request, verdict, state, step)

    def _verdict(
        self,
        request: Request,
        state: SiteState,
        robot: str,
        step: Step,
        forbidden: str | None = None,
    ) -> Verdict | None:
        """Return why *request* is refused, None if it is not."""
        assert not waits(step)  # it has been waited for
        policy = self._config.policy
        overrides = policy.overrides.of(state.site, self._epoch())
        if forbidden is None:
            allows = permission(step, state.parser, policy, overrides)
            forbidden = forbidden_spelling(request.url, robot, allows)
        too_long = None if forbidden else self._too_long(request, state, robot)
        stated = None
        if forbidden is None and too_long is None:
            stated = self._stated.look(request, state, robot, step)
            if stated is None:
                return None
        return verdict_on(
            request.url,
            robot,
            site=state.site,
            step=step,
            parser=state.parser,
            source=state.source,
            policy=policy,
            forbidden=forbidden,
            too_long=too_long,
            overrides=overrides,
            stated=stated,
        )

    def _too_long(self, request: Request, state: SiteState, robot: str) -> Delay | None:
        return self._pacer.too_long(request, state, robot) if self._is_paced else None

    def _passes(self, request: Request, state: SiteState, robot: str) -> None:
        """Count a page that passes, and whether RFC 9309 forbids it: once."""
        by_rules = not (
            self._parts.overridden.is_on and self._parts.overridden.passes(request, state, robot)
        )
        self._counts.allowed(state, request.url, robot, by_rules=by_rules)
        if not by_rules:
            return
        is_known = robot == self._name or self._replay.is_on
        watch = state.facts.watch if is_known else checked_watch(state.parser, robot)
        if watch is None or "retry_times" in request.meta or not isinstance(state.step, Obey):
            return
        path = request.url.removeprefix(state.origin)
        plain = is_plain(path) and "verbatim_url" not in request.meta
        if hazard := watch.hazard(request.url, is_plain=plain):
            self._announcer.hazard_met(state, request, robot, hazard)

    def _refuse(self, request: Request, verdict: Verdict, state: SiteState, step: Step) -> None:
        if self._config.filter_links:
            self._parts.seen.is_new(request.url)  # a link to it is not counted again
        self._count(request, verdict)
        if self._config.dry_run:
            self._log.debug("%(request)s would be %(verdict)s", request=request, verdict=verdict)
            self._stats.would_be_forbidden()
            request.meta["koster_verdict"] = verdict
            return
        self._log.debug("%(request)s is %(verdict)s", request=request, verdict=verdict)
        self._stats.forbidden(verdict.ground)
        if verdict.ground is Ground.UNAVAILABLE:
            if self._config.policy.defers:
                self._stats.request_dropped()
            is_by_hand = self._parts.engine.is_by_hand
            raise unavailable(verdict, step, state.facts.defect, is_by_hand=is_by_hand)
        raise RobotsForbidden(verdict)

    def _count(self, request: Request, verdict: Verdict) -> None:
        if verdict.ground is Ground.DELAY:
            self._stats.delay_refused()
        elif verdict.ground is Ground.USAGE:
            self._stats.usage_refused()
        self._counts.refused(request, verdict)

    # What is known, for whoever asks before a request is made.

    def is_allowed(self, request: Request | str, robot: str | None = None) -> bool | None:
        """Return whether a *request* or URL may be fetched now; answers from memory.

        Returns None if the robots.txt is not in memory or could not be retrieved. *robot* is a
        name token or a User-Agent header; the default is that of the request. Raises ValueError if
        the URL or the robot is invalid, and TypeError if KOSTER_PARSER has a defect.
        """
        if isinstance(request, str):
            request = Request(request)
        url = request.url
        if request.meta.get("dont_obey_robotstxt") or site_of(url) is None or is_robots_txt(url):
            return True
        state = self._settled(url)
        if state is None:
            return None
        name = checked_robot(robot, "robot") or self._robot.name_of(request)
        return self._verdict(request, state, name, state.step) is None

    async def sitemaps(self, url: str) -> list[str]:
        """Return the URLs of the sitemaps in the robots.txt of the site of *url*.

        Uses the copy that the crawl obeys, and fetches it if necessary. Raises RobotsUnavailable
        if the robots.txt cannot be retrieved, and ValueError if *url* is not an http or https URL.
        Logs a warning if the file was cut.
        """
        return await self._parts.sitemaps.of(url)

    def refusal(self, request: Request) -> Verdict | None:
        """Return the verdict on a *request* that is known to be forbidden, None for any other."""
        if request.meta.get("dont_obey_robotstxt") or is_robots_txt(request.url):
            return None
        state = self._settled(request.url)
        if state is None:
            return None
        return self._verdict(request, state, self._robot.name_of(request), state.step)

    def filtered(self, request: Request, verdict: Verdict) -> None:
        """Count a request that was dropped before it was queued; each URL once as refused."""
        self._stats.link_filtered()
        self._log.debug("Not queued: %(request)s is %(verdict)s", request=request, verdict=verdict)
        if self._parts.seen.is_new(request.url):
            self._count(request, verdict)
            self._stats.forbidden(verdict.ground)

    def _settled(self, url: str) -> SiteState | None:
        """Return the state of the site of *url* if its robots.txt is known and fresh."""
        state = self._keeper.in_memory(url)
        if state is None:
            return None
        step = self._keeper.current_step(state)
        return None if waits(step) or isinstance(step, Refuse) else state

    # The start and the end of the crawl.

    def _spider_opened(self) -> None:
        self._announcer.begin(self._name)
        if not self._replay.is_on:
            self._keeper.prepare()
        self._parts.overridden.warn_of_expired()
        if not self._config.pace.obeys or self._replay.is_on:
            return
        if self._waiting.is_open:
            self._is_paced = True
            if self._sending is not None:  # its look comes after the wait for a turn
                self._sending.begin()
            waiting = partial(self._keeper.in_place.waiting, gives_place=True)
            self._pacer.open(waiting, self._refuse_closing)
            return
        self._log.warning(
            'KOSTER_CRAWL_DELAY = "%(choice)s" has no effect without DeferringScheduler. Set'
            ' SCHEDULER = "scrapy_koster.DeferringScheduler", or use the add-on.',
            choice=self._config.pace.choice.value,
        )

    def _refuse_closing(self, request: Request) -> None:
        """Refuse *request*, which waits to be sent when the crawl closes."""
        state = self._keeper.state_of(request.url)
        assert state is not None  # its host has a turn
        self._decide(request, state, self._robot.decided_by(request), self._keeper.closing())

    async def _spider_closed(self) -> None:
        await self._keeper.close()
        await self._replay.close()
        self._announcer.sum_up()


def _elsewhere(crawler: Crawler, parts: Assembly, decide: Callable[..., None]) -> Elsewhere:
    log = Log(Elsewhere.__module__, crawler)
    return Elsewhere(
        log,
        parts.clock,
        keeper=parts.keeper,
        robot=parts.robot,
        replay=parts.replay,
        stated=parts.stated,
        decide=decide,
    )


def _sending(crawler: Crawler, parts: Assembly, decide: Callable[..., None]) -> Sending | None:
    if parts.config.dry_run:  # which stops nothing
        return None
    around, robot = parts.engine.around_downloads, parts.robot
    return Sending(
        crawler,
        parts.clock,
        around,
        keeper=parts.keeper,
        robot=robot,
        stated=parts.stated,
        decide=decide,
    )

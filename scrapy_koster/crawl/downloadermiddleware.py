"""The downloader middleware: every request meets the draft here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy import signals
from scrapy.downloadermiddlewares.robotstxt import RobotsTxtMiddleware
from scrapy.exceptions import NotConfigured
from scrapy.utils.misc import load_object

from scrapy_koster.crawl.config import Config
from scrapy_koster.crawl.engine.compat import robots_parsed
from scrapy_koster.crawl.engine.notconfigured import not_disabled
from scrapy_koster.crawl.exceptions import RobotsForbidden, RobotsUnavailable
from scrapy_koster.crawl.keeping.keeper import Keeper
from scrapy_koster.crawl.messages.log import Log
from scrapy_koster.crawl.messages.stats import Stats
from scrapy_koster.crawl.replaying.elsewhere import Elsewhere, may_end_elsewhere
from scrapy_koster.crawl.replaying.replay import Replay
from scrapy_koster.crawl.robot import Robot
from scrapy_koster.crawl.sites import SiteState
from scrapy_koster.parsers.koster import KosterRobotParser
from scrapy_koster.protocol.access import Failure
from scrapy_koster.protocol.path import is_robots_txt
from scrapy_koster.protocol.rewriting import is_plain, sent_as
from scrapy_koster.protocol.site import Site, site_of
from scrapy_koster.protocol.standing import Ground
from scrapy_koster.protocol.step import Ask, Obey, Refuse, Settled, Step, waits
from scrapy_koster.protocol.verdict import forbidden_spelling, permission, verdict_on

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.http import Response
    from scrapy.robotstxt import RobotParser
    from typing_extensions import Self

    from scrapy_koster.crawl.pacing.pacer import Pacer
    from scrapy_koster.protocol.delay import Delay
    from scrapy_koster.protocol.verdict import Verdict


class KosterMiddleware:
    """Lets a request pass, or refuses it, as its site's robots.txt says.

    A refused request ends with RobotsForbidden in its errback, or with
    RobotsUnavailable where the robots.txt could not be retrieved.
    """

    def __init__(self, crawler: Crawler, config: Config, stats: Stats, keeper: Keeper) -> None:
        """See ``from_crawler``, which makes what it is given."""
        self._crawler = crawler
        self._log = Log(__name__, crawler)
        self._config = config
        self._stats = stats
        self.keeper = keeper
        self._clock = keeper.clock
        self._replay = Replay.from_crawler(crawler, config, stats)
        self._counts = keeper.announcer.counts
        self._is_counting = self._counts.is_on
        # Most requests are to the site of the one before.
        self._last = SiteState(Site("http", "", 80))
        self._origin = self._last.origin
        self._robot = robot = Robot(crawler, config.robot)
        self._name = robot.name
        if may_end_elsewhere(crawler):  # else Scrapy need not ask for each response
            elsewhere = Elsewhere(crawler, keeper, robot, self._replay, self._decide)
            self.process_response = elsewhere.process_response
        self._pacer: Pacer | None = None
        if config.pace.obeys:
            keeper.keep_delays(config, stats, self._robot)
        _check_parser(crawler, config, self._log)
        _check_not_twice(crawler, self._log)
        crawler.signals.connect(self._robots_parsed, signal=robots_parsed)
        crawler.signals.connect(self._spider_opened, signal=signals.spider_opened)
        crawler.signals.connect(self._spider_closed, signal=signals.spider_closed)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Read the settings; raises ValueError, which stops the crawl, if one is wrong."""
        if not crawler.settings.getbool("ROBOTSTXT_OBEY"):
            raise NotConfigured
        with not_disabled(cls.__name__):
            config, stats = Config.from_crawler(crawler), Stats(crawler.stats)
            return cls(crawler, config, stats, Keeper.from_crawler(crawler, config, stats))

    @property
    def replays(self) -> bool:
        """Whether pages come out of the HTTP cache alone, and sites need not be asked."""
        return self._replay is not None and self._replay.cache is not None

    def process_request(self, request: Request) -> Coroutine[None, None, Response | None] | None:
        """Refuse *request*, let it pass, or have it wait until that is known."""
        meta = request.meta
        if meta.get("dont_obey_robotstxt"):
            return None
        url = request.url
        path = url.removeprefix(self._origin)
        if path != url:
            state = self._last
        else:
            found = self.keeper.state_of(url)
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
        if self._clock() >= state.until:
            return self._wait(request, robot)
        if self._pacer is not None and self._pacer.concerns(state, robot):
            return self._wait(request, robot)
        allowed = state.allows(url, robot)
        if not (allowed and is_plain(path)) or "verbatim_url" in meta:
            if self._replay is not None and isinstance(state.step, Refuse):
                return self._wait(request, robot)
            self._decide(request, state, robot, state.step, None if allowed else url)
        elif self._is_counting or state.hazard is not None:
            self._passes(request, state, robot)
        return None

    async def _wait(self, request: Request, robot: str) -> Response | None:
        state = self.keeper.state_of(request.url)
        if state is None:
            return None
        if is_robots_txt(request.url):
            await self._take_turn(request, state, robot, state.step)
            self._counts.allowed(state, request.url, robot)
            return None
        if self._replay is not None and (page := self._replay.answer(request)) is not None:
            last, step = await self._replay.last_known(state, request)
            self._decide(request, last, robot, step)
            return page
        if failure := self.keeper.given_up.pop(request, None):
            step = Refuse(failure, 0.0)
        elif self._clock() < state.until:
            step = state.step
        else:
            step = await self.keeper.wait(state, request)
        step = await self._take_turn(request, state, robot, step)
        self._decide(request, state, robot, step)
        return None

    async def _take_turn(self, request: Request, state: SiteState, robot: str, step: Step) -> Step:
        """Wait in place until *request* has the turn of its host; return the step then."""
        pacer = self._pacer
        if pacer is None:
            return step
        while not isinstance(step, Refuse) and (host := pacer.held(request, state, robot)):
            with self.keeper.in_place.waiting(request, gives_place=True):
                if not await pacer.turn(state, host, request):
                    return Ask(None)  # the crawl is closing
            if self._clock() >= state.until and not is_robots_txt(request.url):
                step = await self.keeper.wait(state, request)
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
        settled = _settled(step, self._clock())
        policy = self._config.policy
        if forbidden is None:
            allows = permission(settled, state.parser, policy)
            forbidden = forbidden_spelling(request.url, robot, allows)
        too_long = None if forbidden else self._too_long(request, state, robot)
        if forbidden is None and too_long is None:
            self._passes(request, state, robot)
            return
        verdict = verdict_on(
            request.url,
            robot,
            site=state.site,
            step=settled,
            parser=state.parser,
            source=state.source,
            policy=policy,
            forbidden=forbidden,
            too_long=too_long,
        )
        self._refuse(request, verdict)

    def _too_long(self, request: Request, state: SiteState, robot: str) -> Delay | None:
        return self._pacer.too_long(request, state, robot) if self._pacer else None

    def _passes(self, request: Request, state: SiteState, robot: str) -> None:
        """Count a page that passes, and whether RFC 9309 forbids it: once (C6)."""
        self._counts.allowed(state, request.url, robot)
        rfc9309 = state.hazard
        if rfc9309 is None or "retry_times" in request.meta or not isinstance(state.step, Obey):
            return
        if not all(rfc9309.allowed(url, robot) for url in sent_as(request.url)):
            self._stats.hazard_met()
            self.keeper.announcer.summary.hazard_met(request.url)

    def _refuse(self, request: Request, verdict: Verdict) -> None:
        if verdict.ground is Ground.DELAY:
            self._stats.delay_refused()
        self._counts.refused(request, verdict)
        if self._config.dry_run:
            self._log.debug("%(request)s would be %(verdict)s", request=request, verdict=verdict)
            self._stats.would_be_forbidden()
            request.meta["koster_verdict"] = verdict
            return
        self._log.debug("%(request)s is %(verdict)s", request=request, verdict=verdict)
        self._stats.forbidden(verdict.ground)
        if verdict.ground is Ground.UNAVAILABLE:
            self._stats.request_dropped()
            raise RobotsUnavailable(verdict)
        raise RobotsForbidden(verdict)

    # What is obeyed.

    def _robots_parsed(self, robotparser: RobotParser, request: Request) -> None:
        """Count where the draft may read a file otherwise than it was meant (C6)."""
        if not isinstance(robotparser, KosterRobotParser):
            return
        try:
            robot = self._robot.name_of(request)
        except ValueError:  # the request's errback is told
            robot = self._robot.name
        self._counts.parsed(str(site_of(request.url)), robotparser.record(robot))
        if robotparser.watch(robot):
            self.keeper.announcer.wildcards_met(str(site_of(request.url)))

    # The start and the end of the crawl.

    def _spider_opened(self) -> None:
        pacer = self.keeper.pacer
        if pacer is None or self.replays:
            return
        if self.keeper.on_change is not None:
            self._pacer = pacer
            pacer.open()
            return
        self._log.warning(
            'KOSTER_CRAWL_DELAY = "%(choice)s" has no effect: requests have nowhere to wait. Set'
            ' SCHEDULER = "scrapy_koster.DeferringScheduler", or use the add-on.',
            choice=self._config.pace.choice.value,
        )

    async def _spider_closed(self) -> None:
        await self.keeper.close()
        if self._replay is not None:
            await self._replay.close()
        self.keeper.announcer.sum_up()


def _settled(step: Step, now: float) -> Settled:
    """Return *step*; of a site that is not known yet, that the crawl is closing."""
    if not waits(step):
        return step
    return Refuse(Failure("the crawl is closing", 0, now, now, now, None), now)


def _check_parser(crawler: Crawler, config: Config, log: Log) -> None:
    config.parser.from_crawler(crawler, b"")
    settings = crawler.settings
    if settings.getpriority("ROBOTSTXT_PARSER") and settings.get("KOSTER_PARSER") is None:
        log.warning(
            "ROBOTSTXT_PARSER = %(parser)s is not used: files are read by the draft. To have"
            " them read by yours set KOSTER_PARSER to it. If the draft is meant, remove it.",
            parser=repr(settings["ROBOTSTXT_PARSER"]),
        )


def _check_not_twice(crawler: Crawler, log: Log) -> None:
    enabled = crawler.settings.get_component_priority_dict_with_base("DOWNLOADER_MIDDLEWARES")
    if any(load_object(path) is RobotsTxtMiddleware for path in enabled):
        log.warning(
            "Scrapy's RobotsTxtMiddleware is enabled too: robots.txt is fetched and"
            " read twice, by two standards. Switch it off with DOWNLOADER_MIDDLEWARES"
            ' = {"scrapy.downloadermiddlewares.robotstxt.RobotsTxtMiddleware": None,'
            " ...}, or use the add-on."
        )

"""The downloader middleware, which allows or refuses requests."""

from scrapy import Request, signals
from scrapy.crawler import Crawler
from scrapy.downloadermiddlewares.robotstxt import RobotsTxtMiddleware
from scrapy.exceptions import CloseSpider
from scrapy.http import Response
from scrapy.utils.misc import load_object

from scrapy_koster.crawl.components.component import Component
from scrapy_koster.crawl.components.spidermiddleware import LinkFilterMiddleware
from scrapy_koster.crawl.components.usagemiddleware import UsageMiddleware
from scrapy_koster.crawl.config import checked_robot
from scrapy_koster.crawl.engine.private import is_for_robots_txt
from scrapy_koster.crawl.exceptions import RobotsForbidden, RobotsUnavailable
from scrapy_koster.crawl.messages.log import Log
from scrapy_koster.crawl.states import SiteState
from scrapy_koster.protocol.access import FetchFailure, last_copy, why_not_obeyed
from scrapy_koster.protocol.defect import ParserDefectError, checked_parser
from scrapy_koster.protocol.path import is_robots_txt
from scrapy_koster.protocol.site import site_of
from scrapy_koster.protocol.sitemap import sitemap_urls_in
from scrapy_koster.protocol.step import Obey, Pass, Refuse, Settled, Step, closed


class KosterMiddleware(Component):
    """Allows or refuses requests by the robots.txt of their sites.

    The errback of a refused request gets RobotsForbidden, or RobotsUnavailable if the robots.txt
    could not be retrieved. If every request was forbidden, the finish reason is
    ``robotstxt_forbidden``, or ``robotstxt_unavailable`` with a RobotsUnavailable among them.
    """

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        self._log = Log(__name__, crawler)
        self._sites = self._parts.sites
        self._check_settings(crawler)
        if not self._config.dry_run:  # a dry run stops no request
            self._parts.engine.hooks.check = self.enforcement.check_before_sending
        self._is_from_cache = all(
            map(crawler.settings.getbool, ("HTTPCACHE_ENABLED", "HTTPCACHE_IGNORE_MISSING"))
        )
        self._results: set[type] = set()
        """The types of responses and errors of requests. Response, too, for an allowed request."""
        crawler.signals.connect(self._spider_opened, signal=signals.spider_opened)
        crawler.signals.connect(self._spider_error, signal=signals.spider_error)
        crawler.signals.connect(self._spider_idle, signal=signals.spider_idle)
        crawler.signals.connect(self._spider_closed, signal=signals.spider_closed)

    async def process_request(self, request: Request) -> None:
        """Allow or refuse *request*, after waiting for its robots.txt if necessary.

        For a refused request, raises an error of ``Enforcement.enforce``.
        """
        if request.meta.get("dont_obey_robotstxt"):
            if not is_for_robots_txt(request):
                self._sites.busy()
                self.enforcement.note_exempt(request)
            return
        state = self._sites.records.state_of(request.url)
        if state is None:
            return
        robot = self._parts.robot.name_of(request)
        step: Step | None = self.enforcement.refusal_of_host(request, state)
        if step is None and self.replays:
            step = await self._last_step(state, request)
        elif step is None:
            step = await self._wait(request, state, robot)
        self.enforcement.enforce(request, state, robot, step)
        if self.replays:  # a request that is sent all the same is decided then
            self.enforcement.decided.pop(request, None)
        self._results.add(Response)  # even if another middleware drops it

    async def _wait(self, request: Request, state: SiteState, robot: str) -> Step:
        """Return the step for *request*, after a wait for the site and for the turn of its host."""
        pacer, is_page = self._parts.pacer, not is_robots_txt(request.url)
        failure = self._parts.parked.given_up.pop(request, None)
        while True:
            step = state.step
            if is_page and self._parts.clock.epoch() >= state.until_epoch:
                if failure is not None:
                    return Refuse(failure, 0.0)
                step = await self._sites.wait(state, request)
            if isinstance(step, Refuse) or not pacer.is_open:
                return step
            if (host := pacer.blocking_host(request, state, robot)) is None:
                return step
            if not await pacer.wait(host, request):
                return closed(self._parts.clock.epoch())

    async def process_response(self, request: Request, response: Response) -> Response:
        """Return *response*, or refuse it by the URL that it comes from (``check_final_url``).

        The URL differs from the URL of *request* if the download handler follows redirects. If
        necessary, the robots.txt of the final site is fetched.
        """
        self._ended(request, response)
        url, asked = response.url, request.url.partition("#")[0]  # handlers drop a fragment
        if url.partition("#")[0] != asked and not request.meta.get("dont_obey_robotstxt"):
            state = self._sites.records.state_of(url)
            if state is not None and not is_robots_txt(url):
                is_cached = self.replays and "cached" in response.flags
                last = self._last_step if is_cached else self._sites.wait
                step = await last(state, request)
                self.enforcement.check_final_url(request, url, state, step)
        return response

    def process_exception(self, request: Request, exception: Exception) -> None:
        """Note *exception* for the finish reason, and log a defect of KOSTER_PARSER once.

        The errback of *request* gets *exception*.
        """
        self._ended(request, exception)
        if isinstance(exception, ParserDefectError) and self._log.is_first("defect"):
            self._log.defect(
                "KOSTER_PARSER = %(parser)s has a defect. Requests whose robots.txt it cannot"
                " answer for are not sent, and this is not logged again",
                exception,
                parser=self._config.parser.__qualname__,
            )

    def _ended(self, request: Request, result: Response | Exception) -> None:
        if is_for_robots_txt(request):
            self._parts.robot.sends(request.headers)
        else:
            self._results.add(type(result))
            if isinstance(result, Exception) or "cached" not in result.flags:
                self._parts.robot.compare(request, is_sent=isinstance(result, Response))

    # Crawls from the HTTP cache.

    @property
    def replays(self) -> bool:
        """Whether pages come from Scrapy's HTTP cache (HTTPCACHE_IGNORE_MISSING).

        No robots.txt is fetched for them: the last copy decides, even if expired. A request that
        goes to the network all the same, for example with ``dont_cache``, is decided when it is
        sent, as in another crawl. So this needs our downloader.
        """
        return self._is_from_cache and self._parts.engine.hooks.are_called

    async def _last_step(self, state: SiteState, request: Request) -> Settled:
        """Return the step by the last copy, in memory or stored. Without a copy, it is Pass."""
        if self._log.is_first("replay"):
            self._log.info(
                "HTTPCACHE_IGNORE_MISSING is set: pages come from the HTTP cache, and no robots.txt"
                " is fetched. The last stored copy decides, even if it has expired. Pages of a site"
                " without a copy are allowed"
            )
        if state.known is None:
            await self._sites.retriever.take_last(state, request)
        now, copy = self._parts.clock.epoch(), last_copy(state.known)
        if copy is not None and not why_not_obeyed(copy, self._config.policy):
            step: Obey | Pass = Obey(copy, now)
        else:
            why = "HTTPCACHE_IGNORE_MISSING: no site is asked"
            step = Pass(FetchFailure(why, 1, since=now, asked=now, retry=now, stale=None), now)
        self._parts.announcer.replays(state, step)
        return step

    # Methods for spiders.

    def is_allowed(self, request: Request | str, robot: str | None = None) -> bool | None:
        """Return whether *request*, a request or a URL, may be fetched now.

        Only a robots.txt in memory is used. Returns None if the robots.txt is not in memory, has
        expired, or could not be retrieved (True with KOSTER_UNAVAILABLE = "allow"). *robot* is a
        name token or a User-Agent header; the default is the name for *request*.

        Raises ValueError if the URL or the robot is invalid, and TypeError if KOSTER_PARSER has a
        defect.
        """
        if isinstance(request, str):
            request = Request(request)
        url = request.url
        if request.meta.get("dont_obey_robotstxt") or site_of(url) is None or is_robots_txt(url):
            return True
        decision = self.enforcement.known_decision(request, checked_robot(robot, "robot"))
        return None if decision is None else decision.allowed

    async def sitemaps(self, url: str) -> list[str]:
        """Return the URLs of the sitemaps in the robots.txt of the site of *url*.

        Uses the copy of the crawl, and fetches the file if necessary. Raises RobotsUnavailable
        if the robots.txt cannot be retrieved, and ValueError if *url* is not an http or https URL.
        """
        state = self._sites.records.state_of(url)
        if state is None:
            raise ValueError(f"Invalid URL {url}: use an http or https URL, which has a robots.txt")
        request = Request(f"{state.site}/")
        step = await (self._last_step if self.replays else self._sites.wait)(state, request)
        if not isinstance(step, Obey):  # the sitemaps are unknown, whatever KOSTER_UNAVAILABLE is
            refusal = Refuse(step.failure, 0.0)
            decision = self.enforcement.decide(request, state, self._parts.robot.name, refusal)
            raise RobotsUnavailable(decision.verdict())
        return sitemap_urls_in(step.copy.body, step.copy.url)

    # The start and the end of the crawl.

    def _check_settings(self, crawler: Crawler) -> None:
        """Raise an error if KOSTER_PARSER has a defect, or a setting needs a missing middleware.

        Log a warning if ROBOTSTXT_PARSER has no effect, or if Scrapy's own middleware is enabled.
        """
        parser, settings = self._config.parser, crawler.settings
        checked_parser(parser, parser.from_crawler(crawler, b""))
        if settings.getpriority("ROBOTSTXT_PARSER") and not self._config.parser_is_chosen:
            self._log.warning(
                "ROBOTSTXT_PARSER = %(parser)s has no effect: KOSTER_PARSER reads robots.txt, by"
                " default by the draft. Set KOSTER_PARSER to your parser, or remove"
                " ROBOTSTXT_PARSER.",
                parser=repr(settings["ROBOTSTXT_PARSER"]),
            )
        orders = {
            load_object(path): order
            for name in ("DOWNLOADER_MIDDLEWARES", "SPIDER_MIDDLEWARES", "EXTENSIONS")
            for path, order in settings.getwithbase(name).items()
        }
        enabled = {component for component, order in orders.items() if order is not None}
        if RobotsTxtMiddleware in enabled:
            self._log.warning(
                "Scrapy's RobotsTxtMiddleware is enabled too: robots.txt is fetched and"
                " read twice, by two standards. Disable it with DOWNLOADER_MIDDLEWARES"
                ' = {"scrapy.downloadermiddlewares.robotstxt.RobotsTxtMiddleware": None,'
                " ...}, or use the add-on."
            )
        if self._config.report and not any(each.__name__ == "RobotsReport" for each in enabled):
            raise ValueError(
                "KOSTER_REPORT: RobotsReport is not in the crawl. Add"
                ' "scrapy_koster.RobotsReport": 100 to EXTENSIONS, or use the add-on.'
            )
        for kind, order in ((UsageMiddleware, 90), (LinkFilterMiddleware, 1000)):
            if kind.is_on(self._config) and not any(issubclass(each, kind) for each in enabled):
                raise ValueError(
                    f"{kind.settings}: {kind.__name__} is not in the crawl. Add"
                    f' "scrapy_koster.{kind.__name__}": {order} to SPIDER_MIDDLEWARES, or use the'
                    " add-on."
                )

    def _spider_opened(self) -> None:
        parts = self._parts
        parts.announcer.summary.begin(self._parts.robot.name)
        for override in self._config.policy.overrides:
            if override.ends <= self._parts.clock.epoch():
                self._log.warning(
                    "An entry of KOSTER_OVERRIDES has expired and is void: %(site)s (%(override)s)."
                    " Remove it, or give it a later date if the reason still holds",
                    site=override.site,
                    override=override,
                )
        if not self.replays:
            self._sites.open()
        hooks = parts.engine.hooks
        hooks.frees_places = parts.parked.is_open and hooks.are_called
        if self._config.pace.obeys and hooks.frees_places:
            parts.pacer.open()
        elif self._config.pace.obeys:
            missing = (
                'the add-on, or SCHEDULER = "scrapy_koster.DeferringScheduler" and DOWNLOADER ='
                ' "scrapy_koster.RobotsDownloader"'
            )
            self._log.warning(
                'KOSTER_CRAWL_DELAY = "%(choice)s" has no effect in this crawl: use %(needed)s',
                choice=self._config.pace.choice.value,
                needed=missing if not self.replays else "HTTPCACHE_IGNORE_MISSING = False",
            )

    def _spider_error(self, response: object) -> None:
        if response is None:  # an error of start(): there is no response
            self._results.add(Exception)

    def _spider_idle(self) -> None:
        ends = {RobotsForbidden, RobotsUnavailable}
        parked = self._parts.parked
        if not (parked or parked.is_resumed_run) and self._results and self._results <= ends:
            is_known = RobotsUnavailable not in self._results
            raise CloseSpider("robotstxt_forbidden" if is_known else "robotstxt_unavailable")

    async def _spider_closed(self) -> None:
        await self._sites.close()
        self._parts.announcer.summary.write()

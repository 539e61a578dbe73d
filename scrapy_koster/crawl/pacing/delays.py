"""The delay that the robots.txt of a site requests, within the limits of the settings."""

from scrapy.crawler import Crawler
from scrapy.utils.misc import build_from_crawler

from scrapy_koster.crawl.config import Config
from scrapy_koster.crawl.messages.log import Log
from scrapy_koster.crawl.states import SiteState
from scrapy_koster.protocol.delay import Delay, delay_or_limit

_LONGEST_SECS = 366 * 86400.0
_SITES_NAMED = 20


class Delays:
    """Reads the delays of sites. The delay of a site is logged once.

    A delay is read once for a robot's name, and again when the facts about the site change.
    """

    def __init__(self, crawler: Crawler, config: Config, robot: str) -> None:
        """*robot* is the robot's name for requests without a name of their own."""
        self._crawler = crawler
        self._parser = config.parser
        self._log = Log(__name__, crawler)
        self._pace = config.pace
        self._dry_run = config.dry_run
        self._stats = crawler.stats
        self._robot = robot

    def of(self, state: SiteState, robot: str) -> Delay | None:
        """Return the delay that a site requests for *robot*, or None."""
        if robot not in state.delays:
            # Each User-Agent can be a name. The pacer keeps the longest delay of a host.
            if len(state.delays) >= 100:
                state.delays.clear()
            state.delays[robot] = self._read(state, robot)
        return state.delays[robot]

    def secs_of(self, state: SiteState, robot: str) -> float:
        """Return the delay of a site in seconds, 0 if the site has no delay.

        A crawl may use *robot* and other names, and the site may request a delay for each name. The
        longest delay is returned. A delay that is too long does not count, because requests with
        this name are refused. In a dry run this delay counts, because no request is refused.
        """
        for name in (self._robot, robot):
            self.of(state, name)
        return max(map(self._kept, state.delays.values()))

    def secs_in(self, body: bytes) -> float:
        """Return the delay that the file *body* requests in seconds, 0 for no delay."""
        try:
            parser = build_from_crawler(self._parser, self._crawler, body)
        except Exception:  # noqa: BLE001  # the retriever logs the same error
            return self._pace.max_secs
        delay = delay_or_limit(parser, self._robot, pace=self._pace, failed=lambda _: None)
        return self._kept(delay)

    def _kept(self, delay: Delay | None) -> float:
        """Return the seconds between two visits for *delay*; 0 if None or refused."""
        if delay is None or (self._pace.too_long(delay) and not self._dry_run):
            return 0.0
        return min(self._pace.kept(delay.secs), _LONGEST_SECS)

    def _read(self, state: SiteState, robot: str) -> Delay | None:
        """Return the delay in the robots.txt, or None. Log the first delay of the site."""

        def failed(error: Exception) -> None:
            self._log.defect(
                "Error while reading the delay of %(site)s: KOSTER_PARSER failed. The delay is"
                " KOSTER_CRAWL_DELAY_MAX_SECS instead. Fix the parser that the traceback names",
                error,
                site=state.site,
            )
            state.is_delay_logged = True  # the error is enough

        delay = delay_or_limit(state.facts.parser, robot, pace=self._pace, failed=failed)
        if delay is None:
            return None
        if not state.is_delay_logged:
            state.is_delay_logged = True
            self._tell(state, delay)
        return delay

    def _tell(self, state: SiteState, delay: Delay) -> None:
        secs, what = self._kept(delay), "The crawl keeps it"
        self._stats.inc_value("koster/crawl_delay/sites")
        if self._pace.too_long(delay):
            verb = "would be" if self._dry_run else "are"
            what = (
                f"Its pages {verb} refused, because that is more than KOSTER_CRAWL_DELAY_MAX_SECS"
            )
        elif secs < delay.secs:
            self._stats.inc_value("koster/crawl_delay/clamped")
            what = f"The crawl waits {secs:g} s instead (KOSTER_CRAWL_DELAY_MAX_SECS)"
        self._log.info_first(
            _SITES_NAMED,
            "delay",
            "%(site)s requests a delay of %(secs)g s%(where)s. %(what)s",
            site=state.site,
            secs=delay.secs,
            where=f" (line {delay.line.number} of its robots.txt)" if delay.line else "",
            what=what,
        )

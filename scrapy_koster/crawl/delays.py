"""How far apart the visits to a site are to be, as its robots.txt asks and the settings allow."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from scrapy_koster.crawl.log import Log
from scrapy_koster.protocol.delay import Delay
from scrapy_koster.protocol.verdict import PacingParser

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

    from scrapy_koster.crawl.config import Config
    from scrapy_koster.crawl.robot import Robot
    from scrapy_koster.crawl.sites import SiteState
    from scrapy_koster.crawl.stats import Stats

# What a delay counts as that is longer.
_LONGEST_SECS = 366 * 86400.0
_REFUSED = math.inf
_OTHER_ROBOTS = 1000
_SITES_NAMED = 20


class Delays:
    """Reads the delay of each site once, and says it once.

    It is the longest that the site asks of the names by which the crawl goes.
    """

    def __init__(self, crawler: Crawler, config: Config, stats: Stats, robot: Robot) -> None:
        self._log = Log(__name__, crawler)
        self._pace = config.pace
        self._dry_run = config.dry_run
        self._stats = stats
        self._robot = robot
        self._named = 0
        self._others: set[tuple[SiteState, str]] = set()
        """Sites whose file was read for more names than the crawl's own."""

    def kept(self, state: SiteState, robot: str = "") -> float:
        """Return how far apart visits are to be, in seconds; 0 where that does not matter."""
        secs = self._secs(state, robot)
        if secs != _REFUSED:
            return secs
        return self._pace.max_secs if self._dry_run else 0.0

    def is_refused(self, state: SiteState, robot: str) -> bool:
        """Whether a site is not visited, for the delay that it asks for."""
        return self._secs(state, robot) == _REFUSED

    def too_long(self, state: SiteState, robot: str) -> Delay | None:
        """Return the delay for which a site is not visited, None where it is."""
        if not self.is_refused(state, robot):
            return None
        found = [_delay(state.parser, name) for name in (robot, self._robot.name)]
        return max((each for each in found if each), key=lambda delay: delay.secs)

    def _secs(self, state: SiteState, robot: str) -> float:
        if state.delay is None:
            self._others = {each for each in self._others if each[0] is not state}
            state.delay = self._read(state, self._robot.name)
        if robot and robot != self._robot.name and (state, robot) not in self._others:
            if len(self._others) >= _OTHER_ROBOTS:
                self._others.clear()
            self._others.add((state, robot))
            state.delay = max(state.delay, self._read(state, robot))
        return state.delay

    def _read(self, state: SiteState, robot: str) -> float:
        try:
            delay = _delay(state.parser, robot)
        except Exception as error:  # noqa: BLE001  # a parser may be anybody's
            self._log.defect(
                "Error while reading how long a delay %(site)s asks for", error, site=state.site
            )
            return min(self._pace.max_secs, _LONGEST_SECS)
        if delay is None or not delay.secs:
            return 0.0
        is_refused = self._pace.refuses(delay.secs)
        secs = min(self._pace.kept(delay.secs), _LONGEST_SECS)
        if not state.is_paced:
            state.is_paced = True
            self._tell(state, delay, secs, is_refused=is_refused)
        return _REFUSED if is_refused else secs

    def _tell(self, state: SiteState, delay: Delay, secs: float, *, is_refused: bool) -> None:
        is_clamped = secs < delay.secs and not is_refused
        self._stats.delay_met(is_clamped=is_clamped)
        if is_refused:
            what = "It is not visited: that is longer than KOSTER_CRAWL_DELAY_MAX_SECS"
        elif is_clamped:
            what = f"It is visited every {secs:g} s: KOSTER_CRAWL_DELAY_MAX_SECS"
        else:
            what = "It is kept"
        self._named += 1
        log = self._log.info if self._named <= _SITES_NAMED else self._log.debug
        log(
            "%(site)s asks for %(secs)g s between two visits%(where)s. %(what)s",
            site=state.site,
            secs=delay.secs,
            where=f" (line {delay.line.number} of its robots.txt)" if delay.line else "",
            what=what,
        )


def _delay(parser: Any, robot: str) -> Delay | None:
    """Return how long a delay the file asks for; of a parser that tells no line, its seconds."""
    if isinstance(parser, PacingParser):
        return parser.delay(robot)
    crawl_delay = getattr(parser, "crawl_delay", None)  # those of Scrapy 2.18 and newer have it
    secs = crawl_delay(robot) if crawl_delay else None
    return Delay(float(secs), None) if secs and 0 < secs < math.inf else None

"""The delay that the robots.txt of a site requests, as the settings allow it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy_koster.protocol.access import last_copy
from scrapy_koster.protocol.delay import CrawlDelay, Delay, LinesParser, delay_or_limit, names_delay

if TYPE_CHECKING:
    from scrapy_koster.crawl.config import Config
    from scrapy_koster.crawl.messages.log import Log
    from scrapy_koster.crawl.messages.stats import Stats
    from scrapy_koster.crawl.robot import Robot
    from scrapy_koster.crawl.states import SiteState
    from scrapy_koster.protocol.site import Site

_LONGEST_SECS = 366 * 86400.0
# No loop is so exact that a shorter delay could be kept.
_LEAST_SECS = 0.001
_READ_MOST = 1000
_SITES_NAMED = 20
NO_DELAY = -1.0
"""The delay of a site whose file requests none, whatever the name of the robot."""


class Delays:
    """Reads the delay of each site once, and logs it once.

    It is the longest delay that the site requests for the names of the crawl. A name with a delay
    that is too long is refused, the other names are not.
    """

    def __init__(self, config: Config, stats: Stats, robot: Robot, log: Log) -> None:
        self._log = log
        self._sites_kept = config.memory_sites
        self._pace = config.pace
        self._reads_lines = callable(getattr(config.parser, "lines", None))
        self._dry_run = config.dry_run
        self._stats = stats
        self._robot = robot
        self._named = 0
        self._logged: dict[Site, None] = {}
        self._read: dict[tuple[SiteState, str], Delay | None] = {}
        """The delays for names other than the crawl's own, and those that are too long."""

    def kept(self, state: SiteState, robot: str = "") -> float:
        """Return the delay of a site in seconds, 0 if it has none."""
        if state.delay is None:
            self._read = {key: delay for key, delay in self._read.items() if key[0] is not state}
            state.delay = 0.0 if _may_name_one(state) else NO_DELAY
            if state.delay != NO_DELAY:
                self._add(state, self._robot.name)
        if state.delay == NO_DELAY:
            return 0.0
        if robot and robot != self._robot.name and (state, robot) not in self._read:
            self._add(state, robot)
        return state.delay

    def may_be_named_in(self, body: bytes) -> bool:
        """Return whether a file may request a delay. It is not parsed for that."""
        return names_delay(body) or not self._reads_lines

    def too_long(self, state: SiteState, robot: str) -> Delay | None:
        """Return the delay for which *robot* does not visit a site, or None."""
        if self._pace.choice is not CrawlDelay.REFUSE:
            return None
        self.kept(state, robot)
        if state.delay == NO_DELAY:
            return None
        if (state, robot) not in self._read:
            self._keep(state, robot, self._found(state, robot))
        return self._pace.too_long(self._read[state, robot])

    def _add(self, state: SiteState, robot: str) -> None:
        """Lengthen the delay of the site to the one that it requests for *robot*."""
        delay = self._found(state, robot)
        if robot != self._robot.name:
            self._keep(state, robot, delay)
        if delay is None or delay.secs < _LEAST_SECS:
            return
        is_refused = self._pace.too_long(delay) is not None
        secs = min(self._pace.kept(delay.secs), _LONGEST_SECS)
        if self._is_new(state):
            self._tell(state, delay, secs, is_refused=is_refused)
        if not is_refused or self._dry_run:
            state.delay = max(state.delay or 0.0, secs)

    def _is_new(self, state: SiteState) -> bool:
        """Return whether the delay of the site has not been logged before."""
        if state.site in self._logged:
            return False
        if len(self._logged) >= self._sites_kept:
            del self._logged[next(iter(self._logged))]
        self._logged[state.site] = None
        return True

    def _keep(self, state: SiteState, robot: str, delay: Delay | None) -> None:
        if len(self._read) >= _READ_MOST:
            self._read.clear()
        self._read[state, robot] = delay

    def _found(self, state: SiteState, robot: str) -> Delay | None:
        def failed(error: Exception) -> None:
            self._log.defect(
                "Error while reading the delay of %(site)s: KOSTER_PARSER failed. The delay is"
                " KOSTER_CRAWL_DELAY_MAX_SECS instead. Fix the parser that the traceback names",
                error,
                site=state.site,
            )
            self._is_new(state)  # the delay is not logged as well

        return delay_or_limit(state.parser, robot, pace=self._pace, failed=failed)

    def _tell(self, state: SiteState, delay: Delay, secs: float, *, is_refused: bool) -> None:
        is_clamped = secs < delay.secs and not is_refused
        self._stats.delay_met(is_clamped=is_clamped)
        if is_refused:
            what = "Its pages are refused, because that is more than KOSTER_CRAWL_DELAY_MAX_SECS"
        elif is_clamped:
            what = f"The crawl waits {secs:g} s instead (KOSTER_CRAWL_DELAY_MAX_SECS)"
        else:
            what = "The crawl keeps it"
        self._named += 1
        log = self._log.info if self._named <= _SITES_NAMED else self._log.debug
        log(
            "%(site)s requests a delay of %(secs)g s%(where)s. %(what)s",
            site=state.site,
            secs=delay.secs,
            where=f" (line {delay.line.number} of its robots.txt)" if delay.line else "",
            what=what,
        )


def _may_name_one(state: SiteState) -> bool:
    copy = last_copy(state.known)
    return copy is not None and (
        names_delay(copy.body) or not isinstance(state.parser, LinesParser)
    )

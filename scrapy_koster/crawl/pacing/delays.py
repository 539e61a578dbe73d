"""How far apart the visits to a site are to be, as its robots.txt asks and the settings allow."""

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

# What a delay counts as that is longer.
_LONGEST_SECS = 366 * 86400.0
# What is shorter is none: no loop is as exact.
_LEAST_SECS = 0.001
_READ_AT_MOST = 1000
_SITES_NAMED = 20
NO_DELAY = float("-0")
"""The delay of a site that asks nobody for one: this very object, so that it is seen at once."""


class Delays:
    """Reads the delay of each site once, and says it once.

    Visits are as far apart as the longest that the site asks of the names by which the crawl
    goes. A name that is asked for too long a delay is refused, the others are not.
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
        self._told: dict[Site, None] = {}
        """Sites of which it was said that they ask for a delay."""
        self._read: dict[tuple[SiteState, str], Delay | None] = {}
        """What was read for other names than the crawl's own, and what is too long."""

    def kept(self, state: SiteState, robot: str = "") -> float:
        """Return how far apart visits are to be, in seconds; 0 where that does not matter."""
        if state.delay is None:
            self._read = {key: delay for key, delay in self._read.items() if key[0] is not state}
            state.delay = 0.0 if _may_name_one(state) else NO_DELAY
            if state.delay is not NO_DELAY:
                self._meet(state, self._robot.name)
        if state.delay is NO_DELAY:
            return 0.0
        if robot and robot != self._robot.name and (state, robot) not in self._read:
            self._meet(state, robot)
        return state.delay

    def may_be_named_in(self, body: bytes) -> bool:
        """Whether a file may ask for a delay; it is not parsed for that."""
        return names_delay(body) or not self._reads_lines

    def too_long(self, state: SiteState, robot: str) -> Delay | None:
        """Return the delay for which *robot* does not visit a site, None where it does."""
        if self._pace.choice is not CrawlDelay.REFUSE:
            return None
        self.kept(state, robot)
        if state.delay is NO_DELAY:
            return None
        if (state, robot) not in self._read:
            self._keep(state, robot, self._found(state, robot))
        return self._pace.too_long(self._read[state, robot])

    def _meet(self, state: SiteState, robot: str) -> None:
        """Have the site visited as slowly as it asks of *robot*, too."""
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
        """Whether nothing was said of the site's delay before; from now on it was."""
        if state.site in self._told:
            return False
        if len(self._told) >= self._sites_kept:
            del self._told[next(iter(self._told))]
        self._told[state.site] = None
        return True

    def _keep(self, state: SiteState, robot: str, delay: Delay | None) -> None:
        if len(self._read) >= _READ_AT_MOST:
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
            self._is_new(state)  # it has been said

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

"""What a crawl notes of each file that it reads: its record, and its wildcards (C6)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy_koster.parsers.koster import KosterRobotParser
from scrapy_koster.protocol.defect import guarded

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.robotstxt import RobotParser

    from scrapy_koster.crawl.messages.announcer import Announcer
    from scrapy_koster.crawl.messages.counting import Uncounted
    from scrapy_koster.crawl.robot import Robot
    from scrapy_koster.crawl.sites import SiteState
    from scrapy_koster.protocol.rfc9309 import Rfc9309


class Examiner:
    """Finds files that the draft may read otherwise than they were meant."""

    def __init__(self, robot: Robot, announcer: Announcer, counts: Uncounted) -> None:
        self._robot = robot
        self._announcer = announcer
        self._counts = counts

    def hazard(self, state: SiteState, parser: RobotParser, page: Request) -> Rfc9309 | None:
        """Return the file by RFC 9309 if the draft decides, and wildcards make a difference."""
        if not isinstance(parser, KosterRobotParser):
            return None
        try:
            robot = self._robot.name_of(page)
        except ValueError:  # the request's errback is told
            robot = self._robot.name
        site = str(state.site)
        self._counts.parsed(site, guarded(parser, "record", lambda: parser.record(robot)))
        hazard = guarded(parser, "by_rfc9309", lambda: parser.by_rfc9309(robot))
        if hazard is not None:
            self._announcer.wildcards_met(site)
        return hazard


class NoExaminer:
    """Notes nothing: the file is read for somebody who asked about it."""

    def hazard(self, _state: SiteState, _parser: RobotParser, _page: Request) -> None:
        """Return None."""

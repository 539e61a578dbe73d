"""What a crawl notes of each file that it reads: its record, and whether it has hazards."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy_koster.parsers.koster import KosterRobotParser
from scrapy_koster.protocol.defect import guarded

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.robotstxt import RobotParser

    from scrapy_koster.crawl.messages.counting import Uncounted
    from scrapy_koster.crawl.robot import Robot
    from scrapy_koster.crawl.sites import SiteState
    from scrapy_koster.protocol.hazard import Watch


class Examiner:
    """Finds files of which the draft allows more than RFC 9309."""

    def __init__(self, robot: Robot, counts: Uncounted) -> None:
        self._robot = robot
        self._counts = counts

    def watch(self, state: SiteState, parser: RobotParser, page: Request) -> Watch | None:
        """Return what finds the hazards of a file that the draft decides by, None if it has none.

        It is for the robot of the crawl. A request with another one has its own.
        """
        if not isinstance(parser, KosterRobotParser):
            return None
        try:
            robot = self._robot.name_of(page)
        except ValueError:  # the request's errback is told
            robot = self._robot.name
        if self._counts.is_on:
            record = guarded(parser, "record", lambda: parser.record(robot))
            self._counts.parsed(str(state.site), record)
        return guarded(parser, "watch", lambda: parser.watch(self._robot.name))


class NoExaminer:
    """Notes nothing: the file is read for somebody who asked about it."""

    def watch(self, _state: SiteState, _parser: RobotParser, _page: Request) -> None:
        """Return None."""

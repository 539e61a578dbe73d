"""What a crawl notes of each file that it reads: its record, its hazards, its usage."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy_koster.parsers.koster import KosterRobotParser
from scrapy_koster.protocol.defect import guarded, returned
from scrapy_koster.protocol.hazard import Watch

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.robotstxt import RobotParser

    from scrapy_koster.crawl.messages.counting import Uncounted
    from scrapy_koster.crawl.robot import Robot
    from scrapy_koster.crawl.states import SiteState
    from scrapy_koster.protocol.usage_lines import UsageLines


def checked_watch(parser: RobotParser | None, robot: str) -> Watch | None:
    """Return what finds the hazards of a file for *robot*, None if the draft does not decide.

    Raises ParserDefectError if the parser's own method raises, or returns another type.
    """
    if not isinstance(parser, KosterRobotParser):
        return None
    watch: object = guarded(parser, "watch", lambda: parser.watch(robot))
    if watch is None or isinstance(watch, Watch):
        return watch
    raise returned(parser, "watch", watch, "a Watch or None")


class Examiner:
    """Finds files of which the draft allows more than RFC 9309."""

    def __init__(self, robot: Robot, counts: Uncounted) -> None:
        self._robot = robot
        self._counts = counts

    def watch(self, state: SiteState, parser: RobotParser, page: Request) -> Watch | None:
        """Return what finds the hazards of a file that the draft decides by, None if it has none.

        It is for the robot of the crawl. A request with another one has its own.
        """
        if self._counts.is_on and isinstance(parser, KosterRobotParser):
            robot = self._name_for(page)
            record = guarded(parser, "record", lambda: parser.record(robot))
            self._counts.parsed(str(state.site), record)
        return checked_watch(parser, self._robot.name)

    def stated(self, state: SiteState, usage: UsageLines, page: Request) -> None:
        """Note what the file states about its pages."""
        if self._counts.is_on:
            self._counts.stated(str(state.site), usage.listed(self._name_for(page)))

    def _name_for(self, page: Request) -> str:
        try:
            return self._robot.name_of(page)
        except ValueError:  # the request's errback is told
            return self._robot.name


class NoExaminer:
    """Notes nothing: the file is read for somebody who asked about it."""

    def watch(self, _state: SiteState, _parser: RobotParser, _page: Request) -> None:
        """Return None."""

    def stated(self, _state: SiteState, _usage: UsageLines, _page: Request) -> None:
        """Do nothing."""

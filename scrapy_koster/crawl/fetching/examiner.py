"""Looks at each file that a crawl reads: its conflicts with RFC 9309, and its record."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy_koster import signals
from scrapy_koster.parsers.koster import KosterRobotParser
from scrapy_koster.parsers.rfc9309 import Rfc9309RobotParser
from scrapy_koster.protocol.defect import guarded, returned
from scrapy_koster.protocol.hazard import Watch

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.robotstxt import RobotParser

    from scrapy_koster.crawl.events import Events
    from scrapy_koster.crawl.robot import Robot
    from scrapy_koster.protocol.access import Copy
    from scrapy_koster.protocol.site import Site
    from scrapy_koster.protocol.usage_lines import UsageLines


def checked_watch(parser: RobotParser | None, robot: str) -> Watch | None:
    """Return what finds the hazards of a file for *robot*, None if neither standard decides.

    Raises ParserDefectError if the parser's own method raises, or returns another type.
    """
    if not isinstance(parser, (KosterRobotParser, Rfc9309RobotParser)):
        return None
    watch: object = guarded(parser, "watch", lambda: parser.watch(robot))
    if watch is None or isinstance(watch, Watch):
        return watch
    raise returned(parser, "watch", watch, "a Watch or None")


class Examiner:
    """Finds files of which the reading in use allows more, and sends what each contains."""

    def __init__(self, robot: Robot, events: Events) -> None:
        self._robot = robot
        self._events = events

    def read(
        self, site: Site, copy: Copy, parser: RobotParser, usage: UsageLines | None, page: Request
    ) -> Watch | None:
        """Send ``robots_read``, and return the Watch for the robot of the crawl.

        A request with another robot has its own.
        """
        if self._events.has_receivers(signals.robots_read):
            try:
                robot = self._robot.name_of(page)
            except ValueError:  # the request's errback is told
                robot = self._robot.name
            record = None
            if isinstance(parser, KosterRobotParser):
                record = guarded(parser, "record", lambda: parser.record(robot))
            statements = () if usage is None else usage.listed(robot)
            named = {"site": site, "copy": copy, "record": record, "statements": statements}
            self._events.send(signals.robots_read, **named)
        return checked_watch(parser, self._robot.name)

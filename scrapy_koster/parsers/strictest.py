"""Both readings of a /robots.txt at once: the draft's and RFC 9309's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy.robotstxt import RobotParser

from scrapy_koster.parsers.koster import KosterRobotParser
from scrapy_koster.parsers.rfc9309 import Rfc9309RobotParser
from scrapy_koster.protocol.strictest import Strictest

if TYPE_CHECKING:
    from scrapy.crawler import Crawler
    from typing_extensions import Self


class StrictestRobotParser(Strictest, RobotParser):
    """A /robots.txt read twice: what either reading forbids is forbidden.

    For KOSTER_PARSER, and for the ROBOTSTXT_PARSER of Scrapy's own middleware.
    ``allowed(url, user_agent)`` is true where both the draft and RFC 9309 allow
    it, and ``ruling(url, user_agent)`` says which of them refused, and by which
    line; where both did it has the other one as ``also``.
    """

    __slots__ = ("_body",)

    def __init__(self, body: bytes) -> None:
        super().__init__(body)
        self._body = body

    @classmethod
    def from_crawler(cls, crawler: Crawler | None, robotstxt_body: bytes) -> Self:
        """Parse the octets of a robots.txt. Never raises."""
        return cls(robotstxt_body)

    def crawl_delay(self, user_agent: str | bytes) -> float | None:
        """Return the larger of the delays that the two readings find."""
        readings = (KosterRobotParser(self._body), Rfc9309RobotParser(self._body))
        found = [reading.crawl_delay(user_agent) for reading in readings]
        return max((delay for delay in found if delay is not None), default=None)

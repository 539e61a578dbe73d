"""RFC 9309 as a robots.txt parser for Scrapy (ROBOTSTXT_PARSER)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy.robotstxt import RobotParser

from scrapy_koster.protocol.delay import delays
from scrapy_koster.protocol.rfc9309 import Rfc9309

if TYPE_CHECKING:
    from scrapy.crawler import Crawler
    from typing_extensions import Self


class Rfc9309RobotParser(Rfc9309, RobotParser):
    """A /robots.txt as RFC 9309 reads it.

    For KOSTER_PARSER, and for the ROBOTSTXT_PARSER of Scrapy's own middleware.
    ``allowed(url, user_agent)`` takes a name token (product token) or a whole
    User-Agent header, and ``ruling(url, user_agent)`` says which line decided.
    """

    __slots__ = ()

    @classmethod
    def from_crawler(cls, crawler: Crawler | None, robotstxt_body: bytes) -> Self:
        """Parse the octets of a robots.txt. Never raises."""
        return cls(robotstxt_body)

    def crawl_delay(self, user_agent: str | bytes) -> float | None:
        """Return the seconds of the largest Crawl-delay in the robot's groups.

        Crawl-delay is one of the "other records" (2.2.4). None where there is
        none, or where it is no number of seconds.
        """
        found = [delay for record in self.records(user_agent) for delay in delays(record.rules)]
        return max((delay for delay in found if delay is not None), default=None)

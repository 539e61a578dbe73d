"""The draft as a robots.txt parser for Scrapy (ROBOTSTXT_PARSER)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy.robotstxt import RobotParser

from scrapy_koster.protocol.delay import delays
from scrapy_koster.protocol.pattern import is_special
from scrapy_koster.protocol.rfc9309 import Rfc9309
from scrapy_koster.protocol.robotstxt import Record, RobotsTxt, instructions

if TYPE_CHECKING:
    from scrapy.crawler import Crawler
    from typing_extensions import Self


def has_wildcards(record: Record) -> bool:
    """Whether RFC 9309 reads a path of the record as a pattern (C6)."""
    return any(is_special(rule.value.decode("latin-1")) for _, rule in instructions(record))


class KosterRobotParser(RobotsTxt, RobotParser):
    """A /robots.txt as Martijn Koster's 1996 draft reads it.

    For KOSTER_PARSER, and for the ROBOTSTXT_PARSER of Scrapy's own middleware.
    ``allowed(url, user_agent)`` takes a name token or a whole User-Agent
    header, and ``ruling(url, user_agent)`` says which line decided.
    """

    __slots__ = ()

    def by_rfc9309(self, robot: str | bytes) -> Rfc9309 | None:
        """Return the file as RFC 9309 reads it, if the record of *robot* has wildcards (C6)."""
        record = self.record(robot)
        return Rfc9309(self._body) if record is not None and has_wildcards(record) else None

    @classmethod
    def from_crawler(cls, crawler: Crawler | None, robotstxt_body: bytes) -> Self:
        """Parse the octets of a robots.txt. Never raises."""
        return cls(robotstxt_body)

    def crawl_delay(self, user_agent: str | bytes) -> float | None:
        """Return the seconds of the first Crawl-delay in the robot's record.

        Crawl-delay is an extension (3.2), not a part of the draft. None where
        there is none, or where it is no number of seconds.
        """
        record = self.record(user_agent)
        return next(delays(record.rules), None) if record else None

"""The draft as a robots.txt parser for Scrapy (ROBOTSTXT_PARSER)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from scrapy.robotstxt import RobotParser

from scrapy_koster.protocol.robotstxt import Record, RobotsTxt, instructions

if TYPE_CHECKING:
    from scrapy.crawler import Crawler
    from typing_extensions import Self


def has_wildcards(record: Record) -> bool:
    """Whether RFC 9309 reads a path of the record as a pattern (C6)."""
    return any("*" in path or path.endswith("$") for path, _ in instructions(record))


class KosterRobotParser(RobotsTxt, RobotParser):
    """A /robots.txt as Martijn Koster's 1996 draft reads it.

    For KOSTER_PARSER, and for the ROBOTSTXT_PARSER of Scrapy's own middleware.
    ``allowed(url, user_agent)`` takes a name token or a whole User-Agent
    header, and ``ruling(url, user_agent)`` says which line decided.
    """

    __slots__ = ()

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
        for rule in record.rules if record else ():
            if rule.field == b"crawl-delay":
                return _seconds(rule.value)
        return None


def _seconds(value: bytes) -> float | None:
    try:
        seconds = float(value)
    except ValueError:
        return None
    return seconds if math.isfinite(seconds) and seconds >= 0 else None

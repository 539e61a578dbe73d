"""The draft as a robots.txt parser for Scrapy (ROBOTSTXT_PARSER)."""

from __future__ import annotations

from scrapy_koster.parsers.scrapy_parser import ScrapyParser
from scrapy_koster.protocol.hazard import Watch, watch_of
from scrapy_koster.protocol.reading import RobotsTxt


class KosterRobotParser(RobotsTxt, ScrapyParser):
    """Parser that reads a robots.txt by Martijn Koster's 1996 draft.

    Use it as KOSTER_PARSER, or as ROBOTSTXT_PARSER with Scrapy's own middleware.
    ``allowed(url, robot)`` takes a name token or a User-Agent header.
    ``ruling(url, robot)`` also returns the matching line.
    """

    __slots__ = ()

    def watch(self, robot: str | bytes) -> Watch | None:
        """Return a finder of allowed URLs that RFC 9309 or a hidden line forbids."""
        # The Watch reads the body again, because a subclass may override methods of this reading.
        return watch_of(self._body, robot, RobotsTxt)

"""The draft as a robots.txt parser for Scrapy (ROBOTSTXT_PARSER)."""

from __future__ import annotations

from scrapy_koster.parsers.scrapy_parser import ScrapyParser
from scrapy_koster.protocol.reading import RobotsTxt


class KosterRobotParser(RobotsTxt, ScrapyParser):
    """Parser that reads a robots.txt by Martijn Koster's 1996 draft.

    Use it as KOSTER_PARSER, or as ROBOTSTXT_PARSER with Scrapy's own middleware.
    ``allowed(url, robot)`` takes a name token or a User-Agent header.
    ``ruling(url, robot)`` also returns the matching line.
    """

    __slots__ = ()

"""The draft as a robots.txt parser for Scrapy (ROBOTSTXT_PARSER)."""

from __future__ import annotations

from scrapy_koster.parsers.scrapy_parser import ScrapyParser
from scrapy_koster.protocol.pattern import is_special
from scrapy_koster.protocol.reading import Record
from scrapy_koster.protocol.rfc9309 import Rfc9309
from scrapy_koster.protocol.robotstxt import RobotsTxt, instructions


def has_wildcards(record: Record) -> bool:
    """Whether RFC 9309 reads a path of the record as a pattern (C6)."""
    return any(is_special(rule.value.decode("latin-1")) for _, rule in instructions(record))


class KosterRobotParser(RobotsTxt, ScrapyParser):
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

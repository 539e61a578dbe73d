"""Both readings of a /robots.txt at once: the draft's and RFC 9309's."""

from __future__ import annotations

from scrapy_koster.parsers.scrapy_parser import ScrapyParser
from scrapy_koster.protocol.strictest import Strictest


class StrictestRobotParser(Strictest, ScrapyParser):
    """A /robots.txt read twice: what either reading forbids is forbidden.

    For KOSTER_PARSER, and for the ROBOTSTXT_PARSER of Scrapy's own middleware.
    ``allowed(url, user_agent)`` is true where both the draft and RFC 9309 allow
    it, and ``ruling(url, user_agent)`` says which of them refused, and by which
    line; where both did it has the other one as ``also``.
    """

    __slots__ = ()

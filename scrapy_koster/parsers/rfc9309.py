"""RFC 9309 as a robots.txt parser for Scrapy (ROBOTSTXT_PARSER)."""

from __future__ import annotations

from scrapy_koster.parsers.scrapy_parser import ScrapyParser
from scrapy_koster.protocol.rfc9309 import Rfc9309


class Rfc9309RobotParser(Rfc9309, ScrapyParser):
    """A /robots.txt as RFC 9309 reads it.

    For KOSTER_PARSER, and for the ROBOTSTXT_PARSER of Scrapy's own middleware.
    ``allowed(url, user_agent)`` takes a name token (product token) or a whole
    User-Agent header, and ``ruling(url, user_agent)`` says which line decided.
    """

    __slots__ = ()

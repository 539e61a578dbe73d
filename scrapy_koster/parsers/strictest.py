"""Three readings of a /robots.txt at once: the draft, RFC 9309, and the corrected file."""

from __future__ import annotations

from scrapy_koster.parsers.scrapy_parser import ScrapyParser
from scrapy_koster.protocol.reading import Strictest


class StrictestRobotParser(Strictest, ScrapyParser):
    """Parser that allows a URL only if both the draft and RFC 9309 allow the URL.

    Misspelled lines, and lines hidden by markup or unusual space, count, too: the file is read
    again by RFC 9309 with these lines corrected. Only misspellings that Google's parser accepts are
    corrected.

    Use it as KOSTER_PARSER, or as ROBOTSTXT_PARSER with Scrapy's own middleware.
    ``allowed(url, robot)`` takes a name token or a User-Agent header.
    ``ruling(url, robot)`` also returns the standard and the matching line. If both standards
    forbid the URL, the ruling of the draft has the ruling of RFC 9309 as ``also``.
    """

    __slots__ = ()

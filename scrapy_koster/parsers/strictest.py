"""All readings of a /robots.txt at once: the draft's, RFC 9309's, and that of misspelt lines."""

from __future__ import annotations

from scrapy_koster.parsers.scrapy_parser import ScrapyParser
from scrapy_koster.protocol.reading import Strictest


class StrictestRobotParser(Strictest, ScrapyParser):
    """Parser that allows a URL only if the draft and RFC 9309 both allow it.

    It also obeys misspelled lines: the file is read once more by RFC 9309, with the misspellings
    corrected that Google's parser accepts.

    Use it as KOSTER_PARSER, or as ROBOTSTXT_PARSER with Scrapy's own middleware.
    ``allowed(url, user_agent)`` takes a name token or a User-Agent header.
    ``ruling(url, user_agent)`` also returns the standard and the matching line. If both standards
    forbid the URL, the ruling of the draft has the other one as ``also``.
    """

    __slots__ = ()

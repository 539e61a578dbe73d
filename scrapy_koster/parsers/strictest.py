"""All readings of a /robots.txt at once: the draft's, RFC 9309's, and that of misspelt lines."""

from __future__ import annotations

from scrapy_koster.parsers.scrapy_parser import ScrapyParser
from scrapy_koster.protocol.strictest import Strictest


class StrictestRobotParser(Strictest, ScrapyParser):
    """A /robots.txt read by both standards: what either reading forbids is forbidden.

    Lines that are misspelt are obeyed as well: the file is read once more by RFC 9309, with the
    misspellings put right that Google's reader accepts.

    For KOSTER_PARSER, and for the ROBOTSTXT_PARSER of Scrapy's own middleware.
    ``allowed(url, user_agent)`` is true if all readings allow it, and
    ``ruling(url, user_agent)`` says which of them refused, and by which line. If both standards
    did, the ruling of the draft has the other one as ``also``.
    """

    __slots__ = ()

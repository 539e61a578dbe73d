"""Both readings of a /robots.txt at once: the draft's and RFC 9309's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy.robotstxt import RobotParser

from scrapy_koster.parsers.koster import KosterRobotParser
from scrapy_koster.parsers.rfc9309 import Rfc9309
from scrapy_koster.protocol.robotstxt import Ruling
from scrapy_koster.protocol.verdict import RFC_9309

if TYPE_CHECKING:
    from scrapy.crawler import Crawler
    from typing_extensions import Self


class StrictestRobotParser(RobotParser):
    """A /robots.txt read twice: what either reading forbids is forbidden.

    For KOSTER_PARSER, and for the ROBOTSTXT_PARSER of Scrapy's own middleware.
    ``allowed(url, user_agent)`` is true where both the draft and RFC 9309 allow
    it; the section of ``ruling(url, user_agent)`` says which of them refused,
    the draft where both did.
    """

    __slots__ = ("_draft", "_rfc9309")

    def __init__(self, robotstxt_body: bytes) -> None:
        self._draft = KosterRobotParser(robotstxt_body)
        self._rfc9309 = Rfc9309(robotstxt_body)

    @classmethod
    def from_crawler(cls, crawler: Crawler | None, robotstxt_body: bytes) -> Self:
        """Parse the octets of a robots.txt. Never raises."""
        return cls(robotstxt_body)

    def allowed(self, url: str | bytes, user_agent: str | bytes) -> bool:
        """Whether both readings allow it."""
        return self._draft.allowed(url, user_agent) and self._rfc9309.allowed(url, user_agent)

    def ruling(self, url: str | bytes, robot: str | bytes) -> Ruling:
        """Return what ``allowed`` returns, with the line of the draft's reading."""
        ruling = self._draft.ruling(url, robot)
        if ruling.allowed and not self._rfc9309.allowed(url, robot):
            return Ruling(allowed=False, section=RFC_9309, record=None, rule=None)
        return ruling

    def crawl_delay(self, user_agent: str | bytes) -> float | None:
        """Return the larger of the delays that the two readings find."""
        delay = self._draft.crawl_delay(user_agent)
        delays = self._rfc9309.crawl_delays(user_agent)
        return max([*delays, delay] if delay is not None else delays, default=None)

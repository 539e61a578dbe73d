"""What the parsers of this package have in common for Scrapy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy.robotstxt import RobotParser

from scrapy_koster.protocol.delay import Delay, delay_of

if TYPE_CHECKING:
    from scrapy.crawler import Crawler
    from typing_extensions import Self


class ScrapyParser(RobotParser):
    """A reading of a robots.txt as a parser for Scrapy."""

    __slots__ = ()

    if TYPE_CHECKING:

        def __init__(self, body: bytes) -> None: ...

    @classmethod
    def from_crawler(cls, crawler: Crawler | None, robotstxt_body: bytes) -> Self:
        """Parse the octets of a robots.txt. Never raises."""
        return cls(robotstxt_body)

    def delay(self, user_agent: str | bytes) -> Delay | None:
        """Return the longest Crawl-delay or Request-rate that the robot is asked to keep.

        They are extensions: neither standard has them. None if there is none.
        """
        return delay_of(self, user_agent)

    def crawl_delay(self, user_agent: str | bytes) -> float | None:
        """Return the seconds of ``delay``, None if there is none."""
        delay = self.delay(user_agent)
        return None if delay is None else delay.secs

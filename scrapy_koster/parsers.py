"""The parsers for KOSTER_PARSER, or for Scrapy's ROBOTSTXT_PARSER."""

from typing import TYPE_CHECKING

from scrapy.crawler import Crawler
from scrapy.robotstxt import RobotParser

from scrapy_koster.protocol.delay import Delay, delay_of
from scrapy_koster.protocol.reading import Reading, Rfc9309, RobotsTxt, Strictest
from scrapy_koster.protocol.sitemap import sitemap_urls_in

if TYPE_CHECKING:  # no dependency of ours
    from typing_extensions import Self


class ScrapyParser(Reading, RobotParser):
    """A ``Reading`` of a robots.txt that is a parser for Scrapy."""

    @classmethod
    def from_crawler(cls, crawler: Crawler | None, robotstxt_body: bytes) -> "Self":
        """Return a parser of the bytes of a robots.txt. Never raises."""
        return cls(robotstxt_body)

    def delay(self, user_agent: str | bytes) -> Delay | None:
        """Return the longest Crawl-delay or Request-rate for the robot, or None.

        Neither standard has these fields. Both standards allow extensions.
        """
        return delay_of(self, user_agent)

    def crawl_delay(self, user_agent: str | bytes) -> float | None:
        """Return the seconds of ``delay``, or None."""
        delay = self.delay(user_agent)
        return None if delay is None else delay.secs

    def sitemaps(self) -> list[str]:
        """Return the distinct URLs of the Sitemap lines, in the order of the file.

        A relative URL is returned as written. URLs of a robots.txt, and URLs with a scheme other
        than http and https, are left out. Scrapy plans this method for its own parsers.
        """
        return sitemap_urls_in(self._body)


class KosterRobotParser(RobotsTxt, ScrapyParser):
    """Parser that reads a robots.txt by Martijn Koster's 1996 draft.

    Use it as KOSTER_PARSER, or as ROBOTSTXT_PARSER with Scrapy's own middleware.
    ``allowed(url, user_agent)`` takes a name token or a User-Agent header.
    ``ruling(url, robot)`` also returns the matching line.
    """


class Rfc9309RobotParser(Rfc9309, ScrapyParser):
    """Parser that reads a robots.txt by RFC 9309.

    Use it as KOSTER_PARSER, or as ROBOTSTXT_PARSER with Scrapy's own middleware.
    ``allowed(url, user_agent)`` takes a product token or a User-Agent header.
    ``ruling(url, robot)`` also returns the matching line.
    """


class StrictestRobotParser(Strictest, ScrapyParser):
    """Parser that allows a URL only if both the draft and RFC 9309 allow the URL.

    Misspelled lines, and lines hidden by markup or unusual space, count, too: the file is read
    again by RFC 9309 with these lines corrected. Only misspellings that Google's parser accepts are
    corrected.

    Use it as KOSTER_PARSER, or as ROBOTSTXT_PARSER with Scrapy's own middleware.
    ``allowed(url, user_agent)`` takes a name token or a User-Agent header.
    ``ruling(url, robot)`` also returns the standard and the matching line. If both standards
    forbid the URL, the ruling of the draft has the ruling of RFC 9309 as ``also``.
    """

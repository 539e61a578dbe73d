"""A /robots.txt as RFC 9309 reads it."""

from __future__ import annotations

from urllib.parse import quote

from scrapy.robotstxt import ProtegoRobotParser

from scrapy_koster.protocol.nametoken import name_token

_ASCII = "".join(map(chr, range(128)))


class Rfc9309:
    """A /robots.txt as RFC 9309 has it, which Protego reads for Scrapy.

    It is asked for the robot as it is given, which may be a whole User-Agent
    header, as Scrapy's own middleware does, and also for its name token, which
    is what RFC 9309 compares (2.2.1). What Protego cannot read (it raises
    ValueError) is refused: the RFC does not say that it is allowed.
    """

    __slots__ = ("_parser",)

    def __init__(self, body: bytes) -> None:
        self._parser = ProtegoRobotParser(body, None)

    def allowed(self, url: str | bytes, robot: str | bytes) -> bool:
        """Whether *robot* may access *url*. Never raises."""
        if isinstance(url, bytes):
            url = quote(url, safe=_ASCII)
        try:
            return all(self._parser.allowed(url, name) for name in _names(robot))
        except ValueError:
            return False

    def crawl_delays(self, robot: str | bytes) -> list[float]:
        """Return the seconds of the Crawl-delay lines that are for *robot*."""
        delays = [self._parser.crawl_delay(name) for name in _names(robot)]
        return [delay for delay in delays if delay is not None]


def _names(robot: str | bytes) -> list[str]:
    if isinstance(robot, bytes):
        robot = robot.decode("latin-1")
    token = name_token(robot)
    return [robot] if token in ("", robot.lower()) else [robot, token]

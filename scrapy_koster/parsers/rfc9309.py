"""A /robots.txt as RFC 9309 reads it."""

from __future__ import annotations

from urllib.parse import quote

from scrapy.robotstxt import ProtegoRobotParser

from scrapy_koster.protocol.nametoken import name_token

_ASCII = "".join(map(chr, range(128)))

_RULES_MAX = 200_000
"""Section 6: of the files of 1,000 sites the one that comes next has 5,700."""


class Rfc9309:
    """A /robots.txt as RFC 9309 has it, which Protego reads for Scrapy.

    It is asked for the robot as it is given, which may be a whole User-Agent
    header, as Scrapy's own middleware does, and also for its name token, which
    is what RFC 9309 compares (2.2.1). What Protego cannot read (it raises
    ValueError) is refused: the RFC does not say that it is allowed. So is what
    would take Protego minutes and gigabytes: it copies each rule of a group for
    each of its agents.
    """

    __slots__ = ("_parser",)

    def __init__(self, body: bytes) -> None:
        readable = _rules_copied(body) <= _RULES_MAX
        self._parser = ProtegoRobotParser(body, None) if readable else None

    def allowed(self, url: str | bytes, robot: str | bytes) -> bool:
        """Whether *robot* may access *url*. Never raises."""
        if self._parser is None:
            return False
        if isinstance(url, bytes):
            url = quote(url, safe=_ASCII)
        try:
            return all(self._parser.allowed(url, name) for name in _names(robot))
        except ValueError:
            return False

    def crawl_delays(self, robot: str | bytes) -> list[float]:
        """Return the seconds of the Crawl-delay lines that are for *robot*."""
        if self._parser is None:
            return []
        delays = [self._parser.crawl_delay(name) for name in _names(robot)]
        return [delay for delay in delays if delay is not None]


def _names(robot: str | bytes) -> list[str]:
    if isinstance(robot, bytes):
        robot = robot.decode("latin-1")
    token = name_token(robot)
    return [robot] if token in ("", robot.lower()) else [robot, token]


def _rules_copied(body: bytes) -> int:
    """Return how many rules Protego makes of a file, or more: it is liberal in what it reads.

    An agent line may be two agents to it, and is compared with those before it.
    """
    copied = agents = rules = 0
    ended = False
    for line in body.decode(errors="ignore").lower().splitlines():
        said = line.partition("#")[0]
        is_rule = said.partition(":")[0].strip() in ("allow", "disallow")
        if is_rule or "agent" not in said:
            rules += 1
            ended = ended or is_rule
            continue
        if ended:
            copied += agents * (agents + rules)
            agents = rules = 0
            ended = False
        agents += 2
    return copied + agents * (agents + rules)

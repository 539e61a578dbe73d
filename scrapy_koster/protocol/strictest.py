"""Both standards at once: what either forbids is forbidden."""

from __future__ import annotations

from dataclasses import replace

from scrapy_koster.protocol.line import Line
from scrapy_koster.protocol.reading import Decider, Decision, by_any
from scrapy_koster.protocol.rfc9309 import Rfc9309
from scrapy_koster.protocol.robotstxt import RobotsTxt
from scrapy_koster.protocol.ruling import Ruling


class Strictest(Decider):
    """A /robots.txt file as both standards read it."""

    __slots__ = ("_draft", "_rfc9309")

    def __init__(self, body: bytes) -> None:
        super().__init__()
        self._draft = RobotsTxt(body)
        self._rfc9309 = Rfc9309(body)

    def allowed(self, url: str | bytes, robot: str | bytes) -> bool:
        """Whether both allow *robot* to access *url*."""
        # Without an escape both compare the same octets.
        if robot in self._decisions and isinstance(url, str) and "%" not in url:
            return Decider.allowed(self, url, robot)
        # What the draft forbids need not be read by RFC 9309, and of many sites one page is
        # asked for: what both have read is put together when the next comes.
        if self._draft.knows(robot) and self._rfc9309.knows(robot):
            self.decision(robot)
        return self._draft.allowed(url, robot) and self._rfc9309.allowed(url, robot)

    def ruling(self, url: str | bytes, robot: str | bytes) -> Ruling:
        """Return what ``allowed`` returns, with the line of the standard that decided.

        That is the draft where both say the same; where both forbid it the ruling
        has that of RFC 9309 as ``also``.
        """
        draft = self._draft.ruling(url, robot)
        rfc9309 = self._rfc9309.ruling(url, robot)
        if rfc9309.allowed:
            return draft
        return rfc9309 if draft.allowed else replace(draft, also=rfc9309)

    def lines(self, robot: str | bytes, /, *fields: bytes) -> list[Line]:
        """Return the lines of the draft's record, then those of the groups of RFC 9309."""
        lines = [*self._draft.lines(robot, *fields), *self._rfc9309.lines(robot, *fields)]
        return list(dict.fromkeys(lines))

    def _decide(self, robot: str | bytes) -> Decision:
        return by_any([self._draft.decision(robot), self._rfc9309.decision(robot)])

    @staticmethod
    def _unescape(path: str) -> str:
        return path

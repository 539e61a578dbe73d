"""Both standards at once, and misspelt lines: what one of the readings forbids is forbidden."""

from __future__ import annotations

from dataclasses import replace

from scrapy_koster.protocol.line import Line
from scrapy_koster.protocol.misspelling import as_written, corrected
from scrapy_koster.protocol.reading import Decider, Decision, Reading, by_any
from scrapy_koster.protocol.rfc9309 import Rfc9309
from scrapy_koster.protocol.robotstxt import RobotsTxt
from scrapy_koster.protocol.ruling import Ruling


class Strictest(Decider):
    """A /robots.txt file as both standards read it, and as readers of today read its misspellings.

    The third reading is by RFC 9309. Only a file with misspelt lines has it.
    """

    __slots__ = ("_body", "_corrected", "_draft", "_rfc9309")

    def __init__(self, body: bytes) -> None:
        super().__init__()
        self._draft = RobotsTxt(body)
        self._rfc9309 = Rfc9309(body)
        right = corrected(body)
        self._corrected = None if right is None else Rfc9309(right)
        self._body = body

    def allowed(self, url: str | bytes, robot: str | bytes) -> bool:
        """Whether all readings allow *robot* to access *url*."""
        # Without an escape both compare the same octets.
        if robot in self._decisions and isinstance(url, str) and "%" not in url:
            return Decider.allowed(self, url, robot)
        # What the draft forbids need not be read by RFC 9309, and of many sites one page is
        # asked for: what both have read is put together when the next comes.
        if self._draft.knows(robot) and self._rfc9309.knows(robot):
            self.decision(robot)
        return (
            self._draft.allowed(url, robot)
            and self._rfc9309.allowed(url, robot)
            and (self._corrected is None or self._corrected.allowed(url, robot))
        )

    def ruling(self, url: str | bytes, robot: str | bytes) -> Ruling:
        """Return what ``allowed`` returns, with the line of the standard that decided.

        That is the draft where both say the same; where both forbid it the ruling
        has that of RFC 9309 as ``also``. If neither does, a misspelt line may forbid it.
        """
        draft = self._draft.ruling(url, robot)
        rfc9309 = self._rfc9309.ruling(url, robot)
        if rfc9309.allowed:
            return self._by_misspelling(url, robot) or draft if draft.allowed else draft
        return rfc9309 if draft.allowed else replace(draft, also=rfc9309)

    def lines(self, robot: str | bytes, /, *fields: bytes) -> list[Line]:
        """Return the lines of the draft's record, then those of the groups of RFC 9309."""
        lines = [line for each in self._readings() for line in each.lines(robot, *fields)]
        return list(dict.fromkeys(lines))

    def lines_apart(self, robot: str | bytes, /, *fields: bytes) -> list[list[Line]]:
        """Return the lines of each reading apart."""
        return [apart for each in self._readings() for apart in each.lines_apart(robot, *fields)]

    def _by_misspelling(self, url: str | bytes, robot: str | bytes) -> Ruling | None:
        """Return the ruling that only misspelt lines make, None if they forbid nothing."""
        ruling = None if self._corrected is None else self._corrected.ruling(url, robot)
        if ruling is None or ruling.allowed or ruling.rule is None:
            return None
        return replace(ruling, rule=as_written(self._body, ruling.rule), is_misspelt=True)

    def _readings(self) -> list[Reading]:
        readings: list[Reading] = [self._draft, self._rfc9309]
        return readings if self._corrected is None else [*readings, self._corrected]

    def _decide(self, robot: str | bytes) -> Decision:
        return by_any([each.decision(robot) for each in self._readings()])

    @staticmethod
    def _unescape(path: str) -> str:
        return path

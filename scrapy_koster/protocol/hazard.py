"""Why the reading of a crawl allows a URL that another reading forbids.

The draft may allow a URL that RFC 9309 forbids. Both standards may allow a URL that a hidden line
forbids (``unhidden`` in misspelling.py).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from scrapy_koster.protocol.line import Line
from scrapy_koster.protocol.matching import is_special
from scrapy_koster.protocol.misspelling import unhidden
from scrapy_koster.protocol.path import origin_and_path, unescape, unescape_by_rfc9309
from scrapy_koster.protocol.reading import Corrected, Reading, Rfc9309, RobotsTxt
from scrapy_koster.protocol.records import Record
from scrapy_koster.protocol.rewriting import sent_as
from scrapy_koster.protocol.ruling import Heading, Ruling
from scrapy_koster.protocol.wording import because_of


class Cause(Enum):
    """Why an allowed URL is a hazard: the first of these causes that holds."""

    words: str
    """The explanation in the log and in the report."""

    def __new__(cls, value: str, words: str) -> Cause:  # noqa: PYI034
        """Create a cause. *value* is its name in stats and JSON."""
        member = object.__new__(cls)
        member._value_ = value
        member.words = words
        return member

    NAMES = "names", "the two standards obey records for different names"
    ENCODING = "encoding", "the two standards compare escapes such as %2F differently"
    WILDCARDS = "wildcards", "the rule has a * or $, which the draft takes literally"
    AGENTS = "agents", "another field splits the User-agent lines of the group"
    RECORDS = "records", "the rule is in a later record for the same name, which the draft ignores"
    ORDER = "order", "the draft uses the first rule that matches, RFC 9309 the longest"
    OTHER = "other", "the two standards differ"
    HIDDEN = "hidden", "markup or unusual space hides the rule, so neither standard reads it"


class Hazard(NamedTuple):
    """Why a URL is a hazard: the crawl allows the URL, and RFC 9309 or a hidden line forbids it."""

    cause: Cause
    draft: Ruling
    """The allowing ruling: of the draft, or of RFC 9309 if the crawl uses RFC 9309."""
    rfc9309: Ruling
    """The forbidding ruling: of RFC 9309, or by a hidden line."""

    def because(self, robot: str) -> str:
        """Return the allowing and the forbidding ruling in words."""
        allows, forbids = because_of(self.draft, robot), because_of(self.rfc9309, robot)
        if self.cause is Cause.HIDDEN:
            return f"allowed by {allows}, and forbidden by {forbids}, which neither standard reads"
        return f"allowed by the draft, {allows}, and forbidden by RFC 9309, {forbids}"


@dataclass(frozen=True, slots=True)
class Watch:
    """Finds the hazards of a file."""

    reading: Reading
    """The reading that the crawl uses."""
    others: list[Rfc9309]
    """RFC 9309 readings of the file, and of the file with its hidden lines corrected, if any."""

    def hazard(self, url: str, robot: str | bytes) -> Hazard | None:
        """Return the hazard of *url*, an allowed URL, or None if ``others`` allow its spellings."""
        for spelling in sent_as(url):
            for other in self.others:
                # A subclass of the parser may allow the URL although the reading forbids it.
                if not other.allowed(spelling, robot) and self.reading.allowed(spelling, robot):
                    draft = self.reading.ruling(spelling, robot)
                    ruling = other.ruling(spelling, robot)
                    cause = self._cause(spelling, robot, draft, ruling)
                    return Hazard(cause, draft, ruling)
        return None

    def _cause(self, url: str, robot: str | bytes, draft: Ruling, rfc9309: Ruling) -> Cause:
        """Return the first ``Cause`` that holds for *url* and the two rulings."""
        if rfc9309.is_misspelt:
            return Cause.HIDDEN
        assert rfc9309.record is not None  # a rule forbids the URL
        assert rfc9309.rule is not None
        obeyed = self.reading.record(robot)
        if obeyed is None or not self._are_for_one_name(robot, obeyed, rfc9309.record):
            return Cause.NAMES
        deciding = [line for line in (rfc9309.rule, draft.rule) if line]
        if not all(_is_compared_alike(line, url) for line in deciding):
            return Cause.ENCODING
        if any(is_special(_value(line)) for line in deciding):
            return Cause.WILDCARDS
        if rfc9309.rule.number > obeyed.rules[-1].number:
            is_split = rfc9309.record.agents[0].number <= obeyed.rules[-1].number
            return Cause.AGENTS if is_split else Cause.RECORDS
        return Cause.ORDER if draft.rule is not None else Cause.OTHER

    def _are_for_one_name(self, robot: str | bytes, record: Record, group: Heading) -> bool:
        """Whether the draft's record and RFC 9309's group are for the same name, or for "*"."""
        ours = [_value(agent).lower() for agent in record.agents]
        theirs = [_value(agent).lower() for agent in group.agents]
        name = self.reading.name_of(robot)
        if name not in ("", "*") and any(name in agent for agent in ours):
            return name == self.others[0].name_of(robot) and name in ours and name in theirs
        return "*" in theirs


def watch_of(body: bytes, parser: object) -> Watch | None:
    """Return a finder of hazards in *body*, which *parser*, the parser of the crawl, has read.

    None means no hazards: *parser* reads by RFC 9309, and the file has no hidden lines. The result
    is also None if *parser* is not a reading by one standard.
    """
    right = unhidden(body)
    by_rfc9309 = isinstance(parser, Rfc9309)
    if not (isinstance(parser, RobotsTxt) or (by_rfc9309 and right is not None)):
        return None
    # The body is read again, because a subclass may override methods of a reading.
    hidden = [] if right is None else [Corrected(body, right)]
    return Watch(Rfc9309(body) if by_rfc9309 else RobotsTxt(body), [Rfc9309(body), *hidden])


def _is_compared_alike(line: Line, url: str) -> bool:
    """Whether the path of *line* matches *url* by both standards, or by neither.

    The standards decode escapes differently. True for a path with wildcards.
    """
    path, sent = _value(line), origin_and_path(url)[1]
    if is_special(path):
        return True
    by_draft = unescape(sent).startswith(unescape(path))
    return by_draft is unescape_by_rfc9309(sent).startswith(unescape_by_rfc9309(path))


def _value(line: Line) -> str:
    return line.value.decode("latin-1")

"""The answer to "may this URL be fetched?", with what it rests on."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from enum import Enum
from typing import Any

from scrapy_koster.protocol.access import Copy, Failure
from scrapy_koster.protocol.printable import printable
from scrapy_koster.protocol.robotstxt import Line, Record
from scrapy_koster.protocol.site import Site

RFC_9309 = "RFC 9309"
"""The section of a verdict that the draft would not have reached."""

_AGENTS_LISTED = 100
_TEXT_CHARS = 1000
_LAST_SECOND = 253402300799.0  # of the year 9999


class Ground(Enum):
    """What a verdict rests on."""

    RULE = "rule"
    """The site's instructions, or that none of them applies (3.2)."""
    UNRESTRICTED = "unrestricted"
    """There is no /robots.txt (3.1)."""
    RESTRICTED = "restricted"
    """The site answered 401 or 403 (3.1)."""
    UNAVAILABLE = "unavailable"
    """The /robots.txt could not be retrieved (3.1)."""


class Source(Enum):
    """Where the copy that decided came from."""

    FETCHED = "fetched"
    MEMORY = "memory"
    STORAGE = "storage"
    FILE = "file"
    """Given by hand: `scrapy robots explain --robots FILE`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Whether a robot may fetch a URL, and why.

    Text that came from the network is kept as it came: ``str(verdict)`` is
    safe to print, the fields are not.
    """

    allowed: bool
    url: str
    site: Site
    robot: str
    """The name token, in lower case."""
    ground: Ground
    section: str
    """The section of the draft that decided (of RFC 9309 where that is named)."""
    known: Copy | Failure
    """The copy of /robots.txt that decided, or why there is none."""
    source: Source
    record: Record | None = None
    """The record that the robot obeys, None where there is none."""
    rule: Line | None = None
    """The Allow or Disallow line that decided, None where none did."""

    @property
    def robots_url(self) -> str:
        """The URL of the /robots.txt, after redirects."""
        match self.known:
            case Copy(url=url):
                return url
            case Failure():  # pragma: no branch
                return self.site.robots_url

    @property
    def line(self) -> int | None:
        """The number of the line that decided, 1-based."""
        return self.rule.number if self.rule else None

    def to_dict(self) -> dict[str, Any]:
        """Return what JSON can hold of it: text made printable, times in UTC."""
        copy = self.known if isinstance(self.known, Copy) else None
        failure = self.known if isinstance(self.known, Failure) else None
        dated = copy is not None and self.source is not Source.FILE
        return {
            "url": printable(self.url, _TEXT_CHARS),
            "site": str(self.site),
            "robot": self.robot,
            "allowed": self.allowed,
            "ground": self.ground.value,
            "section": self.section,
            "because": self.because(),
            "line": self.line,
            "rule": text_of(self.rule, _TEXT_CHARS) if self.rule else None,
            "record": _record(self.record) if self.record else None,
            "robots_url": printable(self.robots_url, _TEXT_CHARS),
            "status": copy.status if copy else None,
            "fetched": utc(copy.fetched) if copy and dated else None,
            "expires": utc(copy.expires) if copy and dated else None,
            "reason": printable(failure.reason) if failure else None,
            "retry": utc(failure.retry) if failure else None,
            "source": self.source.value,
        }

    def because(self) -> str:
        """Return in words, safe to print, what decided."""
        match self.known:
            case Failure(reason=reason, attempts=attempts):
                tries = "1 attempt" if attempts == 1 else f"{attempts} attempts"
                why = f"it cannot be retrieved ({printable(reason)}), {tries} failed"
            case Copy(status=status) if self.ground is not Ground.RULE:
                why = f"HTTP {status}, {self.ground.value}"
            case Copy():  # pragma: no branch
                why = self._because_of_rules()
        return f"{why} ({self.section})"

    def _because_of_rules(self) -> str:
        if self.section == RFC_9309:
            return "the draft allows it, and RFC 9309 does not"
        if self.record is None:
            return f"no record for {self.robot or '*'}"
        if self.rule is None:
            return f"no rule of the {_title(self.record)} matches"
        rule = text_of(self.rule, 200)
        return f"line {self.rule.number} '{rule}' of the {_title(self.record)}"

    def __str__(self) -> str:
        """One line: what was decided, where that stands, for which robot."""
        may = "allowed" if self.allowed else "forbidden"
        return f"{may} by {printable(self.robots_url)}: {self.because()}"


def shown(text: bytes, limit: int) -> str:
    """Return octets that are UTF-8 if they can be as printable text."""
    # A character is four octets at most: what is cut here is not shown.
    return printable(text[: 4 * limit + 4].decode(errors="backslashreplace"), limit)


def text_of(line: Line, limit: int) -> str:
    """Return a line as printable text, "Field: value"."""
    field = shown(line.field.capitalize(), limit)
    return printable(f"{field}: {shown(line.value, limit)}", limit)


def utc(seconds: float) -> str:
    """Return a time, in seconds since the epoch, as ISO 8601 has it."""
    epoch = datetime(1970, 1, 1, tzinfo=timezone.utc)
    whole = int(min(max(seconds, 0.0), _LAST_SECOND))
    return (epoch + timedelta(seconds=whole)).strftime("%Y-%m-%dT%H:%M:%SZ")


def _title(record: Record) -> str:
    agents = ", ".join(shown(agent.value, 40) for agent in record.agents[:3])
    more = ", ..." if len(record.agents) > 3 else ""
    return f"record at line {record.agents[0].number} for {agents}{more}"


def _record(record: Record) -> dict[str, Any]:
    agents = [shown(agent.value, _TEXT_CHARS) for agent in record.agents[:_AGENTS_LISTED]]
    return {"line": record.agents[0].number, "agents": agents}

"""The answer to "may this URL be fetched?", with what it rests on."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from enum import Enum
from typing import Any, Protocol, TypeAlias, runtime_checkable

from scrapy_koster.protocol.access import Access, Copy, Failure, Policy, access
from scrapy_koster.protocol.delay import Delay
from scrapy_koster.protocol.line import Line
from scrapy_koster.protocol.nametoken import name_token
from scrapy_koster.protocol.path import is_robots_txt
from scrapy_koster.protocol.printable import printable
from scrapy_koster.protocol.rewriting import sent_as
from scrapy_koster.protocol.ruling import Heading, Ruling, Standard
from scrapy_koster.protocol.site import Site
from scrapy_koster.protocol.step import Obey, Pass, Refuse

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
    MISSING = "missing"
    """There is no /robots.txt, or it has no record, and KOSTER_MISSING disallows that (3.1)."""
    UNAVAILABLE = "unavailable"
    """The /robots.txt could not be retrieved (3.1)."""


class Source(Enum):
    """Where the copy that decided came from."""

    FETCHED = "fetched"
    MEMORY = "memory"
    STORAGE = "storage"
    FILE = "file"
    """Given by hand: `scrapy robots explain --robots FILE`."""


class Parser(Protocol):
    """What has read a file, and answers for it."""

    def allowed(self, url: str, robot: str | bytes, /) -> bool:
        """Whether *robot*, a name token or a User-Agent header, may fetch *url*."""
        ...


@runtime_checkable
class PacingParser(Parser, Protocol):
    """A parser that can tell how far apart visits are to be."""

    def delay(self, robot: str | bytes, /) -> Delay | None:
        """Return the longest delay that *robot* is asked to keep, None if there is none."""
        ...


def delay_of(parser: Any, robot: str | bytes) -> Delay | None:
    """Return the delay that *parser* finds; where it tells no line, what ``crawl_delay`` says."""
    if isinstance(parser, PacingParser):
        return parser.delay(robot)
    crawl_delay = getattr(parser, "crawl_delay", None)  # which Scrapy has since 2.18
    secs = crawl_delay(robot) if crawl_delay else None
    return Delay(float(secs), None) if secs and 0 < secs < math.inf else None


@runtime_checkable
class ExplainingParser(Parser, Protocol):
    """A parser that can tell which line decided."""

    def ruling(self, url: str, robot: str | bytes, /) -> Ruling:
        """Return what ``allowed`` returns, with the line that decided."""
        ...


Settled: TypeAlias = Obey | Pass | Refuse
"""The steps by which a request is decided."""

Permission: TypeAlias = Callable[[str, str | bytes], bool]
"""Whether a robot (the second) may fetch a URL (the first) of one site."""


def permission(step: Settled, parser: Parser | None, policy: Policy) -> Permission:
    """Return what decides on the URLs of a site.

    *parser* has read the body of the copy; it is needed where access is by rules.
    """
    match step:
        case Obey(copy):
            match access(copy, policy):
                case Access.RULES:
                    assert parser is not None
                    return parser.allowed
                case Access.UNRESTRICTED:
                    return _everything
                case Access.RESTRICTED | Access.MISSING:  # pragma: no branch
                    return _robots_txt_only
        case Pass():
            return _everything
        case Refuse():  # pragma: no branch
            return _robots_txt_only


def _everything(_url: str, _robot: str | bytes) -> bool:
    return True


def _robots_txt_only(url: str, _robot: str | bytes) -> bool:
    return is_robots_txt(url)


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
    """The section of the standard that decided, or a parser that tells no more than that."""
    known: Copy | Failure
    """The copy of /robots.txt that decided, or why there is none."""
    source: Source
    record: Heading | None = None
    """The record that the robot obeys, None where there is none."""
    rule: Line | None = None
    """The Allow or Disallow line that decided, None where none did."""
    standard: Standard = Standard.DRAFT
    """By which the file was read."""
    also: Ruling | None = None
    """What the other standard says, where both were asked and both forbid it."""
    delay: Delay | None = None
    """For which the site is not visited, where that decided."""
    spelling: str | None = None
    """What ``url`` may be sent as, where that decided and not ``url`` as it stands."""
    is_explained: bool = True
    """False where the parser can only answer yes or no; ``section`` is its class then."""

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
            "sent_as": printable(self.spelling, _TEXT_CHARS) if self.spelling else None,
            "site": str(self.site),
            "robot": self.robot,
            "allowed": self.allowed,
            "ground": self.ground.value,
            "standard": self.standard.value if self.is_explained else None,
            "section": self.section,
            "because": self.because(),
            "line": self.line,
            "rule": text_of(self.rule, _TEXT_CHARS) if self.rule else None,
            "record": _record(self.record) if self.record else None,
            "crawl_delay": delay_to_dict(self.delay) if self.delay else None,
            "also": ruling_to_dict(self.also, self.robot) if self.also else None,
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
        if self.delay is not None:
            return f"{_asked(self.delay)}, which is longer than KOSTER_CRAWL_DELAY_MAX_SECS"
        if not self.is_explained:
            return f"as {printable(self.section)} reads it, which names no line"
        match self.known:
            case Failure(reason=reason, attempts=attempts):
                tries = "1 attempt" if attempts == 1 else f"{attempts} attempts"
                why = f"it cannot be retrieved ({printable(reason)}), {tries} failed"
            case Copy(status=status) if self.ground is Ground.MISSING:
                what = " without a record" if status < 300 else ""
                why = f"HTTP {status}{what}, missing, which KOSTER_MISSING disallows"
            case Copy(status=status) if self.ground is not Ground.RULE:
                why = f"HTTP {status}, {self.ground.value}"
            case Copy():  # pragma: no branch
                return self._because_of_rules()
        return f"{why} ({self.section})"

    def _because_of_rules(self) -> str:
        ruling = Ruling(self.allowed, self.section, self.record, self.rule, self.standard)
        why = because_of(ruling, self.robot)
        return f"{why} and {because_of(self.also, self.robot)}" if self.also else why

    def __repr__(self) -> str:
        """Section 6: short and printable, for that of a Failure in an errback has it."""
        return f"<{printable(self.url)}: {self}>"

    def __str__(self) -> str:
        """One line: what was decided, where that stands, for which robot."""
        may = "allowed" if self.allowed else "forbidden"
        return f"{may} by {printable(self.robots_url)}: {self.because()}"


def verdict_on(
    url: str,
    robot: str | bytes,
    *,
    site: Site,
    step: Settled,
    parser: Parser | None,
    source: Source,
    policy: Policy,
    too_long: Delay | None = None,
) -> Verdict:
    """Return the verdict on *url*, a URL of *site*, in the spellings that may be sent.

    The first that is forbidden decides, or *url* as it stands; or a delay that is *too_long*.
    """
    allows = permission(step, parser, policy)
    forbidden = next((each for each in sent_as(url) if not allows(each, robot)), None)
    spelling = url if forbidden is None else forbidden
    ground = _ground(step, policy)
    told = _told(parser, spelling, robot) if ground is Ground.RULE else None
    delay = too_long if forbidden is None else None
    if delay is not None:
        ground, told = Ground.RULE, _slow(delay)
    return Verdict(
        allowed=forbidden is None and delay is None,
        url=url,
        site=site,
        robot=name_token(robot),
        ground=ground,
        section=told.section if told else "3.1",
        known=step.copy if isinstance(step, Obey) else step.failure,
        source=source,
        record=told.record if told else None,
        rule=told.rule if told else None,
        standard=told.standard if told else Standard.DRAFT,
        also=told.also if told else None,
        delay=delay,
        spelling=None if spelling == url else spelling,
        is_explained=told is None or isinstance(parser, ExplainingParser),
    )


def _ground(step: Settled, policy: Policy) -> Ground:
    match step:
        case Obey(copy):
            return _GROUNDS[access(copy, policy)]
        case Pass() | Refuse():  # pragma: no branch
            return Ground.UNAVAILABLE


_GROUNDS = {
    Access.RULES: Ground.RULE,
    Access.UNRESTRICTED: Ground.UNRESTRICTED,
    Access.RESTRICTED: Ground.RESTRICTED,
    Access.MISSING: Ground.MISSING,
}


def _told(parser: Parser | None, url: str, robot: str | bytes) -> Ruling:
    if isinstance(parser, ExplainingParser):
        return parser.ruling(url, robot)
    # KOSTER_PARSER is a class that can only answer yes or no.
    return Ruling(allowed=False, section=type(parser).__name__, record=None, rule=None)


def _slow(delay: Delay) -> Ruling:
    return Ruling(allowed=False, section="3.2", record=None, rule=delay.line)  # "extension"


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


def because_of(ruling: Ruling, robot: str) -> str:
    """Return in words, safe to print, what decided of a file that *robot* obeys."""
    by_draft = ruling.standard is Standard.DRAFT
    noun = "record" if by_draft else "group"
    section = ruling.section if by_draft else f"{ruling.standard.value}, {ruling.section}"
    if ruling.record is None:
        return f"no {noun} for {robot or '*'} ({section})"
    title = f"{noun} {_title(ruling.record)}"
    if ruling.rule is None:
        return f"no rule of the {title} matches ({section})"
    return f"line {ruling.rule.number} '{text_of(ruling.rule, 200)}' of the {title} ({section})"


def ruling_to_dict(ruling: Ruling, robot: str) -> dict[str, Any]:
    """Return what JSON can hold of *ruling*: text made printable."""
    return {
        "allowed": ruling.allowed,
        "section": ruling.section,
        "because": because_of(ruling, robot),
        "line": ruling.rule.number if ruling.rule else None,
        "rule": text_of(ruling.rule, _TEXT_CHARS) if ruling.rule else None,
        "record": _record(ruling.record) if ruling.record else None,
    }


def delay_to_dict(delay: Delay) -> dict[str, Any]:
    """Return what JSON can hold of *delay*: text made printable."""
    line = delay.line
    return {
        "secs": delay.secs,
        "line": line.number if line else None,
        "rule": text_of(line, _TEXT_CHARS) if line else None,
    }


def _asked(delay: Delay) -> str:
    if delay.line is None:
        return f"it asks for {delay.secs:g} s between two visits"
    return f"line {delay.line.number} '{text_of(delay.line, 200)}'"


def _title(record: Heading) -> str:
    agents = ", ".join(shown(agent.value, 40) for agent in record.agents[:3])
    more = ", ..." if len(record.agents) > 3 else ""
    return f"at line {record.agents[0].number} for {agents}{more}"


def _record(record: Heading) -> dict[str, Any]:
    agents = [shown(agent.value, _TEXT_CHARS) for agent in record.agents[:_AGENTS_LISTED]]
    return {"line": record.agents[0].number, "agents": agents}

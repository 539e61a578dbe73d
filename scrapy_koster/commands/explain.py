"""``scrapy robots explain``: the verdict on a URL, and the lines it rests on."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from scrapy_koster.crawl.sites import is_robots_txt
from scrapy_koster.parsers.koster import ruling
from scrapy_koster.parsers.rfc9309 import Rfc9309
from scrapy_koster.protocol.access import Access, Copy, Obey, Pass, Policy, Refuse, access
from scrapy_koster.protocol.nametoken import name_token
from scrapy_koster.protocol.printable import printable
from scrapy_koster.protocol.robotstxt import Ruling, lines
from scrapy_koster.protocol.verdict import Ground, Verdict, shown

if TYPE_CHECKING:
    from scrapy.robotstxt import RobotParser

    from scrapy_koster.commands.ask import Learnt
    from scrapy_koster.commands.ink import Ink
    from scrapy_koster.protocol.site import Site

ALLOWED, FORBIDDEN, UNAVAILABLE = 0, 1, 3
"""Exit statuses; 2 is for wrong usage."""

_AROUND = 2
_HEAD = 3
_WIDTH = 100


@dataclass(frozen=True, slots=True)
class Explained:
    """A verdict, with what a reader of RFC 9309 would say."""

    verdict: Verdict
    rfc9309: bool

    @property
    def status(self) -> int:
        """The exit status that says it."""
        if self.verdict.allowed:
            return ALLOWED
        return UNAVAILABLE if self.verdict.ground is Ground.UNAVAILABLE else FORBIDDEN


def explain(url: str, site: Site, robot: str, learnt: Learnt, policy: Policy) -> Explained:
    """Return what a crawl would do with *url*, and why."""
    match learnt.step:
        case Obey(copy) if access(copy, policy) is Access.RULES:
            assert learnt.parser is not None
            said = _ruling(learnt.parser, url, robot)
            ground, rfc9309 = Ground.RULE, Rfc9309(copy.body).allowed(url, robot)
        case Obey(copy) if access(copy, policy) is Access.RESTRICTED:
            # RFC 9309, 2.3.1.3: 400 to 499, "the crawler MAY access any resources"
            said, ground, rfc9309 = _told(allowed=is_robots_txt(url)), Ground.RESTRICTED, True
        case Obey():
            said, ground, rfc9309 = _told(allowed=True), Ground.UNRESTRICTED, True
        case Pass():
            # RFC 9309, 2.3.1.4: "the crawler MUST assume complete disallow"
            said, ground, rfc9309 = _told(allowed=True), Ground.UNAVAILABLE, False
        case Refuse():  # pragma: no branch
            said, ground, rfc9309 = _told(allowed=is_robots_txt(url)), Ground.UNAVAILABLE, False
    known = learnt.step.copy if isinstance(learnt.step, Obey) else learnt.step.failure
    verdict = Verdict(
        allowed=said.allowed,
        url=url,
        site=site,
        robot=name_token(robot),
        ground=ground,
        section=said.section,
        known=known,
        source=learnt.source,
        record=said.record,
        rule=said.rule,
    )
    return Explained(verdict, rfc9309 or is_robots_txt(url))


def _ruling(parser: RobotParser, url: str, robot: str) -> Ruling:
    said = ruling(parser, url, robot)
    if said is not None:
        return said
    # KOSTER_PARSER is a class that can only answer yes or no.
    allowed, name = parser.allowed(url, robot), type(parser).__name__
    return Ruling(allowed=allowed, section=name, record=None, rule=None)


def _told(*, allowed: bool) -> Ruling:
    return Ruling(allowed=allowed, section="3.1", record=None, rule=None)


def as_json(explained: Explained) -> str:
    """Return one JSON object in one line."""
    verdict = explained.verdict.to_dict()
    return json.dumps({**verdict, "rfc9309": {"allowed": explained.rfc9309}})


def as_text(explained: Explained, ink: Ink) -> Iterator[str]:
    """Yield lines for people."""
    verdict = explained.verdict
    paint = ink.green if verdict.allowed else ink.red
    may = "allowed" if verdict.allowed else "forbidden"
    if explained.status == UNAVAILABLE:
        paint, may = ink.yellow, "unavailable"
    yield f"{paint(may)} {ink.bold(printable(verdict.url, 1000))}"
    yield ""
    context = list(_context(verdict, ink))
    if context:
        yield from context
        yield ""
    for name, value in _facts(explained):
        yield f"  {ink.dim(f'{name:<9}')} {value}"


def _facts(explained: Explained) -> Iterator[tuple[str, str]]:
    verdict = explained.verdict
    facts = verdict.to_dict()
    yield "robot", printable(verdict.robot) or "(no name token: only the * record can apply)"
    yield "because", verdict.because()
    if facts["status"] is None:
        yield "robots", facts["robots_url"]
        yield "retry", f"not asked again before {facts['retry']}"
    else:
        yield "robots", f"{facts['robots_url']}, HTTP {facts['status']}"
    if facts["fetched"] is not None:
        yield "fetched", f"{facts['fetched']}, fresh until {facts['expires']}"
    yield "source", verdict.source.value
    if explained.rfc9309 is not verdict.allowed:
        yield "RFC 9309", "would allow it" if explained.rfc9309 else "would forbid it"


def _context(verdict: Verdict, ink: Ink) -> Iterator[str]:
    """Yield the agent lines of the record and the lines around the rule."""
    known, record, rule = verdict.known, verdict.record, verdict.rule
    if record is None or not isinstance(known, Copy):
        return
    text = lines(known.body)
    start = record.agents[0].number
    numbers = {agent.number for agent in record.agents[:_HEAD]}
    end = max(record.rules[-1].number, record.agents[-1].number)
    middle = rule.number if rule else record.rules[0].number
    numbers.update(range(max(start, middle - _AROUND), min(end, middle + _AROUND) + 1))
    before = start - 1
    for number in sorted(numbers):
        if number > before + 1:
            yield ink.dim(f"  {'...':>7}")
        before = number
        line = shown(text[number - 1], _WIDTH)
        if rule is not None and number == rule.number:
            yield ink.bold(f"> {number:>7}  {line}")
        else:
            yield f"  {ink.dim(f'{number:>7}')}  {line}"
    if before < end:
        yield ink.dim(f"  {'...':>7}")

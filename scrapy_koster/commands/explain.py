"""``scrapy robots explain``: the verdict on a URL, and the lines that decide."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from time import time
from typing import Any

from scrapy.exceptions import UsageError

from scrapy_koster.commands.lookup import NO_ANSWER, Basis, archived_basis, basis_of
from scrapy_koster.commands.output import Line, bold, dim, green, red, yellow
from scrapy_koster.commands.subcommand import (
    AGENT,
    ARCHIVE,
    JSON,
    NOT_RETRIEVED,
    Run,
    Subcommand,
    argument,
    robot_in,
    site_named,
    time_of,
)
from scrapy_koster.crawl.decision import decide
from scrapy_koster.crawl.states import Facts, SiteState
from scrapy_koster.protocol.access import Answer, CachedRobots, after_answer, last_copy
from scrapy_koster.protocol.delay import Delay, delay_or_limit
from scrapy_koster.protocol.hazard import Hazard, watch_of
from scrapy_koster.protocol.html_page import is_html
from scrapy_koster.protocol.line import is_wide, lines
from scrapy_koster.protocol.misspelling import has_only_other_lines
from scrapy_koster.protocol.path import is_robots_txt
from scrapy_koster.protocol.printable import error_text, printable
from scrapy_koster.protocol.reading import Reading, Rfc9309, RobotsTxt
from scrapy_koster.protocol.rewriting import sent_as
from scrapy_koster.protocol.ruling import Ruling, Standard
from scrapy_koster.protocol.site_status import Ground
from scrapy_koster.protocol.sitemap import sitemaps_in
from scrapy_koster.protocol.usage import Usage, worded
from scrapy_koster.protocol.verdict import Source, Verdict
from scrapy_koster.protocol.wording import (
    STANDARD_KEYS,
    TEXT_CHARS,
    because_of,
    ruling_to_dict,
    shown,
    utc,
)

_MAY = {True: "allowed", False: "forbidden"}
_OUTCOMES = {"allowed": (0, green), "forbidden": (1, red), "unavailable": (NOT_RETRIEVED, yellow)}
"""The exit status for an outcome, and the function that paints the word."""
_FILES = {
    "HTML": "an HTML page: only its lines that are valid in a robots.txt are obeyed",
    "text": "text without a line of a robots.txt, such as a log or an error message",
    "UTF-16": "UTF-16 or UTF-32: it is decoded here, and many robots can read no line of it",
    "cut": "longer than KOSTER_MAX_BYTES: the rest is not read, and other robots may read more",
}
_STATEMENTS = 10
_AROUND = 2
_HEAD = 3
_WIDTH = 100


@dataclass(frozen=True, slots=True)
class Explained:
    """A verdict, and the rulings of both standards."""

    verdict: Verdict
    rulings: dict[Standard, Ruling] | None
    """None if rules do not decide, for example after HTTP 404 or 403."""
    delay: Delay | None
    """The delay that the site requests, even if your crawl ignores delays. None without a delay.

    If the parser fails, the delay is KOSTER_CRAWL_DELAY_MAX_SECS.
    """
    hazard: Hazard | None
    """Set if the parser allows the URL, but RFC 9309 or a hidden line forbids the URL."""
    usage: Usage
    """The usage preferences in the robots.txt for the URL, empty if a rule forbids the URL."""
    basis: Basis

    @property
    def file(self) -> str | None:
        """The kind of an unusual file: "HTML", "text", "cut" or "UTF-16" (or UTF-32), or None."""
        if not isinstance(known := self.verdict.known, CachedRobots):
            return None
        if is_html(known.body):
            return "HTML"
        if has_only_other_lines(known.body):
            return "text"
        return "cut" if known.cut_bytes else "UTF-16" if is_wide(known.body) else None

    @property
    def paced(self) -> str | None:
        """The requested delay and its effect on the crawl in words, or None without a delay."""
        if self.delay is None:
            return None
        where = f" (line {self.delay.line.number})" if self.delay.line else ""
        words = f"{self.delay.secs:g} s between two visits{where}"
        pace = self.basis.config.pace
        secs = pace.kept(self.delay.secs)
        if pace.too_long(self.delay):
            effect = "too long, the site is not visited"
        elif secs < self.delay.secs:
            effect = f"{secs:g} s are kept, KOSTER_CRAWL_DELAY_MAX_SECS"
        else:
            effect = "kept"
        ignored = "" if pace.obeys else 'ignored; with KOSTER_CRAWL_DELAY = "obey" '
        return f"{words}: {ignored}{effect}"

    @property
    def rfc9309(self) -> bool:
        """Whether RFC 9309 allows the URL."""
        if self.rulings is not None:
            return self.rulings[Standard.RFC_9309].allowed
        # RFC 9309, 2.3.1.3, for a status of 400 to 499: "the crawler MAY access any resources".
        # 2.3.1.4, for an unreachable file: "the crawler MUST assume complete disallow".
        return isinstance(self.verdict.known, CachedRobots) or is_robots_txt(self.verdict.url)


class Explain(Subcommand):
    """Show which line allows or forbids a URL.

    A fresh copy of the site's robots.txt from the storage is used. Otherwise the robots.txt is
    fetched as your crawl would fetch it.
    """

    example = "scrapy robots explain --robots robots.txt --agent GPTBot https://example.com/private"
    answers = "0 allowed, 1 forbidden"
    arguments = (
        argument("urls", nargs="+", metavar="URL", help="URL of a page, or a host"),
        AGENT,
        argument("--robots", metavar="FILE", help="use this robots.txt; - is stdin"),
        argument("--refresh", action="store_true", help="fetch it despite a fresh copy"),
        argument("--at", metavar="TIME", help="use the archived copy of that time (UTC)"),
        ARCHIVE,
        JSON,
    )

    def run(self, run: Run) -> Iterator[Line]:
        """Yield the verdicts."""
        opts = run.opts
        if (opts.robots is not None) + opts.refresh + (opts.at is not None) > 1:
            raise UsageError("give one of --robots, --refresh and --at")

        def failed(error: Exception) -> None:
            run.warn(f"KOSTER_CRAWL_DELAY_MAX_SECS is kept, no delay is read: {error_text(error)}")

        run.warn_if_not_obeyed()
        robot = robot_in(opts.agent or "")
        origin = "" if opts.agent in (None, robot) else ", from the header"
        urls = [*map(run.requested, opts.urls)]
        bases, missing = _bases(run, urls)
        between: list[Line] = []
        for url in urls:
            if (basis := bases.get(url)) is None:
                run.warn(f"{printable(url)}: {missing}", NOT_RETRIEVED)
                continue
            explained = explain(url, robot or basis.robot, basis, failed=failed)
            run.worse(_OUTCOMES[outcome_of(explained.verdict)][0])
            yield from between
            between = [] if opts.json else [""]
            yield from run.answer(_as_dict(explained), _as_text(explained, origin))


def _bases(run: Run, urls: list[str]) -> tuple[Mapping[str, Basis | None], str]:
    """Return the basis of the decision on each URL, and the message for a URL without a basis."""
    opts, config = run.opts, run.config
    if opts.at is not None:
        at, folder = time_of(opts.at), run.archive("scrapy robots explain --at")
        at += 0.999 if at.is_integer() else 0.0  # times are printed without their fraction
        archived = {
            url: archived_basis(folder, site_named(url), at, settings=run.settings) for url in urls
        }
        return archived, "the archive has nothing about its site by then"
    if opts.robots is None:
        return run.look_up(urls, refresh=opts.refresh), NO_ANSWER
    (body, cut), now = run.robots_txt(opts.robots), time()
    bases = {}
    for url in urls:
        site = site_named(url)
        answer = Answer(site.robots_url, 200, {}, body, cut)
        known = after_answer(answer, None, now=now, policy=config.policy, jitter=0.0)
        bases[url] = basis_of(site, known, Source.FILE, at=now, config=config, crawler=run.crawler)
    return bases, NO_ANSWER


def outcome_of(verdict: Verdict) -> str:
    """Return "allowed", "forbidden", or "unavailable" if the robots.txt was not retrieved."""
    if verdict.allowed:
        return "allowed"
    return "unavailable" if verdict.ground is Ground.UNAVAILABLE else "forbidden"


def explain(
    url: str, robot: str, basis: Basis, *, failed: Callable[[Exception], None]
) -> Explained:
    """Return the decision of a crawl on *url*, with the reasons.

    *failed* is called with the error if the parser fails to return the delay.
    """
    config = basis.config
    delay = delay_or_limit(basis.parser, robot, pace=config.pace, failed=failed)
    state = SiteState(site_named(url))
    state.learn(Facts(source=basis.source, parser=basis.parser, usage=basis.usage()))
    decision = decide(url, robot, state, basis.step, delay=delay, config=config, now=basis.time)
    verdict = decision.verdict()
    rulings, hazard = _rulings(verdict, robot), None
    decides = verdict.allowed and rulings and verdict.override is None
    if decides and isinstance(verdict.known, CachedRobots):
        watch = watch_of(verdict.known.in_utf8, basis.parser)
        hazard = watch.hazard(url, robot) if watch else None
    usage = Usage(decision.statements, labels=config.usage.labels)
    requested = delay if delay and delay.secs else None
    return Explained(verdict, rulings, requested, hazard, usage, basis)


def _rulings(verdict: Verdict, robot: str) -> dict[Standard, Ruling] | None:
    """Return the rulings of both standards, or None if rules do not decide about the site."""
    by_rules = (Ground.RULE, Ground.DELAY, Ground.OVERRIDE, Ground.USAGE)
    copy = verdict.known
    if verdict.ground not in by_rules or not isinstance(copy, CachedRobots):
        return None
    if copy.status in (401, 403):  # an override has opened the site
        return None
    readings = (RobotsTxt(copy.body), Rfc9309(copy.body))
    return {reading.standard: _ruling(reading, verdict.url, robot) for reading in readings}


def _ruling(reading: Reading, url: str, robot: str) -> Ruling:
    """Return the ruling on the first forbidden spelling in which *url* can be sent.

    If no spelling is forbidden, return the ruling on *url*.
    """
    rulings = [reading.ruling(each, robot) for each in sent_as(url)]
    return next((ruling for ruling in rulings if not ruling.allowed), reading.ruling(url, robot))


def _as_dict(explained: Explained) -> dict[str, Any]:
    """Return the JSON object of a URL."""
    verdict, outcome = explained.verdict, explained.basis.outcome
    facts = {**verdict.to_dict(), "rfc9309": {"allowed": explained.rfc9309}}
    facts["hazard"] = explained.hazard.cause.value if explained.hazard else None
    facts["stricter"] = verdict.rfc9309 is not None
    facts["file"] = explained.file
    if explained.delay is not None:
        facts["crawl_delay"] = explained.delay.to_dict()
    for standard, ruling in (explained.rulings or {}).items():
        facts[STANDARD_KEYS[standard]] = ruling_to_dict(ruling, verdict.robot)
    facts["sitemaps"] = sitemaps_in(
        verdict.known.body if isinstance(verdict.known, CachedRobots) else b""
    )
    facts["usage"] = explained.usage.to_dict()
    if outcome is not None:
        facts["at"], facts["learnt"] = utc(explained.basis.time), utc(outcome.at)
        facts["is_current"], facts["warc"] = explained.basis.is_current, outcome.warc.name
    return facts


def _as_text(explained: Explained, origin: str) -> Iterator[Line]:
    """Yield lines for people. *origin* is added to the name of the robot."""
    verdict = explained.verdict
    outcome = outcome_of(verdict)
    yield _OUTCOMES[outcome][1](outcome), " ", bold(printable(verdict.url, TEXT_CHARS))
    yield ""
    if context := list(_context(explained)):
        yield from context
        yield ""
    for name, value in (*_facts(explained, origin), *_evidence(explained.basis)):
        yield "  ", dim(f"{name:<9}"), f" {value}"


def _context(explained: Explained) -> Iterator[Line]:
    """Yield the deciding lines of the robots.txt, by both standards, with the lines around them."""
    verdict, rulings = explained.verdict, explained.rulings
    if rulings is None or not isinstance(verdict.known, CachedRobots):
        return
    text = lines(verdict.known.in_utf8.rstrip(b"\r\n"))
    marks = {standard: ruling.rule.number for standard, ruling in rulings.items() if ruling.rule}
    shown_by = (*rulings.values(), verdict.ruling)
    numbers = sorted({number for ruling in shown_by for number in _around(ruling, text)})
    if numbers:
        yield dim(f"  {'draft':>5}  {'RFC 9309':>8}")
    before = None
    for number in numbers:
        if before is not None and number > before + 1:
            yield dim(f"{'...':>26}")
        before = number
        columns = [">" if marks.get(standard) == number else "" for standard in Standard]
        line = f"  {columns[0]:>5}  {columns[1]:>8} {number:>7}  {shown(text[number - 1], _WIDTH)}"
        yield bold(line) if any(columns) else line


def _around(ruling: Ruling, text: list[bytes]) -> Iterator[int]:
    """Yield the numbers of the first User-agent lines of the record, and of lines around the rule.

    Without a rule, the lines are around the end of the User-agent lines.
    """
    if ruling.record is None:
        return
    agents = [agent.number for agent in ruling.record.agents]
    yield from agents[:_HEAD]
    middle = ruling.rule.number if ruling.rule else agents[-1] + 1
    yield from range(max(agents[0], middle - _AROUND), min(len(text), middle + _AROUND) + 1)


def _facts(explained: Explained, origin: str) -> Iterator[tuple[str, str]]:
    verdict = explained.verdict
    facts = verdict.to_dict()
    name = printable(verdict.robot) or "(no name token: only the * record can apply)"
    several = f", of {printable(', '.join(verdict.names))}" if verdict.names else ""
    yield "robot", f"{name}{several}{origin}"
    if facts["sent_as"] is not None:
        yield "sent as", f"{facts['sent_as']} by some download handlers"
    yield "because", verdict.because()
    if facts["status"] is None:
        yield "robots", facts["robots_url"]
        yield "retry", f"not asked again before {facts['retry']}"
    else:
        yield "robots", f"{facts['robots_url']}, HTTP {facts['status']}"
    if explained.file is not None:
        yield "file", _FILES[explained.file]
    if facts["fetched"] is not None:
        yield "fetched", f"{facts['fetched']}, fresh until {facts['expires']}"
    yield from _compared(explained)
    if explained.paced is not None:
        yield "delay", explained.paced
    for number, statement in enumerate(explained.usage.statements[:_STATEMENTS]):
        states = worded(statement.stated) or "nothing"
        yield "" if number else "usage", f"{states} by {statement}"
    yield "source", verdict.source.value
    if explained.rulings is None:
        yield "RFC 9309", _MAY[explained.rfc9309]
        return
    for standard, ruling in explained.rulings.items():
        by = " by" if ruling.rule else ","
        yield standard.value, f"{_MAY[ruling.allowed]}{by} {because_of(ruling, verdict.robot)}"


def _compared(explained: Explained) -> Iterator[tuple[str, str]]:
    """Yield the facts if RFC 9309, or a hidden line, decides otherwise than the crawl."""
    if explained.hazard is not None:
        yield "hazard", f"{explained.hazard.cause.words} (cause: {explained.hazard.cause.value})"
    if explained.verdict.rfc9309 is not None:
        yield "stricter", 'KOSTER_PARSER = "scrapy_koster.Rfc9309RobotParser" allows the URL'


def _evidence(basis: Basis) -> Iterator[tuple[str, str]]:
    """Yield the facts about the archived result, if ``--at`` is used."""
    if (outcome := basis.outcome) is None:
        return
    copy = last_copy(outcome.known)
    yield "at", f"{utc(basis.time)}, learnt {utc(outcome.at)}"
    if not basis.is_current:
        yield "", "expired by then: a crawl would have fetched it again first"
    if copy is not None:
        yield "digest", printable(copy.digest)
        yield "record", printable(copy.record_id or "")
    yield "archive", printable(str(outcome.warc), TEXT_CHARS)

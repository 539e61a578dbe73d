"""``scrapy robots explain``: the verdict on a URL, and the lines that decide."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from time import time
from typing import Any

from scrapy.exceptions import UsageError

from scrapy_koster.commands.explained import Explained, explain, outcome_of
from scrapy_koster.commands.lookup import NO_ANSWER, Basis, archived_basis, basis_of
from scrapy_koster.commands.style import Line, bold, dim, green, red, yellow
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
from scrapy_koster.protocol.access import Answer, Copy, after_answer, last_copy
from scrapy_koster.protocol.line import lines, whole_lines
from scrapy_koster.protocol.printable import error_text, printable
from scrapy_koster.protocol.ruling import Ruling, Standard
from scrapy_koster.protocol.sitemap import sitemaps_in
from scrapy_koster.protocol.usage import worded
from scrapy_koster.protocol.verdict import Source
from scrapy_koster.protocol.wording import (
    STANDARD_KEYS,
    TEXT_CHARS,
    because_of,
    ruling_to_dict,
    shown,
    utc,
)

_DELAY_NOT_READ = "Error while reading the delay, KOSTER_CRAWL_DELAY_MAX_SECS is kept: {}"

_MAY = {True: "allowed", False: "forbidden"}
_OUTCOMES = {"allowed": (0, green), "forbidden": (1, red), "unavailable": (NOT_RETRIEVED, yellow)}
"""The exit status for an outcome, and the function that paints the word."""
_FILES = {
    "HTML": "an HTML page, and no robots.txt",
    "UTF-16": "UTF-16 or UTF-32: it is decoded here, and many robots can read no line of it",
}
_STATEMENTS = 10
_AROUND = 2
_HEAD = 3
_WIDTH = 100


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
            run.warn(_DELAY_NOT_READ.format(error_text(error)))

        agent = opts.agent or ""
        robot = robot_in(agent)
        origin = "" if robot == agent else ", from the header"
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
    body, now = whole_lines(run.read(opts.robots), config.max_bytes), time()
    bases = {}
    for url in urls:
        answer = Answer(site_named(url).robots_url, 200, {}, body)
        known = after_answer(answer, None, now=now, policy=config.policy, jitter=0.0)
        bases[url] = basis_of(known, Source.FILE, at=now, config=config, crawler=run.crawler)
    return bases, NO_ANSWER


def _as_dict(explained: Explained) -> dict[str, Any]:
    """Return the JSON object of a URL."""
    verdict, outcome = explained.verdict, explained.basis.outcome
    facts = {**verdict.to_dict(), "rfc9309": {"allowed": explained.rfc9309}}
    facts["hazard"] = explained.hazard.cause.value if explained.hazard else None
    facts["file"] = explained.file
    if explained.delay is not None:
        facts["crawl_delay"] = explained.delay.to_dict()
    for standard, ruling in (explained.rulings or {}).items():
        facts[STANDARD_KEYS[standard]] = ruling_to_dict(ruling, verdict.robot)
    facts["sitemaps"] = sitemaps_in(verdict.known.body if isinstance(verdict.known, Copy) else b"")
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
    if rulings is None or not isinstance(verdict.known, Copy):
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
    if explained.hazard is not None:
        yield "hazard", f"{explained.hazard.cause.words} (cause: {explained.hazard.cause.value})"
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

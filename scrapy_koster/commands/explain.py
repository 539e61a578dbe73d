"""``scrapy robots explain``: the verdict on a URL, and the lines it rests on."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from time import time
from typing import TYPE_CHECKING, Any

from scrapy.exceptions import UsageError
from scrapy.utils.misc import build_from_crawler

from scrapy_koster.commands.archive_lookup import (
    Archived,
    archived_copy,
    folder_named,
    settled,
)
from scrapy_koster.commands.explained import Explained, explain
from scrapy_koster.commands.lookup import Learnt
from scrapy_koster.commands.style import joined
from scrapy_koster.commands.subcommand import (
    AGENT,
    ARCHIVE,
    NOT_RETRIEVED,
    Run,
    Subcommand,
    argument,
    json_option,
    robot_in,
    site_named,
    time_of,
)
from scrapy_koster.crawl.robot import user_agent
from scrapy_koster.extras import need_extra
from scrapy_koster.protocol.access import Answer, Copy, after_answer, last_copy
from scrapy_koster.protocol.line import lines, plain, whole_lines
from scrapy_koster.protocol.printable import error_text, printable
from scrapy_koster.protocol.ruling import Ruling, Standard
from scrapy_koster.protocol.sitemap import sitemaps_in
from scrapy_koster.protocol.step import Obey
from scrapy_koster.protocol.usage import worded
from scrapy_koster.protocol.verdict import Source
from scrapy_koster.protocol.wording import because_of, delay_to_dict, ruling_to_dict, shown, utc

if TYPE_CHECKING:
    from scrapy_koster.commands.style import Line, Style
    from scrapy_koster.crawl.config import Config


_DELAY_NOT_READ = "Error while reading the delay, KOSTER_CRAWL_DELAY_MAX_SECS is kept: {}"

_MAY = {True: "allowed", False: "forbidden"}
_KEYS = {Standard.DRAFT: "draft", Standard.RFC_9309: "rfc9309"}
_FILES = {
    "HTML": "an HTML page, and no robots.txt",
    "UTF-16": "UTF-16 or UTF-32: it is decoded here, and many robots can read no line of it",
}
_STATEMENTS = 10
_AROUND = 2
_HEAD = 3
_WIDTH = 100


class Explain(Subcommand):
    """``scrapy robots explain URL``."""

    name = "explain"
    brief = "show which line allows or forbids a URL"
    about = """\
Show whether a robot may fetch a URL, and which line of the site's robots.txt decides. A fresh
copy from the storage is used. Otherwise the robots.txt is fetched as your crawl would fetch it."""
    example = "scrapy robots explain --robots robots.txt --agent GPTBot https://example.com/private"
    statuses = """\
exit status: 0 allowed, 1 forbidden, 2 wrong usage, 3 the robots.txt could not be retrieved,
4 the command failed; the highest if you give several URLs"""
    arguments = (
        argument("urls", nargs="+", metavar="URL", help="URL of a page, or a host"),
        AGENT,
        argument("--robots", metavar="FILE", help="use this robots.txt; - is stdin"),
        argument("--refresh", action="store_true", help="fetch it despite a fresh copy"),
        argument("--at", metavar="TIME", help="use the archived copy of that time (UTC)"),
        ARCHIVE,
        json_option("one JSON object for each URL"),
    )

    def run(self, run: Run) -> Iterator[Line]:
        """Yield the verdicts."""
        opts, is_first = run.opts, True
        if (opts.robots is not None) + opts.refresh + (opts.at is not None) > 1:
            raise UsageError("give one of --robots, --refresh and --at")
        for explained in _archived(run) if opts.at is not None else _current(run):
            run.worse(explained.status)
            if opts.json:
                yield json.dumps(_as_dict(explained))
                continue
            if not is_first:
                yield ""
            yield from _as_text(explained, run.style)
            is_first = False


def _current(run: Run) -> Iterator[Explained]:
    """Yield the verdicts of today."""
    opts, config = run.opts, run.config
    robot, is_found = robot_in(opts.agent, config.robot or user_agent(run.crawler))
    urls = run.requested(opts.urls)
    given = opts.robots is not None
    learnt = _given(urls, run) if given else run.learn(urls, refresh=opts.refresh)
    for url in urls:
        if url in learnt:
            explained = _explained(run, url, robot, learnt[url], config, now=time())
            yield replace(explained, is_found=is_found)
        else:
            message = f"{printable(url)}: the crawl ended before robots.txt was fetched"
            run.warn(message, NOT_RETRIEVED)


def _archived(run: Run) -> Iterator[Explained]:
    """Yield the verdicts of the past."""
    need_extra("archive", "scrapy robots explain --at")
    time = time_of(run.opts.at)
    urls = run.requested(run.opts.urls)
    folder = folder_named(run.opts.archive, run.config)
    for url in urls:
        archived = archived_copy(folder, site_named(url), time, settings=run.settings)
        if archived is None:
            message = f"{printable(url)}: the archive has nothing about its site by then"
            run.warn(message, NOT_RETRIEVED)
            continue
        robot, is_found = robot_in(run.opts.agent, archived.robot)
        explained = _explained(run, url, robot, archived.learnt, archived.config, now=time)
        yield replace(explained, is_found=is_found, archived=archived)


def _explained(
    run: Run, url: str, robot: str, learnt: Learnt, config: Config, *, now: float
) -> Explained:
    def failed(error: Exception) -> None:
        run.output.warn(_DELAY_NOT_READ.format(error_text(error)))

    return explain(url, robot, learnt=learnt, config=config, failed=failed, now=now)


def _given(urls: list[str], run: Run) -> dict[str, Learnt]:
    """Return what a crawl would go by if FILE was each site's robots.txt."""
    body, now = whole_lines(run.read(run.opts.robots), run.config.max_bytes), time()
    policy = run.config.policy
    parser = build_from_crawler(run.config.parser, run.crawler, plain(body))
    learnt = {}
    for url in urls:
        robots_url = site_named(url).robots_url
        answer = Answer(robots_url, 200, {}, body)
        known = after_answer(answer, None, now=now, policy=policy, jitter=0.0)
        step = settled(known, now, policy)
        learnt[url] = Learnt(step, Source.FILE, parser if isinstance(step, Obey) else None)
    return learnt


def _as_dict(explained: Explained) -> dict[str, Any]:
    """Return the JSON object of a URL."""
    verdict, archived = explained.verdict, explained.archived
    told = {**verdict.to_dict(), "rfc9309": {"allowed": explained.rfc9309}}
    told["hazard"] = explained.hazard.cause.value if explained.hazard else None
    told["file"] = explained.file
    if explained.delay is not None:
        told["crawl_delay"] = delay_to_dict(explained.delay)
    for standard, ruling in (explained.rulings or {}).items():
        told[_KEYS[standard]] = ruling_to_dict(ruling, verdict.robot)
    told["sitemaps"] = sitemaps_in(verdict.known.body if isinstance(verdict.known, Copy) else b"")
    told["usage"] = explained.usage.to_dict()
    if archived is not None:
        told["at"], told["learnt"] = utc(archived.time), utc(archived.outcome.at)
        told["is_current"], told["warc"] = archived.is_current, archived.outcome.warc.name
    return told


def _as_text(explained: Explained, style: Style) -> Iterator[Line]:
    """Yield lines for people."""
    verdict = explained.verdict
    paint, may = style.green if verdict.allowed else style.red, _MAY[verdict.allowed]
    if explained.status == NOT_RETRIEVED:
        paint, may = style.yellow, "unavailable"
    yield joined(paint(may), " ", style.bold(printable(verdict.url, 1000)))
    yield ""
    if context := list(_context(explained, style)):
        yield from context
        yield ""
    facts = [*_facts(explained)]
    if explained.archived is not None:
        facts += _evidence(explained.archived)
    for name, value in facts:
        yield joined("  ", style.dim(f"{name:<9}"), f" {value}")


def _context(explained: Explained, style: Style) -> Iterator[Line]:
    """Yield the lines that decide, with those around them; each standard marks its own."""
    verdict, rulings = explained.verdict, explained.rulings
    if rulings is None or not isinstance(verdict.known, Copy):
        return
    text = lines(verdict.known.in_utf8.rstrip(b"\r\n"))
    marks = {standard: ruling.rule.number for standard, ruling in rulings.items() if ruling.rule}
    shown_by = (*rulings.values(), verdict.ruling)
    numbers = sorted({number for ruling in shown_by for number in _around(ruling, text)})
    if numbers:
        yield style.dim(f"  {'draft':>5}  {'RFC 9309':>8}")
    before = None
    for number in numbers:
        if before is not None and number > before + 1:
            yield style.dim(f"{'...':>26}")
        before = number
        columns = [">" if marks.get(standard) == number else "" for standard in Standard]
        line = f"  {columns[0]:>5}  {columns[1]:>8} {number:>7}  {shown(text[number - 1], _WIDTH)}"
        yield style.bold(line) if any(columns) else line


def _around(ruling: Ruling, text: list[bytes]) -> Iterator[int]:
    """Yield the numbers of the agent lines of the record, and of the lines around the rule."""
    if ruling.record is None:
        return
    agents = [agent.number for agent in ruling.record.agents]
    yield from agents[:_HEAD]
    middle = ruling.rule.number if ruling.rule else agents[-1] + 1
    yield from range(max(agents[0], middle - _AROUND), min(len(text), middle + _AROUND) + 1)


def _facts(explained: Explained) -> Iterator[tuple[str, str]]:
    verdict = explained.verdict
    facts = verdict.to_dict()
    name = printable(verdict.robot) or "(no name token: only the * record can apply)"
    several = f", of {printable(', '.join(verdict.names))}" if verdict.names else ""
    yield "robot", f"{name}{several}{', from the header' if explained.is_found else ''}"
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


def _evidence(archived: Archived) -> Iterator[tuple[str, str]]:
    """Yield the record of the archive that shows it."""
    outcome, copy = archived.outcome, last_copy(archived.outcome.known)
    yield "at", f"{utc(archived.time)}, learnt {utc(outcome.at)}"
    if not archived.is_current:
        yield "", "expired by then: a crawl would have fetched it again first"
    if copy is not None:
        yield "digest", printable(copy.digest)
        yield "record", printable(copy.record_id or "")
    yield "archive", printable(str(outcome.warc), 1000)

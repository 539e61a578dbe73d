"""``scrapy robots explain``: the verdict on a URL, and the lines it rests on."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from time import time
from typing import TYPE_CHECKING, Any

from scrapy.utils.misc import build_from_crawler

from scrapy_koster.archive.record import ArchiveError
from scrapy_koster.commands.archive_lookup import Archive, Archived, folder_named, settled, time_of
from scrapy_koster.commands.context import context_of
from scrapy_koster.commands.explained import Explained, explain
from scrapy_koster.commands.lookup import Learnt
from scrapy_koster.commands.style import joined
from scrapy_koster.commands.subcommand import (
    NOT_RETRIEVED,
    Run,
    Subcommand,
    robot_in,
    site_named,
)
from scrapy_koster.crawl.robot import user_agent
from scrapy_koster.protocol.access import Answer, Copy, after_answer, last_copy
from scrapy_koster.protocol.line import plain, whole_lines
from scrapy_koster.protocol.printable import error_text, printable
from scrapy_koster.protocol.ruling import Standard
from scrapy_koster.protocol.sitemap import sitemaps_in
from scrapy_koster.protocol.step import Obey
from scrapy_koster.protocol.usage import worded
from scrapy_koster.protocol.verdict import Source
from scrapy_koster.protocol.wording import because_of, delay_to_dict, ruling_to_dict, utc

if TYPE_CHECKING:
    from argparse import ArgumentParser

    from scrapy_koster.commands.style import Line, Style
    from scrapy_koster.crawl.config import Config

_ABOUT = """\
Show whether a robot may fetch a URL, and which line of the site's robots.txt decides. A fresh
copy from the storage is used. Otherwise the robots.txt is fetched as your crawl would fetch it."""
_STATUSES = """\
exit status: 0 allowed, 1 forbidden, 2 wrong usage, 3 the robots.txt could not be retrieved,
4 the command failed; the highest if you give several URLs"""

_DELAY_NOT_READ = "Error while reading the delay, KOSTER_CRAWL_DELAY_MAX_SECS is kept: {}"

_MAY = {True: "allowed", False: "forbidden"}
_KEYS = {Standard.DRAFT: "draft", Standard.RFC_9309: "rfc9309"}
_FILES = {
    "HTML": "an HTML page, and no robots.txt",
    "UTF-16": "UTF-16 or UTF-32: it is decoded here, and many robots can read no line of it",
}
_STATEMENTS = 10
_USAGE = ("usage", *("",) * _STATEMENTS)


class Explain(Subcommand):
    """``scrapy robots explain URL``."""

    name = "explain"
    brief = "show which line allows or forbids a URL"
    about = _ABOUT
    example = "scrapy robots explain --robots robots.txt --agent GPTBot https://example.com/private"
    statuses = _STATUSES
    page = "commands.md#scrapy-robots-explain-url"

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add its arguments."""
        parser.add_argument(
            "urls", nargs="+", metavar="URL", help="http or https URL of a page, or a host"
        )
        parser.add_argument(
            "--agent",
            metavar="TOKEN",
            help="name of the robot, or its User-Agent header (default: from your settings)",
        )
        source = parser.add_mutually_exclusive_group()
        source.add_argument(
            "--robots", metavar="FILE", help="use this robots.txt; - for standard input"
        )
        source.add_argument(
            "--refresh",
            action="store_true",
            help="fetch the robots.txt even if there is a fresh copy",
        )
        source.add_argument(
            "--at",
            metavar="TIME",
            help="use the archived copy of that time, for example 2026-11-01T12:00 (UTC), and the"
            " settings of its crawl",
        )
        parser.add_argument(
            "--archive", metavar="FOLDER", help="folder of the archive (default: KOSTER_ARCHIVE)"
        )
        parser.add_argument("--json", action="store_true", help="one JSON object for each URL")

    def run(self, run: Run) -> Iterator[Line]:
        """Yield the verdicts."""
        if run.opts.at is not None:
            yield from _at(run)
            return
        opts, config = run.opts, run.config
        robot, is_found = config.robot or user_agent(run.crawler), False
        if opts.agent is not None:
            robot, is_found = robot_in(opts.agent)
        urls = run.requested(opts.urls)
        given = opts.robots is not None
        learnt = _given(urls, run) if given else run.learn(urls, refresh=opts.refresh)
        for number, url in enumerate(urls):
            if url not in learnt:
                message = f"{printable(url)}: the crawl ended before robots.txt was fetched"
                run.warn(message, NOT_RETRIEVED)
                continue
            known, now = learnt[url], time()
            explained = _explained(run, url, robot, known, config, now=now, is_found=is_found)
            if opts.json:
                yield _as_json(explained)
                continue
            if number:
                yield ""
            yield from _as_text(explained, run.style)


def _explained(
    run: Run, url: str, robot: str, learnt: Learnt, config: Config, *, now: float, is_found: bool
) -> Explained:
    explained = explain(
        url,
        robot,
        learnt=learnt,
        config=config,
        failed=lambda error: run.output.warn(_DELAY_NOT_READ.format(error_text(error))),
        is_found=is_found,
        now=now,
    )
    run.worse(explained.status)
    return explained


def _at(run: Run) -> Iterator[Line]:
    """Yield the verdicts of the past."""
    opts = run.opts
    at = time_of(opts.at)
    urls = run.requested(opts.urls)
    try:
        archive = Archive(folder_named(opts.archive, run.config), run.settings)
        for number, url in enumerate(urls):
            archived = archive.at(site_named(url), at)
            if archived is None:
                message = f"{printable(url)}: the archive has nothing about its site by then"
                run.warn(message, NOT_RETRIEVED)
                continue
            robot, is_found = archived.robot, False
            if opts.agent is not None:
                robot, is_found = robot_in(opts.agent)
            learnt, config = archived.learnt, archived.config
            explained = _explained(run, url, robot, learnt, config, now=at, is_found=is_found)
            if opts.json:
                yield _as_json(
                    explained,
                    at=utc(at),
                    learnt=utc(archived.outcome.at),
                    is_current=archived.is_current,
                    warc=archived.outcome.warc.name,
                )
                continue
            if number:
                yield ""
            yield from _as_text(explained, run.style)
            yield from _evidence(archived, at, run.style)
    except ArchiveError as error:
        run.warn(printable(str(error), 1000), NOT_RETRIEVED)


def _evidence(archived: Archived, at: float, style: Style) -> Iterator[Line]:
    """Yield which record shows it, for people."""
    outcome, copy = archived.outcome, last_copy(archived.outcome.known)
    facts = [("at", f"{utc(at)}, learnt {utc(outcome.at)}")]
    if not archived.is_current:
        facts.append(("", "expired by then: a crawl would have fetched it again first"))
    if copy is not None:
        facts += [("digest", printable(copy.digest)), ("record", printable(copy.record_id or ""))]
    for name, value in [*facts, ("archive", printable(str(outcome.warc), 1000))]:
        yield joined("  ", style.dim(f"{name:<9}"), f" {value}")


def _given(urls: Iterable[str], run: Run) -> dict[str, Learnt]:
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


def _as_json(explained: Explained, **more: Any) -> str:
    """Return one JSON object in one line; with *more* about it."""
    verdict = explained.verdict
    told: dict[str, Any] = {"rfc9309": {"allowed": explained.rfc9309}}
    told["hazard"] = explained.hazard.cause.value if explained.hazard else None
    told["file"] = explained.file
    if explained.delay is not None:
        told["crawl_delay"] = delay_to_dict(explained.delay)
    for standard, ruling in (explained.rulings or {}).items():
        told[_KEYS[standard]] = ruling_to_dict(ruling, verdict.robot)
    copy = verdict.known if isinstance(verdict.known, Copy) else None
    return json.dumps(
        {
            **verdict.to_dict(),
            **told,
            "sitemaps": sitemaps_in(copy.body if copy else b""),
            "usage": explained.usage.to_dict(),
            **more,
        }
    )


def _as_text(explained: Explained, style: Style) -> Iterator[Line]:
    """Yield lines for people."""
    verdict = explained.verdict
    paint = style.green if verdict.allowed else style.red
    may = _MAY[verdict.allowed]
    if explained.status == NOT_RETRIEVED:
        paint, may = style.yellow, "unavailable"
    yield joined(paint(may), " ", style.bold(printable(verdict.url, 1000)))
    yield ""
    context = list(context_of(explained.verdict, explained.rulings, style))
    if context:
        yield from context
        yield ""
    for name, value in _facts(explained):
        yield joined("  ", style.dim(f"{name:<9}"), f" {value}")


def _facts(explained: Explained) -> Iterator[tuple[str, str]]:
    verdict = explained.verdict
    facts = verdict.to_dict()
    name = printable(verdict.robot) or "(no name token: only the * record can apply)"
    several = f", of {printable(', '.join(verdict.names))}" if verdict.names else ""
    found = ", from the header" if explained.is_found else ""
    yield "robot", f"{name}{several}{found}"
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
    for name, statement in zip(_USAGE, explained.usage.statements[:_STATEMENTS], strict=False):
        states = worded(statement.stated) or "nothing"
        yield name, f"{states} by {statement}"
    yield "source", verdict.source.value
    if explained.rulings is None:
        yield "RFC 9309", _MAY[explained.rfc9309]
        return
    for standard, ruling in explained.rulings.items():
        why = because_of(ruling, verdict.robot)
        yield (
            standard.value,
            f"{_MAY[ruling.allowed]} by {why}" if ruling.rule else f"{_MAY[ruling.allowed]}, {why}",
        )

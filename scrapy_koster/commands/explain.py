"""``scrapy robots explain``: the verdict on a URL, and the lines it rests on."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from time import time
from typing import TYPE_CHECKING, Any

from scrapy.utils.misc import build_from_crawler

from scrapy_koster.commands.ask import Learnt
from scrapy_koster.commands.verb import (
    NOT_RETRIEVED,
    Run,
    Verb,
    add_global_options,
    add_parser,
    requested,
    site_named,
)
from scrapy_koster.crawl.robot import user_agent
from scrapy_koster.parsers.rfc9309 import Rfc9309
from scrapy_koster.protocol.access import Access, Copy, Policy, access
from scrapy_koster.protocol.line import lines, whole_lines
from scrapy_koster.protocol.path import is_robots_txt
from scrapy_koster.protocol.printable import printable
from scrapy_koster.protocol.rewriting import sent_as
from scrapy_koster.protocol.robotstxt import RobotsTxt
from scrapy_koster.protocol.step import Obey, Pass, Refuse
from scrapy_koster.protocol.verdict import Ground, Settled, Source, Verdict, shown, verdict_on

if TYPE_CHECKING:
    from scrapy_koster.commands.ink import Ink, Line
    from scrapy_koster.protocol.site import Site

_ABOUT = """\
Tell whether a robot may fetch a URL, and which line of the site's robots.txt says so.
It is asked for as a crawl with the settings at hand would ask, or taken from FILE."""
_STATUSES = """\
exit status: 0 allowed, 1 forbidden, 2 wrong usage, 3 the robots.txt could not be retrieved,
4 the command failed; of several URLs the highest"""

_ALLOWED, _FORBIDDEN = 0, 1

_AROUND = 2
_HEAD = 3
_WIDTH = 100


class Explain(Verb):
    """``scrapy robots explain URL``."""

    name = "explain"

    def add_to(self, verbs: Any) -> None:
        """Add its parser."""
        brief = "tell which line allows or forbids a URL"
        parser = add_parser(verbs, self.name, brief=brief, about=_ABOUT, statuses=_STATUSES)
        parser.add_argument("urls", nargs="+", metavar="URL", help="http or https URL of a page")
        parser.add_argument(
            "--agent",
            metavar="TOKEN",
            help="name token of the robot, or its User-Agent header (default: of the settings)",
        )
        source = parser.add_mutually_exclusive_group()
        source.add_argument(
            "--robots", metavar="FILE", help="a robots.txt to go by; - for standard input"
        )
        source.add_argument(
            "--refresh", action="store_true", help="ask the site though there is a fresh copy"
        )
        parser.add_argument("--json", action="store_true", help="one JSON object for each URL")
        add_global_options(parser)

    def run(self, run: Run) -> Iterator[Line]:
        """Yield the verdicts."""
        opts, config = run.opts, run.config
        robot = opts.agent if opts.agent is not None else config.robot or user_agent(run.crawler)
        urls = [requested(url) for url in opts.urls]
        given = opts.robots is not None
        learnt = _given(urls, run) if given else run.learn(urls, refresh=opts.refresh)
        for number, url in enumerate(urls):
            if url not in learnt:
                message = f"{printable(url)}: the crawl ended before its site was asked"
                run.warn(message, NOT_RETRIEVED)
                continue
            explained = explain(url, site_named(url), robot, learnt[url], config.policy)
            run.worse(explained.status)
            if opts.json:
                yield _as_json(explained)
                continue
            if number:
                yield ""
            yield from _as_text(explained, run.ink)


def _given(urls: Iterable[str], run: Run) -> dict[str, Learnt]:
    """Return what a crawl would go by if FILE was each site's robots.txt."""
    body, now = whole_lines(run.read(run.opts.robots), run.config.max_bytes), time()
    parser = build_from_crawler(run.config.parser, run.crawler, body)
    copies = {
        url: Copy(site_named(url).robots_url, 200, body, None, None, fetched=now, expires=now)
        for url in urls
    }
    return {url: Learnt(Obey(copy, now), Source.FILE, parser) for url, copy in copies.items()}


@dataclass(frozen=True, slots=True)
class Explained:
    """A verdict, with what a reader of RFC 9309 would say."""

    verdict: Verdict
    rfc9309: bool

    @property
    def status(self) -> int:
        """The exit status that says it."""
        if self.verdict.allowed:
            return _ALLOWED
        return NOT_RETRIEVED if self.verdict.ground is Ground.UNAVAILABLE else _FORBIDDEN


def explain(url: str, site: Site, robot: str, learnt: Learnt, policy: Policy) -> Explained:
    """Return what a crawl would do with *url*, and why."""
    verdict = verdict_on(
        url,
        robot,
        site=site,
        step=learnt.step,
        parser=learnt.parser,
        source=learnt.source,
        policy=policy,
    )
    return Explained(verdict, is_robots_txt(url) or _by_rfc_9309(url, robot, learnt.step, policy))


def _by_rfc_9309(url: str, robot: str, step: Settled, policy: Policy) -> bool:
    match step:
        case Obey(copy) if access(copy, policy) is Access.RULES:
            rfc9309 = Rfc9309(copy.body)
            return all(rfc9309.allowed(each, robot) for each in sent_as(url))
        case Obey():
            # 2.3.1.3: 400 to 499, "the crawler MAY access any resources"
            return True
        case Pass() | Refuse():  # pragma: no branch
            # 2.3.1.4: "the crawler MUST assume complete disallow"
            return False


def _as_json(explained: Explained) -> str:
    """Return one JSON object in one line."""
    verdict = explained.verdict.to_dict()
    return json.dumps({**verdict, "rfc9309": {"allowed": explained.rfc9309}})


def _as_text(explained: Explained, ink: Ink) -> Iterator[Line]:
    """Yield lines for people."""
    verdict = explained.verdict
    paint = ink.green if verdict.allowed else ink.red
    may = "allowed" if verdict.allowed else "forbidden"
    if explained.status == NOT_RETRIEVED:
        paint, may = ink.yellow, "unavailable"
    yield ink.line(paint(may), " ", ink.bold(printable(verdict.url, 1000)))
    yield ""
    context = list(_context(verdict, ink))
    if context:
        yield from context
        yield ""
    for name, value in _facts(explained):
        yield ink.line("  ", ink.dim(f"{name:<9}"), f" {value}")


def _facts(explained: Explained) -> Iterator[tuple[str, str]]:
    verdict = explained.verdict
    facts = verdict.to_dict()
    yield "robot", printable(verdict.robot) or "(no name token: only the * record can apply)"
    if facts["sent_as"] is not None:
        yield "sent as", f"{facts['sent_as']} by some download handlers"
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


def _context(verdict: Verdict, ink: Ink) -> Iterator[Line]:
    """Yield the agent lines of the record and the lines around the rule."""
    known, rule = verdict.known, verdict.rule
    body = known.body if verdict.record and isinstance(known, Copy) else b""
    record = RobotsTxt(body).record(verdict.robot)
    if record is None:
        return
    text = lines(body)
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
            yield ink.line("  ", ink.dim(f"{number:>7}"), f"  {line}")
    if before < end:
        yield ink.dim(f"  {'...':>7}")

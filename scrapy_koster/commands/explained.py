"""What a crawl would do with a URL, and what each standard says: what ``explain`` shows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from time import time
from typing import TYPE_CHECKING

from scrapy_koster.commands.subcommand import NOT_RETRIEVED, site_named
from scrapy_koster.crawl.decision import checked_watch, decide
from scrapy_koster.protocol.access import Copy
from scrapy_koster.protocol.delay import delay_or_limit
from scrapy_koster.protocol.html_page import is_html
from scrapy_koster.protocol.line import is_wide
from scrapy_koster.protocol.path import is_robots_txt
from scrapy_koster.protocol.reading import Rfc9309, RobotsTxt
from scrapy_koster.protocol.rewriting import sent_as
from scrapy_koster.protocol.ruling import Ruling, Standard
from scrapy_koster.protocol.standing import Ground
from scrapy_koster.protocol.usage import Usage
from scrapy_koster.protocol.verdict import Verdict

if TYPE_CHECKING:
    from scrapy_koster.commands.archive_lookup import Archived
    from scrapy_koster.commands.lookup import Learnt
    from scrapy_koster.crawl.config import Config
    from scrapy_koster.protocol.delay import Delay, Pace
    from scrapy_koster.protocol.hazard import Hazard
    from scrapy_koster.protocol.reading import Reading

_ALLOWED, _FORBIDDEN = 0, 1


@dataclass(frozen=True, slots=True)
class Explained:
    """A verdict, and what each standard says by itself."""

    verdict: Verdict
    rulings: dict[Standard, Ruling] | None
    """Where access is by rules; by both standards."""
    delay: Delay | None
    """Which the site asks for, obeyed or not."""
    pace: Pace
    hazard: Hazard | None
    """Where KOSTER_PARSER lets it through, and RFC 9309 forbids it."""
    usage: Usage
    """What its robots.txt states of the use of the page, if it may be fetched."""
    is_found: bool = False
    """Whether the name of the robot was found inside of a header."""
    archived: Archived | None = None
    """The copy of an archive, if that decided."""

    @property
    def file(self) -> str | None:
        """What the file is, if it is no file of octets with rules."""
        known = self.verdict.known
        if not isinstance(known, Copy):
            return None
        return "HTML" if is_html(known.body) else "UTF-16" if is_wide(known.body) else None

    @property
    def status(self) -> int:
        """The exit status that says it."""
        if self.verdict.allowed:
            return _ALLOWED
        return NOT_RETRIEVED if self.verdict.ground is Ground.UNAVAILABLE else _FORBIDDEN

    @property
    def paced(self) -> str | None:
        """What the site asks for, and what a crawl makes of that; None if it asks for nothing."""
        if self.delay is None:
            return None
        where = f" (line {self.delay.line.number})" if self.delay.line else ""
        told = f"{self.delay.secs:g} s between two visits{where}"
        secs = self.pace.kept(self.delay.secs)
        if self.pace.too_long(self.delay):
            fate = "too long, the site is not visited"
        elif secs < self.delay.secs:
            fate = f"{secs:g} s are kept, KOSTER_CRAWL_DELAY_MAX_SECS"
        else:
            fate = "kept"
        if self.pace.obeys:
            return f"{told}: {fate}"
        return f'{told}: ignored; with KOSTER_CRAWL_DELAY = "obey" {fate}'

    @property
    def rfc9309(self) -> bool:
        """Whether a reader of RFC 9309 would fetch it."""
        if self.rulings is not None:
            return self.rulings[Standard.RFC_9309].allowed
        # 2.3.1.3: 400 to 499, "the crawler MAY access any resources"; 2.3.1.4: otherwise
        # "the crawler MUST assume complete disallow".
        return isinstance(self.verdict.known, Copy) or is_robots_txt(self.verdict.url)


def explain(
    url: str,
    robot: str,
    *,
    learnt: Learnt,
    config: Config,
    failed: Callable[[Exception], None],
    now: float | None = None,
) -> Explained:
    """Return what a crawl would do with *url*, and why, at the time *now*.

    *failed* is called if the parser raises when it is asked for the delay.
    """
    pace = config.pace
    delay = delay_or_limit(learnt.parser, robot, pace=pace, failed=failed)
    verdict, statements = decide(
        url,
        robot,
        site=site_named(url),
        step=learnt.step,
        parser=learnt.parser,
        source=learnt.source,
        usage=learnt.usage(config),
        delay=delay,
        config=config,
        now=time() if now is None else now,
    )
    rulings, hazard = _rulings(verdict, robot), None
    if verdict.allowed and rulings:
        watch = checked_watch(learnt.parser, robot)
        hazard = watch.hazard(url) if watch else None
    usage = Usage(statements, labels=config.usage.labels)
    told = delay if delay and delay.secs else None
    return Explained(verdict, rulings, told, pace, hazard, usage)


def _rulings(verdict: Verdict, robot: str) -> dict[Standard, Ruling] | None:
    """Return what each standard says, None if access is not by rules."""
    by_rules = (Ground.RULE, Ground.DELAY, Ground.OVERRIDE, Ground.USAGE)
    if verdict.ground not in by_rules or not isinstance(verdict.known, Copy):
        return None
    readings = (RobotsTxt(verdict.known.body), Rfc9309(verdict.known.body))
    return {reading.standard: _ruling(reading, verdict.url, robot) for reading in readings}


def _ruling(reading: Reading, url: str, robot: str) -> Ruling:
    """Return what *reading* says of *url* as a crawl decides: as it may be sent, too."""
    rulings = [reading.ruling(each, robot) for each in sent_as(url)]
    return next((ruling for ruling in rulings if not ruling.allowed), reading.ruling(url, robot))

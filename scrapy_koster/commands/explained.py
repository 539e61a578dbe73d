"""The decision of a crawl about a URL, with the rulings of both standards, for ``explain``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from scrapy_koster.commands.lookup import Basis
from scrapy_koster.commands.subcommand import site_named
from scrapy_koster.crawl.decision import checked_watch, decide
from scrapy_koster.crawl.states import Facts, SiteState
from scrapy_koster.protocol.access import Copy
from scrapy_koster.protocol.delay import Delay, delay_or_limit
from scrapy_koster.protocol.hazard import Hazard
from scrapy_koster.protocol.html_page import is_html
from scrapy_koster.protocol.line import is_wide
from scrapy_koster.protocol.path import is_robots_txt
from scrapy_koster.protocol.reading import Reading, Rfc9309, RobotsTxt
from scrapy_koster.protocol.rewriting import sent_as
from scrapy_koster.protocol.ruling import Ruling, Standard
from scrapy_koster.protocol.standing import Ground
from scrapy_koster.protocol.usage import Usage
from scrapy_koster.protocol.verdict import Verdict


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
        """The kind of an unusual file: "HTML", or "UTF-16" (also for UTF-32). Usually None."""
        known = self.verdict.known
        if not isinstance(known, Copy):
            return None
        return "HTML" if is_html(known.body) else "UTF-16" if is_wide(known.body) else None

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
        if pace.obeys:
            return f"{words}: {effect}"
        return f'{words}: ignored; with KOSTER_CRAWL_DELAY = "obey" {effect}'

    @property
    def rfc9309(self) -> bool:
        """Whether RFC 9309 allows the URL."""
        if self.rulings is not None:
            return self.rulings[Standard.RFC_9309].allowed
        # RFC 9309, 2.3.1.3, for a status of 400 to 499: "the crawler MAY access any resources".
        # 2.3.1.4, for an unreachable file: "the crawler MUST assume complete disallow".
        return isinstance(self.verdict.known, Copy) or is_robots_txt(self.verdict.url)


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
    if verdict.allowed and rulings and verdict.override is None:
        watch = checked_watch(basis.parser, robot)
        hazard = watch.hazard(url) if watch else None
    usage = Usage(decision.statements, labels=config.usage.labels)
    requested = delay if delay and delay.secs else None
    return Explained(verdict, rulings, requested, hazard, usage, basis)


def _rulings(verdict: Verdict, robot: str) -> dict[Standard, Ruling] | None:
    """Return the rulings of both standards, or None if rules do not decide about the site."""
    by_rules = (Ground.RULE, Ground.DELAY, Ground.OVERRIDE, Ground.USAGE)
    if verdict.ground not in by_rules or not isinstance(verdict.known, Copy):
        return None
    readings = (RobotsTxt(verdict.known.body), Rfc9309(verdict.known.body))
    return {reading.standard: _ruling(reading, verdict.url, robot) for reading in readings}


def _ruling(reading: Reading, url: str, robot: str) -> Ruling:
    """Return the ruling on the first forbidden spelling in which *url* can be sent.

    If no spelling is forbidden, return the ruling on *url*.
    """
    rulings = [reading.ruling(each, robot) for each in sent_as(url)]
    return next((ruling for ruling in rulings if not ruling.allowed), reading.ruling(url, robot))

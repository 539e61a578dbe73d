"""What the report of a crawl counts: the facts of the crawl, as rows of its file."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

from scrapy_koster.crawl.messages.summary import Retrieval
from scrapy_koster.protocol.access import Answer, Copy, Failure, Known, NoAnswer, last_copy
from scrapy_koster.protocol.printable import printable
from scrapy_koster.protocol.standing import Ground, Standing
from scrapy_koster.protocol.step import Pass
from scrapy_koster.protocol.wording import shown, text_of
from scrapy_koster.report.tally import ALLOWED, HAZARD, OVERRIDDEN, START, USAGE, Tally

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from scrapy import Request

    from scrapy_koster.crawl.clock import Clock
    from scrapy_koster.crawl.states import SiteState
    from scrapy_koster.protocol.hazard import Hazard
    from scrapy_koster.protocol.records import Record
    from scrapy_koster.protocol.site import Site
    from scrapy_koster.protocol.usage import Statement
    from scrapy_koster.protocol.verdict import Verdict

_URL_CHARS = 300
_RULE_CHARS = 200
_REASON_CHARS = 100
_KIND_CHARS = 60
_AGENT_CHARS = 40
_DELAY_CHARS = 20
_MANY = 4000
# Compared with RFC 9309: these, then one of so many. Longer files are not.
_COMPARED_FIRST = 100
_COMPARED_EACH = 64
_COMPARED_BYTES = 65536
_COMPARED_MOST = 500  # in a batch: they hold files in memory

_BY_LINE = (Ground.RULE, Ground.DELAY, Ground.USAGE)
_HOW = {
    Retrieval.FETCHED: "fetches",
    Retrieval.FROM_STORAGE: "from_storage",
    Retrieval.REVALIDATED: "renewed",
}


class Uncounted:
    """Counts nothing: there is to be no report."""

    is_on = False

    def asked(self, site: Site) -> None:
        """A site is asked for its robots.txt."""

    def heard(self, site: Site, result: Answer | NoAnswer) -> None:
        """A site was asked, and that is how it ended."""

    def knows(self, site: Site, known: Known, how: Retrieval) -> None:
        """What is known of a site has become *known*."""

    def parsed(self, site: str, record: Record | None) -> None:
        """A file was read; *record* is what is obeyed of it."""

    def hazard_met(self, site: Site, url: str, hazard: Hazard) -> None:
        """A page of a site was let through that RFC 9309 forbids."""

    def cut(self, site: Site) -> None:
        """A site's file is longer than KOSTER_MAX_BYTES."""

    def stands(self, state: SiteState, standing: Standing) -> None:
        """A site is announced as something; ``state.standing`` is what it was before."""

    def deferred(self, site: Site) -> None:
        """Visits to a site begin to be deferred."""

    def given_up(self, site: Site) -> None:
        """Requests that waited for a site are refused now."""

    def allowed(
        self, state: SiteState, url: str, robot: str | bytes, *, by_rules: bool = True
    ) -> None:
        """A request was let pass: by the rules of its site, or *by_rules* is False."""

    def overridden(self, verdict: Verdict) -> None:
        """An override has let a request pass."""

    def refused(self, request: Request, verdict: Verdict) -> None:
        """A request was refused, or would have been in a dry run."""

    def dropped(self, word: str, page: str) -> None:
        """What a page yielded was dropped because the page says *word*."""

    def stated(self, site: str, statements: Iterable[Statement]) -> None:
        """A site's file was read that has *statements* of what its pages may be used for."""

    def usage_dropped(self, page: str) -> None:
        """An item was dropped because its page may not be used for a purpose of the crawl."""


class Counts(Uncounted):
    """Counts in a tally, which is taken away when it is written."""

    is_on = True

    def __init__(self, clock: Clock, on_many: Callable[[], None]) -> None:
        """*on_many* is called if it would be well to write before long."""
        self._clock = clock
        self.tally = Tally()
        self._on_many = on_many
        self._decided = 0

    def take(self) -> Tally:
        """Return what was counted, and begin anew."""
        tally, self.tally = self.tally, Tally()
        return tally

    def asked(self, site: Site) -> None:
        self.tally.count(str(site), "asked")
        self.tally.minute["asked"] += 1

    def heard(self, site: Site, result: Answer | NoAnswer) -> None:
        if isinstance(result, Answer):
            self.tally.count(str(site), "answered")
            self.tally.minute["answered"] += 1

    def knows(self, site: Site, known: Known, how: Retrieval) -> None:
        row = self.tally.row(str(site))
        match known:
            case Copy():
                self.tally.count(str(site), _HOW[how])
                row.update(_copy_facts(site, known))
            case Failure(reason=reason):  # pragma: no branch
                status = reason.removeprefix("HTTP ")[:3]
                row["status"] = int(status) if status.isdecimal() and status != reason else 0
                row["reason"] = printable(reason, _REASON_CHARS)
                self.tally.failures[printable(reason.partition(":")[0], _KIND_CHARS)] += 1

    def parsed(self, site: str, record: Record | None) -> None:
        row = self.tally.row(site)
        row["record_line"] = record.agents[0].number if record else 0
        agents = record.agents[:3] if record else []
        row["record"] = printable(", ".join(shown(a.value, _AGENT_CHARS) for a in agents))
        rules = record.rules if record else []
        delays = (rule.value for rule in rules if rule.field == b"crawl-delay")
        row["delay"] = shown(next(delays, b""), _DELAY_CHARS)

    def hazard_met(self, site: Site, url: str, hazard: Hazard) -> None:
        rule, other = hazard.rfc9309.rule, hazard.draft.rule
        assert rule is not None  # it forbids
        self.tally.count(str(site), "looser")
        allows = f"{other.number}: {text_of(other, _RULE_CHARS)}" if other else "no rule matches"
        key = (hazard.cause.value, rule.number, text_of(rule, _RULE_CHARS), allows)
        self.tally.hazard(str(site), *key)
        self.tally.sample(str(site), HAZARD, rule.number, printable(url, _URL_CHARS))

    def cut(self, site: Site) -> None:
        self.tally.count(str(site), "cut")

    def stands(self, state: SiteState, standing: Standing) -> None:
        row = self.tally.row(str(state.site))
        row["outcome"] = int(standing)
        if state.standing is Standing.UNAVAILABLE is not standing:
            row["resumed"] = int(self._clock.epoch())
        if len(self.tally) > _MANY:
            self._on_many()

    def deferred(self, site: Site) -> None:
        self.tally.count(str(site), "deferrals")
        self.tally.row(str(site)).update(deferred=int(self._clock.epoch()), resumed=0)
        self.tally.minute["deferred"] += 1

    def given_up(self, site: Site) -> None:
        self.tally.count(str(site), "given_up")
        self.tally.row(str(site))["resumed"] = int(self._clock.epoch())

    def overridden(self, verdict: Verdict) -> None:
        site = str(verdict.site)
        self.tally.count(site, "overridden")
        self.tally.overrides[site, str(verdict.override), "allowed"] += 1
        self.tally.sample(site, OVERRIDDEN, 0, printable(verdict.url, _URL_CHARS))

    def allowed(
        self, state: SiteState, url: str, robot: str | bytes, *, by_rules: bool = True
    ) -> None:
        tally = self.tally
        row = tally.row(state.origin[:-1])
        column = ALLOWED[state.standing] if state.standing in ALLOWED else _unannounced(state)
        row[column] = row.get(column, 0) + 1
        tally.minute["allowed"] += 1
        if state.standing is Standing.OBEYED and by_rules:
            self._compare(state.known, url, robot, allowed=True)

    def refused(self, request: Request, verdict: Verdict) -> None:
        tally, site, ground = self.tally, str(verdict.site), verdict.ground
        url = printable(request.url, _URL_CHARS)
        tally.count(site, f"refused_{ground.value}")
        tally.minute["refused"] += 1
        if request.meta.get("is_start_request"):
            tally.count(site, "start_refused")
            tally.sample(site, START, 0, url)
        line = verdict.line or 0
        if ground is Ground.OVERRIDE:
            tally.overrides[site, str(verdict.override), "refused"] += 1
        if ground in _BY_LINE:
            text = text_of(verdict.rule, _RULE_CHARS) if verdict.rule else verdict.section
            tally.refused_by(site, line, text)
            if ground is Ground.RULE:
                self._compare(verdict.known, request.url, verdict.robot, allowed=False)
        tally.sample(site, ground.value, line, url)

    def dropped(self, word: str, page: str) -> None:
        site = "/".join(page.split("/", 3)[:3])
        self.tally.count(site, word)
        self.tally.sample(site, word, 0, printable(page, _URL_CHARS))

    def stated(self, site: str, statements: Iterable[Statement]) -> None:
        for each in statements:
            self.tally.stated_by(site, each.line or 0, each.text, each.stated)

    def usage_dropped(self, page: str) -> None:
        self.dropped(USAGE, page)

    def _compare(self, known: Known | None, url: str, robot: str | bytes, *, allowed: bool) -> None:
        """Have a decision by rules compared with RFC 9309, if its turn has come."""
        self._decided += 1
        if self._decided > _COMPARED_FIRST and self._decided % _COMPARED_EACH:
            return
        copy, compared = last_copy(known), self.tally.compared
        if len(compared) >= _COMPARED_MOST or copy is None or len(copy.body) > _COMPARED_BYTES:
            return
        compared.append((copy.body, url, robot, allowed))


def _unannounced(state: SiteState) -> str:
    """Return what allows a request to a site that was not announced: its /robots.txt, a replay."""
    return ALLOWED[Standing.LET_THROUGH if isinstance(state.step, Pass) else Standing.OBEYED]


def _copy_facts(site: Site, copy: Copy) -> dict[str, object]:
    redirected = copy.url != site.robots_url
    return {
        "status": copy.status,
        "fetched": int(copy.fetched),
        "expires": int(min(copy.expires, 2.0**62)),
        "bytes": len(copy.body),
        "crc": zlib.crc32(copy.body),
        "digest": printable(copy.digest),
        "redirect": printable(copy.url, _URL_CHARS) if redirected else "",
        "reason": "",
    }

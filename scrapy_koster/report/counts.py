"""Counts the events of a crawl for its report, as rows of its file."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Any

from scrapy_koster import signals
from scrapy_koster.protocol.access import Answer, Copy, Failure, Known, NoAnswer, last_copy
from scrapy_koster.protocol.hazard import Cause
from scrapy_koster.protocol.printable import printable
from scrapy_koster.protocol.standing import Ground, Standing
from scrapy_koster.protocol.wording import shown, text_of
from scrapy_koster.report.tally import ALLOWED, EXEMPT_FORBIDDEN, HAZARD, OVERRIDDEN, START, Tally

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

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
_HOW = {"fetched": "fetches", "from storage": "from_storage", "revalidated": "renewed"}


class Counts:
    """Counts in a tally, which is taken away when it is written. Its methods are signal handlers.

    See ``scrapy_koster.signals`` for their arguments.
    """

    def __init__(self, now: Callable[[], float], on_many: Callable[[], None]) -> None:
        """*now* returns seconds since the epoch. *on_many* is called if many sites are counted."""
        self._now = now
        self.tally = Tally()
        self._on_many = on_many
        self._decided = 0

    def handlers(self) -> Iterator[tuple[object, Callable[..., None]]]:
        """Yield each signal with its handler."""
        yield signals.robots_requested, self.requested
        yield signals.robots_retrieved, self.retrieved
        yield signals.robots_read, self.read
        yield signals.site_status_changed, self.status_changed
        yield signals.site_deferred, self.deferred
        yield signals.site_given_up, self.given_up
        yield signals.request_allowed, self.allowed
        yield signals.request_refused, self.refused
        yield signals.request_exempt, self.exempt
        yield signals.standards_conflict, self.conflict
        yield signals.output_dropped, self.dropped

    def take(self) -> Tally:
        """Return the tally, and begin another."""
        tally, self.tally = self.tally, Tally()
        return tally

    def requested(self, site: Site) -> None:
        """Count a request for a robots.txt."""
        self.tally.count(str(site), "asked")
        self.tally.minute["asked"] += 1

    def retrieved(
        self, site: Site, known: Known, how: Any, result: Answer | NoAnswer | None
    ) -> None:
        """Count an answer, and note the facts of the copy or of the failure."""
        if isinstance(result, Answer):
            self.tally.count(str(site), "answered")
            self.tally.minute["answered"] += 1
        row = self.tally.row(str(site))
        match known:
            case Copy():
                self.tally.count(str(site), _HOW[how.value])
                row.update(_copy_facts(site, known))
            case Failure(reason=reason):  # pragma: no branch
                status = reason.removeprefix("HTTP ")[:3]
                row["status"] = int(status) if status.isdecimal() and status != reason else 0
                row["reason"] = printable(reason, _REASON_CHARS)
                self.tally.failures[printable(reason.partition(":")[0], _KIND_CHARS)] += 1

    def read(
        self, site: Site, copy: Copy, record: Record | None, statements: Iterable[Statement]
    ) -> None:
        """Note the record that is obeyed, and the usage statements."""
        name = str(site)
        row = self.tally.row(name)
        row["record_line"] = record.agents[0].number if record else 0
        agents = record.agents[:3] if record else []
        row["record"] = printable(", ".join(shown(a.value, _AGENT_CHARS) for a in agents))
        rules = record.rules if record else []
        delays = (rule.value for rule in rules if rule.field == b"crawl-delay")
        row["delay"] = shown(next(delays, b""), _DELAY_CHARS)
        if copy.cut_bytes is not None:
            self.tally.count(name, "cut")
        for each in statements:
            self.tally.stated_by(name, each.line or 0, each.text, each.stated)

    def status_changed(self, site: Site, status: Standing, previous: Standing | None) -> None:
        """Note the outcome of a site."""
        row = self.tally.row(str(site))
        row["outcome"] = int(status)
        if previous is Standing.UNAVAILABLE is not status:
            row["resumed"] = int(self._now())
        if len(self.tally) > _MANY:
            self._on_many()

    def deferred(self, site: Site) -> None:
        """Count a site that is deferred."""
        self.tally.count(str(site), "deferrals")
        self.tally.row(str(site)).update(deferred=int(self._now()), resumed=0)
        self.tally.minute["deferred"] += 1

    def given_up(self, site: Site) -> None:
        """Count a site whose requests are refused."""
        self.tally.count(str(site), "given_up")
        self.tally.row(str(site))["resumed"] = int(self._now())

    def allowed(  # noqa: PLR0917  # pydispatch gives no keyword-only arguments
        self,
        request: Any,
        site: Site,
        status: Standing | None,
        known: Known | None,
        robot: str | bytes,
        verdict: Verdict | None,
    ) -> None:
        """Count a request that is allowed."""
        tally, name = self.tally, str(site)
        tally.count(name, ALLOWED.get(status or Standing.OBEYED, ALLOWED[Standing.OBEYED]))
        tally.minute["allowed"] += 1
        if verdict is not None and verdict.override is not None:
            tally.count(name, "overridden")
            tally.overrides[name, str(verdict.override), "allowed"] += 1
            tally.sample(name, OVERRIDDEN, 0, printable(verdict.url, _URL_CHARS))
        elif status is Standing.OBEYED:
            self._compare(known, request.url, robot, allowed=True)

    def refused(self, request: Any, verdict: Verdict) -> None:
        """Count a request that is refused, or would be in a dry run."""
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

    def exempt(self, request: Any, site: Site, verdict: Verdict | None) -> None:
        """Count a request that is exempt, and whether its site is known to forbid it."""
        name = str(site)
        self.tally.count(name, "exempt")
        if verdict is not None and not verdict.allowed:
            self.tally.count(name, EXEMPT_FORBIDDEN)
            self.tally.sample(name, EXEMPT_FORBIDDEN, 0, printable(request.url, _URL_CHARS))

    def conflict(self, request: Any, site: Site, conflict: Hazard) -> None:
        """Count a page that is fetched and that RFC 9309 or a hidden line forbids."""
        rule, other, name = conflict.rfc9309.rule, conflict.draft.rule, str(site)
        assert rule is not None  # it forbids
        if conflict.cause is not Cause.HIDDEN:
            self.tally.count(name, "looser")
        allows = f"{other.number}: {text_of(other, _RULE_CHARS)}" if other else "no rule matches"
        key = (conflict.cause.value, rule.number, text_of(rule, _RULE_CHARS), allows)
        self.tally.hazard(name, *key)
        self.tally.sample(name, HAZARD, rule.number, printable(request.url, _URL_CHARS))

    def dropped(self, response: Any, reason: str) -> None:
        """Count a request or an item that is dropped."""
        site = "/".join(response.url.split("/", 3)[:3])
        self.tally.count(site, reason)
        self.tally.sample(site, reason, 0, printable(response.url, _URL_CHARS))

    def _compare(self, known: Known | None, url: str, robot: str | bytes, *, allowed: bool) -> None:
        """Have a decision by rules compared with RFC 9309, if its turn has come."""
        self._decided += 1
        if self._decided > _COMPARED_FIRST and self._decided % _COMPARED_EACH:
            return
        copy, compared = last_copy(known), self.tally.compared
        if len(compared) >= _COMPARED_MOST or copy is None or len(copy.body) > _COMPARED_BYTES:
            return
        compared.append((copy.body, url, robot, allowed))


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

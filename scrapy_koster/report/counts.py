"""Counts the events of a crawl, as rows of the file of the report."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from scrapy_koster import signals
from scrapy_koster.protocol.access import Answer, CachedRobots, CacheEntry, NoAnswer, last_copy
from scrapy_koster.protocol.hazard import Cause, Hazard
from scrapy_koster.protocol.printable import printable
from scrapy_koster.protocol.reading import Reading, Rfc9309, RobotsTxt
from scrapy_koster.protocol.records import Record
from scrapy_koster.protocol.site import Site, site_of
from scrapy_koster.protocol.site_status import Ground, SiteStatus
from scrapy_koster.protocol.usage import Preference, Statement
from scrapy_koster.protocol.verdict import Verdict
from scrapy_koster.protocol.wording import shown, text_of
from scrapy_koster.report.tally import ALLOWED, HAZARD, OVERRIDDEN, REFUSED, START, Tally

_URL_CHARS = 300
_RULE_CHARS = 200
_REASON_CHARS = 200
_KIND_CHARS = 60
_KIND_ENDS = re.compile(":|, (?:by|through) the proxy")
_AGENT_CHARS = 40
_DELAY_CHARS = 20
# Numbers of sample URLs, at most: for each site, kind and line, and in total.
_SAMPLES = 5
_SAMPLES_MOST = 10_000

_BY_LINE = (Ground.RULE, Ground.DELAY, Ground.USAGE)
_HOW = {"fetched": "fetches", "from storage": "from_storage", "revalidated": "renewed"}


class Counts:
    """Counts events in a tally. The methods are signal handlers.

    See ``scrapy_koster.signals`` for the arguments.
    """

    def __init__(self, now: Callable[[], float], parser: type = RobotsTxt) -> None:
        """*now* returns seconds since the epoch. *parser* is the class of the crawl's parser."""
        self._now = now
        is_ours = issubclass(parser, Reading)
        self._no_record = 0 if is_ours else -1
        self.tally = Tally()
        self.tally.put("about", "compared", value=int(is_ours))  # the draft with RFC 9309
        one = "draft" if issubclass(parser, RobotsTxt) else "both"
        self.tally.put("about", "reading", value="rfc9309" if issubclass(parser, Rfc9309) else one)
        self._kept: Counter[tuple[str, str, int]] = Counter()
        self._samples = 0

    def handlers(self) -> Iterator[tuple[object, Callable[..., None]]]:
        """Yield the signals with their handlers."""
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

    def requested(self, site: Site) -> None:
        """Count a request for a robots.txt."""
        self.tally.add("site", str(site), asked=1)

    def retrieved(
        self, site: Site, known: CacheEntry, how: Any, result: Answer | NoAnswer | None
    ) -> None:
        """Count the answer, if there is one, and set the facts of the copy or of the failure."""
        tally, name = self.tally, str(site)
        if isinstance(result, Answer):
            tally.add("site", name, answered=1)
        if isinstance(known, CachedRobots):
            tally.add("site", name, **{_HOW[how.value]: 1})
            tally.put(
                "site",
                name,
                status=known.status,
                fetched=int(known.fetched),
                expires=int(min(known.expires, 2.0**62)),
                bytes=len(known.body),
                digest=printable(known.digest),
                redirect="" if known.url == site.robots_url else printable(known.url, _URL_CHARS),
                reason="",
            )
        else:
            reason = known.reason
            status = reason.removeprefix("HTTP ")[:3]
            code = int(status) if status.isdecimal() and status != reason else 0
            tally.put("site", name, status=code, reason=printable(reason, _REASON_CHARS))
            tally.add("failure", printable(_KIND_ENDS.split(reason)[0], _KIND_CHARS), attempts=1)

    def read(
        self, site: Site, copy: CachedRobots, record: Record | None, statements: Iterable[Statement]
    ) -> None:
        """Set the obeyed record and the usage statements of a site, and count a cut file."""
        tally, name = self.tally, str(site)
        agents, rules = (record.agents[:3], record.rules) if record else ([], [])
        delays = (rule.value for rule in rules if rule.field == b"crawl-delay")
        tally.put(
            "site",
            name,
            record_line=agents[0].number if agents else self._no_record,
            record=printable(", ".join(shown(a.value, _AGENT_CHARS) for a in agents)),
            delay=shown(next(delays, b""), _DELAY_CHARS),
        )
        if copy.cut_bytes is not None:
            tally.add("site", name, cut=1)
        for each in statements:
            for label, preference in each.stated or (("", Preference.UNKNOWN),):
                key = (name, each.line or 0, each.text, label)
                tally.put("usage", *key, preference=preference.value)

    def status_changed(self, site: Site, status: SiteStatus, previous: SiteStatus | None) -> None:
        """Set the outcome of a site. If a site is no longer unavailable, its deferral has ended."""
        self.tally.put("site", str(site), outcome=int(status))
        if previous is SiteStatus.UNAVAILABLE is not status:
            self.tally.put("site", str(site), resumed=int(self._now()))

    def deferred(self, site: Site) -> None:
        """Count a deferral of a site, and set the time at which it begins."""
        self.tally.add("site", str(site), deferrals=1)
        self.tally.put("site", str(site), deferred=int(self._now()), resumed=0)

    def given_up(self, site: Site) -> None:
        """Count a site that was given up, and set the end of its deferral."""
        self.tally.add("site", str(site), given_up=1)
        self.tally.put("site", str(site), resumed=int(self._now()))

    def allowed(
        self,
        site: Site,
        status: SiteStatus | None,
        known: CacheEntry | None,
        verdict: Verdict | None,
    ) -> None:
        """Count an allowed request."""
        name = str(site)
        column = ALLOWED.get(status or SiteStatus.OBEYED, ALLOWED[SiteStatus.OBEYED])
        self.tally.add("site", name, **{column: 1})
        if status is SiteStatus.WITHOUT_ROBOTS_TXT and (copy := last_copy(known)) is not None:
            self.tally.add("site", name, allowed_restricted=int(copy.status in (401, 403)))
        if verdict is not None and verdict.override is not None:
            self.tally.add("site", name, overridden=1)
            self.tally.add("override", name, str(verdict.override), allowed=1)
            self._sample(name, OVERRIDDEN, 0, verdict.url)

    def refused(self, request: Any, verdict: Verdict) -> None:
        """Count a refused request, in a dry run too."""
        site, ground = str(verdict.site), verdict.ground
        stricter = int(verdict.rfc9309 is not None)
        self.tally.add("site", site, stricter=stricter, **{REFUSED[ground.value]: 1})
        if request.meta.get("is_start_request"):
            self.tally.add("site", site, start_refused=1)
            self._sample(site, START, 0, request.url)
        line, text = verdict.line or 0, ""
        if ground is Ground.OVERRIDE:
            self.tally.add("override", site, str(verdict.override), refused=1)
        if ground in _BY_LINE:
            text = text_of(verdict.rule, _RULE_CHARS) if verdict.rule else verdict.section
        self.tally.add("rule", site, line, text, ground.value, refused=1, stricter=stricter)
        self._sample(site, ground.value, line, request.url)

    def exempt(self, request: Any, site: Site, verdict: Verdict | None) -> None:
        """Count an exempt request, also as forbidden if the known rules of its site forbid it."""
        self.tally.add("site", str(site), exempt=1)
        if verdict is not None and not verdict.allowed:
            self.tally.add("site", str(site), exempt_forbidden=1)
            self._sample(str(site), "exempt_forbidden", 0, request.url)

    def conflict(self, request: Any, site: Site, conflict: Hazard) -> None:
        """Count an allowed page that RFC 9309 or a hidden line forbids."""
        rule, other, name = conflict.rfc9309.rule, conflict.draft.rule, str(site)
        assert rule is not None  # a ruling that forbids has a rule
        if conflict.cause is not Cause.HIDDEN:
            self.tally.add("site", name, looser=1)
        allows = f"{other.number}: {text_of(other, _RULE_CHARS)}" if other else "no rule matches"
        key = (name, conflict.cause.value, rule.number, text_of(rule, _RULE_CHARS), allows)
        self.tally.add("hazard", *key, pages=1)
        self._sample(name, HAZARD, rule.number, request.url)

    def dropped(self, response: Any, reason: str) -> None:
        """Count a dropped request or item, in a dry run too. A page without a site has no count."""
        if (site := site_of(response.url)) is not None:
            self.tally.add("site", str(site), **{reason: 1})
            self._sample(str(site), reason, 0, response.url)

    def _sample(self, site: str, kind: str, line: int, url: str) -> None:
        """Keep *url*, if it is one of the first five URLs for the site, kind and line."""
        number = self._kept[site, kind, line]  # reading a Counter makes no entry
        if number < _SAMPLES and self._samples < _SAMPLES_MOST:
            self._samples += 1
            self._kept[site, kind, line] += 1
            self.tally.put("sample", site, kind, line, number, url=printable(url, _URL_CHARS))

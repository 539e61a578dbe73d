"""What a crawl says of its sites, while it runs."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from scrapy_koster import signals
from scrapy_koster.crawl.messages.summary import Retrieval
from scrapy_koster.crawl.states import SiteState
from scrapy_koster.protocol.access import Answer, Copy, Failure, Known, NoAnswer
from scrapy_koster.protocol.hazard import Cause
from scrapy_koster.protocol.html_page import is_html, page_in_place
from scrapy_koster.protocol.line import is_viewer_page, is_wide
from scrapy_koster.protocol.records import has_record
from scrapy_koster.protocol.standing import Standing
from scrapy_koster.protocol.step import Ask, Defer, Obey, Pass, Refuse, Step, standing_by
from scrapy_koster.protocol.wording import because_of, utc

if TYPE_CHECKING:
    from scrapy import Request

    from scrapy_koster.crawl.config import Config
    from scrapy_koster.crawl.events import Events
    from scrapy_koster.crawl.messages.log import Log
    from scrapy_koster.crawl.messages.stats import Stats
    from scrapy_koster.crawl.messages.summary import Summary
    from scrapy_koster.protocol.hazard import Hazard
    from scrapy_koster.protocol.site import Site

_ANYWAY = '. To fetch its pages anyway, set KOSTER_UNAVAILABLE = "allow"'
_TO_GO_ON = ". To wait longer, raise KOSTER_IDLE_LIMIT_SECS and KOSTER_DEFER_LIMIT_SECS" + _ANYWAY
_BY_HAND = ". To wait until it recovers, run a crawl" + _ANYWAY
# Of each kind; the summary has how many there are.
_SITES_NAMED = 20


class Announcer:
    """Says once what becomes of each site, and counts it."""

    def __init__(
        self, config: Config, stats: Stats, log: Log, *, summary: Summary, events: Events
    ) -> None:
        self._policy = config.policy
        self._stats = stats
        self._log = log
        self.summary = summary
        self._events = events
        self._named: Counter[object] = Counter()
        self._to_go_on = _TO_GO_ON

    def send(self, signal: object, **named: object) -> None:
        """Send a signal of ``scrapy_koster.signals``."""
        self._events.send(signal, **named)

    def has_receivers(self, signal: object) -> bool:
        """Return whether anybody has connected to *signal*."""
        return self._events.has_receivers(signal)

    def from_storage(self, site: Site, copy: Copy) -> None:
        """A copy was found in the storage, and is fresh."""
        self._read(site, copy, Retrieval.FROM_STORAGE, "from storage")

    def answered(self, site: Site, result: Answer | NoAnswer, known: Known) -> None:
        """A site was asked, and *known* is what is known now."""
        if isinstance(result, Answer) and 200 <= result.status <= 299:
            self._stats.html_page_met(page_in_place(result.body))
        match result, known:
            case Answer(status=304), Copy():
                self._stats.revalidated()
                self._read(site, known, Retrieval.REVALIDATED, "revalidated", result)
            case _, Copy():
                whence = "redirected" if known.url != site.robots_url else "fetched"
                self._read(site, known, Retrieval.FETCHED, whence, result)
            case _, Failure():  # pragma: no branch
                self._retrieved(site, known, Retrieval.FETCHED, result)
                self._not_read(site, known)

    def _retrieved(
        self, site: Site, known: Known, how: Retrieval, result: Answer | NoAnswer | None
    ) -> None:
        self.send(signals.robots_retrieved, site=site, known=known, how=how, result=result)

    def _read(
        self,
        site: Site,
        copy: Copy,
        how: Retrieval,
        whence: str,
        result: Answer | NoAnswer | None = None,
    ) -> None:
        self._retrieved(site, copy, how, result)
        self.summary.learnt(how)
        self._log.debug(
            "The robots.txt of %(site)s: (%(status)d) <GET %(url)s> (%(whence)s, bytes:"
            " %(size)d, fresh until %(until)s)",
            site=site,
            status=copy.status,
            url=copy.url,
            whence=whence,
            size=len(copy.body),
            until=utc(copy.expires),
        )

    def _not_read(self, site: Site, failure: Failure) -> None:
        self._log.debug(
            "The robots.txt of %(site)s cannot be retrieved (%(reason)s), attempts: %(attempts)d",
            site=site,
            reason=failure.reason,
            attempts=failure.attempts,
        )

    def hazard_met(self, state: SiteState, request: Request, robot: str, hazard: Hazard) -> None:
        """A page of the site was let through that RFC 9309 or a hidden line forbids."""
        cause = hazard.cause
        self._stats.hazard_met(cause, is_new=cause not in state.hazards)
        state.hazards |= {cause}
        self.send(signals.standards_conflict, request=request, site=state.site, conflict=hazard)
        self.summary.hazard_met(request.url, robot, hazard)
        self._log.debug(
            "%(request)s is allowed: %(draft)s; %(other)s forbids it: %(rfc9309)s; %(cause)s",
            request=request,
            draft=because_of(hazard.draft, robot),
            other="a hidden line" if cause is Cause.HIDDEN else "RFC 9309",
            rfc9309=because_of(hazard.rfc9309, robot),
            cause=cause.words,
        )

    def begin(self, robot: str) -> None:
        """Log the settings that are in force when the crawl begins."""
        self.summary.begin(robot)

    def sum_up(self) -> None:
        """Say at the end of the crawl what became of all sites."""
        self.summary.write()

    def cut(self, state: SiteState, cut_bytes: int) -> None:
        """Only the first *cut_bytes* octets of the site's file are read."""
        self._stats.cut()
        log = self._log.info if self._is_named("cut") else self._log.debug
        log(
            "The robots.txt of %(site)s is longer than KOSTER_MAX_BYTES = %(cut_bytes)d: it was cut"
            " after the last complete line. To read all of it, raise KOSTER_MAX_BYTES",
            site=state.site,
            cut_bytes=cut_bytes,
        )

    def odd(self, state: SiteState, copy: Copy) -> None:
        """Name a file that is obeyed and is not what a robots.txt should be."""
        if is_viewer_page(copy.body):
            self._viewer_page(state)
            return
        if is_wide(copy.body):
            what = "in UTF-16 or UTF-32, which many robots cannot read"
        elif is_html(copy.body) and has_record(copy.body):  # without one: see _without_rules
            what = "partly HTML. The lines in it that are rules are obeyed"
        else:
            return
        log = self._log.info if self._is_named("odd") else self._log.debug
        log("The robots.txt of %(site)s is %(what)s", site=state.site, what=what)

    def _viewer_page(self, state: SiteState) -> None:
        self._named["viewer page"] += 1
        if self._named["viewer page"] == 1:
            self._log.warning(
                "The robots.txt of %(site)s came as the page in which a browser shows a text file:"
                " a middleware or a download handler renders robots.txt. Its text is obeyed. Let"
                " that component skip requests whose URL ends with /robots.txt. This is logged"
                " once",
                site=state.site,
            )

    def not_heeded(self, state: SiteState, secs: float) -> None:
        """A handler of ``robots_parsed`` is not waited for any longer."""
        self._log.warning(
            "A handler of the signal robots_parsed has not returned within KOSTER_TIMEOUT_SECS ="
            " %(secs)g s for the robots.txt of %(site)s, and was cancelled. The site is crawled",
            secs=secs,
            site=state.site,
        )

    def failed(self, state: SiteState, error: BaseException) -> None:
        """Something that is ours went wrong."""
        self._log.defect(
            "Error while fetching or reading the robots.txt of %(site)s: a component of this crawl"
            " failed (%(cause)s). The site stays closed until an attempt succeeds. Fix the"
            " component that the traceback names",
            error,
            cause=error,
            site=state.site,
        )

    def awaited(self, state: SiteState) -> None:
        """Somebody waits for a page of the site, which is being asked: a command fetches one."""
        self._to_go_on = _BY_HAND
        self._log.info("Waiting for the robots.txt of %(site)s", site=state.site)

    def begins_to_wait(self, state: SiteState) -> None:
        """Count a request that waits for a site which is deferred already.

        Those from before are counted when that is announced.
        """
        if state.is_deferred:
            self._stats.requests_deferred(1)

    def announce(self, state: SiteState, step: Step, waiting: int) -> None:
        """Say what the step for a site has become, if it is news. So many are *waiting* for it."""
        before = state.standing
        match step:
            case Obey(copy):
                self._stands(state, standing_by(step, self._policy))
                if before in (Standing.UNAVAILABLE, Standing.LET_THROUGH):
                    self._answers_again(state, copy)
                if before is not state.standing:
                    self._obeyed(state, copy)
            case Defer(failure) if not state.is_deferred:
                self._stands(state, Standing.UNAVAILABLE, is_deferred=True)
                self._deferred(state, failure, waiting)
            case Refuse(failure):
                self._stands(state, Standing.UNAVAILABLE)
                if waiting:
                    self._refused(state, failure, waiting, before)
            case Pass(failure):
                self._stands(state, Standing.LET_THROUGH)
                if before is not Standing.LET_THROUGH:
                    self._let_through(state, failure)
            case Defer() | Ask():
                pass

    def _stands(self, state: SiteState, standing: Standing, *, is_deferred: bool = False) -> None:
        self.summary.stands(state.site, standing, state.standing)
        self.send(
            signals.site_status_changed,
            site=state.site,
            status=standing,
            previous=state.standing,
        )
        state.standing, state.is_deferred = standing, is_deferred

    def _is_named(self, kind: object) -> bool:
        """Whether one more site of this kind is named at INFO."""
        self._named[kind] += 1
        return self._named[kind] <= _SITES_NAMED

    def _obeyed(self, state: SiteState, copy: Copy) -> None:
        if state.standing is Standing.OBEYED or not self._is_named(state.standing):
            return
        if state.standing is Standing.RESTRICTED:
            self._restricted(state, copy)
        else:
            self._without_rules(state, copy)

    def _without_rules(self, state: SiteState, copy: Copy) -> None:
        self._log.info(
            "%(site)s has no rules: its robots.txt answers HTTP %(status)d%(what)s",
            site=state.site,
            status=copy.status,
            what=_without_what(state.standing, copy),
        )

    def _restricted(self, state: SiteState, copy: Copy) -> None:
        self._log.info(
            "%(site)s is restricted: its robots.txt answers HTTP %(status)d, so no page may be"
            " fetched (3.1). Next attempt after %(until)s. If the owner allows your crawl, set"
            ' KOSTER_RESTRICTED = "allow". If only your pages use a proxy, add its meta key to'
            " KOSTER_PAGE_META and run scrapy robots cache forget %(site)s",
            site=state.site,
            status=copy.status,
            until=utc(copy.expires),
        )

    def _let_through(self, state: SiteState, failure: Failure) -> None:
        if self._is_named(Standing.LET_THROUGH):
            self._log.info(
                "Letting requests to %(site)s through (KOSTER_UNAVAILABLE): its robots.txt cannot"
                " be retrieved (%(reason)s)",
                site=state.site,
                reason=failure.reason,
            )

    def _answers_again(self, state: SiteState, copy: Copy) -> None:
        log = self._log.info if self._is_named("answers again") else self._log.debug
        log("%(site)s answers again: HTTP %(status)d", site=state.site, status=copy.status)

    def _deferred(self, state: SiteState, failure: Failure, waiting: int) -> None:
        self._stats.site_deferred()
        self.send(signals.site_deferred, site=state.site)
        self._stats.requests_deferred(waiting)
        log = self._log.info if self._is_named("deferred") else self._log.debug
        log(
            "Deferring visits to %(site)s: its robots.txt cannot be retrieved (%(reason)s)."
            " Waiting requests: %(waiting)d. Next attempt in %(secs).0f s",
            site=state.site,
            reason=failure.reason,
            waiting=waiting,
            secs=failure.retry - failure.asked,
        )

    def _refused(
        self, state: SiteState, failure: Failure, waiting: int, before: Standing | None
    ) -> None:
        self.send(signals.site_given_up, site=state.site)
        if self._policy.defers:
            self._given_up(state, failure, waiting)
        elif before is not Standing.UNAVAILABLE and self._is_named("refused at once"):
            self._log.info(
                "Refusing requests to %(site)s%(setting)s: its robots.txt cannot be retrieved"
                " (%(reason)s). Requests refused now: %(waiting)d",
                site=state.site,
                setting="" if failure.is_defect else " (KOSTER_UNAVAILABLE)",
                reason=failure.reason,
                waiting=waiting,
            )

    def _given_up(self, state: SiteState, failure: Failure, waiting: int) -> None:
        log = self._log.info if self._is_named("given up") else self._log.debug
        log(
            "Giving up %(site)s: its robots.txt cannot be retrieved (%(reason)s), attempts:"
            " %(attempts)d. Refused requests: %(waiting)d%(hint)s",
            site=state.site,
            reason=failure.reason,
            attempts=failure.attempts,
            waiting=waiting,
            hint="" if failure.no_such_host else self._to_go_on,
        )


def _without_what(standing: Standing | None, copy: Copy) -> str:
    match standing:
        case Standing.HTML:
            return f" with an HTML page, {copy.url}"
        case Standing.WITHOUT_RULES:
            return f" without a line of a robots.txt, {copy.url}"
        case Standing.HTML_DISALLOWED:
            return (
                f" with {page_in_place(copy.body)}, {copy.url}, so no page may be fetched"
                f" (KOSTER_HTML_ROBOTSTXT). Next attempt after {utc(copy.expires)}"
            )
        case Standing.MISSING:
            page = " (an HTML page)" if is_html(copy.body) else ""
            return (
                f"{'' if copy.status >= 300 else ' without a record'}{page}, so no page may be"
                f" fetched (KOSTER_MISSING). Next attempt after {utc(copy.expires)}"
            )
        case _:
            return ""

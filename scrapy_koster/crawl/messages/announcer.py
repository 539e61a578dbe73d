"""Logs and counts the changes of sites."""

from pydispatch.dispatcher import getAllReceivers
from scrapy import Request
from scrapy.crawler import Crawler

from scrapy_koster import signals
from scrapy_koster.crawl.clock import clock_of
from scrapy_koster.crawl.config import Config
from scrapy_koster.crawl.messages.log import Log
from scrapy_koster.crawl.messages.summary import Retrieval, Summary
from scrapy_koster.crawl.states import SiteState
from scrapy_koster.protocol.access import (
    Answer,
    CachedRobots,
    CacheEntry,
    FetchFailure,
    NoAnswer,
    status_of_copy,
)
from scrapy_koster.protocol.hazard import Hazard
from scrapy_koster.protocol.html_page import ORDINARY, is_html, page_in_place
from scrapy_koster.protocol.line import is_viewer_page, is_wide
from scrapy_koster.protocol.site import Site
from scrapy_koster.protocol.site_status import SiteStatus
from scrapy_koster.protocol.step import Ask, Defer, Obey, Pass, Refuse, Step, status_of_step
from scrapy_koster.protocol.verdict import Verdict
from scrapy_koster.protocol.wording import utc

_OPENING = 'an entry of KOSTER_OVERRIDES with "unavailable": "allow"'
_ANYWAY = f". To fetch its pages anyway, use {_OPENING}"
_TO_GO_ON = ". To wait longer, raise KOSTER_IDLE_LIMIT_SECS and KOSTER_DEFER_LIMIT_SECS" + _ANYWAY
_TOO_LATE = (
    ", which is too late: if the crawl still runs in {:.0f} s, it gives the site up. To wait for"
    " the attempt, raise KOSTER_DEFER_LIMIT_SECS"
)
_DRY_RUN = ". KOSTER_DRY_RUN: they are sent all the same"
_BY_HAND = ". To wait until it recovers, run a crawl" + _ANYWAY
# Number of sites logged at INFO, for each kind of message and status. The summary counts all sites.
_SITES_NAMED = 20
LINES = {
    "restricted": "%(site)s is restricted: its robots.txt answers HTTP %(status)d, so no page may"
    f" be fetched. Next attempt after %(until)s. If the owner allows your crawl, use {_OPENING}."
    " If only your pages use a proxy, add its meta key to"
    " KOSTER_PAGE_META and run scrapy robots cache forget %(site)s",
    "no rules": "%(site)s has no rules: its robots.txt answers HTTP %(status)d%(what)s",
    "answers again": "%(site)s answers again: HTTP %(status)d",
    "cut": "The robots.txt of %(site)s is longer than KOSTER_MAX_BYTES = %(cut_bytes)d: it was cut"
    " after the last complete line. To read all of it, raise KOSTER_MAX_BYTES",
    "odd": "The robots.txt of %(site)s is %(what)s",
    "deferred": "Holding requests to %(site)s until its robots.txt can be fetched (%(reason)s)."
    " Waiting requests: %(waiting)d. Next attempt in %(secs).0f s%(hint)s",
    "given up": "Giving up %(site)s: its robots.txt cannot be retrieved (%(reason)s), attempts:"
    " %(attempts)d. Refused requests: %(waiting)d%(hint)s",
    "refused": "Refusing requests to %(site)s%(setting)s: its robots.txt cannot be retrieved"
    " (%(reason)s). Requests refused now: %(waiting)d%(hint)s",
    "let through": "Letting requests to %(site)s through (%(setting)s): its robots.txt"
    " cannot be retrieved (%(reason)s)",
}
"""Messages about sites, by kind.

For a kind and a status, the first _SITES_NAMED are logged at INFO, the rest at DEBUG.
"""


class Announcer:
    """Logs and counts the changes of sites, and sends their signals."""

    def __init__(self, crawler: Crawler, config: Config) -> None:
        self._policy = config.policy
        self._stats = crawler.stats
        self._log = Log(__name__, crawler)
        self.summary = Summary(crawler, config)
        self._sender = crawler.signals.sender
        self.send = crawler.signals.send_catch_log
        """Sends a signal of ``scrapy_koster.signals``."""
        self._is_dry_run = config.dry_run
        self._to_go_on = _TO_GO_ON
        self._epoch = clock_of(crawler).epoch

    def has_receivers(self, signal: object) -> bool:
        """Return whether *signal* has receivers."""
        return any(getAllReceivers(self._sender, signal))

    def log_retrieved(
        self, site: Site, known: CacheEntry, result: Answer | NoAnswer | None = None
    ) -> None:
        """Log and count *known*, and send ``robots_retrieved``.

        *result* is the result of the fetch, or None if *known* comes from the storage.
        """
        how = Retrieval.FETCHED if result else Retrieval.FROM_STORAGE
        if isinstance(result, Answer) and result.status == 304 and isinstance(known, CachedRobots):
            how = Retrieval.REVALIDATED
            self._stats.inc_value("koster/revalidated")
        elif isinstance(result, Answer) and 200 <= result.status <= 299:
            page = page_in_place(result.body)
            if page and not (isinstance(known, CachedRobots) and self._is_obeyed(known)):
                self._stats.inc_value("koster/html/pages")
                if page != ORDINARY:
                    self._stats.inc_value("koster/html/challenges")
        self.send(signals.robots_retrieved, site=site, known=known, how=how, result=result)
        if isinstance(known, FetchFailure):
            self.summary.failed(known.reason)
            self._log.debug(
                "The robots.txt of %(site)s cannot be retrieved (%(reason)s), attempts:"
                " %(attempts)d",
                site=site,
                reason=known.reason,
                attempts=known.attempts,
            )
            return
        self.summary.copies[how] += 1
        self._log.debug(
            "The robots.txt of %(site)s: (%(status)d) <GET %(url)s> (%(whence)s, bytes:"
            " %(size)d, fresh until %(until)s)",
            site=site,
            status=known.status,
            url=known.url,
            whence=how.value,
            size=len(known.body),
            until=utc(known.expires),
        )

    def hazard_met(self, state: SiteState, request: Request, robot: str, hazard: Hazard) -> None:
        """Log and count an allowed page that RFC 9309 or a hidden line forbids."""
        cause = hazard.cause
        self._stats.inc_value("koster/hazard/urls")
        self._stats.inc_value(f"koster/hazard/urls/{cause.value}")
        if cause not in state.hazards:
            state.hazards |= {cause}
            self._stats.inc_value(f"koster/hazard/sites/{cause.value}")
        named = {"request": request, "site": state.site, "conflict": hazard}
        self.send(signals.standards_conflict, **named)
        because = hazard.because(robot)
        self.summary.hazard_met(request.url, cause, because)
        self._log.debug(
            "%(request)s is allowed: it is %(because)s; %(cause)s",
            request=request,
            because=because,
            cause=cause.words,
        )

    def refused(self, request: Request, verdict: Verdict) -> None:
        """Send the signal of a refused *request*. Count the request if RFC 9309 allows it."""
        self.send(signals.request_refused, request=request, verdict=verdict)
        if verdict.rfc9309 is not None:
            self._stats.inc_value("koster/stricter/urls")
            self.summary.stricter_met(verdict)

    def odd(self, state: SiteState, copy: CachedRobots) -> None:
        """Log a robots.txt that is cut, in UTF-16 or UTF-32, partly HTML, or rendered as a page."""
        if copy.cut_bytes is not None:
            self._stats.inc_value("koster/cut")
            self._name("cut", state, cut_bytes=copy.cut_bytes)
        if is_viewer_page(copy.body):
            self._log.warning_once(
                "The robots.txt of %(site)s came as the page in which a browser shows a text"
                " file, and its text is obeyed. Either the site serves this page, or a middleware"
                " or download handler renders robots.txt: let it skip URLs that end with"
                " /robots.txt. This is logged once",
                site=state.site,
            )
        elif is_wide(copy.body):
            self._name("odd", state, what="in UTF-16 or UTF-32, which many robots cannot read")
        elif is_html(copy.body) and self._is_obeyed(copy):  # _without_what logs other HTML
            self._name("odd", state, what="partly HTML. The lines in it that are rules are obeyed")

    def _is_obeyed(self, copy: CachedRobots) -> bool:
        return status_of_copy(copy, self._policy) is SiteStatus.OBEYED

    def failed(self, state: SiteState, error: BaseException) -> None:
        """Log *error*: a component of the crawl has failed for the site."""
        self._log.defect(
            "Error while fetching or reading the robots.txt of %(site)s: a component of this crawl"
            " failed (%(cause)s). The site stays closed until an attempt succeeds. Fix the"
            " component that the traceback names",
            error,
            cause=error,
            site=state.site,
        )

    def awaited(self, state: SiteState) -> None:
        """Log that `scrapy fetch`, or a similar command, waits for the robots.txt of the site."""
        self._to_go_on = _BY_HAND
        self._log.info("Waiting for the robots.txt of %(site)s", site=state.site)

    def begins_to_wait(self, state: SiteState) -> None:
        """Count a request that begins to wait for a deferred site.

        ``announce`` counts the requests that wait when the site becomes deferred.
        """
        if state.is_deferred:
            self._stats.inc_value("koster/deferred/requests")

    def announce(self, state: SiteState, step: Step, waiting: int) -> None:
        """Log and count the change of a site by *step*, and send the signals of the change.

        *waiting* is the number of requests that wait for the site. An ``Ask``, and another
        ``Defer`` of a deferred site, are no change.
        """
        if isinstance(step, Ask) or (isinstance(step, Defer) and state.is_deferred):
            return
        before, is_deferred = state.status, isinstance(step, Defer)
        values: dict[str, object]
        policy = self._policy.at(state.site, self._epoch())
        now = SiteStatus.UNAVAILABLE if isinstance(step, Defer) else status_of_step(step, policy)
        self.summary.stands(state.site, now, before)
        named = {"site": state.site, "status": now, "previous": before}
        self.send(signals.site_status_changed, **named)
        state.status, state.is_deferred = now, is_deferred
        match step:
            case Obey(copy):
                self._answers(state, copy, now, before)
            case Defer(failure):
                self._stats.inc_value("koster/deferred/sites")
                self.send(signals.site_deferred, site=state.site)
                if waiting:
                    self._stats.inc_value("koster/deferred/requests", waiting)
                now_epoch = self._epoch()  # the retry may be due by now
                secs, left = (max(0.0, at - now_epoch) for at in (failure.retry, step.until))
                hint = _TOO_LATE.format(left) if left < secs else ""
                values = {"reason": failure.reason, "waiting": waiting, "secs": secs, "hint": hint}
                self._name("deferred", state, **values)
            case Pass(failure) if before is not now:
                setting = "KOSTER_UNAVAILABLE" if policy is self._policy else "KOSTER_OVERRIDES"
                self._name("let through", state, reason=failure.reason, setting=setting)
            case Refuse(failure) if waiting:
                self.send(signals.site_given_up, site=state.site)
                hint = _DRY_RUN if self._is_dry_run else ""
                values = {"reason": failure.reason, "waiting": waiting}
                if self._policy.defers:
                    is_final = failure.no_such_host or failure.is_defect
                    to_do = self.summary.advice(failure.reason) or self._to_go_on
                    hint = hint or ("" if is_final else to_do)
                    self._name("given up", state, attempts=failure.attempts, hint=hint, **values)
                elif before is not now:
                    setting = "" if failure.is_defect else " (KOSTER_UNAVAILABLE)"
                    self._name("refused", state, setting=setting, hint=hint, **values)
            case _:
                pass

    def _answers(
        self, state: SiteState, copy: CachedRobots, now: SiteStatus, before: SiteStatus | None
    ) -> None:
        if before in (SiteStatus.UNAVAILABLE, SiteStatus.LET_THROUGH):
            self._name("answers again", state, status=copy.status)
        if now in (SiteStatus.OBEYED, before):
            return
        kind = "restricted" if now is SiteStatus.RESTRICTED else "no rules"
        what, until = _without_what(now, copy), utc(copy.expires)
        if status_of_copy(copy, self._policy) is not now:
            what += ", but KOSTER_OVERRIDES opens the site"
        elif copy.status in (401, 403):
            what += ", which opens the site (KOSTER_RESTRICTED)"
        self._name(kind, state, status=copy.status, until=until, what=what)

    def replays(self, state: SiteState, step: Obey | Pass) -> None:
        """Count the first status of a site in a crawl from the HTTP cache, without a message."""
        if state.status is None:
            state.status = status_of_step(step, self._policy)
            self.summary.stands(state.site, state.status, None)

    def _name(self, kind: str, state: SiteState, **values: object) -> None:
        named = kind, state.status
        self._log.info_first(_SITES_NAMED, named, LINES[kind], site=state.site, **values)


def _without_what(status: SiteStatus, copy: CachedRobots) -> str:
    what, page = "", page_in_place(copy.body)
    if copy.status < 300:
        what = f" with {page}, {copy.url}" if page else f" without a record, {copy.url}"
    if status.is_closed:
        by = "KOSTER_MISSING" if status is SiteStatus.MISSING else "KOSTER_HTML_ROBOTSTXT"
        what += f", so no page may be fetched ({by}). Next attempt after {utc(copy.expires)}"
    return what

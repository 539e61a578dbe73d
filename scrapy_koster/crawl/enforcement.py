"""Acts on decisions about requests: counts, logs, refuses.

A request is decided before the download (``enforce``), and again when the request is sent
(``check_before_sending``). In between, the request waits for the delay of its slot, and downloader
middlewares may change the request. If a page comes from another URL, because a download handler
follows redirects as a browser does, this URL is decided, too (``check_final_url``).
"""

from collections.abc import Awaitable
from contextlib import suppress
from weakref import WeakKeyDictionary

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.exceptions import IgnoreRequest
from scrapy.utils.datatypes import LocalCache

from scrapy_koster import signals
from scrapy_koster.crawl.context import context_of
from scrapy_koster.crawl.decision import Decision, decide
from scrapy_koster.crawl.engine.compat import CannotResolveHostError
from scrapy_koster.crawl.exceptions import RobotsForbidden, RobotsUnavailable
from scrapy_koster.crawl.fetching.fetcher import network_of
from scrapy_koster.crawl.messages.log import Log
from scrapy_koster.crawl.states import SiteState
from scrapy_koster.protocol.access import CachedRobots, FetchFailure
from scrapy_koster.protocol.path import is_robots_txt
from scrapy_koster.protocol.printable import printable
from scrapy_koster.protocol.site import site_of
from scrapy_koster.protocol.site_status import Ground, SiteStatus
from scrapy_koster.protocol.step import Obey, Pass, Refuse, Settled, Step, copy_in_force, waits
from scrapy_koster.protocol.usage import Statement
from scrapy_koster.protocol.verdict import Verdict

_URLS_COUNTED = 100_000
_REFUSED = {Ground.DELAY: "crawl_delay", Ground.USAGE: "usage"}
"""Grounds whose refusals also count in the stat ``koster/WORD/refused``, even in a dry run.

WORD is the value.
"""


class Enforcement:
    """Calls ``decide`` for requests, and acts on the verdict."""

    def __init__(self, crawler: Crawler) -> None:
        self._log = Log(__name__, crawler)
        self._parts = parts = context_of(crawler)
        self._config = parts.config
        self._announcer = parts.announcer
        self._stats = crawler.stats
        self._epoch = parts.clock.epoch
        self._sites = parts.sites
        self.decided: WeakKeyDictionary[Request, tuple[str, tuple[int, str] | None]] = (
            WeakKeyDictionary()
        )
        """The URL of an allowed request, and the identity of the copy that has decided."""
        self._counted: LocalCache[int, None] = LocalCache(_URLS_COUNTED)
        """Hashes of the last refused URLs, so that ``drop_link`` counts a URL only once."""
        self.stated: WeakKeyDictionary[Request, tuple[Statement, ...]] = WeakKeyDictionary()
        """The usage statements of the robots.txt about a page, by the request for the page.

        draft-ietf-aipref-attach, 3.3: a crawler "uses the copy of robots.txt that is current at the
        time of the fetch".
        """

    # Decisions.

    def decide(self, request: Request, state: SiteState, robot: str, step: Step) -> Decision:
        """Return the decision on *request* for *robot*, by the state and the step of its site."""
        assert not waits(step)
        pacer = self._parts.pacer
        delay = pacer.delay_of(state, robot) if pacer.is_open else None
        return decide(
            request.url, robot, state, step, delay=delay, config=self._config, now=self._epoch()
        )

    def known_decision(self, request: Request, robot: str | None = None) -> Decision | None:
        """Return the decision on *request*, or None if no valid robots.txt is in memory.

        With KOSTER_UNAVAILABLE = "allow", a request to an unavailable site is allowed. The default
        of *robot* is the name for *request* (``Robot.name_of``).
        """
        state = self._sites.records.in_memory(request.url)
        if state is None or not isinstance(step := self._sites.current_step(state), (Obey, Pass)):
            return None
        return self.decide(request, state, robot or self._parts.robot.name_of(request), step)

    def _enforced(self, request: Request, state: SiteState, robot: str, step: Step) -> Decision:
        """Return the decision on *request*, and note the usage statements about the page.

        If *request* is refused, raises an error of ``_refuse``, unless KOSTER_DRY_RUN is set.
        """
        decision = self.decide(request, state, robot, step)
        if self._config.usage.is_on:
            self.stated[request] = decision.statements
        self._sites.records.use(state)
        if not decision.allowed:
            self._refuse(request, decision.verdict(), state)
        by = _identity(step.copy) if isinstance(step, Obey) else None
        self.decided[request] = request.url, by
        return decision

    # The checks on the way of a request.

    def enforce(self, request: Request, state: SiteState, robot: str, step: Step) -> None:
        """Send the signal of an allowed *request*. If refused, raise an error of ``_refuse``.

        With KOSTER_DRY_RUN no error is raised. A request for /robots.txt is allowed by any *step*.
        """
        if is_robots_txt(request.url):
            self._allow(request, state, robot, step, None)
        elif (decision := self._enforced(request, state, robot, step)).allowed:
            self._allow(request, state, robot, step, decision)

    def check_before_sending(self, request: Request) -> Awaitable[None] | None:
        """Decide again on *request* before sending. If refused, raise an error of ``_refuse``.

        The decision of ``enforce`` stays if neither the URL nor the copy has changed. A new copy
        decides, even if it has expired since. For a URL without a decision, which a middleware has
        set, returns an awaitable that waits for the site.
        """
        if self._parts.parked.has_next:
            self._parts.engine.wake()  # this request waits in its slot no longer
        if request.meta.get("dont_obey_robotstxt"):
            return None
        state = self._sites.records.state_of(url := request.url)
        if state is None or is_robots_txt(url):
            return None
        robot = self._parts.robot.decided_by(request)
        if (refusal := self.refusal_of_host(request, state)) is not None:
            self._enforced(request, state, robot, refusal)
        decided_url, by = self.decided.get(request, (None, None))
        now, policy = self._epoch(), self._config.policy
        copy = copy_in_force(state.known, now=now, policy=policy.at(state.site, now))
        has_override = bool(policy.overrides)  # it can end meanwhile
        is_open = has_override and copy is None and isinstance(state.known, FetchFailure)
        if decided_url != url or is_open:
            return self._check_after_wait(request, state, robot)
        if copy is not None and (has_override or _identity(copy) != by):
            self._enforced(request, state, robot, Obey(copy, copy.expires))
        return None

    async def _check_after_wait(self, request: Request, state: SiteState, robot: str) -> None:
        self._enforced(request, state, robot, await self._sites.wait(state, request))

    def refusal_of_host(self, request: Request, state: SiteState) -> Settled | None:
        """Return the step that refuses *request* if its Host header names another site, or None."""
        # Faster than headers.getlist(), which normalizes the name in every call.
        for host in dict.get(request.headers, b"Host") or ():
            if not state.site.is_named_by(name := host.decode("latin-1")):
                reason = (
                    f"the Host header of the request names {printable(name)}, a site with a"
                    " robots.txt of its own: put that name into the URL, and the address that it is"
                    " to go to into a proxy or the DNS"
                )
                now = self._epoch()
                return Refuse(FetchFailure(reason, 0, now, now, now, None), now)
        return None

    def check_final_url(self, request: Request, url: str, state: SiteState, step: Step) -> None:
        """Decide on *url*, from which the page of *request* comes, by the *step* of its site.

        If refused, raise an error of ``_refuse``. The page has already been fetched, so the first
        refusal is logged as a warning. A dry run raises no error.
        """
        ended = request.replace(url=url)
        try:
            self.enforce(ended, state, self._parts.robot.name_of(request), step)
        except IgnoreRequest:
            self._log.warning_once(
                "%(request)s ended at %(url)s, which its robots.txt does not allow. The page"
                " was fetched, because the download handler follows redirects by itself, as a"
                " browser does. Its response is refused. This is logged once. See"
                " docs/ecosystem.md",
                request=request,
                url=url,
            )
            raise
        self.stated[request] = self.stated.get(ended, ())

    # Actions after a decision.

    def _allow(
        self, request: Request, state: SiteState, robot: str, step: Step, decision: Decision | None
    ) -> None:
        """Send the signal of an allowed request, and count an override or a hazard."""
        self._sites.busy()
        request.meta.pop("koster_verdict", None)  # in a dry run, of a request that led to this one
        verdict = decision.verdict() if decision and self._config.policy.overrides else None
        override = None if verdict is None else verdict.override
        self._announcer.send(
            signals.request_allowed,
            request=request,
            site=state.site,
            status=SiteStatus.LET_THROUGH if isinstance(step, Pass) else state.status,
            known=state.known,
            robot=robot,
            verdict=None if override is None else verdict,
        )
        if override is not None:
            self._stats.inc_value("koster/override/allowed")
            self._log.debug("%(request)s passes, %(verdict)s", request=request, verdict=verdict)
        elif isinstance(step, Obey) and "retry_times" not in request.meta:
            watch = state.facts.watch
            if watch is not None and (hazard := watch.hazard(request.url, robot)):
                self._announcer.hazard_met(state, request, robot, hazard)

    def note_exempt(self, request: Request) -> None:
        """Send the signal of a request with ``dont_obey_robotstxt``.

        The signal has the verdict by the robots.txt in memory, or None. No signal is sent if the
        URL or the robot's name is invalid, or if the parser has a defect.
        """
        if not self._announcer.has_receivers(signals.request_exempt):
            return
        with suppress(ValueError, TypeError):  # an invalid URL or name, ParserDefectError
            if (site := site_of(request.url)) is not None:
                decision = self.known_decision(request)
                verdict = decision and decision.verdict()
                named = {"request": request, "site": site, "verdict": verdict}
                self._announcer.send(signals.request_exempt, **named)

    def _refuse(self, request: Request, verdict: Verdict, state: SiteState) -> None:
        """Log and count a refused *request*. Raises an error, unless KOSTER_DRY_RUN is set.

        The error is RobotsForbidden, or RobotsUnavailable if the robots.txt could not be retrieved.
        If an error of a component of the crawl ended the retrieval, this error is raised. If the
        host does not exist, `scrapy shell` and similar commands get CannotResolveHostError.
        """
        if self._config.filter_links:
            self._counted[hash(request.url)] = None  # drop_link does not count this URL again
        self._count_refused(request, verdict)
        if self._config.dry_run:
            self._log.debug("%(request)s would be %(verdict)s", request=request, verdict=verdict)
            request.meta["koster_verdict"] = verdict
            return
        is_inside = verdict.ground is Ground.RULE and network_of(state.site.host)
        if is_inside and self._log.is_first("a site inside"):
            self._log.info(
                "Pages of %(site)s, which is not a public address, are refused by its rules. If it"
                " is your own site, add an entry to KOSTER_OVERRIDES that allows them. This is"
                " logged once",
                site=state.site,
            )
        if self._sites.is_interactive:  # a person waits for the page
            self._log.info("Refused: %(request)s is %(verdict)s", request=request, verdict=verdict)
        else:
            self._log.debug("%(request)s is %(verdict)s", request=request, verdict=verdict)
        if verdict.ground is not Ground.UNAVAILABLE:
            raise RobotsForbidden(verdict)
        if isinstance(known := verdict.known, FetchFailure):
            # Without attempts, the crawl is closing, or the Host header names another site.
            if self._config.policy.defers and known.attempts:
                self._stats.inc_value("koster/deferred/dropped")
            defect = state.facts.defect
            if known.is_defect and defect and defect.value is not None:
                # Every raise adds to the traceback of the exception: restore the first traceback.
                raise defect.value.with_traceback(defect.tb)
            if known.no_such_host and self._parts.engine.is_interactive:
                # `scrapy shell` suppresses IgnoreRequest, and would not show the reason.
                raise CannotResolveHostError(known.reason)
        raise RobotsUnavailable(verdict)

    def drop_link(self, request: Request) -> RobotsForbidden | None:
        """Return the error for a forbidden *request*, or None if *request* should be queued.

        A forbidden link is logged and counted.
        """
        if request.meta.get("dont_obey_robotstxt") or is_robots_txt(request.url):
            return None
        decision = self.known_decision(request)
        if decision is None or decision.allowed:
            return None
        verdict = decision.verdict()
        self._stats.inc_value("koster/links/filtered")
        self._log.debug("Not queued: %(request)s is %(verdict)s", request=request, verdict=verdict)
        if hash(request.url) not in self._counted:
            self._count_refused(request, verdict)
        self._counted[hash(request.url)] = None
        return RobotsForbidden(verdict)

    def _count_refused(self, request: Request, verdict: Verdict) -> None:
        """Count a refused *request*, and send the signal. A dry run has its own stat."""
        self._announcer.refused(request, verdict)
        if kind := _REFUSED.get(verdict.ground):
            self._stats.inc_value(f"koster/{kind}/refused")
        if self._config.dry_run:
            self._stats.inc_value("koster/dry_run/forbidden")
        else:
            self._stats.inc_value("robotstxt/forbidden")
            self._stats.inc_value(f"koster/forbidden/{verdict.ground.value}")


def _identity(copy: CachedRobots) -> tuple[int, str]:
    return copy.status, copy.digest

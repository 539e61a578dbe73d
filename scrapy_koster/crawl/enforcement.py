"""Has requests decided at each point of their way, and acts: counts, logs, refuses.

A request is decided before it is downloaded (``enforce``). It is checked again when it is sent,
which may be long after that: it has waited for the delay of its slot, and all downloader
middlewares have seen it. And it is decided once more if its page has come from another URL: Scrapy
makes a request of each redirect, but a browser follows redirects by itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy.exceptions import IgnoreRequest
from scrapy.utils.datatypes import LocalCache

from scrapy_koster import signals
from scrapy_koster.crawl.decision import checked_watch, decide, host_refusal, is_plainly_allowed
from scrapy_koster.crawl.engine.robots_mark import is_for_robots_txt
from scrapy_koster.crawl.exceptions import RobotsForbidden, unavailable
from scrapy_koster.crawl.fetching.room import is_of_scrapy
from scrapy_koster.crawl.messages.log import Log
from scrapy_koster.protocol.access import Copy
from scrapy_koster.protocol.path import is_robots_txt
from scrapy_koster.protocol.rewriting import is_plain
from scrapy_koster.protocol.site import site_of
from scrapy_koster.protocol.standing import Ground, Standing
from scrapy_koster.protocol.step import Ask, Defer, Obey, Pass, Refuse, waits

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.http import Response

    from scrapy_koster.crawl.assembly import Assembly
    from scrapy_koster.crawl.decision import Decision
    from scrapy_koster.crawl.pacing.pacer import Pacer
    from scrapy_koster.crawl.states import SiteState
    from scrapy_koster.protocol.step import Step
    from scrapy_koster.protocol.verdict import Verdict

_URLS_COUNTED = 100_000


def may_end_elsewhere(crawler: Crawler) -> bool:
    """Return whether the project has download handlers of its own choice.

    Scrapy's own handlers follow no redirect.
    """
    given = crawler.settings.getdict("DOWNLOAD_HANDLERS").values()
    return any(handler for handler in given if not is_of_scrapy(handler))


class Enforcement:
    """Asks ``decide`` about requests, and acts on the verdict."""

    def __init__(self, crawler: Crawler, parts: Assembly) -> None:
        self._log = Log(__name__, crawler)
        self._parts = parts
        self._config = parts.config
        self._events = parts.events
        self._epoch = parts.clock.epoch
        self._sites = parts.sites
        self._robot = parts.robot
        self._pacer: Pacer | None = None
        self._has_warned_of_final_url = False
        self._counted: LocalCache[int, None] = LocalCache(_URLS_COUNTED)
        """Hashes of the refused URLs that were counted last; only with KOSTER_FILTER_LINKS."""

    def keep_delays(self, pacer: Pacer | None) -> None:
        """Refuse sites by the delays of *pacer* from now on, None: by no delay."""
        self._pacer = pacer

    # Decisions.

    def decide(self, request: Request, state: SiteState, robot: str, step: Step) -> Decision:
        """Return the decision on *request*, to the site of *state*, by *step*."""
        assert not isinstance(step, (Ask, Defer))
        facts, pacer = state.facts, self._pacer
        return decide(
            request.url,
            robot,
            site=state.site,
            step=step,
            parser=facts.parser,
            source=facts.source,
            usage=facts.usage,
            delay=None if pacer is None else pacer.too_long(state, robot),
            config=self._config,
            now=self._epoch(),
        )

    def known_verdict(self, request: Request, robot: str | None = None) -> Verdict | None:
        """Return the verdict on *request* if the robots.txt of its site is known and fresh."""
        state = self._sites.in_memory(request.url)
        if state is None:
            return None
        step = self._sites.current_step(state)
        if waits(step) or isinstance(step, Refuse):
            return None
        return self.decide(request, state, robot or self._robot.name_of(request), step).verdict

    def is_plainly_allowed(self, request: Request, state: SiteState, robot: str) -> bool:
        """Return whether ``decide`` would allow *request*, and say nothing about its page.

        Valid while the state is.
        """
        return (
            is_plainly_allowed(request.url, robot, origin=state.origin, allows=state.allows)
            and "verbatim_url" not in request.meta
            and state.facts.usage is None
            and not self._config.policy.overrides
            and (self._pacer is None or self._pacer.too_long(state, robot) is None)
        )

    def _noted_verdict(self, request: Request, state: SiteState, robot: str, step: Step) -> Verdict:
        """Return the verdict on *request*, after noting what is stated about its page."""
        verdict, statements = self.decide(request, state, robot, step)
        if statements or self._parts.stated.has_any:
            self._parts.stated.note(request, statements)
        return verdict

    # Points on the way of a request.

    def enforce_now(self, request: Request, state: SiteState, robot: str) -> None:
        """Do what ``enforce`` does, to a site whose state is valid. Runs for each request."""
        if self.is_plainly_allowed(request, state, robot):
            self.count_allowed(request, state, robot)
        else:
            self.enforce(request, state, robot, state.step)

    def enforce(self, request: Request, state: SiteState, robot: str, step: Step) -> None:
        """Count *request* if it is allowed; otherwise raise RobotsForbidden or RobotsUnavailable.

        With KOSTER_DRY_RUN nothing is raised.
        """
        verdict = self._noted_verdict(request, state, robot, step)
        if not verdict.allowed:
            self._refuse(request, verdict, state, step)
        elif verdict.override is None:
            self.count_allowed(request, state, robot)
        else:
            self.note_allowed(request, state, robot, verdict)
            self._parts.stats.overridden()
            self._log.debug("%(request)s passes, %(verdict)s", request=request, verdict=verdict)

    def check_before_sending(self, request: Request) -> None:
        """Raise IgnoreRequest if *request*, which was allowed, may not be sent."""
        if request.meta.get("dont_obey_robotstxt"):
            return
        state = self._sites.in_memory(request.url)
        if state is None:
            return
        robot, now = self._robot.decided_by(request), self._epoch()
        self.check_host(request, state, robot)
        if now >= state.until_epoch:
            # A file that has expired since decides no more: it was valid at the decision.
            if waits(self._sites.current_step(state)):
                return
        elif self.is_plainly_allowed(request, state, robot) and not self._parts.stated.has_any:
            return
        if isinstance(state.known, Copy) and not is_robots_txt(request.url):
            verdict = self._noted_verdict(request, state, robot, state.step)
            if not verdict.allowed:
                self._refuse(request, verdict, state, state.step)

    def check_host(self, request: Request, state: SiteState, robot: str) -> None:
        """Raise IgnoreRequest if the Host header of *request* names a site other than its URL."""
        if b"Host" in request.headers:
            hosts = request.headers.getlist(b"Host")
            refusal = host_refusal(hosts, state.site, self._epoch())
            if refusal is not None:
                self.enforce(request, state, robot, refusal)

    async def check_final_url(self, request: Request, response: Response) -> Response:
        """Return *response* if the robot may visit its URL; ask its site first if need be.

        The page has been fetched by then: the first refusal is logged as a warning.
        """
        if response.url == request.url or request.meta.get("dont_obey_robotstxt"):
            return response
        state = self._sites.state_of(response.url)
        if state is None or is_robots_txt(response.url):
            return response
        ended, step, replay = request.replace(url=response.url), state.step, self._parts.replay
        if replay is not None and replay.is_on:  # no site is asked
            state, step = await replay.last_known(state)
        elif self._epoch() >= state.until_epoch:
            step = await self._sites.wait(state, request)
        try:
            self.enforce(ended, state, self._robot.name_of(request), step)
        except IgnoreRequest:
            self._warn_of_final_url(request, response)
            raise
        self._parts.stated.ended_elsewhere(request, ended)
        return response

    def _warn_of_final_url(self, request: Request, response: Response) -> None:
        if self._has_warned_of_final_url:
            return
        self._has_warned_of_final_url = True
        self._log.warning(
            "%(request)s ended at %(url)s, which its robots.txt does not allow. The page was"
            " fetched, because the download handler follows redirects by itself, as a browser"
            " does. Its response is refused. This is logged once. See docs/ecosystem.md",
            request=request,
            url=response.url,
        )

    # Actions.

    def count_allowed(self, request: Request, state: SiteState, robot: str) -> None:
        """Count an allowed request, and once whether RFC 9309 forbids it."""
        self.note_allowed(request, state, robot)
        is_own = robot == self._robot.name
        watch = state.facts.watch if is_own else checked_watch(state.parser, robot)
        if watch is None or "retry_times" in request.meta or not isinstance(state.step, Obey):
            return
        path = request.url.removeprefix(state.origin)
        plain = is_plain(path) and "verbatim_url" not in request.meta
        if hazard := watch.hazard(request.url, is_plain=plain):
            self._parts.announcer.hazard_met(state, request, robot, hazard)

    def note_allowed(
        self, request: Request, state: SiteState, robot: str, verdict: Verdict | None = None
    ) -> None:
        """Send the signal of an allowed request."""
        self._events.send(
            signals.request_allowed,
            request=request,
            site=state.site,
            status=Standing.LET_THROUGH if isinstance(state.step, Pass) else state.standing,
            known=state.known,
            robot=robot,
            verdict=verdict,
        )

    def note_exempt(self, request: Request) -> None:
        """Send the signal of a request with ``dont_obey_robotstxt``.

        Nothing is fetched for that, and no error of it reaches the request.
        """
        if is_for_robots_txt(request) or not self._events.has_receivers(signals.request_exempt):
            return
        try:
            site, verdict = site_of(request.url), self.known_verdict(request)
        except (ValueError, TypeError):  # an invalid URL or robot, or a defect of the parser
            return
        if site is not None:
            self._events.send(signals.request_exempt, request=request, site=site, verdict=verdict)

    def _refuse(self, request: Request, verdict: Verdict, state: SiteState, step: Step) -> None:
        """Log, count and refuse *request*, unless KOSTER_DRY_RUN is set."""
        stats = self._parts.stats
        if self._config.filter_links:
            self._is_new(request.url)  # a link to it is not counted again
        self._count_refused(request, verdict)
        if self._config.dry_run:
            self._log.debug("%(request)s would be %(verdict)s", request=request, verdict=verdict)
            stats.would_be_forbidden()
            request.meta["koster_verdict"] = verdict
            return
        self._log.debug("%(request)s is %(verdict)s", request=request, verdict=verdict)
        stats.forbidden(verdict.ground)
        if verdict.ground is Ground.UNAVAILABLE:
            if self._config.policy.defers:
                stats.request_dropped()
            is_by_hand = self._parts.engine.is_by_hand
            raise unavailable(verdict, step, state.facts.defect, is_by_hand=is_by_hand)
        raise RobotsForbidden(verdict)

    def drop_link(self, request: Request, verdict: Verdict) -> None:
        """Count a request that is dropped before it is queued; each URL once as refused."""
        self._parts.stats.link_filtered()
        self._log.debug("Not queued: %(request)s is %(verdict)s", request=request, verdict=verdict)
        if self._is_new(request.url):
            self._count_refused(request, verdict)
            self._parts.stats.forbidden(verdict.ground)

    def _is_new(self, url: str) -> bool:
        """Return whether *url* was not counted yet, and remember it."""
        found = hash(url)
        is_new = found not in self._counted
        self._counted[found] = None
        return is_new

    def _count_refused(self, request: Request, verdict: Verdict) -> None:
        if verdict.ground is Ground.DELAY:
            self._parts.stats.delay_refused()
        elif verdict.ground is Ground.USAGE:
            self._parts.stats.usage_refused()
        self._events.send(signals.request_refused, request=request, verdict=verdict)

    def warn_of_expired_overrides(self) -> None:
        """Name the entries of KOSTER_OVERRIDES that are void."""
        for override in self._config.policy.overrides.expired(self._epoch()):
            self._log.warning(
                "An entry of KOSTER_OVERRIDES has expired and is void: %(site)s (%(override)s)."
                " Remove it, or give it a later date if the reason still holds",
                site=override.site,
                override=override,
            )

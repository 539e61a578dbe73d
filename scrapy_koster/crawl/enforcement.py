"""Acts on decisions: a request is allowed and counted, or refused, counted and logged."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy_koster.crawl.decision import decide, is_plainly_allowed
from scrapy_koster.crawl.exceptions import RobotsForbidden, RobotsUnavailable
from scrapy_koster.crawl.fetching.examiner import checked_watch
from scrapy_koster.crawl.pacing.pacer import NoPacer
from scrapy_koster.protocol.rewriting import is_plain
from scrapy_koster.protocol.standing import Ground
from scrapy_koster.protocol.step import Obey, waits

if TYPE_CHECKING:
    from scrapy import Request

    from scrapy_koster.crawl.clock import Clock
    from scrapy_koster.crawl.config import Config
    from scrapy_koster.crawl.decision import Decision
    from scrapy_koster.crawl.messages.announcer import Announcer
    from scrapy_koster.crawl.messages.counting import Uncounted
    from scrapy_koster.crawl.messages.log import Log
    from scrapy_koster.crawl.messages.overridden import Overridden
    from scrapy_koster.crawl.messages.stats import Stats
    from scrapy_koster.crawl.messages.urlsseen import UrlsSeen
    from scrapy_koster.crawl.pacing.pacer import Pacer
    from scrapy_koster.crawl.pages.stated import Stated
    from scrapy_koster.crawl.states import SiteState
    from scrapy_koster.protocol.step import Step
    from scrapy_koster.protocol.verdict import Verdict


class Enforcement:
    """Has requests decided, and acts: counts, logs, raises."""

    def __init__(
        self,
        config: Config,
        log: Log,
        clock: Clock,
        *,
        stats: Stats,
        counts: Uncounted,
        announcer: Announcer,
        overridden: Overridden,
        seen: UrlsSeen,
        stated: Stated,
        robot_name: str,
    ) -> None:
        """*robot_name* is the name of a request that has none of its own."""
        self._config = config
        self._log = log
        self._epoch = clock.epoch
        self._stats = stats
        self._counts = counts
        self._announcer = announcer
        self._overridden = overridden
        self._seen = seen
        self._stated = stated
        self._robot_name = robot_name
        self._pacer: Pacer | NoPacer = NoPacer()

    def keep_delays(self, pacer: Pacer | NoPacer) -> None:
        """Refuse sites by the delays of *pacer* from now on."""
        self._pacer = pacer

    def decide(self, request: Request, state: SiteState, robot: str, step: Step) -> Decision:
        """Return the decision on *request*, to the site of *state*, by *step*."""
        assert not waits(step)
        return decide(
            request.url,
            robot,
            site=state.site,
            step=step,
            parser=state.parser,
            source=state.source,
            usage=state.facts.usage,
            delay=self._pacer.too_long(request, state, robot),
            config=self._config,
            now=self._epoch(),
        )

    def enforce(self, request: Request, state: SiteState, robot: str, step: Step) -> None:
        """Count *request* if it is allowed; otherwise raise RobotsForbidden or RobotsUnavailable.

        With KOSTER_DRY_RUN nothing is raised.
        """
        verdict = self._verdict(request, state, robot, step)
        if not verdict.allowed:
            self.refuse(request, verdict)
        elif verdict.override is not None:
            self._counts.allowed(state, request.url, robot, by_rules=False)
            self._overridden.passes(request, verdict)
        else:
            self.count_allowed(request, state, robot)

    def check(self, request: Request, state: SiteState, robot: str) -> None:
        """Raise what ``enforce`` raises for a request that was counted as allowed before."""
        verdict = self._verdict(request, state, robot, state.step)
        if not verdict.allowed:
            self.refuse(request, verdict)

    def _verdict(self, request: Request, state: SiteState, robot: str, step: Step) -> Verdict:
        verdict, statements = self.decide(request, state, robot, step)
        self._stated.note(request, statements)
        return verdict

    def is_plainly_allowed(self, request: Request, state: SiteState, robot: str) -> bool:
        """Return whether ``enforce`` would allow *request* and note nothing about it but a count.

        Valid while the state is. Runs for each request.
        """
        return (
            is_plainly_allowed(request.url, robot, origin=state.origin, allows=state.allows)
            and "verbatim_url" not in request.meta
            and state.facts.usage is None
            and not self._config.policy.overrides
        )

    def count_allowed(self, request: Request, state: SiteState, robot: str) -> None:
        """Count an allowed request, and once whether RFC 9309 forbids it."""
        self._counts.allowed(state, request.url, robot)
        is_own = robot == self._robot_name
        watch = state.facts.watch if is_own else checked_watch(state.parser, robot)
        if watch is None or "retry_times" in request.meta or not isinstance(state.step, Obey):
            return
        path = request.url.removeprefix(state.origin)
        plain = is_plain(path) and "verbatim_url" not in request.meta
        if hazard := watch.hazard(request.url, is_plain=plain):
            self._announcer.hazard_met(state, request, robot, hazard)

    def refuse(self, request: Request, verdict: Verdict) -> None:
        """Log, count and refuse *request*, unless KOSTER_DRY_RUN is set."""
        if self._config.filter_links:
            self._seen.is_new(request.url)  # a link to it is not counted again
        self._count_refused(request, verdict)
        if self._config.dry_run:
            self._log.debug("%(request)s would be %(verdict)s", request=request, verdict=verdict)
            self._stats.would_be_forbidden()
            request.meta["koster_verdict"] = verdict
            return
        self._log.debug("%(request)s is %(verdict)s", request=request, verdict=verdict)
        self._stats.forbidden(verdict.ground)
        if verdict.ground is Ground.UNAVAILABLE:
            if self._config.policy.defers:
                self._stats.request_dropped()
            raise RobotsUnavailable(verdict)
        raise RobotsForbidden(verdict)

    def drop_link(self, request: Request, verdict: Verdict) -> None:
        """Count a request that is dropped before it is queued; each URL once as refused."""
        self._stats.link_filtered()
        self._log.debug("Not queued: %(request)s is %(verdict)s", request=request, verdict=verdict)
        if self._seen.is_new(request.url):
            self._count_refused(request, verdict)
            self._stats.forbidden(verdict.ground)

    def _count_refused(self, request: Request, verdict: Verdict) -> None:
        if verdict.ground is Ground.DELAY:
            self._stats.delay_refused()
        elif verdict.ground is Ground.USAGE:
            self._stats.usage_refused()
        self._counts.refused(request, verdict)

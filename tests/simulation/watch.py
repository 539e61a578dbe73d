"""What must hold, whatever happens: looked at after every step."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from scrapy import Request
from scrapy.http import Response
from twisted.python.failure import Failure as TwistedFailure

from scrapy_koster.crawl.exceptions import RobotsForbidden, RobotsUnavailable
from scrapy_koster.crawl.fetching.lookahead import YOUNG_SECS
from scrapy_koster.protocol.access import Copy, Failure, has_been, last_copy
from scrapy_koster.protocol.step import waits
from simulation.web import delay_of, forbids

if TYPE_CHECKING:
    from scrapy_koster.crawl.states import SiteState
    from scrapy_koster.protocol.site import Site
    from simulation.history import History
    from simulation.process import Process

_BREAKER_SECS = 30.0
_SKEW_SECS = 61.0
# Beyond the time-out of a fetch, for which a claim lasts.
_SPARE_SECS = 5.0
_LATE_SECS = 0.1
_EARLY_SECS = 1e-6
# So long a call of the storage takes: what another has begun is known to it no sooner.
_CALL_SECS = 0.02
# So long Scrapy's engine takes to look again once it was paused.
_HEARTBEAT_SECS = 5.0
# A page may hang for so long, a host be locked by a process that is dead, and the storage take as
# long again, before the next visit comes.
_TURN_SECS = 200.0


class Broken(AssertionError):
    """An invariant does not hold: its name, and what was seen."""

    def __init__(self, invariant: str, seen: str) -> None:
        super().__init__(f"{invariant}: {seen}")
        self.invariant = invariant


@dataclass
class Flight:
    """A site that is being asked by one process."""

    process: Process
    since: float
    is_covered: bool
    """Whether the storage has it as this one's to ask."""


@dataclass(eq=False)
class Visit:
    """A host was visited, as its server sees it."""

    process: Process
    at: float
    ended: float
    """When it was answered, or given up; infinite until then."""
    delay: float
    """What the host asked for by what was known."""
    is_alone: bool
    """Whether its process keeps delays by itself: the storage has failed for too long."""


class Watch:
    """Knows what has been asked and answered, and says what is broken."""

    def __init__(self, history: History) -> None:
        self._history = history
        self.found: Broken | None = None
        self._flights: dict[Site, list[Flight]] = {}
        self._visited: dict[str, Visit] = {}
        self._led: set[tuple[Process, str]] = set()
        """Where a robots.txt has led on its host: to the same visit."""
        self._served: dict[str, set[tuple[int, bytes]]] = {}
        self._differed_at = -1000.0
        """When a process last asked while a clock was wrong: it may have taken another's claim."""

    @property
    def _now(self) -> float:
        return self._history.clock.now

    def broken(self, invariant: str, process: Process | None, seen: str) -> None:
        if self.found is None:
            who = "" if process is None else f"{process.name}: "
            self.found = Broken(invariant, f"{who}{seen}")

    # What is fetched.

    def received(self, process: Process, request: Request, response: Response) -> None:
        self._history.tell(process, f"is answered {response.status}", request)
        if urlsplit(request.url).path.endswith(".txt"):
            body = response.body if response.status == 200 else b""
            self._served.setdefault(request.url, set()).add((response.status, body))
            leads_to = (response.headers.get("Location") or b"").decode()
            if _origin(leads_to) == _origin(request.url):
                self._led.add((process, leads_to))

    def page(self, process: Process, request: Request) -> None:
        """A page is fetched: is it allowed by what this process knows?"""
        self._history.tell(process, "fetches", request)
        if process.dead:
            return
        state = process.states.get(_origin(request.url))
        why = "its site is not known" if state is None else self._forbidden(process, state, request)
        if why:
            self.broken("nothing is fetched that is not allowed", process, f"{request}: {why}")

    def sent(self, process: Process, request: Request) -> None:
        """A page or a robots.txt is sent, which may be long after it was allowed."""
        state = process.states.get(_origin(request.url))
        is_page = not urlsplit(request.url).path.endswith(".txt")
        if is_page and (state is None or self._last_forbids(process, request, state.known)):
            self.broken("nothing is sent that a newer file forbids", process, f"{request}")
        if self._history.paced:
            self._visits(process, state, request)

    def answered(self, process: Process, request: Request, at: float) -> None:
        """What was sent has been answered *at* that time, or given up."""
        visit = self._visited.get(_origin(request.url))
        if visit is not None and visit.process is process:
            visit.ended = min(visit.ended, at)

    @staticmethod
    def _last_forbids(process: Process, request: Request, known: Any) -> bool:
        """Whether the last copy forbids it, unless its site has failed and is let through."""
        is_open = process.sites.config.policy.unavailable.value == "allow"
        copy = None if is_open and isinstance(known, Failure) else last_copy(known)
        path = urlsplit(request.url).path
        return copy is not None and forbids(copy.status, copy.body, path)

    def _visits(self, process: Process, state: SiteState | None, request: Request) -> None:
        """Something is sent: is it as long after the last as its host asks for?"""
        host = _origin(request.url)
        if (process, request.url) in self._led:
            if (visit := self._visited.get(host)) and visit.process is process:
                visit.ended = math.inf
            return
        if urlsplit(request.url).path.endswith(".txt") and not self._remembers(process, state):
            state = None
        copy = None if state is None else last_copy(state.known)
        delay = 0.0 if copy is None else delay_of(copy.body)
        delay = min(delay, self._history.koster["KOSTER_CRAWL_DELAY_MAX_SECS"])
        last = self._visited.get(host)
        limit = self._history.koster["KOSTER_DEFER_LIMIT_SECS"]
        store = process.store
        is_alone = self._now - store._visits_fail_since >= limit
        self._visited[host] = Visit(process, self._now, math.inf, delay, is_alone)
        if last is None or not min(delay, last.delay):
            return
        if self._history.stood_still_at >= last.at - last.delay:  # perhaps just before it was sent
            return
        ended = last.ended
        if last.process is not process and self._has_outlasted(last):
            ended = min(ended, last.at)
        early = min(delay, last.delay) - (self._now - ended)
        if early <= _EARLY_SECS:
            return
        if last.process is process or not (is_alone or self._may_be_early(process, last)):
            self.broken("no visit is early", process, f"{request}: {early} s after {last}")

    @staticmethod
    def _remembers(process: Process, state: SiteState | None) -> bool:
        """Whether a site is in memory: the robots.txt of another may redirect to one that is not,
        and was never met as far as the process knows.
        """
        return state is not None and state in list(process.sites.records)

    @staticmethod
    def _has_outlasted(last: Visit) -> bool:
        """Whether the lock of a visit may have run out before the visit ended."""
        process = last.process
        return process.dead or max(process.outlasted_at, process.failed_at) > last.at

    def _may_be_early(self, process: Process, last: Visit) -> bool:
        """Whether another process may not have known of the last visit."""
        history = self._history
        disk = history.disk
        trouble = max(disk.forgot_at, disk.lagged_at, disk.slow_until)
        return (
            not history.shares
            or last.is_alone
            or trouble > last.at - last.delay - _SPARE_SECS
            or self._clocks_differ(process, last.process)
        )

    def _forbidden(self, process: Process, state: SiteState, request: Request) -> str:
        wall = process.wall()
        policy, known = process.sites.config.policy, state.known
        copy, until = known, math.inf
        if isinstance(known, Failure):
            copy, until = known.stale, -math.inf
            if copy is not None:  # it may be fresh by a clock that is behind
                until = copy.expires + policy.stale_if_error_secs
                if not has_been(copy.fetched, wall):  # and says nothing by one that is far ahead
                    until = -math.inf
            if policy.unavailable.value == "allow" and not known.is_defect and wall > until:
                return ""
        if not isinstance(copy, Copy):
            return f"no file is known: {known}"
        until = min(until, copy.expires) if known is copy else until
        if wall > until + 1 and process.outlasted_at < self._now:
            return f"the copy ran out {wall - until} s ago"
        if (copy.status, copy.body) not in self._served.get(copy.url, ()):
            return f"no site has ever answered that: {copy}"
        if forbids(copy.status, copy.body, urlsplit(request.url).path):
            return f"the file forbids it: {copy.status} {copy.body!r}"
        return ""

    def refused(self, process: Process, request: Request, failure: TwistedFailure) -> None:
        """A request was refused: is that what is known?"""
        if not failure.check(RobotsForbidden) or failure.check(RobotsUnavailable):
            return
        state = process.states.get(_origin(request.url))
        copy, path = state and state.known, urlsplit(request.url).path
        if isinstance(copy, Copy) and not forbids(copy.status, copy.body, path):
            self.broken("nothing is refused that is allowed", process, f"{request} {copy}")

    # One flight a site.

    def asks(self, process: Process, site: Site) -> None:
        """*process* begins to ask *site*."""
        self._history.tell(process, "asks", site)
        if process.dead:
            return
        if process.slot is None or process.slot.closing is not None:
            self.broken("a crawl that closes asks no site", process, f"{site}")
        self._led = {
            (by, url) for by, url in self._led if by is not process or _origin(url) != str(site)
        }
        flights = self._flights.setdefault(site, [])
        flights[:] = [each for each in flights if not each.process.dead]
        if any(each.process is process for each in flights):
            self.broken("a site is asked once at a time", process, f"{site} by itself")
        if self._clocks_differ():
            self._differed_at = self._now
        covered = not self._history.shares or self._is_its_own(process, site)
        if not covered and not self._may_be_uncovered(process):
            self.broken("a site is asked by whose claim it is", process, f"{site}")
        for other in flights:
            if covered and other.is_covered and not self._ran_out(other) and self._history.shares:
                self.broken(
                    "a site is asked once at a time", process, f"{site}, {other.process.name} too"
                )
        flights.append(Flight(process, self._now, covered))

    def _is_its_own(self, process: Process, site: Site) -> bool:
        return self._history.disk.holds(site, process.store._owner, process.wall())

    def _may_be_uncovered(self, process: Process) -> bool:
        history = self._history
        claim_secs = history.koster["KOSTER_TIMEOUT_SECS"] + _SPARE_SECS
        return (
            self._now <= max(process.failed_at + _BREAKER_SECS, process.store._rests_until)
            or self._now - process.outlasted_at <= claim_secs
            or self._now - history.disk.forgot_at <= claim_secs
            or self._now - history.disk.lagged_at <= claim_secs
            # Between the claim and the question are the calls for a turn.
            or (history.paced and self._now - history.disk.slow_until <= claim_secs)
            or self._clocks_differ()
        )

    def _ran_out(self, flight: Flight) -> bool:
        disk, process = self._history.disk, flight.process
        disturbed = max(process.outlasted_at, process.failed_at, disk.forgot_at, disk.lagged_at)
        is_disturbed = disturbed >= flight.since - 2 * _SPARE_SECS
        return is_disturbed or self._differed_at >= flight.since

    def _clocks_differ(self, *beside: Process) -> bool:
        """Whether those of the processes do that run, and of those *beside* them."""
        if self._history.disk.own_clock:
            return False
        running = (each for each in self._history.processes if not each.ended)
        return len({each.offset for each in (*running, *beside)}) > 1

    def asked(self, process: Process, site: Site) -> None:
        """It has been answered, or given up."""
        flights = self._flights[site]
        flights[:] = [each for each in flights if each.process is not process]

    # Nothing waits that could go.

    def rest(self, process: Process) -> None:
        """*process* has nothing to do at this moment: is there nothing that it could do?"""
        slot = process.slot
        if process.ended or slot is None or slot.closing is not None:
            return
        engine = process.crawler.engine
        if not engine.running or engine._start_request_processing_awaitable is None:
            return
        is_new = self._now - process.resumed_at <= _HEARTBEAT_SECS
        is_asked = not process.is_paused_by_user and not is_new
        if is_asked and self._has_requests(process) and not engine.needs_backout():
            self.broken("nothing waits that could go", process, "requests in the queue")
        sites = process.sites
        attempts = [state for state, each in sites.served.items() if each.timer is None]
        if sites.retriever.limiter._running.total() > len(attempts):
            self.broken("nothing is left at the end", process, "a fetch that nobody makes")
        self._counts(process, sites)
        for state in sites.records:
            if self._has_waiting(process, state) and state not in attempts:
                self._waits(process, state)
            else:
                process.overdue.pop(state, None)
        if self._history.paced:
            parked = process.parts.parked
            for host in self._history.web.sites:
                self._waits_for_visit(process, host, parked.waiting_in(host))

    def _has_requests(self, process: Process) -> bool:
        scheduler: Any = process.scheduler
        is_ours = self._history.defers
        if is_ours and (self._history.queue_kind == "redis" or process.sites.ahead.is_full):
            # Nobody is told that another has pushed; or what is in the queue may wait there.
            return bool(scheduler._parked.has_next)
        return bool(scheduler.has_pending_requests())

    def _counts(self, process: Process, sites: Any) -> None:
        """Is the queue left alone only while sites wait that are asked, and not for long?"""
        ahead = sites.ahead
        if len([each for each in sites.served.values() if not each.timer]) > len(sites._tasks):
            self.broken("nothing waits that could go", process, f"no task: {sites.served}")
        for state, waiting in sites.served.items():
            if waiting.timer and not sites.waiting_for(state):
                self.broken("nothing waits that could go", process, f"for nobody: {state.site}")
        has_memory, is_full, secs = ahead.has_memory(), ahead.is_full, YOUNG_SECS + _LATE_SECS
        late = [state for state, since in ahead._young.items() if self._now > since + secs]
        if not has_memory:
            if not (process.parts.parked.has_next or process.crawler.engine.downloader.active):
                self.broken("nothing waits that could go", process, "memory that nobody uses")
        elif is_full and len(ahead.waiting) < ahead.waiting_limit and late:
            self.broken("nothing waits that could go", process, f"behind late sites: {late}")

    @staticmethod
    def _has_waiting(process: Process, state: SiteState) -> bool:
        """Whether requests wait for it, served or not. Those of the last run may not be out yet."""
        name, parked = str(state.site), process.parts.parked
        is_parked = name not in parked.unopened and parked.waiting_in(name) > 0
        return is_parked or process.sites.waiting_for(state) > 0

    def _waits(self, process: Process, state: SiteState) -> None:
        step = process.sites.current_step(state)
        known = state.known
        if not waits(step):
            if not process.parts.parked.is_kept:
                self._due(process, state, "nothing waits that could go", "open", 0.0)
        elif isinstance(known, Failure):
            longest = process.sites.config.policy.defer_max_secs * 1.25 + _SKEW_SECS
            secs = min(max(known.retry - process.wall(), 0.0), longest)
            self._due(process, state, "who waits has a site asked again", known, secs)
        else:
            self._due(process, state, "who waits has a site asked again", "unknown", 0.0)

    def _waits_for_visit(self, process: Process, host: str, waiting: int) -> None:
        if waiting:
            last = self._visited.get(f"http://{host}")
            self._due(process, host, "who waits for a host has it visited", last, _TURN_SECS)
        else:
            process.overdue.pop(host, None)

    def _due(self, process: Process, state: Any, invariant: str, by: object, secs: float) -> None:
        """Something is to happen *by* itself within *secs*."""
        seen, when = process.overdue.get(state, (None, 0.0))
        if seen is not by:
            when = self._now + secs + _LATE_SECS
            process.overdue[state] = (by, when)
        if process.disturbed_at > when - secs - _SKEW_SECS:
            when += _SKEW_SECS
        if self._now > when:
            name = getattr(state, "site", state)
            said = f"{name}: {by} is {self._now - when:.2f} s late"
            self.broken(invariant, process, said)

    # Nothing is left.

    def ended(self, process: Process) -> None:
        """The crawl of *process* has ended: is nothing left of it?"""
        sites: Any = process.sites
        left: dict[str, Any] = {
            "timers": process.loop.timers(),
            "tasks": process.loop.tasks(),
            "sites that are served": sites.served,
            "tasks of sites": sites._tasks,
            "requests in place": sites.engine.hooks.in_place,
            "an open file": process.parked_file and process.parked_file._connection,
        }
        for what, there in left.items():
            if there:
                self.broken("nothing is left at the end", process, f"{what}: {there}")
        disk, owner = self._history.disk, process.store._owner
        owners = {claim.owner for claim in disk.claims.values()}
        owners |= {lock.owner for lock in disk.locks.values()}
        if owner in owners and process.failed_at < 0:
            self.broken("nothing is left at the end", process, "a claim or a lock")


def _origin(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"

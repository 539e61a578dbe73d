"""What must hold, whatever happens: requests at the sites, compared with the answers before."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from scrapy import Request
from scrapy.http import Response
from twisted.python.failure import Failure

from scrapy_koster import RobotsForbidden, RobotsUnavailable
from scrapy_koster.protocol.access import last_copy
from simulation.web import delay_of, forbids, is_failure, life_of

if TYPE_CHECKING:
    from simulation.history import History
    from simulation.ledger import Entry
    from simulation.process import Process

_EARLY_SECS = 1e-6
# So long a fresh copy may be asked for that is just about to expire.
_SOON_SECS = 0.1
# So long a process may not know its own last answer: its storage has to take it.
_STORED_SECS, _STORED_LATE_SECS = 1.0, 45.0
# The clocks of several machines differ.
_SKEW_SECS = 61.0
# Fetches that hang may be before this one.
_IDLE_SECS = 60.0


class Broken(AssertionError):
    """An invariant does not hold: its name, and what was seen."""

    def __init__(self, invariant: str, seen: str) -> None:
        super().__init__(f"{invariant}: {seen}")
        self.invariant = invariant


@dataclass(frozen=True)
class Answer:
    """What a robots.txt has answered to one process."""

    process: Process
    at: float
    status: int
    """0 if it failed, or led elsewhere."""
    body: bytes = b""
    life_secs: float = 0.0
    is_direct: bool = True


@dataclass(eq=False)
class Flight:
    """A request for a robots.txt that has not been answered."""

    process: Process
    url: str
    led_from: set[str]
    """The sites that have redirected this process to it."""

    @property
    def origins(self) -> set[str]:
        return self.led_from | {origin_of(self.url)}


@dataclass(eq=False)
class Visit:
    """A page of a host was requested."""

    process: Process
    delay: float
    """What the host asked for by what was known."""
    ended: float = math.inf


class Watch:
    """Knows what has been asked and answered, and says what is broken."""

    def __init__(self, history: History) -> None:
        self._history = history
        self.found: Broken | None = None
        self._flights: list[Flight] = []
        self._led = defaultdict[tuple["Process", str], list[set[str]]](list)
        """The sites whose redirects lead a process to a URL: those of each redirect."""
        self._answers = defaultdict[str, list[Answer]](list)
        self._bodies: dict[str, bytes] = {}
        """The files, by their ETags."""
        self._asked_at: dict[str, float] = {}
        self._visits: dict[str, Visit] = {}
        self._refused = defaultdict["Process", int](int)

    @property
    def _now(self) -> float:
        return self._history.clock.now

    def broken(self, invariant: str, process: Process | None, seen: str) -> None:
        if self.found is None:
            who = "" if process is None else f"{process.name}: "
            self.found = Broken(invariant, f"{who}{seen}")

    # Requests for a robots.txt.

    def asks(self, process: Process, request: Request) -> Flight:
        """*process* sends a request for a robots.txt, or where one has led."""
        url = request.url
        self._history.tell(process, "asks", url)
        led = self._led[process, url]
        flight = Flight(process, url, set().union(*led))
        del led[:1]  # another redirect to it may be on its way
        if not flight.led_from:
            self._asks_a_site(flight)
        self._flights.append(flight)
        return flight

    def _asks_a_site(self, flight: Flight) -> None:
        process, origin = flight.process, origin_of(flight.url)
        self._asked_at[origin] = self._now
        for other in self._flights:
            is_alone = other.process is process or self._history.is_quiet_fleet
            if other.url == flight.url and not other.led_from and is_alone:
                said = f"{flight.url}, by {other.process.name} too"
                self.broken("a site is asked once at a time", process, said)
        if self._history.is_quiet_fleet:
            # The storage keeps the last answer, that of a redirect that took its time, too.
            for answer in [each for each in self._answers[origin] if each.status][-1:]:
                is_kept = answer.is_direct and self._now < answer.at + answer.life_secs - _SOON_SECS
                if is_kept and self._now > answer.at + _STORED_SECS:
                    said = f"{flight.url}: {answer}"
                    self.broken("a fresh copy is not fetched again", process, said)

    def asked(self, flight: Flight, request: Request, response: Response | None) -> None:
        """It has been answered, or was given up."""
        self._flights.remove(flight)
        process, now = flight.process, self._now
        if response is not None:
            self._history.tell(process, f"is answered {response.status}", request)
        for origin in flight.origins:
            self._asked_at[origin] = now
        answer = Answer(process, now, 0)
        if response is not None and response.status == 302:
            target = (response.headers.get("Location") or b"").decode()
            self._led[process, target].append(flight.origins)
        elif response is not None and not is_failure(response.status):
            answer = self._answer(flight, request, response)
        for origin in flight.origins:
            self._answers[origin].append(answer)

    def _answer(self, flight: Flight, request: Request, response: Response) -> Answer:
        status, body = response.status, response.body if response.status == 200 else b""
        tag = (response.headers.get("ETag") or b"").decode()
        if status == 304:
            tag = (request.headers.get("If-None-Match") or b"").decode()
            if tag not in self._bodies:
                return Answer(flight.process, self._now, 0)
            status, body = 200, self._bodies[tag]
        elif tag:
            self._bodies[tag] = body
        life = life_of(status, response.headers, self._history.koster)
        return Answer(flight.process, self._now, status, body, life, not flight.led_from)

    def _known(self, process: Process, origin: str) -> list[Answer]:
        """Return the answers that *process* may go by: its last, those after it, the stored."""
        shares, late = self._history.shares, self._history.is_troubled
        settled = self._now - (_STORED_LATE_SECS if late else _STORED_SECS)
        found = [each for each in self._answers[origin] if shares or each.process is process]
        mine = [each for each in found if each.process is process and each.is_direct]
        own = [each.at for each in mine if each.status and each.at < settled]
        # A storage that has lost the last copy still has the one before.
        disk = self._history.disk.known.items()
        kept = {copy.body for at, each in disk if str(at) == origin and (copy := last_copy(each))}
        return [each for each in found if each.at >= max(own, default=-1.0) or each.body in kept]

    def _forbids(self, answer: Answer, path: str) -> bool:
        if not answer.status:
            return bool(self._history.koster["KOSTER_UNAVAILABLE"] != "allow")
        return forbids(answer.status, answer.body, path)

    # Pages.

    def page(self, process: Process, request: Request) -> None:
        """A page was allowed: by a copy that is fresh by clocks that are right?"""
        self._history.tell(process, "fetches", request)
        if self._history.clocks_are_right and not process.dead:
            now = self._now - self._history.koster["KOSTER_STALE_IF_ERROR_SECS"] - _SKEW_SECS
            fresh = [  # a copy with a delay for ten delays at least
                each
                for each in self._known(process, origin_of(request.url))
                if not each.status or now <= each.at + each.life_secs + 10 * delay_of(each.body)
            ]
            self._allowed(process, request, fresh)

    def sent(self, process: Process, request: Request) -> None:
        """A page is sent, which may be long after it was allowed."""
        known = self._known(process, origin_of(request.url))
        self._allowed(process, request, known)
        if self._history.paced:
            self._visit(process, request, known)

    def _allowed(self, process: Process, request: Request, known: list[Answer]) -> None:
        path = urlsplit(request.url).path
        if all(self._forbids(each, path) for each in known):
            said = f"{request}: {known or 'nothing is known'}"
            self.broken("nothing is fetched that is not allowed", process, said)

    def _visit(self, process: Process, request: Request, known: list[Answer]) -> None:
        host = origin_of(request.url)
        most = self._history.koster["KOSTER_CRAWL_DELAY_MAX_SECS"]
        visit = Visit(process, min(most, min((delay_of(each.body) for each in known), default=0.0)))
        last = self._visits.get(host)
        self._visits[host] = visit
        if last is None or not (last.process is process or self._history.is_quiet_fleet):
            return
        wanted, gap = min(last.delay, visit.delay), self._now - last.ended
        if wanted and gap < wanted - _EARLY_SECS and not self._history.stands_still:
            said = f"{request}: {gap} s after the last page, of {wanted} s"
            self.broken("no visit is early", process, said)

    def answered(self, process: Process, request: Request) -> None:
        """A page has been answered, or given up."""
        visit = self._visits.get(origin_of(request.url))
        if visit is not None and visit.process is process:
            visit.ended = min(visit.ended, self._now)

    def ends(self, process: Process, request: Request, failure: Failure) -> None:
        """A request ends in its errback: is that what an answer says?"""
        if failure.check(RobotsForbidden, RobotsUnavailable):
            self._refused[process] += 1
        if not failure.check(RobotsForbidden):
            return
        known = self._known(process, origin_of(request.url))
        path = urlsplit(request.url).path
        closed = any(each.status and self._forbids(each, path) for each in known)
        if not closed:
            self.broken("nothing is refused that is allowed", process, f"{request}: {known}")

    # Nothing waits that could go.

    def rest(self, process: Process, waiting: list[Entry]) -> None:
        """*process* has nothing to do at this moment, and has *waiting* requests."""
        koster = self._history.koster
        asks_secs = 1.25 * koster["KOSTER_DEFER_MAX_SECS"] + koster["KOSTER_TIMEOUT_SECS"]
        for entry in waiting:
            origin, since = origin_of(entry.url), max(entry.since, process.resumed_at)
            idle = self._now - max(since, process.idle_since)
            if idle > _IDLE_SECS and self._history.web.is_healthy(origin, since, self._now):
                said = f"{entry.url} for {idle} s"
                self.broken("nothing waits that could go", process, said)
            # Of a host with a delay, a robots.txt waits for its turn, as pages do.
            visit = self._visits.get(origin)
            visited = visit.ended if visit is not None and visit.delay else 0.0
            silent = self._now - max(since, self._asked_at.get(origin, 0.0), visited)
            known = self._known(process, origin)
            is_known = any(each.at + each.life_secs > self._now for each in known if each.status)
            if silent > asks_secs + _IDLE_SECS and not is_known:
                said = f"{origin}, for {silent} s"
                self.broken("a site is asked while requests wait for it", process, said)

    # Nothing is left.

    def ended(self, process: Process) -> None:
        """The crawl of *process* has ended: is nothing left of it, and are its stats true?"""
        left: dict[str, Any] = {"timers": process.loop.timers(), "tasks": process.loop.tasks()}
        if self._history.is_quiet_fleet:
            left["claims"] = process.owner and self._history.disk.claims_of(process.owner)
        for what, there in left.items():
            if there:
                self.broken("nothing is left at the end", process, f"{what}: {there}")
        counted = process.crawler.stats["robotstxt/forbidden"]
        if counted != self._refused[process]:
            said = f"robotstxt/forbidden is {counted}, of {self._refused[process]}"
            self.broken("the stats are true", process, said)


def origin_of(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"

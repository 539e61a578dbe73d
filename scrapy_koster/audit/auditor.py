"""The audit: counts visits by robot, in bounded memory."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from scrapy_koster.audit.access_log import NAMELESS, AccessLog, Opened, Visit, names_of
from scrapy_koster.audit.addresses import Ranges, Shown
from scrapy_koster.audit.audited_robot import (
    CLIENTS_MOST,
    DAY_SECS,
    AuditedRobot,
    Violation,
    number_in,
)
from scrapy_koster.audit.judging import READINGS, Decision, Files, Judge, RobotsRequest, Rule
from scrapy_koster.audit.merged_logs import merged_logs
from scrapy_koster.audit.naming import By, Namer
from scrapy_koster.audit.textlines import Format
from scrapy_koster.protocol.ruling import Standard
from scrapy_koster.protocol.site import Site

ROBOTS_MOST = 1000
"""Names with their own counts, at most. If there are more, rare names lose their counts first, and
names in the robots.txt last."""
VIOLATIONS_MOST = 20_000
"""Pairs of a robot and a line with their own counts, at most."""

MERGED_AT_ONCE = 250
ASKERS_MOST = 1000
_COUNTED_AT_ONCE = 64
OTHER_LINES = Rule(0, "(lines that were not kept apart)", 0)


class Overflow(AuditedRobot):
    """The sums for robots without separate counts."""

    def __init__(self, judge: Judge) -> None:
        super().__init__("(others)", judge, float("-inf"))
        self.names = self.unknown_names = self.unknown_requests = 0
        """Numbers of robots, of programs that may not be robots, and of such programs' requests."""
        self.nameless_clients = 0
        """Requests for /robots.txt by nameless clients that got no robot of their own."""

    def merge(self, robot: AuditedRobot, by: By) -> None:
        """Add the counts of *robot*, or only its requests if *by* is ``By.NOTHING``."""
        if by is By.NOTHING:
            self.unknown_names += 1
            self.unknown_requests += robot.requests
            return
        self.names += 1
        self.pace.counted += robot.requests
        self.asking.count += robot.asking.count
        self.pace.days.update(robot.pace.days)
        self.days_violated.update(robot.days_violated)
        for rule, violation in robot.violated.items():
            self.violated.setdefault(rule, Violation()).merge(violation)


class Auditor(dict[str, AuditedRobot]):
    """Judges and counts visits. Maps names to robots."""

    def __init__(self, files: Files, namer: Namer, show: Shown, reading: Standard) -> None:
        super().__init__()
        self.files = files
        self.unseen_until = float("-inf")
        """Until this time, a new robot may have fetched the file without being noticed.

        This is the time of the first line, or the last time of a robot merged into ``rest``.
        """
        self.namer = namer
        self.show = show
        self.reading = reading
        self.judge = Judge(files)
        self.rest = Overflow(self.judge)
        self._askers: dict[Any, str] = {}
        self._violations = 0
        self.nameless = AuditedRobot(NAMELESS, self.judge, float("-inf"))
        """Visits of clients that send no User-Agent header, and have no robot of their own."""

    def __missing__(self, name: str) -> AuditedRobot:
        if len(self) >= ROBOTS_MOST:
            self._merge()
        robot = self[name] = AuditedRobot(name, self.judge, self.unseen_until)
        return robot

    def by(self, robot: AuditedRobot) -> By:
        """Return the reason why *robot* is taken for a robot, or By.NOTHING."""
        by = self.namer.by(robot.token)
        return By.ASKED if by is By.NOTHING and robot.asking.count else by

    def _merge(self) -> None:
        def matters(robot: AuditedRobot) -> tuple[bool, int]:
            return self.namer.by(robot.token) is By.FILE, robot.requests

        for robot in sorted(self.values(), key=matters)[:MERGED_AT_ONCE]:
            robot.pace.count()
            self.unseen_until = max(self.unseen_until, robot.pace.last or float("-inf"))
            self.rest.merge(robot, self.by(robot))
            self._violations -= len(robot.violated)
            del self[robot.name]

    def take(self, visits: Iterable[Visit], *, late: bool = False) -> None:
        """Judge and count visits. Visits out of order (*late*) count for days, not for gaps."""
        answer_to = self.judge.answer
        for visit in visits:
            secs, name, client, request, status, _ = visit
            robot = self[name] if name else self._client(client, request)
            if late:
                robot.late += 1
                robot.pace.count_late(secs)
            else:
                robot.times.append(secs)
            if len(robot.clients) <= CLIENTS_MOST:
                robot.clients.add(client)
            answer = answer_to(robot.judged_as, request)
            if type(answer) is dict:
                self._judge(robot, answer, visit)
            elif type(answer) is RobotsRequest:
                robot.asking.add(secs, number_in(status), robot.requests - 1)
                if answer.fetches:
                    robot.knowledge.fetch(secs, number_in(status), self.files)
        for robot in (self.nameless, *self.values()):
            if len(robot.times) >= _COUNTED_AT_ONCE:
                robot.pace.count()

    def end(self) -> None:
        """Count the last visits for the pace, at the end of the logs."""
        for robot in (self.nameless, *self.values()):
            robot.pace.count()

    def _client(self, client: Any, request: Any) -> AuditedRobot:
        """Return the robot of a client that sends no User-Agent header.

        A client has its own robot from its first request for /robots.txt on. At most 1,000 clients
        have one. Other clients share ``nameless``.
        """
        if client not in self._askers:
            if type(self.judge.answer(self.nameless.judged_as, request)) is not RobotsRequest:
                return self.nameless
            if len(self._askers) >= ASKERS_MOST:
                self.rest.nameless_clients += 1
                return self.nameless
            self._askers[client] = f"client {self.show(client)}"
        robot = self[self._askers[client]]
        robot.judged_as = self.nameless.judged_as  # A10: only the * record applies
        return robot

    def _judge(self, robot: AuditedRobot, decision: Decision, visit: Visit) -> None:
        secs, version = visit[0], self.files.at(visit[0])
        against = {}
        for reading in READINGS:
            if rule := decision.get((version, reading)):
                if not robot.knowledge.excuses(decision, reading, secs, self.files):
                    against[reading] = rule
                elif reading is self.reading:
                    robot.in_grace += 1
        robot.by_reading.update(against.keys())
        if len(against) == 1:
            robot.only_by.update(against.keys())
        if rule := against.get(self.reading):
            robot.days_violated[secs // DAY_SECS] += 1
            violation = self._violation(robot, rule)
            violation.add(visit, version)
            violation.by_both += len(against) == len(READINGS)

    def _violation(self, robot: AuditedRobot, rule: Rule) -> Violation:
        violations = robot.violated
        if rule not in violations:
            if self._violations >= VIOLATIONS_MOST:
                rule = OTHER_LINES
            if rule not in violations:
                self._violations += 1
                violations[rule] = Violation()
        return violations[rule]


def audit(
    files: Files,
    logs: Sequence[tuple[str, Opened]],
    show: Shown,
    *,
    reading: Standard = Standard.DRAFT,
    given: Format | None = None,
    site: Site | None = None,
    ranges: Ranges | None = None,
    progress: Callable[..., None] = lambda **_: None,
) -> tuple[Auditor, list[AccessLog]]:
    """Return the findings, and the logs after reading.

    *logs* are pairs of a name and a function that opens the log. *given* is the format of the
    lines. By default the format is detected. With *site*, requests to other hosts are skipped, if
    the log names hosts. Requests from outside of the *ranges* of a robot are counted as another
    robot. *progress* is called with the number of ``lines`` so far.
    """
    namer = Namer(version.body for version in files.versions)
    names = names_of(namer)
    found = [AccessLog(name, opened, names, given=given, site=site) for name, opened in logs]
    auditor = Auditor(files, namer, show, reading)
    for number, batch in enumerate(merged_logs(found)):
        visits, late = batch if ranges is None else map(ranges.marked, batch)
        if auditor.unseen_until == float("-inf"):
            firsts = (log.first for log in found if log.first is not None)
            auditor.unseen_until = min(firsts, default=float("-inf"))
        auditor.take(late, late=True)
        auditor.take(visits)
        if number % len(found) == 0:
            progress(lines=sum(log.lines for log in found))
    auditor.end()
    return auditor, found

"""The audit itself: visits in, robots out. Its memory is bounded, whatever the log contains."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from scrapy_koster.audit.access_log import NAMELESS, Visit
from scrapy_koster.audit.audited_robot import (
    CLIENTS_MOST,
    DAY_SECS,
    AuditedRobot,
    Days,
    Violation,
    Violations,
    number_in,
)
from scrapy_koster.audit.clients import Shown
from scrapy_koster.audit.judging import READINGS, Decision, Files, JudgeCache, RobotsRequest, Rule
from scrapy_koster.audit.kinds import Kind
from scrapy_koster.audit.naming import By, Namer
from scrapy_koster.audit.ranges import UNVERIFIED
from scrapy_koster.protocol.ruling import Standard

ROBOTS_MOST = 1000
"""Number of names that are counted separately: the most frequent ones."""
VIOLATIONS_MOST = 20_000
"""Number of pairs of a robot and a line that are counted separately."""

MERGED_AT_ONCE = 250
ASKERS_MOST = 1000
_COUNTED_AT_ONCE = 64
OTHER_LINES = Rule(0, "(lines that were not kept apart)", 0)


@dataclass
class Overflow:
    """The robots that are not counted separately."""

    names: int = 0
    requests: int = 0
    asked: int = 0
    """Requests for /robots.txt."""
    violated: Violations = field(default_factory=lambda: {each: {} for each in READINGS})
    unknown_names: int = 0
    """Names of programs that may not be robots."""
    unknown_requests: int = 0
    clients: int = 0
    """Clients without a name that requested /robots.txt, and are counted as nameless."""
    days: Days = field(default_factory=Days)
    days_violated: dict[Standard, Days] = field(
        default_factory=lambda: {each: Days() for each in READINGS}
    )

    def add(self, robot: AuditedRobot, by: By) -> None:
        """Add the counts of *robot*."""
        if by is By.NOTHING:
            self.unknown_names += 1
            self.unknown_requests += robot.requests
            return
        self.names += 1
        self.requests += robot.requests
        self.asked += robot.asking.count
        self.days.add(robot.pace.days)
        for reading in READINGS:
            self.days_violated[reading].add(robot.days_violated[reading])
            for rule, violation in robot.violated[reading].items():
                self.violated[reading].setdefault(rule, Violation()).merge(violation)


class Auditor(dict[str, AuditedRobot]):
    """The robots that came, by name."""

    def __init__(self, files: Files, namer: Namer, show: Shown) -> None:
        super().__init__()
        self.files = files
        self.rest = Overflow()
        self.unseen_until = float("-inf")
        """Time until which a robot may have fetched the file without a trace."""
        self._namer = namer
        self._show = show
        self._judges = JudgeCache(files)
        self._askers: dict[Any, str] = {}
        self._violations = 0
        self.nameless = self._made(NAMELESS)
        """Visits without a User-Agent header whose client has not requested /robots.txt."""

    def __missing__(self, name: str) -> AuditedRobot:
        if len(self) >= ROBOTS_MOST:
            self._merge()
        robot = self[name] = self._made(name)
        return robot

    def _made(self, name: str) -> AuditedRobot:
        token = name.removesuffix(UNVERIFIED)
        return AuditedRobot(name, self._judges.judge_of(token), self.unseen_until)

    def by(self, robot: AuditedRobot) -> By:
        """Return how it is known that this is a robot."""
        by = self._namer.by(robot.name.removesuffix(UNVERIFIED))
        return By.ASKED if by is By.NOTHING and robot.asking.count else by

    def kind(self, robot: AuditedRobot) -> Kind:
        """Return the kind of *robot*."""
        return self._namer.kind(robot.name.removesuffix(UNVERIFIED))

    def _merge(self) -> None:
        def matters(robot: AuditedRobot) -> tuple[bool, int]:
            return self._namer.by(robot.name) is By.FILE, robot.requests

        for robot in sorted(self.values(), key=matters)[:MERGED_AT_ONCE]:
            robot.pace.count()
            self.unseen_until = max(self.unseen_until, robot.pace.last or float("-inf"))
            self.rest.add(robot, self.by(robot))
            self._violations -= sum(map(len, robot.violated.values()))
            del self[robot.name]

    def take(self, visits: Iterable[Visit], *, late: bool = False) -> None:
        """Count visits in their order. *late* ones do not count for the speed of a robot."""
        for visit in visits:
            secs, name, client, request, status, _ = visit
            robot = self[name] if name else self._client(client, request)
            if late:
                robot.late += 1
                robot.pace.days.put(secs // DAY_SECS, 1)
            else:
                robot.times.append(secs)
            if len(robot.clients) <= CLIENTS_MOST:
                robot.clients.add(client)
            answer = robot.judge[request]
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
        """Count the last visits."""
        for robot in (self.nameless, *self.values()):
            robot.pace.count()

    def _client(self, client: Any, request: Any) -> AuditedRobot:
        """Return the robot of a nameless client: its address, if it has requested /robots.txt."""
        if client in self._askers:
            return self[self._askers[client]]
        if type(self.nameless.judge[request]) is not RobotsRequest:
            return self.nameless
        if len(self._askers) >= ASKERS_MOST:
            self.rest.clients += 1
            return self.nameless
        name = self._askers[client] = f"client {self._show(client)}"
        return self[name]

    def _judge(self, robot: AuditedRobot, decision: Decision, visit: Visit) -> None:
        secs, version = visit[0], self.files.at(visit[0])
        against = {}
        for reading in READINGS:
            if rule := decision.get((version, reading)):
                if robot.knowledge.excuses(decision, reading, secs, self.files):
                    robot.excused[reading] += 1
                else:
                    against[reading] = rule
        for reading, rule in against.items():
            first = robot.first_violation.get(reading, secs)
            robot.first_violation[reading] = min(first, secs)
            robot.days_violated[reading].put(secs // DAY_SECS, 1)
            violation = self._violation(robot, reading, rule)
            violation.add(visit, version)
            violation.by_both += len(against) == len(READINGS)

    def _violation(self, robot: AuditedRobot, reading: Standard, rule: Rule) -> Violation:
        violations = robot.violated[reading]
        if rule not in violations:
            if self._violations >= VIOLATIONS_MOST:
                rule = OTHER_LINES
            if rule not in violations:
                self._violations += 1
                violations[rule] = Violation()
        return violations[rule]

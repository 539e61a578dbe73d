"""The audit itself: visits in, robots out. What it keeps is bounded, whatever the log has."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from scrapy_koster.audit.access_log import NAMELESS, Visit
from scrapy_koster.audit.audited_robot import (
    CLIENTS_MOST,
    DAY_SECS,
    AuditedRobot,
    Charge,
    Days,
    Violation,
)
from scrapy_koster.audit.clients import Shown
from scrapy_koster.audit.judging import READINGS, Answer, Asked, Court, Decision, Files, Rule
from scrapy_koster.audit.kinds import Kind
from scrapy_koster.audit.naming import By, Namer
from scrapy_koster.audit.ranges import UNVERIFIED
from scrapy_koster.protocol.ruling import Standard

ROBOTS_MOST = 1000
"""So many names are kept apart: those that came most often."""
VIOLATIONS_MOST = 20_000
"""So many lines are kept apart, of all robots."""

MERGED_AT_ONCE = 250
ASKERS_MOST = 1000
_COUNTED_AT_ONCE = 64
_CHARGES_MOST = 32


class Rest:
    """What was not kept apart."""

    def __init__(self) -> None:
        self.names = self.requests = self.asked = self.excused = 0
        self.violated: dict[Standard, dict[Rule, Violation]] = {each: {} for each in READINGS}
        self.unknown_names = self.unknown_requests = 0
        """Of what may have been no robot."""
        self.clients = 0
        """Clients without a name that asked for /robots.txt, and were not told from the others."""
        self.days = Days()
        self.days_violated = {each: Days() for each in READINGS}

    def add(self, robot: AuditedRobot, by: By) -> None:
        """Take what is known of a robot."""
        if by is By.NOTHING:
            self.unknown_names += 1
            self.unknown_requests += robot.requests
            return
        self.names += 1
        self.requests += robot.requests
        self.asked += robot.asking.count
        _add(self.days, robot.pace.days)
        for reading, days in robot.days_violated.items():
            _add(self.days_violated[reading], days)
        for reading, violations in robot.violated.items():
            for rule, violation in violations.items():
                self.violated[reading].setdefault(rule, Violation()).merge(violation)

    def violations(self, reading: Standard) -> int:
        """Return how many requests disobeyed."""
        return sum(violation.count for violation in self.violated[reading].values())


class Auditor(dict[str, AuditedRobot]):
    """The robots that came, by name."""

    def __init__(self, files: Files, namer: Namer, show: Shown) -> None:
        super().__init__()
        self.files = files
        self.rest = Rest()
        self.unseen_until = float("-inf")
        """Until when a robot may have fetched the file without a trace."""
        self._namer = namer
        self._show = show
        self._court = Court(files)
        self._askers: dict[Any, str] = {}
        self._violations = 0
        self.nameless = self._made(NAMELESS)
        """What came without a User-Agent header, and did not ask for /robots.txt."""

    def __missing__(self, name: str) -> AuditedRobot:
        if len(self) >= ROBOTS_MOST:
            self._merge()
        robot = self[name] = self._made(name)
        return robot

    def _made(self, name: str) -> AuditedRobot:
        token = name.removesuffix(UNVERIFIED)
        return AuditedRobot(name, self._court.judge_of(token), self.unseen_until)

    def by(self, robot: AuditedRobot) -> By:
        """Return by what it is known that this is a robot."""
        by = self._namer.by(robot.name.removesuffix(UNVERIFIED))
        return By.ASKED if by is By.NOTHING and robot.asking.count else by

    def kind(self, robot: AuditedRobot) -> Kind:
        """Return what the robot is for."""
        return self._namer.kind(robot.name.removesuffix(UNVERIFIED))

    def _merge(self) -> None:
        def matters(robot: AuditedRobot) -> tuple[bool, int]:
            return self._namer.by(robot.name) is By.FILE, robot.requests

        for robot in sorted(self.values(), key=matters)[:MERGED_AT_ONCE]:
            robot.pace.count()
            self.unseen_until = max(self.unseen_until, robot.last_secs)
            self._settle(robot)
            self.rest.add(robot, self.by(robot))
            self._violations -= sum(map(len, robot.violated.values()))
            del self[robot.name]

    def take(self, visits: Iterable[Visit], *, late: bool = False) -> None:
        """Count visits in their order; of those that came too late for it the pace is not known."""
        for visit in visits:
            secs, name, client, request, _, _ = visit
            robot = self[name] if name else self._client(client, request)
            if late:
                robot.late += 1
                robot.pace.days.put(secs // DAY_SECS, 1)
                self._settle(robot)
            else:
                robot.times.append(secs)
            if len(robot.clients) <= CLIENTS_MOST:
                robot.clients.add(client)
            answer = robot.judge[request]
            if answer is not None:
                self._answered(robot, answer, visit)
        for robot in (self.nameless, *self.values()):
            if len(robot.times) >= _COUNTED_AT_ONCE:
                robot.pace.count()
            if late:
                self._settle(robot)

    def end(self) -> None:
        """Count what is not counted yet: there are no more visits."""
        for robot in (self.nameless, *self.values()):
            robot.pace.count()
            self._settle(robot)

    def _client(self, client: Any, request: Any) -> AuditedRobot:
        """Return the robot that has no name: its address, once it has asked for /robots.txt."""
        if client in self._askers:
            return self[self._askers[client]]
        if type(self.nameless.judge[request]) is not Asked:
            return self.nameless
        if len(self._askers) >= ASKERS_MOST:
            self.rest.clients += 1
            return self.nameless
        name = self._askers[client] = f"client {self._show(client)}"
        return self[name]

    def _answered(self, robot: AuditedRobot, answer: Answer, visit: Visit) -> None:
        secs, _, _, _, status, _ = visit
        if type(answer) is Decision:
            self._judge(robot, answer, visit)
        elif type(answer) is Asked:
            code = _status(status)
            robot.asking.add(secs, code, robot.requests - 1)
            if answer.fetches:
                self._settle(robot)
                robot.knowledge.fetch(secs, code, self.files)

    def _judge(self, robot: AuditedRobot, decision: Decision, visit: Visit) -> None:
        if visit[0] >= robot.charges_hold_until:
            self._settle(robot)
            # To the end of the day, so that what is settled is of one day.
            tomorrow = (visit[0] // DAY_SECS + 1) * DAY_SECS
            until = robot.knowledge.holds_until(visit[0], self.files)
            robot.charges_hold_until = min(until, tomorrow)
        charge = robot.charges.get(decision)
        if charge is None:
            charge = self._charged(robot, decision, visit[0])
        charge.add(visit)

    def _charged(self, robot: AuditedRobot, decision: Decision, secs: int) -> Charge:
        if len(robot.charges) >= _CHARGES_MOST:
            self._settle(robot)
        against, excused = {}, []
        for reading in READINGS:
            rule, is_excused = robot.knowledge.violations(decision, reading, secs, self.files)
            if rule is not None and is_excused:
                excused.append(reading)
            elif rule is not None:
                against[reading] = rule
        charge = robot.charges[decision] = Charge(against, excused)
        charge.versions.add(self.files.at(secs))
        return charge

    def _settle(self, robot: AuditedRobot) -> None:
        """Have the charges among the violations: from now on others may hold."""
        for charge in robot.charges.values():
            charge.by_both = charge.count if len(charge.against) == len(READINGS) else 0
            for reading, rule in charge.against.items():
                first = robot.first_violation.setdefault(reading, charge.first)
                robot.first_violation[reading] = min(first, charge.first)
                self._violation(robot, reading, rule).merge(charge)
                robot.days_violated[reading].put(charge.first // DAY_SECS, charge.count)
            for reading in charge.excused:
                robot.excused[reading] += charge.count
        robot.charges.clear()
        robot.charges_hold_until = float("-inf")

    def _violation(self, robot: AuditedRobot, reading: Standard, rule: Rule) -> Violation:
        violations = robot.violated[reading]
        if rule not in violations:
            if self._violations >= VIOLATIONS_MOST:
                rule = OTHER_LINES
            if rule not in violations:
                self._violations += 1
                violations[rule] = Violation()
        return violations[rule]


OTHER_LINES = Rule(0, "(lines that were not kept apart)", 0)


def _add(days: Days, others: Days) -> None:
    for day, count in others.items():
        days.put(day, count)


def _status(status: Any) -> int:
    try:
        return int(status)
    except (ValueError, TypeError, OverflowError):
        return 0

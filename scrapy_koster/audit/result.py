"""The result of an audit as an object, for JSON, tables and the page."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from scrapy_koster.audit.access_log import AccessLog
from scrapy_koster.audit.addresses import Ranges
from scrapy_koster.audit.audited_robot import CLIENTS_MOST, DAY_SECS, AuditedRobot, Violation
from scrapy_koster.audit.auditor import Auditor
from scrapy_koster.audit.judging import Rule
from scrapy_koster.audit.kinds import Kind, fallback_of
from scrapy_koster.audit.naming import By
from scrapy_koster.protocol.printable import printable
from scrapy_koster.protocol.site import Site
from scrapy_koster.protocol.wording import STANDARD_KEYS, utc

_NAME_CHARS = 60
_UNKNOWN_SHOWN = 10
_HOSTS_SHOWN = 10
_GAPS = {"p10": 0.1, "p50": 0.5, "p90": 0.9}


@dataclass(frozen=True)
class Result:
    """A finished audit."""

    auditor: Auditor
    logs: Sequence[AccessLog]
    site: Site | None = None
    ranges: Ranges | None = None
    ended: bool = False
    """Whether the user pressed Ctrl-C."""

    def to_dict(self) -> dict[str, Any]:
        """Return the object of ``scrapy robots audit --json``."""
        robots = [robot for robot in self.auditor.values() if self._is_one(robot)]
        unknown = [robot for robot in self.auditor.values() if not self._is_one(robot)]
        found = [self._robot(robot) for robot in robots]
        found.sort(key=lambda each: (-each["violations"], -each["requests"], each["name"]))
        logs = self.logs
        return {
            "reading": STANDARD_KEYS[self.auditor.reading],
            "site": None if self.site is None else printable(str(self.site)),
            "lines": sum(log.lines for log in logs),
            "unread": sum(log.unread for log in logs),
            "ended": self.ended,
            "unread_samples": [sample for log in logs for sample in log.samples][:5],
            "damaged": [] if self.ended else list(self._damaged()),
            "hosts": sorted({printable(host) for log in logs for host in log.hosts})[:_HOSTS_SHOWN],
            "elsewhere": sum(log.elsewhere for log in logs),
            "of_site": sum(log.of_site for log in logs),
            "first": _time(min((log.first for log in logs if log.first is not None), default=None)),
            "versions": [self._version(n) for n in range(len(self.auditor.files.versions))],
            "browsers": sum(log.browsers for log in logs),
            "nameless": self.auditor.nameless.requests,
            "unknown": self._unknown(unknown),
            "not_kept_apart": self._rest(),
            "kinds": _kinds(found),
            "days": self._days(robots),
            "robots": found,
        }

    def _damaged(self) -> Iterator[dict[str, str]]:
        is_empty = not any(log.lines or log.damage for log in self.logs)
        for log in self.logs:
            if why := "there is no line in it" if is_empty else log.damage:
                yield {"log": printable(log.name), "why": why}

    def _days(self, robots: Sequence[AuditedRobot]) -> list[dict[str, Any]]:
        """Return the requests and violations of robots by day."""
        requests, violations = Counter[int](), Counter[int]()
        for robot in (self.auditor.rest, *robots):
            requests.update(robot.pace.days)
            violations.update(robot.days_violated)
        return [
            {"day": utc(day * DAY_SECS)[:10], "requests": count, "violations": violations[day]}
            for day, count in sorted(requests.items())
        ]

    def _is_one(self, robot: AuditedRobot) -> bool:
        return self.auditor.by(robot) is not By.NOTHING

    def _version(self, number: int) -> dict[str, Any]:
        version = self.auditor.files.versions[number]
        since = None if version.since == float("-inf") else utc(version.since)
        return {"file": printable(version.name) or None, "since": since}

    def _unknown(self, robots: Sequence[AuditedRobot]) -> dict[str, Any]:
        rest = self.auditor.rest
        most = sorted(robots, key=lambda robot: (-robot.requests, robot.name))[:_UNKNOWN_SHOWN]
        return {
            "names": len(robots) + rest.unknown_names,
            "requests": sum(robot.requests for robot in robots) + rest.unknown_requests,
            "most": [
                {
                    "name": printable(robot.name, _NAME_CHARS),
                    "requests": robot.requests,
                    "violations": robot.violations,
                }
                for robot in most
            ],
        }

    def _rest(self) -> dict[str, Any]:
        rest = self.auditor.rest
        return {
            "names": rest.names,
            "requests": rest.requests,
            "robots_txt_requests": rest.asking.count,
            "clients": rest.nameless_clients,
            "violations": rest.violations,
            "violated_rules": self._violated_rules(rest),
        }

    def _robot(self, robot: AuditedRobot) -> dict[str, Any]:
        lasts = robot.pace.last, robot.pace.last_late
        return {
            "name": printable(robot.name, _NAME_CHARS),
            "known_by": self.auditor.by(robot).value,
            "kind": self.auditor.namer.kind(robot.token).value,
            "verified": self._is_verified(robot),
            "documented": fallback_of(robot.token),
            "requests": robot.requests,
            "robots_txt_requests": robot.asking.count,
            "violations": robot.violations,
            "violated_rules": self._violated_rules(robot),
            "by_reading": {
                **{key: robot.by_reading[each] for each, key in STANDARD_KEYS.items()},
                **{f"only_{key}": robot.only_by[each] for each, key in STANDARD_KEYS.items()},
            },
            "in_grace": robot.in_grace,
            "asked": self._asked(robot),
            "speed": self._speed(robot),
            "clients": min(len(robot.clients), CLIENTS_MOST),
            "more_clients": len(robot.clients) > CLIENTS_MOST,
            "out_of_order": robot.late,
            "first": _time(robot.pace.first),
            "last": _time(max(filter(None, lasts), default=None)),
        }

    def _speed(self, robot: AuditedRobot) -> dict[str, Any]:
        auditor, pace = self.auditor, robot.pace
        delay = auditor.judge.delay_secs(robot.judged_as, auditor.reading)
        return {
            "gap_secs": {name: pace.gap(part) for name, part in _GAPS.items()},
            "worst": {f"{secs}s": worst for secs, worst in pace.worst.items()},
            "crawl_delay_secs": delay,
            "gaps_that_keep_it": None if delay is None else pace.kept(delay),
        }

    def _is_verified(self, robot: AuditedRobot) -> bool | None:
        """Return whether the robot came from its published ranges, or None if none are known."""
        if robot.name != robot.token:
            return False
        return True if self.ranges is not None and self.ranges.ranges_of(robot.name) else None

    def _violated_rules(self, robot: AuditedRobot) -> list[dict[str, Any]]:
        found = [self._violated_rule(*item) for item in robot.violated.items()]
        return sorted(found, key=lambda each: (-each["count"], each["line"]))

    def _violated_rule(self, rule: Rule, violation: Violation) -> dict[str, Any]:
        return {
            "line": rule.line,
            "rule": rule.text,
            "record": rule.record,
            "versions": [self._version(n) for n in sorted(violation.versions)],
            "count": violation.count,
            "by_both": violation.by_both,
            "only_by_this": violation.count - violation.by_both,
            "bytes": violation.octets,
            "first": utc(violation.first),
            "last": utc(violation.last),
            "samples": violation.samples,
            "clients": sorted({*map(self.auditor.show, violation.clients)}),
        }

    def _asked(self, robot: AuditedRobot) -> dict[str, Any]:
        asking, began = robot.asking, robot.pace.first
        first = asking.first if asking.count else None
        late = max(asking.first - began, 0) if asking.pages_before and began is not None else None
        every = (asking.last - asking.first) // (asking.count - 1) if asking.count > 1 else None
        offended = robot.first_violation
        return {
            "ever": asking.count > 0,
            "first": _time(first),
            "pages_before": asking.pages_before if asking.count else robot.requests,
            "secs_after_first_page": late,
            "every_secs": every,
            "longest_secs": asking.longest_secs if asking.count > 1 else None,
            "after_disobeying": first is not None and offended is not None and offended < first,
            "statuses": {str(status): n for status, n in sorted(asking.statuses.items())},
        }


def _kinds(robots: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the counts for each kind of robot that came."""
    found = []
    for kind in Kind:
        if of_it := [robot for robot in robots if robot["kind"] == kind.value]:
            sums = {key: sum(robot[key] for robot in of_it) for key in ("requests", "violations")}
            disobeyed = sum(robot["violations"] > 0 for robot in of_it)
            found.append({"kind": kind.value, "robots": len(of_it), "disobeyed": disobeyed, **sums})
    return found


def violated_rules(found: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the disobeyed lines in *found*, a result of ``to_dict``, with the robot's name."""
    for robot in (*found["robots"], {"name": "(others)", **found["not_kept_apart"]}):
        yield from ({**rule, "robot": robot["name"]} for rule in robot["violated_rules"])


def _time(secs: float | None) -> str | None:
    return None if secs is None else utc(secs)

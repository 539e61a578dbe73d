"""Audits of logs with fifty simulated robots, whose violations are known exactly."""

from __future__ import annotations

from collections import Counter
from functools import cache
from typing import Any

import pytest
from harness.audit_logs import (
    FORMATS,
    NGINX,
    Line,
    log_of,
    sinners,
    truth_of,
    written,
)
from harness.audits import audited, day_of

from scrapy_koster.audit.textlines import nginx_format


def guilty(found: dict[str, Any]) -> dict[str, dict[Line, int]]:
    return {
        robot["name"]: {
            (each["line"], each["rule"]): each["count"] for each in robot["violated_rules"]
        }
        for robot in found["robots"]
        if robot["violated_rules"]
    }


@pytest.mark.parametrize("reading", ["draft", "rfc9309"])
def test_robots_lines_and_counts_are_exact(reading: str) -> None:
    robots = sinners()
    found = audited(written(log_of(robots)), reading=reading)
    truths = {robot.name: truth_of(robot, reading) for robot in robots if robot.is_accused}
    assert guilty(found) == {
        name: dict(truth.lines) for name, truth in truths.items() if truth.lines
    }
    assert {robot["name"]: robot["in_grace"] for robot in found["robots"]} == {
        name: truth.excused for name, truth in truths.items()
    }
    assert {robot["name"]: robot["requests"] for robot in found["robots"]} == {
        robot.name: len(robot.hits) for robot in robots if robot.is_accused
    }
    assert found["browsers"] == sum(len(r.hits) for r in robots if not r.is_accused)
    assert found["unread"] == 0
    days = Counter(day_of(h.secs) for robot in robots if robot.is_accused for h in robot.hits)
    assert {each["day"]: each["requests"] for each in found["days"]} == days
    violations = sum(robot["violations"] for robot in found["robots"])
    assert sum(each["violations"] for each in found["days"]) == violations > 0


@cache
def as_combined() -> dict[str, Any]:
    return audited(written(log_of(sinners())))


@pytest.mark.parametrize("name", [name for name in FORMATS if name != "common"])
def test_the_same_visits_in_each_format(name: str) -> None:
    hits = log_of(sinners())
    broken = (
        b'\n{"ts": \n192.0.2.1 - - [21/Nov/2026:20:00:00 +0000] "GET / HTT\n\xff\x00\x1b[2J\n  \n'
    )
    log = written(hits, name)
    lines = log.splitlines(keepends=True)
    mixed = broken + b"".join(lines[:900]) + broken + b"".join(lines[900:])
    given = nginx_format(NGINX) if name == "nginx" else None
    found = audited(mixed, given=given)
    assert found["unread"] == 6
    assert found["lines"] == len(hits) + 6
    assert all(sample.isprintable() for sample in found["unread_samples"])
    of_lines = ("lines", "unread", "unread_samples", "hosts")
    assert {key: value for key, value in found.items() if key not in of_lines} == {
        key: value for key, value in as_combined().items() if key not in of_lines
    }

"""Each decision on what a robots.txt file means, case by case."""

from __future__ import annotations

from harness.conformance import CASES, Case, each_case

from scrapy_koster.protocol.reading import RobotsTxt


def test_all_cases_are_here() -> None:
    assert len(CASES) == 439


@each_case
def test_case(case: Case) -> None:
    robots = RobotsTxt(case.body)
    ruling = robots.ruling(case.url, case.agent)
    line = ruling.rule.number if ruling.rule else None
    assert (ruling.allowed, line) == (case.allowed, case.line), case.why
    assert robots.allowed(case.url, case.agent) is case.allowed, case.why

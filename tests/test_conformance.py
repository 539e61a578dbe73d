"""Each decision on what a robots.txt file means, case by case."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from scrapy_koster.protocol.robotstxt import RobotsTxt

CASES = [
    json.loads(line)
    for line in (Path(__file__).parent / "data" / "conformance.jsonl")
    .read_text(encoding="utf-8")
    .splitlines()
]


def body_of(case: dict[str, Any]) -> bytes:
    if "robots_b64" in case:
        return base64.b64decode(case["robots_b64"])
    return case["robots"].encode()


def test_all_cases_are_here() -> None:
    assert len(CASES) == 436


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['id']}-{case['point']}")
def test_case(case: dict[str, Any]) -> None:
    robots = RobotsTxt(body_of(case))
    ruling = robots.ruling(case["url"], case["agent"])
    line = ruling.rule.number if ruling.rule else None
    assert (ruling.allowed, line) == (case["allowed"], case["line"]), case["why"]
    assert robots.allowed(case["url"], case["agent"]) is case["allowed"], case["why"]

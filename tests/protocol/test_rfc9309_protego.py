"""Protego over real files: each difference from RFC 9309 has a cause that is known."""

from __future__ import annotations

import re
from collections import Counter

import pytest
from harness.real_files import File
from scrapy.robotstxt import ProtegoRobotParser

from scrapy_koster.parsers import StrictestRobotParser

AGENT = re.compile(rb"(?im)^[ \t]*user-agent[ \t]*:[ \t]*([^#\r\n]*?)[ \t]*(?=#|\r|\n|\Z)")
NAMES = re.compile(rb"(?im)^user-agent: *([a-z_-]+)")


def without_other_names(body: bytes, robot: str) -> bytes:
    """2.2.1: a name is ours or it is not; to Protego `a` is a name of the robot `a-b` too."""
    return AGENT.sub(
        lambda line: line[0] if line[1].lower() in (b"*", robot.encode()) else b"user-agent: 0",
        body,
    )


@pytest.mark.slow
def test_the_strictest_reading_allows_nothing_that_protego_forbids(corpus: list[File]) -> None:
    """But for robots whose name has another one in it: to Protego that is their name, too."""
    causes: Counter[str] = Counter()
    for body, urls in corpus:
        robots = {"figtree", *(name.decode().lower() for name in NAMES.findall(body)[:4])}
        ours, theirs = StrictestRobotParser(body), ProtegoRobotParser(body, None)
        for robot in robots:
            for url in urls:
                if ours.allowed(url, robot) and not theirs.allowed(url, robot):
                    changed = ProtegoRobotParser(without_other_names(body, robot), None)
                    known = changed.allowed(url, robot)
                    causes["a name within the robot's" if known else f"{robot} {url}"] += 1
    assert set(causes) <= {"a name within the robot's"}

"""Cases that say what a robots.txt file means: data/conformance.jsonl."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest


@dataclass(frozen=True)
class Case:
    id: str
    point: str
    """Of the decision table, or a row of the table of 3.2.2."""
    body: bytes
    agent: str
    url: str
    allowed: bool
    line: int | None
    """The one that decides."""
    why: str


def _case(row: dict[str, Any]) -> Case:
    body = base64.b64decode(row["robots_b64"]) if "robots_b64" in row else row["robots"].encode()
    names = ("id", "point", "agent", "url", "allowed", "line", "why")
    return Case(body=body, **{name: row[name] for name in names})


_FILE = Path(__file__).parents[1] / "data" / "conformance.jsonl"
CASES = [_case(json.loads(line)) for line in _FILE.read_text(encoding="utf-8").splitlines()]

each_case = pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.id}-{case.point}")

"""A small soak: `make soak` makes a large one. See docs/reliability.md."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest
from soak import soak

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="reads /proc, as Linux has it"),
]


def test_each_request_is_accounted_for() -> None:
    found = soak(3_000, 100, [(0.3, signal.SIGKILL), (0.6, signal.SIGINT)])
    assert found.wrong == []
    assert found.fetched == 25 * 30 + 59 * 24
    assert found.refused["RobotsForbidden"] == 5 * 30 + 59 * 6
    assert found.parked + found.refused["RobotsUnavailable"] == 11 * 30
    assert all(found.kept)

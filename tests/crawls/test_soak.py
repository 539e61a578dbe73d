"""A small soak: `make soak` makes a large one, whose figures docs/reliability.md has."""

from __future__ import annotations

import signal
from collections import Counter
from pathlib import Path

import pytest
from harness.manysites import Kind, ManySites, kind_of
from soak import soak

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="reads /proc, as Linux has it"),
]


def test_each_request_is_accounted_for() -> None:
    found = soak(3_000, 100, [(0.3, signal.SIGKILL), (0.6, signal.SIGINT)])
    assert found.wrong == []
    assert found.fetched == 25 * 30 + 59 * 24
    assert found.refused["forbidden"] == 5 * 30 + 59 * 6
    assert found.parked + found.refused["of sites that could not be asked"] == 11 * 30
    [kept] = found.kept
    assert kept > 0


def test_of_a_hundred_sites_in_a_row() -> None:
    web = ManySites(sites=200, pages=5)
    for first in (0, 37, 100):
        kinds = Counter(kind_of(site) for site in range(first, first + 100))
        assert kinds[Kind.HANGS] == 4
        assert kinds[Kind.HAS_RULES] == 59
    assert sorted(web.interleaved(64)) == list(range(web.count))
    assert len({web.url(number).rpartition("/")[0] for number in range(1, web.count, 5)}) == 200

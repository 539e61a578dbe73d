"""Claims of processes, and of wrong clocks; the rest is in the contract."""

from __future__ import annotations

from pathlib import Path

import pytest
from harness.storages import SHARED, Place, output, place_of, start

from scrapy_koster.protocol.access import Copy
from scrapy_koster.protocol.site import Site
from scrapy_koster.storage import held_secs

A = Site("http", "a.example", 80)
COPY = Copy("http://a.example/robots.txt", 200, b"Disallow:\n", '"1"', "x", 1000.0, 2000.0)
SECS = 30.0


@pytest.fixture(params=SHARED)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    return place_of(request.param, tmp_path)


CLAIMANT = """
import random, sys, time
from scrapy_koster.protocol.site import Site
from harness.storages import Place

storage = Place.read(sys.argv[1]).open()
sites = [Site("http", f"{n}.example", 80) for n in range(100)]
random.Random(sys.argv[2]).shuffle(sites)
print("ready", flush=True)
sys.stdin.readline()
for site in sites:
    if not storage.claim(site, sys.argv[2], now=time.time(), secs=60).held_secs:
        print(site)
storage.close()
"""


@pytest.mark.promise("docs/storage.md", "claims: one process fetches")
@pytest.mark.slow
def test_of_four_processes_one_is_granted(place: Place) -> None:
    processes = [start(CLAIMANT, place, owner) for owner in "abcd"]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    granted = [line for process in processes for line in output(process).splitlines()]
    assert sorted(granted) == sorted(f"http://{n}.example" for n in range(100))


# Clocks.


@pytest.mark.parametrize(
    ("left_secs", "held"),
    [(-1.0, 0.0), (0.0, 0.0), (0.1, 0.1), (60.0, 60.0), (60.1, 0.0), (float("inf"), 0.0)],
)
def test_a_claim_of_a_clock_that_ran_ahead_is_void(left_secs: float, held: float) -> None:
    assert held_secs(left_secs, 30.0) == held

"""Ten of the random crawls; `make random-crawl` runs two hundred."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from random_crawls.seeds import CHOSEN

BOUND_SECS = 150.0


@pytest.mark.parametrize("seed", CHOSEN)
def test_the_promises_hold_in_a_random_crawl(seed: int) -> None:
    command = [sys.executable, "-m", "random_crawls", "--seeds", str(seed)]
    tests = Path(__file__).parents[1]
    done = subprocess.run(
        command, cwd=tests, capture_output=True, text=True, timeout=BOUND_SECS, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr

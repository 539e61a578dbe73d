"""Ten of the random crawls; `make random-crawl` runs two hundred."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import scrapy

from random_crawls.seeds import CHOSEN


@pytest.mark.skipif(scrapy.version_info < (2, 15), reason="Scrapy 2.15 has handlers of the plans")
def test_the_promises_hold_in_ten_random_crawls() -> None:
    """In one process, because each imports Scrapy; four at a time, because most of them wait."""
    seeds = ",".join(map(str, CHOSEN))
    command = [sys.executable, "-m", "random_crawls", "--seeds", seeds]
    tests = Path(__file__).parents[1]
    done = subprocess.run(
        command, cwd=tests, capture_output=True, text=True, timeout=170, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr

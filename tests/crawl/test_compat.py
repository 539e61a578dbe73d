"""The releases of Scrapy that are supported, and what an older one is told."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from harness import forks
from harness.server import Server

from scrapy_koster.crawl import OLDEST_SCRAPY, refuse_older

ROOT = Path(__file__).parents[2]
SAID = (
    "scrapy-koster needs Scrapy 2.17 or later, and this is Scrapy 2.16.0:"
    " pip install --upgrade 'scrapy>=2.17'"
)
CRAWL = """
import json
import sys

import scrapy

scrapy.__version__ = "2.16.0"

from scrapy import Spider
from scrapy.crawler import CrawlerProcess


class Web(Spider):
    name = "web"
    start_urls = [sys.argv[1]]


process = CrawlerProcess(json.loads(sys.argv[2]))
process.crawl(Web)
process.start()
"""


@pytest.mark.parametrize("version", ["0.24.6", "1.8.4", "2.9.0", "2.16.0"])
def test_an_older_one_is_refused(version: str) -> None:
    with pytest.raises(ImportError, match=f"needs Scrapy 2.17 .* Scrapy {version}: pip install"):
        refuse_older(version)


@pytest.mark.parametrize("version", ["2.17.0", "2.17.0rc1", "2.19.0", "2.20rc1", "3.0", "10.0"])
def test_a_newer_one_is_not(version: str) -> None:
    refuse_older(version)


@pytest.mark.slow
@pytest.mark.parametrize(
    "settings",
    [
        {"ADDONS": {"scrapy_koster.Addon": 500}},
        {"DOWNLOADER_MIDDLEWARES": {"scrapy_koster.KosterMiddleware": 100}},
    ],
)
def test_a_crawl_with_an_older_one_does_not_begin(
    server: Server, settings: dict[str, dict[str, int]]
) -> None:
    site = server.site()
    command = [sys.executable, "-c", CRAWL, site.url(), json.dumps(settings)]
    ran = subprocess.run(
        command, capture_output=True, text=True, timeout=forks.ENDS_SECS, check=False
    )
    assert ran.stderr.rstrip().endswith(f"ImportError: {SAID}")
    assert site.requests == ()


def test_the_floor_is_the_same_wherever_it_is_named() -> None:
    floor = ".".join(map(str, OLDEST_SCRAPY))
    named = {
        "pyproject.toml": f'"scrapy>={floor}"',
        "Makefile": f"'scrapy=={floor}.*'",
        ".ci/run": f"'scrapy=={floor}.*'",
        "README.md": f"Scrapy {floor} or later",
    }
    for name, text in named.items():
        path = ROOT / name
        if path.exists():  # a source package has no .ci
            assert text in path.read_text("utf-8"), name


def test_what_the_oldest_has_is_not_kept_for_older_ones() -> None:
    compat = (ROOT / "scrapy_koster/crawl/engine/compat.py").read_text("utf-8")
    releases = re.findall(r"^# Scrapy (\d+)\.(\d+): ", compat, re.MULTILINE)
    assert len(releases) == len(re.findall(r"^(?:async def|def|\w+:)", compat, re.MULTILINE))
    assert min((int(major), int(minor)) for major, minor in releases) > OLDEST_SCRAPY

"""A crawl with a Scrapy that lacks a name that is not public: it obeys, or does not start."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from harness import renamed
from harness.replies import Asked, Reply
from harness.server import Server, Site

from scrapy_koster.crawl.scrapy_internals import NEEDED, OPTIONAL

pytestmark = pytest.mark.long  # tests/project/test_scrapys_names.py has the names themselves

ENDS_SECS = 120
SETTINGS = {
    "KOSTER_STORAGE": "scrapy_koster.storage.memory.MemoryStorage",
    "KOSTER_DEFER_FIRST_SECS": 0.2,
    "TELNETCONSOLE_ENABLED": False,
}


@dataclass
class Ended:
    """How a crawl without a name ended."""

    forbidden: Site
    """All of it is forbidden, by a robots.txt that comes late. 40 of its pages are queued."""
    open: Site
    """Three of its pages are queued."""
    failing: Site
    """Its robots.txt fails once. One of its pages may be fetched, and one not."""
    ended: dict[str, str]
    reasons: list[str]
    log: str


def crawl_without(server: Server, names: str, **settings: Any) -> Ended:
    """Run a crawl in a process whose Scrapy has other names for these."""
    forbidden, free, failing = server.site(), server.site(), server.site()
    forbidden.robots = Reply(body="User-agent: *\nDisallow: /\n", delay=0.3)

    def fails_once(_asked: Asked) -> Reply:
        answers = Reply(body="User-agent: *\nDisallow: /no\n")
        return answers if failing.asked("/robots.txt") > 1 else Reply(503)

    failing.robots = fails_once
    urls = [*forbidden.urls(40), *free.urls(3), failing.url("/yes"), failing.url("/no")]
    done = subprocess.run(
        [
            *(sys.executable, renamed.__file__, names),
            *(json.dumps(urls), json.dumps(SETTINGS | settings)),
        ],
        capture_output=True,
        check=False,
        cwd=Path(__file__).parent,
        text=True,
        timeout=ENDS_SECS,
    )
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    return Ended(forbidden, free, failing, result["ended"], result["reasons"], done.stderr)


def check_obeyed(crawl: Ended) -> None:
    assert crawl.reasons == ["finished"], crawl.log
    assert crawl.forbidden.pages_asked == []
    assert sorted(crawl.open.pages_asked) == ["/page0", "/page1", "/page2"]
    assert crawl.failing.pages_asked == ["/yes"]
    refused = [*crawl.forbidden.urls(40), crawl.failing.url("/no")]
    assert sorted(url for url, end in crawl.ended.items() if end == "RobotsForbidden") == sorted(
        refused
    )


def check_not_begun(crawl: Ended, name: str) -> None:
    for site in (crawl.forbidden, crawl.open, crawl.failing):
        assert site.requests == ()
    assert crawl.ended == {}
    assert f"which has no {name}" in crawl.log
    assert "finished" not in crawl.reasons


def test_the_open_throttling_proposal(server: Server) -> None:
    """Scrapy's pull request 6931 removes both."""
    without = "scrapy.pqueues.DownloaderInterface scrapy.core.downloader.monotonic"
    crawl = crawl_without(server, without)
    check_obeyed(crawl)
    assert "DownloaderInterface" not in crawl.log


NAMES = [f"{owner}.{path.rpartition('.')[2]}" for path, owner in NEEDED.items()]


def needed_name(name: str) -> str | None:
    """The first name that each crawl needs among those that are renamed with this one."""
    last = name.rpartition(".")[2]
    return next((each for each in NAMES if each.rpartition(".")[2] == last), None)


@pytest.mark.parametrize("name", [*NAMES, *OPTIONAL])
def test_one_name_is_missing(name: str, server: Server) -> None:
    crawl = crawl_without(server, name)
    needed = needed_name(name)
    if needed is not None:
        check_not_begun(crawl, needed)
    else:
        check_obeyed(crawl)

"""Storages of strangers that hang or return what is none: a miss, said once, and nothing more.

Each is in memory, and called in a thread like one that waits for a disk.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from dataclasses import replace
from threading import Event
from typing import Any

import pytest
from harness.crawling import Crawl
from harness.server import Server

from scrapy_koster.protocol.access import CachedRobots
from scrapy_koster.storage.memory import MemoryStorage
from scrapy_koster.storage.port import Claimed

PACING = ("begin_visit", "end_visit")
RULES = "User-agent: *\nCrawl-delay: 0.01\nDisallow: /secret\n"
COPY = CachedRobots("http://h/robots.txt", 200, b"User-agent: *\nAllow: /\n", None, None, 1e9, 9e9)


def strange(method: str, does: Callable[[], Any]) -> Any:
    """Return a storage whose *method* does something else."""

    def call(*_given: Any, **_named: Any) -> Any:
        return does()

    members = {"blocking": True, method: classmethod(call) if method == "from_settings" else call}
    if method == "claim":
        members["release"] = lambda *_: None
    if method in PACING:
        members = dict.fromkeys(PACING, lambda *_, **__: 0.0) | members
    return type("Strange", (MemoryStorage,), members)


async def obeyed(crawl: Crawl, server: Server, storage: Any) -> tuple[Any, str]:
    """Crawl two sites; nothing is lost and nothing leaks. Return the result and its warning."""
    sites = [server.site(host=f"127.0.0.{n}") for n in (2, 3)]
    for site in sites:
        site.robots = RULES
    urls = [site.url(path) for site in sites for path in ("/1", "/secret", "/2")]
    settings = {
        "KOSTER_STORAGE": storage,
        "KOSTER_TIMEOUT_SECS": 1,
        "KOSTER_CRAWL_DELAY": "obey",
        "KOSTER_DEFER_LIMIT_SECS": 2,
    }
    result = await crawl(urls=urls, settings=settings)
    assert sorted(result.fetched) == sorted(url for url in urls if "secret" not in url)
    assert sorted(url for url, _ in result.refused) == [url for url in sorted(urls) if "sec" in url]
    assert all("/secret" not in site.pages_asked for site in sites)
    [line] = result.logged(logging.WARNING, "scrapy_koster.crawl.storage_calls")
    assert result.stats["koster/storage/error"] >= 1
    return result, line


@pytest.mark.real_time  # a thread that hangs holds time still
@pytest.mark.parametrize("method", ["claim", pytest.param("close", marks=pytest.mark.long)])
async def test_a_storage_that_hangs_is_a_miss_and_one_warning(
    crawl: Crawl, server: Server, method: str
) -> None:
    """A call, and the end of the crawl, wait for so long at most."""
    ends = Event()
    try:
        result, warning = await obeyed(crawl, server, strange(method, ends.wait))
    finally:
        ends.set()
    assert result.seconds < 20
    assert "Strange: StorageError: a call has not ended within" in warning


@pytest.mark.parametrize(
    ("method", "returned"),
    [
        ("get", replace(COPY, body="User-agent: *")),  # type: ignore[arg-type]
        ("get", replace(COPY, expires=10**400)),  # no float is as large
        ("claim", None),
        ("claim", Claimed(None, math.nan)),
        ("begin_visit", "soon"),
    ],
    ids=["a copy of text", "a number too long", "no claim", "a claim for no time", "a visit"],
)
async def test_a_storage_that_returns_another_type_is_a_miss(
    crawl: Crawl, server: Server, method: str, returned: object
) -> None:
    _, warning = await obeyed(crawl, server, strange(method, lambda: returned))
    assert "Strange: " in warning
    assert "returned" in warning

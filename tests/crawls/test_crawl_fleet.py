"""Crawls that share a storage: one of them asks a site, and what it learns is for all."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest
from harness.crawling import Crawl
from harness.fleet import work
from harness.replies import Reply
from harness.server import Server
from harness.storages import SHARED, place_of
from harness.virtual import time

from scrapy_koster.protocol.access import FetchFailure
from scrapy_koster.protocol.site import Site

RULES = "User-agent: *\nDisallow: /private\n"
ANSWER_SECS = 0.3
WORKERS = 3


@pytest.mark.parametrize("name", SHARED)
def test_each_site_is_asked_once(name: str, tmp_path: Path, server: Server) -> None:
    made = [server.site() for _ in range(4)]
    for site in made:
        site.robots = Reply(200, RULES, delay=ANSWER_SECS)
    pages = [site.url("/page") for site in made]
    urls = [*pages, *(site.url("/private") for site in made)]
    place = place_of(name, tmp_path)
    workers = [work(place, urls, seed) for seed in range(WORKERS)]
    results = [worker.result() for worker in workers]
    assert {site.asked("/robots.txt") for site in made} == {1}
    for result in results:
        assert sorted(result.fetched) == sorted(pages)
        assert len(result.refused) == 4
        assert not result.warnings, "\n".join(result.warnings)


async def test_what_a_killed_crawl_claimed_is_waited_for(
    tmp_path: Path, crawl: Crawl, server: Server
) -> None:
    """The idle limit is for sites that fail: this one is being asked, for all that is known.

    A failure of an earlier crawl does not shorten the wait.
    """
    place, site = place_of("sqlite", tmp_path), server.site()
    koster_site, now = Site(site.scheme, site.host, site.port), time.time()
    with closing(place.open("scrapy")) as storage:
        storage.put(koster_site, FetchFailure("HTTP 503", 1, now - 900, now - 2, now - 1, None))
        storage.claim(koster_site, "killed", now=now, secs=4)
    short = {"KOSTER_IDLE_LIMIT_SECS": 1, "KOSTER_TIMEOUT_SECS": 2}
    await crawl(urls=[site.url("/page")], settings={**place.settings(), **short})
    assert site.pages_asked == ["/page"]

"""Crawls that share a storage: one of them asks a site, and what it learns is for all."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from harness import forks
from harness.crawling import Crawl
from harness.fleet import Result, Worker, work
from harness.replies import Hang, Reply
from harness.server import Server, Site
from harness.storages import SHARED, Place, place_of
from harness.virtual import time

from scrapy_koster.protocol.access import FetchFailure
from scrapy_koster.protocol.site import site_of

RULES = "User-agent: *\nDisallow: /private\n"
ANSWER_SECS = 0.3
WORKERS = 3


@pytest.fixture
def farm() -> Iterator[Server]:
    """Sites for crawls in other processes."""
    with Server() as server:
        yield server


def sites(farm: Server, count: int, reply: Any) -> list[Site]:
    made = [farm.site() for _ in range(count)]
    for site in made:
        site.robots = reply
    return made


def fleet(place: Place, urls: list[str], **settings: Any) -> list[Result]:
    workers = [work(place, urls, seed, **settings) for seed in range(WORKERS)]
    return [worker.result() for worker in workers]


def asked_at(site: Site) -> list[float]:
    return [asked.at for asked in site.requests if asked.path == "/robots.txt"]


# One asks.

LONG_CRAWL = (pytest.mark.long, pytest.mark.crawl, pytest.mark.real_time)


@pytest.mark.parametrize("name", SHARED)
@pytest.mark.parametrize("count", [4, pytest.param(500, marks=LONG_CRAWL)])
def test_each_site_is_asked_once(name: str, tmp_path: Path, farm: Server, count: int) -> None:
    made = sites(farm, count, Reply(200, RULES, delay=ANSWER_SECS))
    pages = [site.url("/page") for site in made]
    urls = [*pages, *(site.url("/private") for site in made)]
    results = fleet(place_of(name, tmp_path), urls)
    assert {site.asked("/robots.txt") for site in made} == {1}
    for result in results:
        assert sorted(result.fetched) == sorted(pages)
        assert len(result.refused) == count
        assert not result.warnings, "\n".join(result.warnings)


LONG_HEADERS = [("X", "x" * 400)] * 120


def test_the_headers_of_sites_are_counted_apart(tmp_path: Path, farm: Server) -> None:
    """They have 48 kB: those of two sites would be too long. Redis answers for many at once."""
    made = sites(farm, 60, Reply(200, RULES, headers=LONG_HEADERS))
    urls = [site.url("/page") for site in made]
    result = work(place_of("redis", tmp_path), urls).result()
    assert sorted(result.fetched) == sorted(urls)
    assert {site.asked("/robots.txt") for site in made} == {1}


# Who asked is gone.


def wait_for(site: Site, asked: int, worker: Worker, path: str = "/robots.txt") -> None:
    end = time.monotonic() + 30
    while site.asked(path) < asked:
        assert worker.process.poll() is None
        assert time.monotonic() < end
        time.sleep(0.01)


def test_the_site_of_a_claimant_that_was_stopped(tmp_path: Path, farm: Server) -> None:
    """Another crawl fetches the robots.txt within 10 s. The claim would last 25 s."""
    place, site = place_of("sqlite", tmp_path), farm.site()
    site.robots = [Hang(), RULES]
    first = work(place, [site.url("/page")], KOSTER_TIMEOUT_SECS=20)
    wait_for(site, 1, first)
    sign = farm.site()
    urls = [site.url("/page"), sign.url("/page")]
    second = work(place, urls, KOSTER_TIMEOUT_SECS=20)
    wait_for(sign, 1, second, "/page")  # it has come to wait for the first by then
    first.process.send_signal(signal.SIGINT)
    ended = time.monotonic()
    result = second.result()
    first.process.communicate(timeout=forks.ENDS_SECS)
    assert sorted(result.fetched) == sorted(urls)
    assert asked_at(site)[1] - ended < 10


# In one process, on every kind of loop.


async def test_what_a_killed_crawl_claimed_is_waited_for(
    tmp_path: Path, crawl: Crawl, server: Server
) -> None:
    """The idle limit is for sites that fail: this one is being asked, for all that is known.

    A failure of an earlier crawl does not shorten the wait.
    """
    place, site = place_of("sqlite", tmp_path), server.site()
    koster_site, now = site_of(site.url("")), time.time()
    assert koster_site is not None
    with closing(place.open("scrapy")) as storage:
        storage.put(koster_site, FetchFailure("HTTP 503", 1, now - 900, now - 2, now - 1, None))
        storage.claim(koster_site, "killed", now=now, secs=4)
    short = {"KOSTER_IDLE_LIMIT_SECS": 1, "KOSTER_TIMEOUT_SECS": 2}
    await crawl(urls=[site.url("/page")], settings={**place.settings(), **short})
    assert site.pages_asked == ["/page"]

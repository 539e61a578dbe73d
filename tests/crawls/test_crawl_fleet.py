"""Crawls that share a storage: one of them asks a site, and what it learns is for all."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from harness import forks
from harness.crawling import Crawl, Running
from harness.fleet import Result, Worker, work
from harness.replies import Hang, Reply
from harness.server import Server, Site
from harness.storages import SHARED, Place, place_of
from harness.virtual import time

from scrapy_koster.protocol.access import Failure
from scrapy_koster.protocol.site import site_of

RULES = "User-agent: *\nDisallow: /private\n"
ANSWER_SECS = 0.3
WORKERS = 4


@pytest.fixture(params=SHARED)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    return place_of(request.param, tmp_path)


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


@pytest.mark.promise("docs/fleet.md", "each site's robots.txt is fetched once")
@pytest.mark.parametrize("count", [30, pytest.param(500, marks=pytest.mark.long)])
def test_each_site_is_asked_once(place: Place, farm: Server, count: int) -> None:
    made = sites(farm, count, Reply(200, RULES, delay=ANSWER_SECS))
    pages = [site.url("/page") for site in made]
    results = fleet(place, [*pages, *(site.url("/private") for site in made)])
    assert {site.asked("/robots.txt") for site in made} == {1}
    for result in results:
        assert sorted(result.fetched) == sorted(pages)
        assert len(result.refused) == count
        assert not result.warnings, "\n".join(result.warnings)


# Who asked is gone.


def after_claimant(place: Place, farm: Server, number: signal.Signals, secs: int) -> float:
    """How long after the end of a crawl that asks a site another asks it."""
    site = farm.site()
    site.robots = [Hang(), RULES]
    first = work(place, [site.url("/page")], KOSTER_TIMEOUT_SECS=secs)
    wait_for(site, 1, first)
    sign = farm.site()
    urls = [site.url("/page"), sign.url("/page")]
    second = work(place, urls, KOSTER_TIMEOUT_SECS=secs)
    wait_for(sign, 1, second, "/page")  # it has come to wait for the first by then
    first.process.send_signal(number)
    ended = time.monotonic()
    result = second.result()
    first.process.communicate(timeout=forks.ENDS_SECS)
    assert sorted(result.fetched) == sorted(urls)
    return asked_at(site)[1] - ended


def wait_for(site: Site, asked: int, worker: Worker, path: str = "/robots.txt") -> None:
    end = time.monotonic() + 30
    while site.asked(path) < asked:
        assert worker.process.poll() is None
        assert time.monotonic() < end
        time.sleep(0.01)


@pytest.mark.promise("docs/fleet.md", "a claim expires")
@pytest.mark.long
def test_the_site_of_a_claimant_that_was_killed(place: Place, farm: Server) -> None:
    """The claim ends 5 s after the time-out, and is looked at once a second or so."""
    assert 1 < after_claimant(place, farm, signal.SIGKILL, 3) < 3 + 5 + 4


@pytest.mark.promise("docs/fleet.md", "a crawl that ends releases its claims")
def test_the_site_of_a_claimant_that_was_stopped(place: Place, farm: Server) -> None:
    """It gives its claim back: that would last 25 s."""
    assert after_claimant(place, farm, signal.SIGINT, 20) < 5


# In one process, on every kind of loop.


def at_once(
    place: Place, crawl: Crawl, server: Server, urls: list[str]
) -> tuple[list[Running], Callable[[], bool]]:
    """Two crawls, and whether both have come to ask or to wait: each fetches a page behind it."""
    signs = [server.site() for _ in range(2)]
    running = [
        crawl.start(urls=[*urls, sign.url("/page")], settings=place.settings()) for sign in signs
    ]
    return running, lambda: all(sign.asked("/page") for sign in signs)


async def test_a_crawl_that_waits_for_another_can_be_stopped(
    place: Place, crawl: Crawl, server: Server
) -> None:
    site = server.site()
    site.robots = Hang()
    running, waiting = at_once(place, crawl, server, [site.url("/page")])
    await crawl.until(waiting)
    assert site.asked("/robots.txt") == 1
    for each in running:
        result = await each.stop()
        assert result.finish_reason == "shutdown"


async def test_what_a_killed_crawl_claimed_is_waited_for(
    tmp_path: Path, crawl: Crawl, server: Server
) -> None:
    """The idle limit is for sites that fail: this one is being asked, for all that is known."""
    place, site = place_of("sqlite", tmp_path), server.site()
    koster_site, now = site_of(site.url("")), time.time()
    assert koster_site is not None
    with closing(place.open("scrapy")) as storage:
        storage.put(koster_site, Failure("HTTP 503", 1, now - 2, now - 2, now - 1, None))
        storage.claim(koster_site, "killed", now=now, secs=4)
    short = {"KOSTER_IDLE_LIMIT_SECS": 1, "KOSTER_TIMEOUT_SECS": 2}
    await crawl(urls=[site.url("/page")], settings={**place.settings(), **short})
    assert site.pages_asked == ["/page"]

"""Crawls that share a storage: one of them asks a site, and what it learns is for all."""

from __future__ import annotations

import logging
import signal
from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from threading import Event, Timer
from typing import Any

import pytest
from harness import forks
from harness.crawling import Crawl, Running
from harness.fleet import Result, Worker, work
from harness.replies import Hang, Reply
from harness.server import Server, Site
from harness.storages import SHARED, Place, place_of
from harness.virtual import time

from scrapy_koster.protocol.access import Failure, Known
from scrapy_koster.protocol.site import Site as KosterSite
from scrapy_koster.protocol.site import site_of
from scrapy_koster.storage import Claimed
from scrapy_koster.storage.sqlite import SQLiteStorage

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


@pytest.mark.parametrize("count", [60, pytest.param(500, marks=pytest.mark.long)])
def test_each_site_is_asked_once(place: Place, farm: Server, count: int) -> None:
    made = sites(farm, count, Reply(200, RULES, delay=ANSWER_SECS))
    pages = [site.url("/page") for site in made]
    results = fleet(place, [*pages, *(site.url("/private") for site in made)])
    assert {site.asked("/robots.txt") for site in made} == {1}
    for result in results:
        assert sorted(result.fetched) == sorted(pages)
        assert len(result.refused) == count
        assert not result.warnings


@pytest.mark.long
def test_a_site_that_fails_is_asked_as_often_as_by_one(place: Place, farm: Server) -> None:
    settings = {"KOSTER_DEFER_FIRST_SECS": 1, "KOSTER_DEFER_LIMIT_SECS": 10}
    shared, alone = (sites(farm, 20, Reply(503, delay=ANSWER_SECS)) for _ in range(2))
    one = work(
        Place("memory", place.sqlite_path), [site.url("/page") for site in alone], **settings
    )
    results = fleet(place, [site.url("/page") for site in shared], **settings)
    one.result()
    most = max(site.asked("/robots.txt") for site in alone)
    assert most == 4
    for site in shared:
        times = asked_at(site)
        assert len(times) <= most
        assert min(later - sooner for sooner, later in pairwise(times)) > ANSWER_SECS
    for result in results:
        assert len(result.refused) == 20


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


@pytest.mark.long
def test_the_site_of_a_claimant_that_was_killed(place: Place, farm: Server) -> None:
    """The claim ends 5 s after the time-out, and is looked at once a second or so."""
    assert 1 < after_claimant(place, farm, signal.SIGKILL, 3) < 3 + 5 + 4


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


async def test_two_crawls_at_once(place: Place, crawl: Crawl, server: Server) -> None:
    gate = server.gate()
    site = server.site()
    site.robots = Reply(200, RULES, gate=gate)
    running, waiting = at_once(place, crawl, server, [site.url("/private"), site.url("/page")])
    await crawl.until(waiting)
    gate.open()
    results = [await each.result() for each in running]
    for result in results:
        assert len(result.fetched) == 2
        assert site.url("/page") in result.fetched
    assert site.asked("/robots.txt") == 1
    asked = sum(result.stats["robotstxt/request_count"] for result in results)
    assert asked == 1 + 2  # and the site behind it in each


async def test_a_crawl_that_is_stopped_leaves_no_claim(
    place: Place, crawl: Crawl, server: Server
) -> None:
    site = server.site()
    site.robots = [Hang(), RULES]
    first = crawl.start(urls=[site.url("/page")], settings=place.settings())
    await crawl.until(lambda: site.asked("/robots.txt") == 1)
    sign = server.site()
    urls = [site.url("/page"), sign.url("/page")]
    second = crawl.start(urls=urls, settings=place.settings())
    await crawl.until(lambda: sign.asked("/page"))
    assert site.asked("/robots.txt") == 1
    stopped = time.monotonic()
    await first.stop()
    await crawl.until(lambda: site.asked("/robots.txt") == 2)
    assert asked_at(site)[1] - stopped < 1
    assert set((await second.result()).fetched) == set(urls)


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


class Late(SQLiteStorage):
    """A storage whose first answer to a claim comes when nobody waits for it any more."""

    blocking = True
    asked, answers = Event(), Event()

    def claim(self, site: KosterSite, owner: str, **how: Any) -> Claimed:
        self.asked.set()
        assert self.answers.wait(10)
        return super().claim(site, owner, **how)


async def test_a_claim_that_is_granted_while_the_crawl_closes(
    tmp_path: Path, crawl: Crawl, server: Server
) -> None:
    place = place_of("sqlite", tmp_path)
    site = server.site()
    running = crawl.start(
        urls=[site.url("/page")], settings={**place.settings(), "KOSTER_STORAGE": Late}
    )
    await crawl.until(Late.asked.is_set)
    timer = Timer(0.5, Late.answers.set)
    timer.start()
    result = await running.stop()
    assert Late.answers.is_set()
    # Who waited for the answer was cancelled: that is no failure of the storage.
    assert "koster/storage/error" not in result.stats
    assert not result.logged(logging.WARNING, "scrapy_koster")
    koster_site = site_of(site.url(""))
    assert koster_site is not None
    with closing(place.open("scrapy")) as storage:
        assert not storage.claim(koster_site, "another", now=time.time(), secs=30).held_secs


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


# Storages without claims.


class Unclaimed:
    """A storage that can do no more than it has to."""

    blocking = False
    known: dict[KosterSite, Known] = {}

    @classmethod
    def from_settings(cls, settings: object) -> Unclaimed:
        return cls()

    def get(self, site: KosterSite) -> Known | None:
        return self.known.get(site)

    def put(self, site: KosterSite, copy: Known) -> None:
        self.known[site] = copy

    def sites(self) -> Iterator[tuple[KosterSite, Known]]:
        return iter(list(self.known.items()))

    def robots(self) -> list[str]:
        return ["scrapy"]

    def forget(self, site: KosterSite) -> bool:
        return self.known.pop(site, None) is not None

    def close(self) -> None:
        pass


async def test_a_storage_without_claims(crawl: Crawl, server: Server) -> None:
    site = server.site()
    site.robots = RULES
    Unclaimed.known = {}
    for _ in range(2):
        result = await crawl(urls=[site.url("/page")], settings={"KOSTER_STORAGE": Unclaimed})
        assert result.fetched == (site.url("/page"),)
        assert "koster/storage/error" not in result.stats
    assert site.asked("/robots.txt") == 1

"""Crawl-delay where a turn is not for one page of one crawl: processes, slots, redirects."""

from __future__ import annotations

from contextlib import closing
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from harness.clocks import JumpingClock
from harness.crawling import STEADY_SLOT, Crawl
from harness.replies import Reply, redirect
from harness.server import Server, Site
from harness.storages import place_of
from harness.virtual import TIME

from scrapy_koster import RobotsUnavailable
from scrapy_koster.storage import StorageError
from scrapy_koster.storage.sqlite import SQLiteStorage

OBEY: dict[str, Any] = {"KOSTER_CRAWL_DELAY": "obey"}
EARLY_SECS = 0.01
ON_ITS_WAY_SECS = 0.05
# A Redis has a clock of its own, which does not jump.
SHARED = ["sqlite", pytest.param("redis", marks=pytest.mark.real_time)]


def robots(secs: float, **headers: str) -> Reply:
    return Reply(
        200, f"User-agent: *\nCrawl-delay: {secs:g}\nDisallow: /private\n", headers=headers
    )


def gaps(site: Site) -> list[float]:
    times = sorted(asked.at for asked in site.requests)
    return [later - earlier for earlier, later in pairwise(times)]


@pytest.mark.parametrize("name", SHARED)
async def test_a_turn_lasts_until_its_request_is_sent(
    crawl: Crawl, server: Server, tmp_path: Path, name: str
) -> None:
    """It waits in its slot for longer than a gap: another process has had its turn by then."""
    settings = OBEY | place_of(name, tmp_path).settings()
    slow = {"AUTOTHROTTLE_ENABLED": True, "AUTOTHROTTLE_START_DELAY": 1.3}
    site = server.site()
    site.robots = robots(0.5)
    running = [
        crawl.start(urls=site.urls(4, "/quick{}"), settings=settings),
        crawl.start(urls=site.urls(4, "/slow{}"), settings=settings | slow),
    ]
    for each in running:
        assert len((await each.result()).fetched) == 4
    assert site.asked("/robots.txt") == 1
    assert min(gaps(site)) >= 0.5 - ON_ITS_WAY_SECS, gaps(site)


async def test_one_that_is_cut_off_from_the_storage_visits_no_host_that_others_visit(
    crawl: Crawl, server: Server, tmp_path: Path
) -> None:
    class Away(SQLiteStorage):
        is_away = False

        def visit(self, host: str, **how: Any) -> float:
            if self.is_away:
                raise StorageError("it is away")
            return super().visit(host, **how)

    settings = OBEY | place_of("sqlite", tmp_path).settings()
    site = server.site()
    site.robots = robots(2)
    here = crawl.start(urls=site.urls(20, "/here{}"), settings=settings)
    cut_off = settings | {"KOSTER_STORAGE": Away}
    there = crawl.start(urls=site.urls(3, "/there{}"), settings=cut_off)
    await crawl.until(lambda: any(path.startswith("/there") for path in site.pages_asked))
    Away.is_away = True
    asked = len(site.pages_asked)
    await crawl.until(lambda: len(site.pages_asked) >= asked + 3)
    assert all(path.startswith("/here") for path in site.pages_asked[asked:])
    Away.is_away = False
    for each, count in ((here, 20), (there, 3)):
        assert len((await each.result()).fetched) == count
    assert min(gaps(site)) >= 2 - EARLY_SECS, gaps(site)


async def test_a_crawl_that_closes_while_a_page_waits_to_be_sent(
    crawl: Crawl, server: Server, tmp_path: Path
) -> None:
    """Another process has had the turn. The page is refused as whoever waits in place is."""
    place = place_of("sqlite", tmp_path)
    site = server.site()
    site.robots = robots(20)
    slot = {"concurrency": 1, "delay": 45} | STEADY_SLOT
    settings = OBEY | place.settings() | {"DOWNLOAD_SLOTS": {"127.0.0.1": slot}}
    running = crawl.start(urls=site.urls(2), settings=settings)
    await crawl.until(lambda: site.pages_asked)
    await crawl.sleep(43)
    with closing(place.open()) as storage:
        storage.visit("127.0.0.1", now=TIME.epoch(), secs=20, begun=True)
    await crawl.sleep(5)
    assert len(site.pages_asked) == 1
    result = await running.stop()
    [(_, error)] = result.refused
    assert isinstance(error, RobotsUnavailable)
    assert len(site.pages_asked) == 1


async def test_each_hop_of_a_redirect_is_a_visit(crawl: Crawl, server: Server) -> None:
    """The robots.txt of other sites are at a host that asks for a delay."""
    paced = server.site(host="127.0.3.1")
    paced.robots = robots(1)
    others = [server.site(host=f"127.0.3.{n}") for n in range(2, 12)]
    for site in others:
        site.robots = redirect(paced.url("/robots.txt"))
    pages = [site.url("/page") for site in others]
    first = crawl.start(urls=paced.urls(8), settings=OBEY)
    await crawl.until(lambda: paced.pages_asked)
    spider: Any = first.crawler.spider
    for url in pages:
        first.crawler.engine.crawl(spider.ask(url))
    result = await first.result()
    assert sorted(result.fetched) == sorted([*paced.urls(8), *pages])
    assert all(site.asked("/robots.txt") == 1 for site in others)
    assert len(paced.requests) == 1 + 8 + 10
    assert min(gaps(paced)) >= 1 - EARLY_SECS, gaps(paced)


@pytest.mark.parametrize("late_secs", [0.02, 0.3])
async def test_a_redirect_to_a_host_that_is_asked_for_the_first_time(
    crawl: Crawl, server: Server, late_secs: float
) -> None:
    """Its delay is not known yet when the first sites redirect to it."""
    paced = server.site(host="127.0.3.1")
    paced.robots = Reply(200, robots(1).body, delay=late_secs)
    others = [server.site(host=f"127.0.3.{n}") for n in range(2, 8)]
    for n, site in enumerate(others):
        site.robots = Reply(302, headers={"Location": paced.url("/robots.txt")}, delay=n * 0.1)
    urls = [paced.url("/page"), *(site.url("/page") for site in others)]
    result = await crawl(urls=urls, settings=OBEY)
    assert sorted(result.fetched) == sorted(urls)
    assert len(paced.requests) == 2 + 6
    assert min(gaps(paced)) >= 1 - EARLY_SECS, gaps(paced)


async def test_sites_that_redirect_to_each_other(crawl: Crawl, server: Server) -> None:
    """Neither waits until the other is known."""
    one, two = server.site(host="127.0.3.1"), server.site(host="127.0.3.2")
    one.robots, two.robots = (redirect(other.url("/robots.txt")) for other in (two, one))
    settings = OBEY | {"KOSTER_IDLE_LIMIT_SECS": 0}
    result = await crawl(urls=[one.url("/page"), two.url("/page")], settings=settings)
    assert {type(error) for _, error in result.refused} == {RobotsUnavailable}
    assert one.asked("/robots.txt") + two.asked("/robots.txt") == 2 * (1 + 5)
    assert result.seconds < 10


async def test_a_redirect_to_another_port_of_the_host(crawl: Crawl, server: Server) -> None:
    """An old copy names the delay: both hops have a turn of their own, and the page one more."""
    site, other = server.site(), server.site()
    site.robots = [robots(2, **{"Cache-Control": "max-age=1"}), redirect(other.url("/robots.txt"))]
    other.robots = robots(2)
    settings = OBEY | {"KOSTER_EXPIRY_MIN_SECS": 0}
    await crawl(urls=[site.url("/private")], settings=settings)
    await crawl.sleep(2)
    result = await crawl(urls=[site.url("/page")], settings=settings)
    assert result.fetched == (site.url("/page"),)
    times = sorted(asked.at for each in (site, other) for asked in each.requests)
    assert len(times) == 4
    assert min(later - earlier for earlier, later in pairwise(times)) >= 2 - EARLY_SECS


@pytest.mark.parametrize("name", SHARED)
async def test_a_crawl_that_finds_an_old_copy(
    crawl: Crawl, server: Server, tmp_path: Path, name: str
) -> None:
    """It names the delay, and the storage has the last visit."""
    settings = OBEY | place_of(name, tmp_path).settings() | {"KOSTER_EXPIRY_MIN_SECS": 0}
    site = server.site()
    site.robots = robots(1.5, **{"Cache-Control": "max-age=2"})
    first = await crawl(urls=[site.url("/a")], settings=settings)
    assert len(first.fetched) == 1
    await crawl.sleep(0.6)
    second = await crawl(urls=[site.url("/b")], settings=settings)
    assert len(second.fetched) == 1
    assert [asked.path for asked in site.requests] == ["/robots.txt", "/a", "/robots.txt", "/b"]
    assert min(gaps(site)) >= 1.5 - EARLY_SECS, gaps(site)


@pytest.mark.real_time
@pytest.mark.parametrize("ahead_secs", [50.0, -50.0])
async def test_clocks_that_differ(
    crawl: Crawl, server: Server, tmp_path: Path, ahead_secs: float
) -> None:
    """When a copy was fetched is said by the clock of another machine."""
    settings = OBEY | place_of("redis", tmp_path).settings()
    site = server.site()
    site.robots = robots(1.5)
    await crawl(urls=[site.url("/private")], settings=settings)
    clock = JumpingClock()
    clock.ahead = ahead_secs
    crawl.clock = clock
    result = await crawl(urls=[site.url("/page")], settings=settings)
    assert result.fetched == (site.url("/page"),)
    assert site.asked("/robots.txt") == 1
    assert min(gaps(site)) >= 1.5 - EARLY_SECS, gaps(site)


@pytest.mark.parametrize("secs", [1e-300, 0.0001, 0.002, 0.02])
async def test_a_delay_of_next_to_nothing(crawl: Crawl, server: Server, secs: float) -> None:
    site = server.site()
    site.robots = robots(secs)
    result = await crawl(urls=site.urls(30), settings=OBEY)
    assert len(result.fetched) == 30
    times = sorted(asked.at for asked in site.requests)
    assert times[-1] - times[1] < 30 * secs + 1

"""Crawl-delay: the visits to a host are as far apart as it asks for, and nobody else waits."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from harness.crawling import Crawl, Leads, RecordingSpider
from harness.fleet import work
from harness.replies import Hang, Reply, redirect
from harness.server import Server, Site
from harness.storages import place_of
from harness.virtual import time
from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.http import Response

from scrapy_koster.crawl.clock import clock_of

DELAY_SECS = 0.3
OBEY: dict[str, Any] = {"KOSTER_CRAWL_DELAY": "obey"}
EARLY_SECS = 0.01
"""What a gap may be shorter by: the server sees a request a moment after it was sent."""
ON_ITS_WAY_SECS = 0.25
"""The same between processes, each of which has the processor in its turn: none knows how late the
requests of another were."""


def robots(secs: float = DELAY_SECS, rules: str = "Disallow: /private") -> str:
    return f"User-agent: *\nCrawl-delay: {secs:g}\n{rules}\n"


def gaps(*sites: Site) -> list[float]:
    """The seconds between one request and the next, whatever it was for, to the host of *sites*."""
    times = sorted(asked.at for site in sites for asked in site.requests)
    return [later - earlier for earlier, later in pairwise(times)]


def assert_apart(*sites: Site, secs: float = DELAY_SECS) -> None:
    assert min(gaps(*sites)) >= secs - EARLY_SECS, gaps(*sites)


async def test_visits_are_apart(crawl: Crawl, server: Server) -> None:
    """A delay of a day is reduced to KOSTER_CRAWL_DELAY_MAX_SECS."""
    site, clamped = server.site(), server.site(host="127.0.0.2")
    site.robots, clamped.robots = robots(), robots(86400)
    settings = OBEY | {"KOSTER_CRAWL_DELAY_MAX_SECS": DELAY_SECS}
    result = await crawl(urls=[*site.urls(6), *clamped.urls(3)], settings=settings)
    assert len(result.fetched) == 9
    assert_apart(site)
    assert_apart(clamped)
    # No later than need be.
    assert sum(gaps(site)) < 6 * DELAY_SECS + 1
    assert result.stats["koster/crawl_delay/sites"] == 2
    assert result.stats["koster/crawl_delay/clamped"] == 1
    assert result.stats["koster/crawl_delay/waited_seconds"] == pytest.approx(
        9 * DELAY_SECS, abs=2 * DELAY_SECS
    )
    said = "\n".join(result.logged(logging.INFO))
    keeps = f"requests a delay of {DELAY_SECS:g} s (line 2 of its robots.txt). The crawl keeps it"
    assert keeps in said
    assert "requests a delay of 86400 s" in said
    assert f"waits {DELAY_SECS:g} s instead (KOSTER_CRAWL_DELAY_MAX_SECS)" in said


class Busy(RecordingSpider):
    """Follows links that redirect, fail, and lead to another scheme; and downloads by itself."""

    more: Sequence[str] = ()

    def page(self, response: Response) -> Any:
        return self._more(response) if response.url.endswith("/0") else None

    async def _more(self, response: Response) -> Any:
        for url in self.more:
            request = Request(url, dont_filter=True)
            downloaded = await self.crawler.engine.download_async(request)
            self.fetched.append(downloaded.url)
            yield self.ask(f"{url}?again")


async def test_whatever_asks_waits_for_the_same_host(crawl: Crawl, server: Server) -> None:
    """Redirects, retries, `engine.download`, two schemes and two ports."""
    http, https, port = server.site(), server.site("https"), server.site()
    http.robots, port.robots = robots(), robots(DELAY_SECS / 2)
    http.page("/moved", Reply(302, headers={"Location": https.url("/target")}))
    http.page("/fails", [Reply(503), Reply(503), Reply(body="there")])
    urls = [http.url("/moved"), https.url("/a"), http.url("/fails"), port.url("/b"), http.url("/0")]
    settings = OBEY | {"RETRY_BACKOFF_ENABLED": False}
    more = [http.url("/c"), https.url("/d"), port.url("/e")]
    result = await crawl(Busy, urls=urls, settings=settings, arguments={"more": more})
    assert not result.refused
    expected = [https.url("/target"), https.url("/a"), http.url("/fails"), port.url("/b")]
    expected += [http.url("/0"), *more, *(f"{url}?again" for url in more)]
    assert sorted(result.fetched) == sorted(expected)
    first = {id(next(iter(site.requests))) for site in (http, https, port)}
    times = sorted(
        (asked.at, id(asked) in first) for site in (http, https, port) for asked in site.requests
    )
    # The robots.txt of each site is asked for before anything is known, and so may be a first page.
    apart = [b[0] - a[0] for a, b in pairwise(times) if not (a[1] and b[1])]
    assert min(apart[1:]) >= DELAY_SECS - EARLY_SECS, times


async def test_a_redirect_that_waits_for_its_turn_is_no_failure_of_the_site(
    crawl: Crawl, server: Server
) -> None:
    """The host to which robots.txt redirects has a delay longer than KOSTER_TIMEOUT_SECS.

    The last crawl knows of the host from the storage alone.
    """
    apex, www, other = (server.site(host=f"127.0.0.{n}") for n in (1, 2, 3))
    apex.robots = other.robots = redirect(www.url("/robots.txt"))
    www.robots = robots(1.5)
    settings = OBEY | {"KOSTER_TIMEOUT_SECS": 0.7, "KOSTER_UNAVAILABLE": "allow"}
    arguments = {"then": [apex.url("/private"), apex.url("/open")]}
    result = await crawl(Leads, urls=www.urls(1, "/first"), settings=settings, arguments=arguments)
    assert result.fetched == (www.url("/first"), apex.url("/open"))
    for site in (www, other):
        await crawl(urls=site.urls(1), settings=settings)
    assert_apart(www, secs=1.5)


async def test_a_delay_that_grows_is_kept_by_other_crawls(crawl: Crawl, server: Server) -> None:
    site = server.site()
    site.robots = [Reply(body=robots(0.5), headers={"Cache-Control": "max-age=1"}), robots(6)]
    settings = OBEY | {"KOSTER_EXPIRY_MIN_SECS": 1}
    urls = site.urls(9, "/a{}"), site.urls(9, "/b{}")
    await crawl.together(*(crawl(urls=each, settings=settings) for each in urls))
    after = [asked.path for asked in site.requests].index("/robots.txt", 1)
    assert min(gaps(site)[after:]) >= 6 - EARLY_SECS, gaps(site)


async def test_a_turn_that_outlasts_the_claim_costs_no_copy_of_another_crawl(
    crawl: Crawl, server: Server
) -> None:
    apex, www = server.site(), server.site(host="127.0.0.2")
    apex.robots = [redirect(www.url("/robots.txt")), robots(0.1)]
    www.robots = [robots(20), Reply(503)]
    settings = OBEY | {"KOSTER_TIMEOUT_SECS": 1}
    arguments = {"then": apex.urls(1)}
    first = crawl.start(Leads, urls=www.urls(1, "/first"), settings=settings, arguments=arguments)
    await crawl.until(lambda: apex.requests)
    await crawl.sleep(10)
    await crawl(urls=apex.urls(1, "/other"), settings=settings)
    result = await first.result()
    assert result.fetched == (www.url("/first"), *apex.urls(1))
    assert apex.asked("/robots.txt") == 2


async def test_a_redis_that_starts_later_holds_visits_back(crawl: Crawl, server: Server) -> None:
    site, url = server.site(), f"redis://127.0.0.1:{server.down().port}"
    site.robots = robots()
    redis = {"KOSTER_STORAGE": "scrapy_koster.storage.redis.RedisStorage", "KOSTER_REDIS_URL": url}
    result = await crawl(urls=site.urls(1), settings=OBEY | redis | {"KOSTER_DEFER_LIMIT_SECS": 1})
    assert "are not visited until it answers" in "".join(result.logged())


async def test_nobody_else_waits(crawl: Crawl, server: Server) -> None:
    """Sites whose turn has not come take no place of the downloader.

    Forbidden requests wait for no turn.
    """
    paced = [server.site(host=f"127.0.1.{n}") for n in range(1, 11)]
    for site in paced:
        site.robots = robots(30)
    healthy = server.site(host="127.0.2.1")
    urls = [url for site in paced for url in (*site.urls(5), *site.urls(2, "/private{}"))]
    settings = OBEY | {"CONCURRENT_REQUESTS": 4}
    running = crawl.start(urls=urls + healthy.urls(60), settings=settings)
    await crawl.until(lambda: len(healthy.pages_asked) == 60)
    spider: Any = running.crawler.spider
    await crawl.until(lambda: len(spider.refused) == 20)
    await crawl.until(lambda: not running.crawler.engine.downloader.active)
    result = await running.stop()
    assert sum(url.startswith(healthy.url()) for url in result.fetched) == 60
    assert not any(site.pages_asked for site in paced)
    assert result.seconds < 25


class Solver:
    """A downloader middleware that takes its time for a page, and gets a token for another."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Solver:
        return cls(crawler)

    async def process_request(self, request: Request) -> None:
        if request.url.endswith("/0"):
            await clock_of(self._crawler).sleep(30)
        elif request.url.endswith("/4"):
            assert self._crawler.engine is not None
            await self._crawler.engine.download_async(Request(f"{request.url}/token"))


async def test_a_visit_that_cannot_be_sent_yet_holds_up_no_other(
    crawl: Crawl, server: Server
) -> None:
    site = server.site()
    site.robots = robots()
    settings = OBEY | {"DOWNLOADER_MIDDLEWARES": {Solver: 900}}
    await crawl(urls=site.urls(6, "/{}"), settings=settings)
    assert len(site.pages_asked) == 7
    assert site.pages_asked[-1] == "/0"
    assert_apart(site)
    # The lock of /0 is handed on after a while, that of /4 at once to what it waits for.
    assert sorted(gaps(site))[-3] < 2 * DELAY_SECS
    assert sorted(gaps(site))[-2] < 10


async def test_a_visit_that_waits_for_the_delay_of_its_slot_lets_no_other_out(
    crawl: Crawl, server: Server
) -> None:
    """They would wait there, too, and take the places of other hosts."""
    slow, healthy = server.site(), server.site(host="127.0.0.2")
    slow.robots = robots()
    slots = {"slow": {"concurrency": 1, "delay": 60}}
    settings = OBEY | {"CONCURRENT_REQUESTS": 4, "DOWNLOAD_SLOTS": slots}
    in_slot = [Request(url, meta={"download_slot": "slow"}) for url in slow.urls(8)]
    healthy.pages(Reply(delay=1))
    running = crawl.start(urls=[*in_slot, *healthy.urls(100)], settings=settings)
    await crawl.until(lambda: len(healthy.pages_asked) == 100)
    await running.stop()


async def test_a_retry_that_waits_for_other_failed_sites_holds_up_no_page(
    crawl: Crawl, server: Server
) -> None:
    """It has the turn of its host, but failed sites have few fetches at once."""
    hanging, failing, site = server.site(host="127.0.0.2"), server.site(), server.site()
    site.robots, failing.robots, hanging.robots = robots(), Reply(503), [Reply(503), Hang()]
    settings = OBEY | {"KOSTER_CONCURRENT_FETCHES": 4, "KOSTER_DEFER_FIRST_SECS": 1}
    urls = [*hanging.urls(1), *failing.urls(1), *site.urls(60)]
    running = crawl.start(urls=urls, settings=settings)
    await crawl.until(lambda: len(site.pages_asked) == 60)
    await running.stop()
    assert_apart(site)
    assert max(gaps(site)) < 10


async def test_a_redirect_that_waits_for_its_turn_takes_no_fetch_of_others(
    crawl: Crawl, server: Server
) -> None:
    www = server.site()
    www.robots = robots(6)
    apexes = [server.site(host=f"127.0.1.{n}") for n in range(1, 9)]
    for apex in apexes:
        apex.robots = redirect(www.url("/robots.txt"))
    healthy = [server.site(host=f"127.0.2.{n}") for n in range(1, 9)]
    settings = OBEY | {"KOSTER_CONCURRENT_FETCHES": 4}
    arguments = {"then": [url for site in [*apexes, *healthy] for url in site.urls(1)]}
    running = crawl.start(Leads, urls=www.urls(1, "/first"), settings=settings, arguments=arguments)
    await crawl.until(lambda: www.pages_asked)
    began = time.monotonic()
    await crawl.until(lambda: all(site.pages_asked for site in healthy))
    assert time.monotonic() - began < 6
    assert len((await running.result()).fetched) == 17
    assert_apart(www, secs=6)


async def test_a_redirect_on_the_host_is_the_same_visit(crawl: Crawl, server: Server) -> None:
    """A robots.txt that leads from http to https, at a delay longer than KOSTER_TIMEOUT_SECS."""
    http, https = server.site(), server.site("https")
    http.robots, https.robots = redirect(https.url("/robots.txt")), robots(1.5)
    settings = OBEY | {"KOSTER_TIMEOUT_SECS": 1, "KOSTER_DEFER_LIMIT_SECS": 1}
    arguments = {"more": [http.url("/a")]}
    result = await crawl(Busy, urls=[https.url("/0")], settings=settings, arguments=arguments)
    assert not result.refused
    assert http.pages_asked == ["/a", "/a?again"]
    assert (http.asked("/robots.txt"), https.asked("/robots.txt")) == (1, 2)
    pages = [asked for asked in http.requests if asked.path == "/a"]
    assert pages[0].at - https.requests[-1].at >= 1.5 - EARLY_SECS


# Several at once.


@pytest.mark.long  # what the killed one held lapses after 20 s
def test_the_next_process_does_not_come_early(tmp_path: Path) -> None:
    """After kill -9 as well: that there was a visit is stored when it begins."""
    place = place_of("sqlite", tmp_path)
    with Server() as farm:
        site = farm.site()
        site.robots = robots(2)
        first = work(place, site.urls(5), **OBEY)
        end = time.monotonic() + 30
        while not site.pages_asked and time.monotonic() < end:
            time.sleep(0.01)
        first.process.kill()
        first.process.communicate()
        second = work(place, site.urls(1, "/next{}"), **OBEY).result()
        assert len(second.fetched) == 1
        assert_apart(site, secs=2 - ON_ITS_WAY_SECS)


def test_a_fleet_comes_no_more_often_than_one(tmp_path: Path) -> None:
    place = place_of("redis", tmp_path)
    with Server() as farm:
        site = farm.site()
        site.robots = robots(0.5)
        urls = [site.urls(3, f"/{worker}/{{}}") for worker in range(2)]
        workers = [work(place, each, seed, **OBEY) for seed, each in enumerate(urls)]
        results = [worker.result() for worker in workers]
        assert sum(len(result.fetched) for result in results) == 6
        assert site.asked("/robots.txt") == 1
        assert_apart(site, secs=0.5 - ON_ITS_WAY_SECS)
        assert sum(gaps(site)) >= 6 * 0.5 - ON_ITS_WAY_SECS

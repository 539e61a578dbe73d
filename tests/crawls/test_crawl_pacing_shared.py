"""Crawl-delay where a turn is not for one page of one crawl: processes, slots, redirects."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

from harness.crawling import Crawl
from harness.replies import Reply, redirect
from harness.server import Server, Site
from harness.storages import place_of

from scrapy_koster import RobotsUnavailable

OBEY: dict[str, Any] = {"KOSTER_CRAWL_DELAY": "obey"}
EARLY_SECS = 0.01
ON_ITS_WAY_SECS = 0.05


def robots(secs: float, **headers: str) -> Reply:
    return Reply(
        200, f"User-agent: *\nCrawl-delay: {secs:g}\nDisallow: /private\n", headers=headers
    )


def gaps(site: Site) -> list[float]:
    times = sorted(asked.at for asked in site.requests)
    return [later - earlier for earlier, later in pairwise(times)]


async def test_a_turn_lasts_until_its_request_is_sent(
    crawl: Crawl, server: Server, tmp_path: Path
) -> None:
    """It waits in its slot for longer than a gap: another process has had its turn by then."""
    settings = OBEY | place_of("sqlite", tmp_path).settings()
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


async def test_each_hop_of_a_redirect_is_a_visit(crawl: Crawl, server: Server) -> None:
    """The robots.txt of other sites are at a host that asks for a delay."""
    paced = server.site(host="127.0.3.1")
    paced.robots = robots(1)
    others = [server.site(host=f"127.0.3.{n}") for n in range(2, 7)]
    for site in others:
        site.robots = redirect(paced.url("/robots.txt"))
    pages = [site.url("/page") for site in others]
    first = crawl.start(urls=paced.urls(4), settings=OBEY)
    await crawl.until(lambda: paced.pages_asked)
    spider: Any = first.crawler.spider
    for url in pages:
        first.crawler.engine.crawl(spider.ask(url))
    result = await first.result()
    assert sorted(result.fetched) == sorted([*paced.urls(4), *pages])
    assert all(site.asked("/robots.txt") == 1 for site in others)
    assert len(paced.requests) == 1 + 4 + 5
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

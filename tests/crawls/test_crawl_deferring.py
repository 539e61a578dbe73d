"""3.1: visits to a site that cannot be asked are deferred, and hold nobody up."""

from __future__ import annotations

import logging
from collections import Counter
from itertools import pairwise

from harness.crawling import Crawl
from harness.replies import Hang, Reply
from harness.server import Server
from harness.virtual import TIME

from scrapy_koster import RobotsForbidden

QUICK = {
    "KOSTER_DEFER_FIRST_SECS": 0.2,
    "KOSTER_DEFER_MAX_SECS": 1,
    "KOSTER_DEFER_LIMIT_SECS": 1.5,
    "KOSTER_TIMEOUT_SECS": 2,
    "RETRY_ENABLED": False,
    # Scrapy starts so many tasks for the output of each callback.
    "CONCURRENT_ITEMS": 1,
}


# A site that comes back.


async def test_a_site_that_comes_back_is_crawled_whole(crawl: Crawl, server: Server) -> None:
    site = server.site()
    rules = Reply(body="User-agent: *\nDisallow: /no\n")
    site.robots = [Reply(503), Reply(503), Reply(503), rules]
    urls = [*site.urls(50), site.url("/no")]
    settings = QUICK | {"KOSTER_DEFER_MAX_SECS": 5, "KOSTER_DEFER_LIMIT_SECS": 20}
    result = await crawl(urls=urls, settings=settings)
    assert Counter(site.pages_asked) == Counter(f"/page{n}" for n in range(50))
    assert len(result.fetched) == 50
    assert [type(error) for _, error in result.refused] == [RobotsForbidden]
    times = [asked.at for asked in site.requests if asked.path == "/robots.txt"]
    gaps = [later - earlier for earlier, later in pairwise(times)]
    assert len(gaps) == 3
    assert all(gap >= 0.2 * 2**n for n, gap in enumerate(gaps)), gaps
    assert result.stats["koster/deferred/sites"] == 1
    assert result.stats["koster/deferred/requests"] == 51
    assert "koster/deferred/dropped" not in result.stats
    said = result.logged(logging.INFO, "scrapy_koster")
    assert sum(message.startswith("Holding") for message in said) == 1
    assert sum("answers again" in message for message in said) == 1


# Many.


async def test_a_healthy_site_behind_300_that_hang_is_fetched_in_seconds(
    crawl: Crawl, server: Server
) -> None:
    down, healthy = server.site(host="0.0.0.0"), server.site()
    down.robots = Hang()
    urls = [f"http://127.3.{n // 250}.{n % 250 + 1}:{down.port}/page" for n in range(300)]
    urls += [f"http://no..host{n}/page" for n in range(150)]  # whose fetches end as they begin
    began = TIME.now()
    running = crawl.start(urls=[*urls, healthy.url("/page")])
    await crawl.until(lambda: healthy.pages_asked)
    assert TIME.now() - began <= 300 / 16 + 1  # CONCURRENT_REQUESTS begin in each second
    await running.stop()

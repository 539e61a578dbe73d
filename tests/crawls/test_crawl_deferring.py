"""3.1: visits to a site that cannot be asked are deferred, and hold nobody up."""

from __future__ import annotations

import logging
import os
import re
from collections import Counter
from itertools import pairwise
from typing import Any

import pytest
from harness.crawling import Crawl
from harness.replies import Hang, Raw, Reply, Reset, truncated
from harness.server import Server
from harness.virtual import TIME

from scrapy_koster import RobotsForbidden, RobotsUnavailable

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


async def test_a_site_that_does_not_come_back_is_given_up(crawl: Crawl, server: Server) -> None:
    site = server.site()
    site.robots = Reply(503)
    result = await crawl(urls=site.urls(20), settings=QUICK)
    assert site.pages_asked == []
    assert [type(error) for _, error in result.refused] == [RobotsUnavailable] * 20
    assert "HTTP 503" in str(result.refused[0][1])
    assert result.stats["koster/deferred/dropped"] == 20
    assert result.stats["koster/forbidden/unavailable"] == 20
    assert result.seconds >= 1.4
    assert (
        site.asked("/robots.txt") <= 5
    )  # after 0, 0.2, 0.6, 1.4 s at the earliest, and at the limit
    said = result.logged(logging.INFO, "scrapy_koster")
    assert sum(message.startswith("Giving up") for message in said) == 1


CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n10\r\nUser-agent"


@pytest.mark.parametrize(
    "reply",
    [truncated("User-agent: *"), Raw(200, CHUNKED), Raw(200, b"SSH-2.0\r\n"), Raw(), Reset()],
    ids=["truncated", "chunked", "garbage", "closed", "reset"],
)
async def test_a_lost_connection_is_given_as_the_reason(
    crawl: Crawl, server: Server, reply: Reply
) -> None:
    site = server.site()
    site.robots = reply
    result = await crawl(urls=site.urls(1), settings=QUICK | {"KOSTER_DEFER_LIMIT_SECS": 0})
    [(_, error)] = result.refused
    assert re.search(r"in 1 attempt \(\w+: \S", str(error)), str(error)
    assert not re.search("<|twisted|cleanly", str(error)), str(error)


HOSTS = int(os.environ.get("HANGING_HOSTS", "1500"))
"""10,000 take two minutes."""


@pytest.mark.long
@pytest.mark.bound(300)
async def test_thousands_of_hosts_that_hang_are_all_given_up(crawl: Crawl, server: Server) -> None:
    """At a 60th of the default times. One port, on every address of 127/8."""
    site = server.site(host="0.0.0.0")
    site.robots = Hang()
    urls = [f"http://127.2.{n // 250}.{n % 250 + 1}:{site.port}/page" for n in range(HOSTS)]
    settings = {
        "KOSTER_TIMEOUT_SECS": 30 / 60,
        "KOSTER_DEFER_FIRST_SECS": 10 / 60,
        "KOSTER_DEFER_MAX_SECS": 600 / 60,
        "KOSTER_DEFER_LIMIT_SECS": 300 / 60,
        "LOG_LEVEL": "WARNING",
    }
    result = await crawl(urls=urls, settings=settings)
    assert Counter(url for url, _ in result.refused) == Counter(urls)
    assert {type(error) for _, error in result.refused} == {RobotsUnavailable}
    assert site.pages_asked == []


# Many.


async def test_a_healthy_site_behind_300_that_hang_is_fetched_in_seconds(
    crawl: Crawl, server: Server
) -> None:
    down, healthy = server.site(host="0.0.0.0"), server.site()
    down.robots = Hang()
    urls = [f"http://127.3.{n // 250}.{n % 250 + 1}:{down.port}/page" for n in range(300)]
    began = TIME.now()
    running = crawl.start(urls=[*urls, healthy.url("/page")])
    await crawl.until(lambda: healthy.pages_asked)
    assert TIME.now() - began <= 300 / 16 + 1  # CONCURRENT_REQUESTS begin in each second
    await running.stop()


async def test_a_site_that_answers_in_a_pause_is_fetched_from_after_it(
    crawl: Crawl, server: Server
) -> None:
    failing = server.site()
    failing.robots = Reply(503)
    running = crawl.start(urls=failing.urls(5), settings=QUICK | {"KOSTER_DEFER_LIMIT_SECS": 6})
    await crawl.until(lambda: failing.asked("/robots.txt") == 2, seconds=10)
    engine: Any = running.crawler.engine
    engine.pause()
    failing.robots = Reply(404)
    await crawl.sleep(12)
    assert failing.pages_asked == []
    engine.unpause()
    result = await running.result()
    assert len(result.fetched) == 5

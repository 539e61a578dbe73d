"""A long queue of sites that do not answer: few are asked at a time, and none keeps the others."""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import Any

import pytest
from harness.crawling import Crawl
from harness.replies import Hang, Reply
from harness.server import Server, Site
from harness.virtual import TIME
from scrapy import Request
from scrapy.core.scheduler import Scheduler
from scrapy.crawler import Crawler

from scrapy_koster.crawl.assembly import Parts, assembly_of
from scrapy_koster.crawl.fetching.lookahead import LookaheadLimit

pytestmark = pytest.mark.crawl

FIRST, WAITING = 3, 5
PLACES, SECS = 4, 0.3


class Few:
    """An extension, of which the objects of a crawl are built with small limits."""

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Few:
        assembly_of(
            crawler,
            Parts(lookahead=partial(LookaheadLimit, young=FIRST, waiting=WAITING, sockets=100)),
        )
        return cls()


class OfAFew:
    """An extension: as many sites are asked ahead as pages take places, twice over."""

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> OfAFew:
        assembly_of(
            crawler,
            Parts(lookahead=partial(LookaheadLimit, young=2 * PLACES, waiting=1000, sockets=100)),
        )
        return cls()


class Watching(Scheduler):
    """Notes for how many sites requests wait when it hands one out."""

    most = 0

    def next_request(self) -> Request | None:
        assert self.crawler is not None
        queues = assembly_of(self.crawler).parked._all.values()
        waiting = sum(not queue.is_open for queue in queues)
        type(self).most = max(self.most, waiting)
        return super().next_request()


@pytest.fixture
def few() -> dict[str, Any]:
    return {
        "EXTENSIONS": {Few: 0},
        "KOSTER_FALLBACK_SCHEDULER": type("Watched", (Watching,), {}),
        "KOSTER_DEFER_FIRST_SECS": 1,
        "KOSTER_DEFER_LIMIT_SECS": 3,
    }


def hosts(server: Server, count: int, robots: Any) -> list[Site]:
    sites = [server.site(host=f"127.3.0.{n + 1}") for n in range(count)]
    for site in sites:
        site.robots = robots
    return sites


async def test_in_an_outage_the_rest_of_the_queue_stays_where_it_is(
    crawl: Crawl, server: Server, few: dict[str, Any]
) -> None:
    down, healthy = hosts(server, 4 * WAITING, Reply(503)), server.site()
    urls = [site.url("/page") for site in down]
    result = await crawl(urls=[*urls, healthy.url("/page")], settings=few)
    assert Counter(url for url, _ in result.refused) == Counter(urls)
    assert healthy.pages_asked == ["/page"]
    assert few["KOSTER_FALLBACK_SCHEDULER"].most < WAITING


async def test_a_page_has_its_turn_however_many_sites_open(crawl: Crawl, server: Server) -> None:
    """Some page of the others is always ready."""
    others, paced = hosts(server, 20 * PLACES, Reply(404, delay=SECS)), server.site()
    for site in others:
        site.page("/page", Reply(delay=SECS))
    paced.robots = "User-agent: *\nCrawl-delay: 0.5\n"
    first = [Request(url, priority=1) for url in paced.urls(5)]
    urls = [*first, *(site.url("/page") for site in others)]
    settings = {
        "EXTENSIONS": {OfAFew: 0},
        # By default the order of the hosts comes before that of the priorities.
        "SCHEDULER_PRIORITY_QUEUE": "scrapy.pqueues.ScrapyPriorityQueue",
        "CONCURRENT_REQUESTS": PLACES,
        "KOSTER_CRAWL_DELAY": "obey",
    }
    began = TIME.now()
    await crawl(urls=urls, settings=settings)
    assert len(paced.pages_asked) == 5
    # The last of others is asked for when some 6 seconds have passed.
    assert paced.requests[-1].at - began < 5 * 0.5 + 1.0


@pytest.mark.promise("docs/access.md", "New sites go before sites that failed")
async def test_300_hanging_sites_delay_a_healthy_one_by_3_seconds(
    crawl: Crawl, server: Server
) -> None:
    down, healthy = server.site(host="0.0.0.0"), server.site()
    down.robots = Hang()
    urls = [f"http://127.3.{n // 250}.{n % 250 + 1}:{down.port}/page" for n in range(300)]
    began = TIME.now()
    running = crawl.start(urls=[*urls, healthy.url("/page")])
    await crawl.until(lambda: healthy.pages_asked)
    assert TIME.now() - began <= 3
    await running.stop()

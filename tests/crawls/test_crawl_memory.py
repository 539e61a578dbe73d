"""Crawls of more sites than the memory has room for go on, and fetch each robots.txt once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest
from harness.crawling import Crawl, RecordingSpider
from harness.replies import Asked, Reply
from harness.server import Server
from scrapy.http import Response

SITES = 120
ROOM_BYTES = SITES // 3 * 5_000
STORAGES = {
    "memory": "scrapy_koster.storage.memory.MemoryStorage",
    "sqlite": "scrapy_koster.storage.sqlite.SQLiteStorage",
}


def robots(asked: Asked) -> Reply:
    """Each site has a file of its own, which comes after 0.2 s."""
    body = f"User-agent: *\nDisallow: /no\n# {asked.header('Host')}\n"
    return Reply(body=body, delay=0.2)


class Hub(RecordingSpider):
    """The first page links to all sites, and each of them has two pages and a forbidden one."""

    hosts: Sequence[str] = ()

    def page(self, response: Response) -> Any:
        if response.url == self.urls[0]:
            for path in ("/1", "/2", "/no"):
                yield from (self.ask(f"http://{host}{path}") for host in self.hosts)


@pytest.mark.parametrize(
    "delay", [False, pytest.param(True, marks=pytest.mark.long)], ids=["", "Crawl-delay"]
)
@pytest.mark.parametrize("storage", ["memory", pytest.param("sqlite", marks=pytest.mark.long)])
async def test_more_sites_than_room_are_crawled_and_fetched_from_once(
    crawl: Crawl, server: Server, storage: str, delay: bool
) -> None:
    hub, all_sites = server.site(), server.site(host="0.0.0.0")
    hosts = [f"127.4.{n // 200}.{n % 200 + 1}:{all_sites.port}" for n in range(SITES)]
    all_sites.robots = robots
    if delay:
        all_sites.robots = lambda asked: Reply(
            body=f"User-agent: *\nCrawl-delay: 2\nDisallow: /no\n# {asked.header('Host')}\n"
        )
    settings = {
        "KOSTER_STORAGE": STORAGES[storage],
        "KOSTER_MEMORY_BYTES": ROOM_BYTES,
        "KOSTER_CRAWL_DELAY": "obey",
        "LOG_LEVEL": "INFO",
    }
    result = await crawl(Hub, urls=[hub.url("/")], arguments={"hosts": hosts}, settings=settings)
    assert len(result.fetched) == 1 + 2 * SITES
    assert len(result.refused) == SITES
    asked = Counter(each.header("Host") for each in all_sites.requests if "robots" in each.path)
    assert asked == dict.fromkeys(hosts, 1)
    assert result.logged(20, "scrapy_koster")[-1].startswith(
        f"Sites: {SITES} with a robots.txt, 1 "
    )

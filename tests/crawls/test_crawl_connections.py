"""A site sees one connection where Scrapy opens one: its first page comes over that of robots.txt.

With Scrapy's default handlers: that of Twisted where there is a reactor, else that of aiohttp.
"""

from __future__ import annotations

import pytest
from harness.crawling import Crawl
from harness.handlers import loaded
from harness.server import Server

RULES = "User-agent: *\nDisallow: /secret\n"


@pytest.fixture(params=["http11.HTTP11", "_aiohttp.Aiohttp"], autouse=True)
def handler(request: pytest.FixtureRequest, crawl: Crawl) -> None:
    crawl.always["DOWNLOAD_HANDLERS"] = dict.fromkeys(("http", "https"), loaded(request.param))


@pytest.mark.parametrize("scheme", ["http", "https"])
async def test_one_connection_a_site(crawl: Crawl, server: Server, scheme: str) -> None:
    sites = [server.site(scheme) for _ in range(5)]
    for site in sites:
        site.robots = RULES
    result = await crawl(urls=[site.url("/page") for site in sites])
    assert len(result.fetched) == 5
    assert [site.connections for site in sites] == [1] * 5

"""A site sees one connection where Scrapy opens one: its first page comes over that of robots.txt.

With Scrapy's default handlers: that of Twisted where there is a reactor, else that of aiohttp.
"""

from __future__ import annotations

import pytest
from harness.crawling import Crawl
from harness.handlers import loaded
from harness.replies import Raw, redirect
from harness.server import Server

RULES = "User-agent: *\nDisallow: /secret\n"
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s"


@pytest.fixture(params=["http11.HTTP11", "_aiohttp.Aiohttp"], autouse=True)
def handler(request: pytest.FixtureRequest, crawl: Crawl) -> None:
    crawl.always["DOWNLOAD_HANDLERS"] = dict.fromkeys(("http", "https"), loaded(request.param))


@pytest.mark.promise("docs/access.md", "the first page of the site uses the same connection")
@pytest.mark.parametrize("scheme", ["http", "https"])
async def test_one_connection_a_site(crawl: Crawl, server: Server, scheme: str) -> None:
    sites = [server.site(scheme) for _ in range(5)]
    for site in sites:
        site.robots = RULES
    result = await crawl(urls=[site.url("/page") for site in sites])
    assert len(result.fetched) == 5
    assert [site.connections for site in sites] == [1] * 5


async def test_a_site_that_closes_the_connection(crawl: Crawl, server: Server) -> None:
    site = server.site()
    body = RULES.encode()
    site.robots = Raw(ANSWER % (len(body), body))
    result = await crawl(urls=[site.url("/page")])
    assert len(result.fetched) == 1
    assert site.pages_asked == ["/page"]
    assert site.connections == 2


async def test_a_redirect_to_another_site(crawl: Crawl, server: Server) -> None:
    site, other = server.site(), server.site()
    site.robots, other.robots = redirect(other.url("/robots.txt")), RULES
    result = await crawl(urls=[site.url("/page"), other.url("/page")])
    assert len(result.fetched) == 2
    assert site.connections == 1
    assert other.connections <= 2  # it is asked for its own robots.txt as well, maybe at once

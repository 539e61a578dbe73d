"""What has changed between the decision and the moment when a request is sent."""

from __future__ import annotations

from typing import Any

import pytest
from harness.crawling import IN_PLACE, Crawl
from harness.replies import Reply
from harness.server import Server, Site
from scrapy import Request
from scrapy.core.downloader import Downloader


@pytest.fixture
def site(server: Server) -> Site:
    return server.site()


class Late:
    """A downloader middleware that names another host once the request has been decided on."""

    def process_request(self, request: Request) -> None:
        if "late" in request.url:
            request.headers["Host"] = "b.example"


# The Downloader.


class Counting(Downloader):
    """A Downloader of the user's own."""

    fetched = 0

    def fetch(self, request: Request, spider: Any = None) -> Any:
        Counting.fetched += 1
        return super().fetch(request)


async def test_the_users_downloader_downloads_and_checks(crawl: Crawl, site: Site) -> None:
    settings = {"DOWNLOADER": Counting, "DOWNLOADER_MIDDLEWARES": {Late: 900}}
    result = await crawl(urls=[site.url("/x"), site.url("/late")], settings=settings)
    assert isinstance(result.crawler.engine.downloader, Counting)
    assert Counting.fetched == 2
    assert site.pages_asked == ["/x"]
    assert site.asked("/robots.txt") == 1


@pytest.mark.parametrize("downloader", [{}, {"DOWNLOADER": "scrapy_koster.RobotsDownloader"}])
async def test_without_the_addon_the_robots_txt_is_obeyed(
    crawl: Crawl, site: Site, downloader: dict[str, Any]
) -> None:
    """A robots.txt takes no place, and each request is decided before it gets to its slot.

    Delays are not kept, which is said.
    """
    site.robots = Reply(200, "User-agent: *\nDisallow: /no\nCrawl-delay: 9\n", delay=0.5)
    settings = {**IN_PLACE, **downloader, "KOSTER_CRAWL_DELAY": "obey", "CONCURRENT_REQUESTS": 2}
    urls = [site.url(path) for path in ("/x", "/no", "/y", "/no/2")]
    result = await crawl(urls=urls, robots=None, settings=settings)
    assert sorted(site.pages_asked) == ["/x", "/y"]
    assert len(result.refused) == 2
    assert any("KOSTER_CRAWL_DELAY" in line for line in result.warnings)

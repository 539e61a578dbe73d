"""What has changed between the decision and the moment when a request is sent."""

from __future__ import annotations

from typing import Any

import pytest
from harness.crawling import IN_PLACE, Crawl
from harness.replies import Reply
from harness.server import Server, Site
from scrapy import Request
from scrapy.core.downloader import Downloader

from scrapy_koster import RobotsForbidden, RobotsUnavailable


@pytest.fixture
def site(server: Server) -> Site:
    return server.site()


class Late:
    """A downloader middleware that names another host once the request has been decided on."""

    def process_request(self, request: Request) -> None:
        if "late" in request.url:
            request.headers["Host"] = "b.example"


@pytest.mark.parametrize("path", ["/x", "/late"])
async def test_a_host_header_of_another_site_is_refused_with_advice(
    crawl: Crawl, site: Site, path: str
) -> None:
    """The request has it, or a later middleware sets it."""
    named = Request(site.url(path), headers={} if path == "/late" else {"Host": "b.example"})
    settings = {"DOWNLOADER_MIDDLEWARES": {Late: 900}, "KOSTER_UNAVAILABLE": "allow"}
    result = await crawl(urls=[named, site.url("/y")], settings=settings)
    assert site.pages_asked == ["/y"]
    assert result.errors == {named.url: RobotsUnavailable}
    assert "put that name into the URL" in str(result.refused[0][1])


class Sibling:
    """A downloader middleware that changes URLs, once they have been decided on."""

    to = ""

    def process_request(self, request: Request) -> None:
        if "late" in request.url:
            request._set_url(self.to + request.url.rpartition("/")[2])


@pytest.mark.parametrize("delay", ["", "Crawl-delay: 0.3\n"])
async def test_a_url_that_a_middleware_has_set_is_decided_by_its_own_site(
    crawl: Crawl, server: Server, delay: str
) -> None:
    """The other site has the same host, so it waits for the same delay."""
    site, other = server.site(), server.site()
    site.robots = f"User-agent: *\n{delay}Disallow: /no\n"
    other.robots = f"User-agent: *\n{delay}Disallow: /late1\n"
    middleware = type("To", (Sibling,), {"to": other.url("/")})
    settings = {"DOWNLOADER_MIDDLEWARES": {middleware: 900}, "KOSTER_CRAWL_DELAY": "obey"}
    urls = [site.url(path) for path in ("/a", "/late1", "/late2", "/b")]
    result = await crawl(urls=urls, settings=settings)
    assert sorted(site.pages_asked) == ["/a", "/b"]
    assert other.pages_asked == ["/late2"]
    assert other.asked("/robots.txt") == 1
    assert [type(error) for _, error in result.refused] == [RobotsForbidden]


async def test_a_new_file_decides_while_pages_wait_in_their_slot(crawl: Crawl, site: Site) -> None:
    first = Reply(200, "User-agent: *\nDisallow:\n", headers={"Cache-Control": "max-age=2"})
    site.robots = [first, "User-agent: *\nDisallow: /\n"]
    settings = {"DOWNLOAD_DELAY": 0.5, "CONCURRENT_REQUESTS": 6, "KOSTER_EXPIRY_MIN_SECS": 0}
    result = await crawl(urls=site.urls(12), settings=settings)
    asked = [request.path for request in site.requests]
    renewed = len(asked) - 1 - asked[::-1].index("/robots.txt")
    assert renewed > 0
    assert len(asked) - 1 - renewed <= 1  # one may be under way
    assert set(result.errors.values()) == {RobotsForbidden}
    assert len(result.refused) == 12 - len(site.pages_asked)


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

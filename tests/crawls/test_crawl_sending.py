"""What has changed between the decision and the moment when a request is sent."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urljoin

import pytest
from harness.crawling import STEADY_SLOT, Crawl, RecordingSpider
from harness.replies import Reply
from harness.server import Server, Site
from scrapy import Request
from scrapy.core.downloader import Downloader
from scrapy.http import Response

from scrapy_koster import KosterMiddleware, RobotsForbidden, RobotsUnavailable

CLOSED = "User-agent: *\nDisallow: /\n"
NAMES = {"another host": "b.example", "a port": "127.0.0.1:1", "no host": "a b@c:x", "none": ""}


@pytest.fixture
def site(server: Server) -> Site:
    return server.site()


async def test_pages_that_wait_for_their_slot_obey_the_new_file(crawl: Crawl, site: Site) -> None:
    """They were decided on with the first 16, by the file that is no longer the site's."""
    first = Reply(200, "User-agent: *\nDisallow:\n", headers={"Cache-Control": "max-age=2"})
    site.robots = [first, Reply(200, CLOSED, headers={"Cache-Control": "max-age=1000"})]
    settings = {
        "DOWNLOAD_DELAY": 1,
        "CONCURRENT_REQUESTS": 16,
        "KOSTER_EXPIRY_MIN_SECS": 0,
    }
    result = await crawl(urls=site.urls(30), settings=settings)
    asked = [request.path for request in site.requests]
    renewed = len(asked) - 1 - asked[::-1].index("/robots.txt")
    assert len(asked) - 1 - renewed <= 1  # one may be under way
    assert len(result.refused) == 30 - len(site.pages_asked)
    assert {type(error) for _, error in result.refused} == {RobotsForbidden}
    assert result.stats["robotstxt/forbidden"] == len(result.refused)
    [line] = {verdict.rule.number for verdict in result.verdicts if verdict.rule}
    assert line == 2


class Meeting(RecordingSpider):
    """Meets its first site again after a while, and another one then."""

    last = ""

    def page(self, response: Response) -> Iterator[Request]:
        if response.url.endswith("/slow"):
            yield self.ask(urljoin(str(self.urls[0]), "/late"))

    def fail(self, failure: Any) -> Iterator[Request]:
        super().fail(failure)
        if failure.request.url.endswith("/late"):
            yield self.ask(self.last)


async def test_the_site_of_a_page_that_waits_for_its_slot_stays_in_memory(
    crawl: Crawl, server: Server, site: Site
) -> None:
    first = Reply(200, "User-agent: *\nDisallow:\n", headers={"Cache-Control": "max-age=2"})
    site.robots = [first, Reply(200, CLOSED, headers={"Cache-Control": "max-age=1000"})]
    other, last = (server.site(host="localhost") for _ in range(2))
    other.pages(Reply(200, delay=2.5))
    settings = {
        "DOWNLOAD_SLOTS": {"127.0.0.1": {"concurrency": 1, "delay": 1} | STEADY_SLOT},
        "KOSTER_EXPIRY_MIN_SECS": 0,
        "KOSTER_MEMORY_SITES": 1,
    }
    result = await crawl(
        Meeting,
        urls=[*site.urls(6), other.url("/slow")],
        settings=settings,
        arguments={"last": last.url("/x")},
    )
    assert site.asked("/robots.txt") == 2
    assert last.pages_asked == ["/x"]
    assert len(site.pages_asked) <= 4
    assert len(result.refused) == 7 - len(site.pages_asked)


class Late:
    """A downloader middleware that names another host once the request has been decided on."""

    def process_request(self, request: Request) -> None:
        if "late" in request.url:
            request.headers["Host"] = "b.example"


ALONE: dict[str, Any] = {"ROBOTSTXT_OBEY": True, "DOWNLOADER_MIDDLEWARES": {KosterMiddleware: 100}}
"""Without the add-on, and so with Scrapy's Downloader."""


@pytest.mark.parametrize("robots", ["koster", None])
@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
async def test_a_host_header_that_names_another_site(
    crawl: Crawl, site: Site, name: str, robots: Any
) -> None:
    settings = {} if robots else ALONE
    headers = {"Host": name}
    result = await crawl(urls=[site.url("/x")], headers=headers, robots=robots, settings=settings)
    assert site.pages_asked == []
    [(_, error)] = result.refused
    assert isinstance(error, RobotsUnavailable)
    assert f"the Host header of the request names {name}" in str(error)


@pytest.mark.parametrize("spelt", [str, str.upper])
async def test_a_host_header_that_names_the_same(
    crawl: Crawl, server: Server, spelt: Callable[[str], str]
) -> None:
    site = server.site(host="localhost")
    headers = {"Host": spelt(site.url()[7:].strip("/"))}
    result = await crawl(urls=[site.url("/x")], headers=headers)
    assert result.fetched == (site.url("/x"),)


async def test_a_host_header_of_a_later_middleware(crawl: Crawl, site: Site) -> None:
    settings = {"DOWNLOADER_MIDDLEWARES": {Late: 900}}
    result = await crawl(urls=[site.url("/x"), site.url("/late")], settings=settings)
    assert site.pages_asked == ["/x"]
    assert [url for url, _ in result.refused] == [site.url("/late")]


async def test_who_may_need_not_name_the_same(crawl: Crawl, site: Site) -> None:
    meta = {"dont_obey_robotstxt": True}
    result = await crawl(urls=[site.url("/x")], headers={"Host": "b.example"}, meta=meta)
    assert result.fetched == (site.url("/x"),)


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


@pytest.mark.parametrize("downloader", [None, "scrapy_koster.RobotsDownloader"])
async def test_without_the_addon_the_robots_txt_is_obeyed(
    crawl: Crawl, site: Site, downloader: str | None
) -> None:
    """A robots.txt takes no place, and each request is decided before it gets to its slot."""
    site.robots = Reply(200, "User-agent: *\nDisallow: /no", delay=0.5)
    settings = ALONE | {"DOWNLOADER": downloader} if downloader else ALONE
    urls = [site.url(path) for path in ("/x", "/no", "/y", "/no/2")]
    result = await crawl(
        urls=urls, robots=None, settings={**settings, "CONCURRENT_REQUESTS": 2, "DOWNLOAD_DELAY": 0}
    )
    assert sorted(site.pages_asked) == ["/x", "/y"]
    assert len(result.refused) == 2

"""Download handlers that follow redirects by themselves, as a browser does."""

from __future__ import annotations

import logging
from typing import Any, ClassVar

import pytest
from harness.crawling import Crawl, CrawlResult, RecordingSpider
from harness.replies import Reply, redirect
from harness.server import Server, Site
from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.utils.misc import build_from_crawler, load_object

from scrapy_koster import KosterMiddleware, RobotsForbidden, RobotsUnavailable


class Following:
    """Sends as the crawl's own handler does, and follows."""

    lazy = False

    def __init__(self, crawler: Crawler) -> None:
        path = crawler.settings["DOWNLOAD_HANDLERS_BASE"]["http"]
        self._handler = build_from_crawler(load_object(path), crawler)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Any:
        return cls(crawler)

    async def download_request(self, request: Request) -> Any:
        response = await self._handler.download_request(request)
        if b"Location" not in response.headers:
            return response
        return await self.download_request(
            request.replace(url=response.urljoin(response.headers["Location"].decode()))
        )

    async def close(self) -> None:
        await self._handler.close()


@pytest.fixture
def site(server: Server) -> Site:
    site = server.site()
    site.robots = "User-agent: *\nDisallow: /private"
    return site


async def ended(crawl: Crawl, *urls: str, **arguments: Any) -> CrawlResult:
    settings = {"DOWNLOAD_HANDLERS": {"http": Following}, "CONCURRENT_REQUESTS": 1}
    settings.update(arguments.pop("settings", {}))
    spider = arguments.pop("spider", RecordingSpider)
    return await crawl(spider, urls=urls, settings=settings, **arguments)


def warnings(result: CrawlResult) -> list[str]:
    return result.logged(logging.WARNING, "scrapy_koster")


@pytest.mark.promise("docs/recipes.md", "a browser that ends at a forbidden page")
async def test_a_page_that_ends_where_it_is_forbidden(crawl: Crawl, site: Site) -> None:
    """It has been fetched, which is told once, and does not reach the callback."""
    for number in range(3):
        site.page(f"/moved{number}", redirect(site.url(f"/private/{number}")))
    result = await ended(crawl, *site.urls(3, "/moved{}"), site.url("/open"))
    assert result.fetched == (site.url("/open"),)
    assert sorted(url for url, _ in result.refused) == site.urls(3, "/moved{}")
    assert sorted(verdict.url for verdict in result.verdicts) == site.urls(3, "/private/{}")
    assert {verdict.rule.number for verdict in result.verdicts if verdict.rule} == {2}
    assert result.stats["robotstxt/forbidden"] == 3
    [told] = warnings(result)
    assert told.startswith(
        tuple(
            f"<GET {site.url(f'/moved{n}')}> ended at {site.url(f'/private/{n}')}, which its"
            " robots.txt"
            for n in range(3)
        )
    )


async def test_a_page_that_ends_at_a_site_that_was_not_asked(
    crawl: Crawl, site: Site, server: Server
) -> None:
    """It is asked then."""
    other = server.site(host="127.0.0.2")
    other.robots = "User-agent: *\nDisallow: /private"
    site.page("/moved", redirect(other.url("/page")))
    site.page("/away", redirect(other.url("/private")))
    result = await ended(crawl, site.url("/moved"), site.url("/away"))
    assert result.fetched == (other.url("/page"),)
    assert [verdict.url for verdict in result.verdicts] == [other.url("/private")]
    assert other.asked("/robots.txt") == 1
    assert len(warnings(result)) == 1


async def test_a_page_that_ends_at_a_site_that_cannot_be_asked(
    crawl: Crawl, site: Site, server: Server
) -> None:
    other = server.site(host="127.0.0.2")
    other.robots = Reply(503)
    site.page("/moved", redirect(other.url("/page")))
    result = await ended(crawl, site.url("/moved"), settings={"KOSTER_IDLE_LIMIT_SECS": 0.2})
    assert result.fetched == ()
    assert isinstance(result.refused[0][1], RobotsUnavailable)


@pytest.mark.parametrize("path", ["/open", "/robots.txt"])
async def test_a_page_that_ends_where_it_is_allowed(crawl: Crawl, site: Site, path: str) -> None:
    site.page("/moved", redirect(site.url(path)))
    result = await ended(crawl, site.url("/moved"))
    assert result.fetched == (site.url(path),)
    assert warnings(result) == []


class Heading(KosterMiddleware):
    def process_response(self, request: Request, response: Any) -> Any:
        response.headers.appendlist("X-Own", response.url)
        return response


class HeadingLater(KosterMiddleware):
    async def process_response(self, request: Request, response: Any) -> Any:
        response.headers.appendlist("X-Own", response.url)
        return response


class Seeing(RecordingSpider):
    own: ClassVar[list[bytes]] = []

    def page(self, response: Any) -> Any:
        self.own.extend(response.headers.getlist("X-Own"))


@pytest.mark.parametrize("handlers", [{"http": Following}, {}], ids=["following", "Scrapy's"])
@pytest.mark.parametrize("kind", [Heading, HeadingLater])
async def test_a_process_response_of_a_subclass_runs_too(
    crawl: Crawl, site: Site, kind: type[KosterMiddleware], handlers: dict[str, Any]
) -> None:
    site.page("/moved", redirect(site.url("/private/1")))
    Seeing.own.clear()
    result = await ended(
        crawl,
        site.url("/open"),
        site.url("/moved"),
        spider=Seeing,
        settings={
            "DOWNLOADER_MIDDLEWARES": {KosterMiddleware: None, kind: 100},
            "DOWNLOAD_HANDLERS": handlers,
        },
    )
    assert Seeing.own == [site.url("/open").encode()]
    [(url, error)] = result.refused
    assert isinstance(error, RobotsForbidden)
    assert error.verdict.url == site.url("/private/1")
    assert url == (site.url("/moved") if handlers else site.url("/private/1"))

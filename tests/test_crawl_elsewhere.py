"""Download handlers that follow redirects by themselves, as a browser does."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from crawling import Crawl, CrawlResult
from replies import redirect
from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.utils.misc import build_from_crawler, load_object
from server import Server, Site


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


async def warnings(crawl: Crawl, *urls: str, **arguments: Any) -> list[str]:
    settings = {"DOWNLOAD_HANDLERS": {"http": Following}, "CONCURRENT_REQUESTS": 1}
    result: CrawlResult = await crawl(urls=urls, settings=settings, **arguments)
    assert len(result.fetched) == len(urls)
    return result.logged(logging.WARNING, "scrapy_koster")


async def test_a_page_that_ends_where_it_is_forbidden(crawl: Crawl, site: Site) -> None:
    """It is told, once."""
    for number in range(3):
        site.page(f"/moved{number}", redirect(site.url(f"/private/{number}")))
    [told] = await warnings(crawl, *site.urls(3, "/moved{}"))
    assert told.startswith(
        f"<GET {site.url('/moved0')}> has ended at {site.url('/private/0')}, which no robots.txt"
    )


async def test_a_page_that_ends_at_a_site_that_was_not_asked(
    crawl: Crawl, site: Site, server: Server
) -> None:
    other = server.site(host="127.0.0.2")
    site.page("/moved", redirect(other.url("/page")))
    [told] = await warnings(crawl, site.url("/moved"))
    assert other.url("/page") in told


async def test_a_page_that_ends_where_it_is_allowed(crawl: Crawl, site: Site) -> None:
    site.page("/moved", redirect(site.url("/open")))
    assert await warnings(crawl, site.url("/moved")) == []


async def test_a_page_that_is_exempt(crawl: Crawl, site: Site) -> None:
    site.page("/moved", redirect(site.url("/private")))
    assert await warnings(crawl, site.url("/moved"), meta={"dont_obey_robotstxt": True}) == []

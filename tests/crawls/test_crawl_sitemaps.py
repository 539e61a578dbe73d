"""Sitemaps out of the copy of a robots.txt that is obeyed, and a SitemapSpider that uses them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from harness.crawling import Crawl, RecordingSpider
from harness.replies import Reply
from harness.server import Server, Site
from scrapy.http import Response
from scrapy.spiders import SitemapSpider
from scrapy.utils.defer import deferred_from_coro, maybe_deferred_to_future
from twisted.internet.defer import DeferredList

from scrapy_koster import KosterMiddleware, RobotsSitemapMixin, RobotsUnavailable

XML = {"Content-Type": "text/xml"}


def sitemap(*urls: str) -> Reply:
    entries = "".join(f"<url><loc>{url}</loc></url>" for url in urls)
    name = "http://www.sitemaps.org/schemas/sitemap/0.9"
    return Reply(200, f'<urlset xmlns="{name}">{entries}</urlset>', headers=XML)


def mapped(server: Server, more: str = "") -> Site:
    """A site with two sitemaps of two pages, one of them forbidden."""
    site = server.site()
    site.robots = (
        f"Sitemap: {site.url('/a.xml')}\nUser-agent: *\nDisallow: /private\nSitemap: /b.xml\n"
        f"Sitemap: {site.url('/a.xml')}\n{more}"
    )
    site.page("/a.xml", sitemap(site.url("/1"), site.url("/private")))
    site.page("/b.xml", sitemap(site.url("/2")))
    return site


class Ours(RobotsSitemapMixin, SitemapSpider):
    name = "ours"

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.fetched: list[str] = []

    def parse(self, response: Response) -> None:
        self.fetched.append(response.url)


async def test_sitemaps_of_other_hosts(crawl: Crawl, server: Server) -> None:
    site, inside = server.site(), server.site(host="127.0.0.2")
    site.robots = f"Sitemap: {inside.url('/a.xml')}\n"
    arguments: dict[str, Any] = {"sitemap_urls": [site.url("/robots.txt")]}
    await crawl(Ours, arguments={**arguments, "allowed_domains": ["127.0.0.1"]})
    assert inside.requests == ()
    await crawl(Ours, arguments=arguments)
    assert inside.pages_asked == ["/a.xml"]


class Asking(RecordingSpider):
    """Keeps what the middleware returns for its URLs, or the type of the error."""

    async def start(self) -> AsyncIterator[Any]:
        middleware: Any = self.crawler.get_downloader_middleware(KosterMiddleware)
        asked = [deferred_from_coro(middleware.sitemaps(str(url))) for url in self.urls]
        found: Any = await maybe_deferred_to_future(DeferredList(asked, consumeErrors=True))
        self.found = [each if is_found else each.type for is_found, each in found]
        for url in self.start_urls:
            yield self.ask(url)


async def test_what_is_returned(crawl: Crawl, server: Server) -> None:
    wrong = "Sitemap: data:,x\nSitemap: http://[\nSitemap:\nSitemap: /robots.txt\n"
    site, failing, elsewhere = mapped(server, wrong), server.site(), server.site()
    failing.robots = Reply(503)
    elsewhere.robots = Reply(301, headers={"Location": site.url("/robots.txt")})
    urls = [site.url("/any/page"), site.url("/"), elsewhere.url("/"), server.site().url("/")]
    urls += [failing.url("/"), "data:,a"]
    result = await crawl(Asking, urls=urls, settings={"KOSTER_DEFER_LIMIT_SECS": 0})
    maps = [site.url("/a.xml"), site.url("/b.xml")]
    found = vars(result.crawler.spider)["found"]
    assert found == [maps, maps, maps, [], RobotsUnavailable, ValueError]
    assert site.asked("/robots.txt") == 2  # once as the target of a redirect


async def test_of_many_sites_at_once_without_room_for_one(crawl: Crawl, server: Server) -> None:
    sites = [server.site(host=f"127.0.1.{n}") for n in range(1, 60)]
    for site in sites:
        site.robots = Reply(200, "Sitemap: /a.xml\n", delay=0.1)
    settings = {"KOSTER_MEMORY_BYTES": 1}
    result = await crawl(Asking, urls=[site.url("/") for site in sites], settings=settings)
    assert vars(result.crawler.spider)["found"] == [[site.url("/a.xml")] for site in sites]
    assert all(site.asked("/robots.txt") == 1 for site in sites)


class Wrong(RobotsSitemapMixin, SitemapSpider):
    name = "wrong"
    sitemap_urls = ("ftp://example.com/robots.txt",)


async def test_an_error_is_logged(crawl: Crawl) -> None:
    with pytest.raises(AssertionError, match="Error while looking up the sitemaps of ftp://exam"):
        await crawl(Wrong)

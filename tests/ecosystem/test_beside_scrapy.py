"""What Scrapy itself has."""

from __future__ import annotations

from typing import Any

import pytest
from harness.crawling import Crawl, RecordingSpider
from harness.replies import Reply
from harness.server import Server
from scrapy.http import Response
from scrapy.linkextractors import LinkExtractor
from scrapy.spiders import CrawlSpider, Rule, SitemapSpider

from ecosystem.obeying import PATHS, RULES, check_fetched, check_obeyed, links

POLICIES = {
    "dummy": "scrapy.extensions.httpcache.DummyPolicy",
    "RFC 2616": "scrapy.extensions.httpcache.RFC2616Policy",
}


@pytest.mark.beside("Scrapy", "AutoThrottle")
async def test_autothrottle(crawl: Crawl, server: Server) -> None:
    """Obeyed, and the robots.txt takes no part in the delays."""
    site = server.site()
    site.robots = Reply(200, RULES, delay=0.5)
    settings = {"AUTOTHROTTLE_ENABLED": True, "AUTOTHROTTLE_START_DELAY": 0.05}
    result = await crawl(urls=[site.url(path) for path in PATHS], settings=settings)
    check_obeyed(result, site, "/", "/open")
    assert result.seconds < 5


@pytest.mark.beside("Scrapy", "HttpCache")
@pytest.mark.parametrize("policy", POLICIES)
async def test_http_cache(crawl: Crawl, server: Server, policy: str) -> None:
    """Obeyed while it is filled, and when its pages come out of it, with either policy."""
    site = server.site()
    site.robots = RULES
    fresh = Reply(200, "page", headers={"Cache-Control": "max-age=3600"})
    site.pages(fresh)
    settings = {
        "HTTPCACHE_ENABLED": True,
        "HTTPCACHE_DIR": str(crawl.folder / "cache"),
        "HTTPCACHE_POLICY": POLICIES[policy],
    }
    urls = [site.url(path) for path in PATHS]
    check_obeyed(await crawl(urls=urls, settings=settings), site, "/", "/open")
    again = await crawl(urls=urls, settings=settings)
    check_obeyed(again, site, "/", "/open")
    assert again.stats["httpcache/hit"] == 2
    assert len(site.pages_asked) == 2


@pytest.mark.beside("Scrapy", "Offsite")
async def test_offsite(crawl: Crawl, server: Server) -> None:
    """The robots.txt of a filtered site is not fetched."""
    site, other = server.site(), server.site(host="127.0.0.2")
    site.robots = RULES
    site.page("/", links("/open", "/private/page", other.url("/")))

    class Following(RecordingSpider):
        def page(self, response: Response) -> Any:
            return [
                self.ask(response.urljoin(url)) for url in response.css("a::attr(href)").getall()
            ]

    result = await crawl(Following, urls=[site.url()], arguments={"allowed_domains": ["127.0.0.1"]})
    check_obeyed(result, site, "/", "/open")
    assert other.requests == ()
    assert result.stats["offsite/filtered"] == 1


class Linked(CrawlSpider):
    name = "linked"
    rules = (Rule(LinkExtractor(), callback="item", follow=True),)

    def item(self, response: Response) -> Any:
        return {"url": response.url}


@pytest.mark.beside("Scrapy", "CrawlSpider")
async def test_crawl_spider(crawl: Crawl, server: Server) -> None:
    """It follows allowed links, and obeys nofollow."""
    site = server.site()
    site.robots = RULES
    nofollow = Reply(
        200, '<a href="/hidden">', headers={"X-Robots-Tag": "nofollow", "Content-Type": "text/html"}
    )
    site.page("/", links("/open", "/private/page", "/last"))
    site.page("/last", nofollow)
    result = await crawl(Linked, arguments={"start_urls": [site.url()]})
    check_obeyed(result, site, "/", "/open", "/last")
    assert sorted(item["url"] for item in result.items) == [site.url("/last"), site.url("/open")]


class Mapped(SitemapSpider):
    name = "mapped"

    def parse(self, response: Response) -> Any:
        return {"url": response.url}


@pytest.mark.beside("Scrapy", "SitemapSpider")
async def test_sitemap_spider(crawl: Crawl, server: Server) -> None:
    """Its pages obey. If it begins at a robots.txt, it fetches the file once more."""
    site = server.site()
    site.robots = f"{RULES}\nSitemap: {site.url('/sitemap.xml')}\n"
    places = "".join(f"<url><loc>{site.url(path)}</loc></url>" for path in PATHS)
    sitemap = f'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{places}</urlset>'
    site.page("/sitemap.xml", Reply(200, sitemap, headers={"Content-Type": "application/xml"}))
    result = await crawl(Mapped, arguments={"sitemap_urls": [site.url("/robots.txt")]})
    assert site.asked("/robots.txt") == 2
    assert sorted(site.pages_asked) == ["/", "/open", "/sitemap.xml"]
    assert result.stats["robotstxt/forbidden"] == 1


@pytest.mark.beside("Scrapy", "several spiders in one process")
async def test_several_spiders(crawl: Crawl, server: Server) -> None:
    """Each robots.txt is fetched once."""
    site = server.site()
    site.robots = Reply(200, RULES, delay=0.3)
    results = await crawl.together(
        *(crawl(urls=[site.url(f"/open/{n}"), site.url(f"/private/{n}")]) for n in range(3))
    )
    check_fetched(site, *(f"/open/{n}" for n in range(3)))
    for result in results:
        check_obeyed(result, site, *(f"/open/{n}" for n in range(3)))

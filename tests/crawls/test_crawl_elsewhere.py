"""Download handlers that follow redirects by themselves, as a browser does."""

from __future__ import annotations

from typing import Any

from harness.crawling import Crawl, CrawlResult, RecordingSpider
from harness.handlers import Around
from harness.replies import Reply, redirect
from harness.server import Server, Site
from scrapy import Request

from scrapy_koster import RobotsForbidden, RobotsUnavailable


class Following(Around):
    """Sends as the crawl's own handler does, and follows."""

    async def download_request(self, request: Request) -> Any:
        response = await super().download_request(request)
        if b"Location" not in response.headers:
            return response
        return await self.download_request(
            request.replace(url=response.urljoin(response.headers["Location"].decode()))
        )


async def ended(crawl: Crawl, *urls: str | Request, **arguments: Any) -> CrawlResult:
    settings = {"DOWNLOAD_HANDLERS": {"http": Following}, "CONCURRENT_REQUESTS": 1}
    settings.update(arguments.pop("settings", {}))
    spider = arguments.pop("spider", RecordingSpider)
    return await crawl(spider, urls=urls, settings=settings, **arguments)


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
    [told] = result.warnings
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
    """The robots.txt of that site is fetched then: one decides, and one fails."""
    other, failing = server.site(host="127.0.0.2"), server.site(host="127.0.0.3")
    other.robots, failing.robots = "User-agent: *\nDisallow: /private", Reply(503)
    targets = {"/moved": other.url("/page"), "/away": other.url("/private")}
    targets |= {"/failing": failing.url("/page"), "/robots": site.url("/robots.txt")}
    for path, target in targets.items():
        site.page(path, redirect(target))
    settings = {"KOSTER_IDLE_LIMIT_SECS": 0.2}
    result = await ended(crawl, *map(site.url, targets), settings=settings)
    assert sorted(result.fetched) == sorted([other.url("/page"), site.url("/robots.txt")])
    assert result.errors == {
        site.url("/away"): RobotsForbidden,
        site.url("/failing"): RobotsUnavailable,
    }
    assert other.asked("/robots.txt") == 1
    assert sum("ended at" in line for line in result.warnings) == 1

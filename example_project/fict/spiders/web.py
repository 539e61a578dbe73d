"""A robot for any site: scrapy crawl web -a url=https://example.com/."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from scrapy import Request, Spider
from scrapy.http import HtmlResponse
from scrapy.linkextractors import LinkExtractor

from fict.items import Page
from scrapy_koster import RobotsForbidden, RobotsUnavailable

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from scrapy.http import Response
    from twisted.python.failure import Failure


class WebSpider(Spider):
    """Follows the links of one site and yields its pages, at most a hundred.

    When it ends it lists the URLs that it was refused, each with the line of
    the robots.txt that says so.
    """

    name = "web"
    custom_settings = {
        "CLOSESPIDER_PAGECOUNT": 100,
        "DEPTH_LIMIT": 5,
        "HTTPERROR_ALLOW_ALL": True,
    }

    def __init__(self, url: str = "", **arguments: Any) -> None:
        super().__init__(**arguments)
        if not url.startswith(("http://", "https://")):
            raise ValueError("which site? scrapy crawl web -a url=https://example.com/")
        self.url = url
        self.host: str | None = None
        """With its port; where the first page came from, after redirects."""
        self.refusals: list[tuple[str, str]] = []

    async def start(self) -> AsyncIterator[Request]:
        yield Request(self.url, errback=self.refused)

    def parse(self, response: Response) -> Iterator[Page | Request]:
        self.host = self.host or urlsplit(response.url).netloc
        if not isinstance(response, HtmlResponse):
            yield Page(response.url, response.status, "")
            return
        title = response.css("title::text").get("")
        yield Page(response.url, response.status, title.strip())
        for link in LinkExtractor().extract_links(response):
            if urlsplit(link.url).netloc == self.host:
                yield response.follow(link, errback=self.refused)

    def refused(self, failure: Failure) -> None:
        error = failure.value
        if isinstance(error, (RobotsForbidden, RobotsUnavailable)):
            self.refusals.append((error.verdict.url, str(error.verdict)))
        else:
            self.logger.warning("Not fetched: %s", error)

    def closed(self, _reason: str) -> None:
        told = "".join(f"\n  {url}\n    {verdict}" for url, verdict in self.refusals)
        self.logger.info("Refused by robots.txt: %d%s", len(self.refusals), told)

"""A robot that meets pages with directives: the robots META tag, and its header."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy import Request, Spider
from scrapy.http import HtmlResponse

from fict.items import Page
from fict.server import FictOrg
from fict.site import DIRECTED_PATH

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from scrapy.http import Response


class MetaSpider(Spider):
    """Follows every link and yields every page. What is dropped, the middleware drops."""

    name = "meta"
    robotstxt_user_agent = "figtree"
    custom_settings = {
        "USER_AGENT": "FigTree/0.1 Robot libwww-perl/5.04 (+http://www.fict.org/robots)",
        "DOWNLOAD_DELAY": 0,
    }

    async def start(self) -> AsyncIterator[Request]:
        yield Request(FictOrg.of(self).url(DIRECTED_PATH))

    def parse(self, response: Response) -> Iterator[Page | Request]:
        assert isinstance(response, HtmlResponse)
        yield Page(response.url, response.status, response.css("title::text").get(""))
        yield from response.follow_all(css="a")

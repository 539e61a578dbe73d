"""The robots of the matrix of section 4: they differ in their names alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy import Request, Spider

from fict.items import Visit
from fict.server import FictOrg
from fict.site import MATRIX
from scrapy_koster import RobotsForbidden

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from scrapy.http import Response
    from twisted.python.failure import Failure


class MatrixSpider(Spider):
    """Asks for every URL of the matrix, and says what became of each request."""

    async def start(self) -> AsyncIterator[Request]:
        site = FictOrg.of(self)
        for path in MATRIX:
            yield Request(site.url(path), callback=self.parse, errback=self.refused)

    def parse(self, response: Response) -> Iterator[Visit]:
        # With KOSTER_DRY_RUN a page that is forbidden comes with the verdict.
        verdict = response.meta.get("koster_verdict")
        yield Visit(
            robot=self.name,
            url=response.url,
            fetched=True,
            line=verdict.line if verdict else None,
            verdict=str(verdict or ""),
        )

    def refused(self, failure: Failure) -> Iterator[Visit]:
        if not isinstance(failure.value, RobotsForbidden):
            self.logger.error("Neither fetched nor refused: %s", failure.value)
            return
        verdict = failure.value.verdict
        yield Visit(
            robot=self.name,
            url=verdict.url,
            fetched=False,
            line=verdict.line,
            verdict=str(verdict),
        )


class UnhipBot(MatrixSpider):
    name = "unhipbot"
    robotstxt_user_agent = "unhipbot"
    custom_settings = {
        "USER_AGENT": "UnhipBot/0.1 (+http://www.fict.org/robots)",
        "DOWNLOAD_DELAY": 0,
    }


class WebCrawler(MatrixSpider):
    name = "webcrawler"
    robotstxt_user_agent = "webcrawler"
    custom_settings = {
        "USER_AGENT": "WebCrawler/3.0 (+http://www.fict.org/robots)",
        "DOWNLOAD_DELAY": 0,
    }


class Excite(MatrixSpider):
    name = "excite"
    robotstxt_user_agent = "excite"
    custom_settings = {
        "USER_AGENT": "Excite/1.0 (+http://www.fict.org/robots)",
        "DOWNLOAD_DELAY": 0,
    }


class FigTree(MatrixSpider):
    """The robot of 3.2.1, for which the site has no record of its own."""

    name = "figtree"
    robotstxt_user_agent = "figtree"
    custom_settings = {
        "USER_AGENT": "FigTree/0.1 Robot libwww-perl/5.04 (+http://www.fict.org/robots)",
        "DOWNLOAD_DELAY": 0,
    }

"""A robot that collects texts to train a model, and keeps to what the site states about that."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy import Request, Spider
from scrapy.http import HtmlResponse

from fict.items import Text, Visit
from fict.server import FictOrg
from fict.site import USAGE_PAGES, USAGE_ROBOTS_TXT
from scrapy_koster import RobotsForbidden

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from scrapy.http import Response
    from twisted.python.failure import Failure


class TrainSpider(Spider):
    """Yields the text of every page. UsageMiddleware drops what may not be used for training."""

    name = "train"
    robotstxt_user_agent = "figtree"
    robots_txt = USAGE_ROBOTS_TXT
    custom_settings = {
        "USER_AGENT": "FigTree/0.1 Robot libwww-perl/5.04 (+http://www.fict.org/robots)",
        "DOWNLOAD_DELAY": 0,
        "KOSTER_USAGE_PURPOSES": ["train-ai"],
        "KOSTER_USAGE_ACTION": "refuse",
        "KOSTER_USAGE_FIELD": "usage",
    }

    async def start(self) -> AsyncIterator[Request]:
        site = FictOrg.of(self)
        for page in USAGE_PAGES:
            yield Request(site.url(page.path), callback=self.parse, errback=self.refused)

    def parse(self, response: Response) -> Iterator[Text]:
        assert isinstance(response, HtmlResponse)
        yield Text(response.url, response.css("h1::text").get(""))

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
            verdict=verdict.because(),
        )

"""A robot that does not obey, for an audit to find."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fict.spiders.matrix import MatrixSpider

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from scrapy import Request


class RudeBot(MatrixSpider):
    """Asks for every page of the matrix, and not for the robots.txt."""

    name = "rude"
    custom_settings = {"USER_AGENT": "RudeBot/0.1 (+http://rude.example/)", "DOWNLOAD_DELAY": 0}

    async def start(self) -> AsyncIterator[Request]:
        async for request in super().start():
            if not request.url.endswith("/robots.txt"):
                request.meta["dont_obey_robotstxt"] = True
                yield request

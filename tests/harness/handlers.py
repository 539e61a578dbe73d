"""Download handlers of Scrapy, by the end of their name, and one around them."""

from __future__ import annotations

from typing import Any

import pytest
from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.utils.misc import build_from_crawler, load_object
from scrapy.utils.reactor import is_asyncio_reactor_installed, is_reactor_installed

FOLDER = "scrapy.core.downloader.handlers"


def loaded(kind: str) -> Any:
    """The handler of Scrapy, or skip."""
    # A fixture may ask, while no loop runs.
    has_reactor = is_reactor_installed()
    has_asyncio = not has_reactor or is_asyncio_reactor_installed()
    if not (has_reactor if kind.startswith("http11") else has_asyncio):
        pytest.skip("needs another kind of loop")
    try:
        return load_object(f"{FOLDER}.{kind}DownloadHandler")
    except (ImportError, NameError):
        pytest.skip("this Scrapy has it not, or the library is not installed")


class Around:
    """Sends as the crawl's own handler does, and has no pool or session of its own."""

    lazy = False

    def __init__(self, crawler: Crawler) -> None:
        kind = load_object(crawler.settings["DOWNLOAD_HANDLERS_BASE"]["http"])
        self._inner = build_from_crawler(kind, crawler)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Any:
        return cls(crawler)

    async def download_request(self, request: Request) -> Any:
        return await self._inner.download_request(request)

    async def close(self) -> None:
        await self._inner.close()

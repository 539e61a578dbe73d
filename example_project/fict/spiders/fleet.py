"""A worker of a fleet: several of them share one queue and one memory of sites, in Redis."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from scrapy import Request, Spider

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


class FleetSpider(Spider):
    """Requests the URLs of a file, a line each; what another worker has requested is filtered."""

    name = "fleet"
    urls = ""
    custom_settings = {  # as Scrapy has it
        "SCHEDULER": "scrapy_redis.scheduler.Scheduler",
        "SCHEDULER_PERSIST": True,
        "DUPEFILTER_CLASS": "scrapy_redis.dupefilter.RFPDupeFilter",
        "KOSTER_STORAGE": "scrapy_koster.storage.redis.RedisStorage",
        "EXTENSIONS": {},
        "DOWNLOAD_DELAY": 0,
    }

    async def start(self) -> AsyncIterator[Any]:
        """Request all of them, once in the whole fleet."""
        for line in Path(self.urls).read_text(encoding="utf-8").splitlines():
            yield Request(line)

    def parse(self, response: Any) -> None:
        """Leave the page alone."""

"""Whether the components that a crawl needs to obey robots.txt have been built."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy.downloadermiddlewares.robotstxt import RobotsTxtMiddleware
from scrapy.utils.misc import load_object

from scrapy_koster.crawl.components.downloadermiddleware import KosterMiddleware
from scrapy_koster.crawl.components.linkfilter import LinkFilterMiddleware
from scrapy_koster.crawl.components.spidermiddleware import RobotsMetaMiddleware
from scrapy_koster.crawl.components.usagemiddleware import UsageMiddleware
from scrapy_koster.crawl.config import config_of

if TYPE_CHECKING:
    from scrapy.crawler import Crawler


def check_built(crawler: Crawler) -> None:
    """Raise RuntimeError if a crawl that is to obey robots.txt lacks a component for it.

    Another add-on, the settings or a subclass may have removed it. Scrapy's own middleware obeys
    too. A user may remove RobotsMetaMiddleware from the settings.
    """
    downloader = (KosterMiddleware, RobotsTxtMiddleware)
    if not any(crawler.get_downloader_middleware(each) for each in downloader):
        raise RuntimeError(
            "ROBOTSTXT_OBEY is True, but there is no KosterMiddleware in the crawl. Enable it in"
            " DOWNLOADER_MIDDLEWARES, or set ROBOTSTXT_OBEY = False."
        )
    config = config_of(crawler)
    if (
        config.filter_links
        and not config.dry_run
        and crawler.get_spider_middleware(LinkFilterMiddleware) is None
    ):
        raise RuntimeError(
            "KOSTER_FILTER_LINKS is True, but LinkFilterMiddleware is not in the crawl. Add"
            ' "scrapy_koster.LinkFilterMiddleware": 1000 to SPIDER_MIDDLEWARES, or use the add-on.'
        )
    enabled = crawler.settings.get_component_priority_dict_with_base("SPIDER_MIDDLEWARES")
    if (
        config.page_directives
        and any(issubclass(load_object(path), RobotsMetaMiddleware) for path in enabled)
        and crawler.get_spider_middleware(RobotsMetaMiddleware) is None
    ):
        raise RuntimeError(
            "RobotsMetaMiddleware is in SPIDER_MIDDLEWARES, but not in the crawl: it was disabled"
            " when it was built. Fix the cause, or set KOSTER_PAGE_DIRECTIVES = []."
        )
    if config.usage.is_on and crawler.get_spider_middleware(UsageMiddleware) is None:
        raise RuntimeError(
            "KOSTER_USAGE_PURPOSES or KOSTER_USAGE_FIELD is set, but there is no UsageMiddleware in"
            " the crawl: it was disabled when it was built. Fix the cause, or unset both settings."
        )

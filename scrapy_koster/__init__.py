"""The robots exclusion protocol of Martijn Koster's 1996 draft, for Scrapy."""

from typing import TYPE_CHECKING, Any

from scrapy_koster.addon import Addon
from scrapy_koster.crawl.components.downloadermiddleware import KosterMiddleware
from scrapy_koster.crawl.components.linkfilter import LinkFilterMiddleware
from scrapy_koster.crawl.components.scheduler import DeferringScheduler
from scrapy_koster.crawl.components.sitemapspider import RobotsSitemapMixin
from scrapy_koster.crawl.components.spidermiddleware import RobotsMetaMiddleware
from scrapy_koster.crawl.components.usagemiddleware import UsageMiddleware
from scrapy_koster.crawl.engine.downloader import RobotsDownloader
from scrapy_koster.crawl.exceptions import RobotsForbidden, RobotsUnavailable
from scrapy_koster.crawl.report import RobotsReport
from scrapy_koster.parsers.koster import KosterRobotParser
from scrapy_koster.parsers.rfc9309 import Rfc9309RobotParser
from scrapy_koster.parsers.strictest import StrictestRobotParser
from scrapy_koster.protocol.usage import Preference, Statement, Usage

if TYPE_CHECKING:
    from scrapy_koster.crawl.engine.roundrobin import RoundRobinPriorityQueue

__all__ = [
    "Addon",
    "DeferringScheduler",
    "KosterMiddleware",
    "KosterRobotParser",
    "LinkFilterMiddleware",
    "Preference",
    "Rfc9309RobotParser",
    "RobotsDownloader",
    "RobotsForbidden",
    "RobotsMetaMiddleware",
    "RobotsReport",
    "RobotsSitemapMixin",
    "RobotsUnavailable",
    "RoundRobinPriorityQueue",
    "Statement",
    "StrictestRobotParser",
    "Usage",
    "UsageMiddleware",
]


def __getattr__(name: str) -> Any:
    """Return RoundRobinPriorityQueue, which is imported when it is named.

    It extends classes of Scrapy that are not public: a release without them must not keep the
    rest from being imported.
    """
    if name != "RoundRobinPriorityQueue":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from scrapy_koster.crawl.engine.roundrobin import (  # noqa: PLC0415
        RoundRobinPriorityQueue,
    )

    return RoundRobinPriorityQueue

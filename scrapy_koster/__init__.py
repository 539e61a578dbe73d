"""robots.txt for Scrapy, by Martijn Koster's 1996 draft or by RFC 9309.

A public name is imported on its first use: ``import scrapy_koster`` itself loads no component.
"""

from difflib import get_close_matches
from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from scrapy_koster.addon import Addon
    from scrapy_koster.crawl.components.downloadermiddleware import KosterMiddleware
    from scrapy_koster.crawl.components.scheduler import DeferringScheduler
    from scrapy_koster.crawl.components.sitemapspider import RobotsSitemapMixin
    from scrapy_koster.crawl.components.spidermiddleware import (
        LinkFilterMiddleware,
        RobotsMetaMiddleware,
    )
    from scrapy_koster.crawl.components.usagemiddleware import UsageMiddleware
    from scrapy_koster.crawl.engine.downloader import RobotsDownloader
    from scrapy_koster.crawl.exceptions import RobotsForbidden, RobotsUnavailable
    from scrapy_koster.parsers import KosterRobotParser, Rfc9309RobotParser, StrictestRobotParser
    from scrapy_koster.protocol.site_status import Ground, SiteStatus
    from scrapy_koster.protocol.usage import Preference, Statement, Usage
    from scrapy_koster.protocol.verdict import Verdict
    from scrapy_koster.report.extension import RobotsReport

__all__ = [
    "Addon",
    "DeferringScheduler",
    "Ground",
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
    "SiteStatus",
    "Statement",
    "StrictestRobotParser",
    "Usage",
    "UsageMiddleware",
    "Verdict",
]

_MODULES = {
    "Addon": "addon",
    "DeferringScheduler": "crawl.components.scheduler",
    "Ground": "protocol.site_status",
    "KosterMiddleware": "crawl.components.downloadermiddleware",
    "KosterRobotParser": "parsers",
    "LinkFilterMiddleware": "crawl.components.spidermiddleware",
    "Preference": "protocol.usage",
    "Rfc9309RobotParser": "parsers",
    "RobotsDownloader": "crawl.engine.downloader",
    "RobotsForbidden": "crawl.exceptions",
    "RobotsMetaMiddleware": "crawl.components.spidermiddleware",
    "RobotsReport": "report.extension",
    "RobotsSitemapMixin": "crawl.components.sitemapspider",
    "RobotsUnavailable": "crawl.exceptions",
    "SiteStatus": "protocol.site_status",
    "Statement": "protocol.usage",
    "StrictestRobotParser": "parsers",
    "Usage": "protocol.usage",
    "UsageMiddleware": "crawl.components.usagemiddleware",
    "Verdict": "protocol.verdict",
}
"""The module of each public name."""


def __getattr__(name: str) -> Any:
    """Return the object with the public name *name*, imported from its module.

    Raises AttributeError for an unknown name. The message may suggest a similar name.
    """
    if name == "addon":  # ADDONS may name this submodule instead of the class
        return import_module(f"{__name__}.addon")
    if name == "__version__":
        return version("scrapy-koster")
    if name not in _MODULES:
        near = [f". The nearest name is {each}" for each in get_close_matches(name, __all__, 1)]
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}{''.join(near)}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    """Return the names of the module, including public names that are not imported yet."""
    return sorted({*globals(), *__all__})

"""The add-on, which enables scrapy-koster by one line in settings.py."""

from __future__ import annotations

from scrapy.core.scheduler import BaseScheduler
from scrapy.crawler import Crawler
from scrapy.downloadermiddlewares.robotstxt import RobotsTxtMiddleware
from scrapy.settings import SETTINGS_PRIORITIES, BaseSettings
from scrapy.utils.misc import load_object
from typing_extensions import Self

from scrapy_koster.crawl.components.downloadermiddleware import KosterMiddleware
from scrapy_koster.crawl.components.linkfilter import LinkFilterMiddleware
from scrapy_koster.crawl.components.scheduler import DeferringScheduler
from scrapy_koster.crawl.components.spidermiddleware import RobotsMetaMiddleware
from scrapy_koster.crawl.components.usagemiddleware import UsageMiddleware
from scrapy_koster.crawl.config import FALLBACK_SCHEDULER
from scrapy_koster.crawl.engine.downloader import checking_downloader
from scrapy_koster.crawl.engine.notconfigured import not_disabled
from scrapy_koster.crawl.fetching.room import make_room
from scrapy_koster.crawl.messages.log import Log
from scrapy_koster.protocol.printable import printable
from scrapy_koster.report.extension import RobotsReport


class Addon:
    """Enables scrapy-koster and disables Scrapy's own robots.txt middleware.

    Your settings are kept: ROBOTSTXT_OBEY = False disables scrapy-koster, a component that is in
    your settings keeps its order, your SCHEDULER is wrapped, and your DOWNLOADER is extended.
    """

    def __init__(self, crawler: Crawler | None = None) -> None:
        self._crawler = crawler

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Return the add-on, which writes to the log of *crawler*."""
        return cls(crawler)

    def __repr__(self) -> str:
        """Return the path of the class, for Scrapy's log of enabled add-ons."""
        return "scrapy_koster.Addon"

    def update_settings(self, settings: BaseSettings) -> None:
        """Enable the components in *settings*, unless your ROBOTSTXT_OBEY is False."""
        with not_disabled(type(self).__name__):
            settings.set("ROBOTSTXT_OBEY", value=True, priority="addon")
            if settings.getbool("ROBOTSTXT_OBEY"):
                _enable(settings)
            elif self._crawler is not None:
                Log(__name__, self._crawler).info(
                    "scrapy-koster is off: ROBOTSTXT_OBEY is False, so robots.txt is not obeyed"
                )


_COMPONENTS = (
    ("DOWNLOADER_MIDDLEWARES", KosterMiddleware, 100),
    ("SPIDER_MIDDLEWARES", RobotsMetaMiddleware, 100),
    ("SPIDER_MIDDLEWARES", LinkFilterMiddleware, 1000),
    ("SPIDER_MIDDLEWARES", UsageMiddleware, 90),
    ("EXTENSIONS", RobotsReport, 100),
)
"""The setting, the class and the order of each component."""


def _enable(settings: BaseSettings) -> None:
    # Not replace_in_component_priority_dict: it raises KeyError if RobotsTxtMiddleware is only in
    # DOWNLOADER_MIDDLEWARES_BASE, as usual.
    settings.set_in_component_priority_dict("DOWNLOADER_MIDDLEWARES", RobotsTxtMiddleware, None)
    for name, component, order in _COMPONENTS:
        settings.setdefault_in_component_priority_dict(name, component, order)
    _wrap_scheduler(settings)
    downloader = load_object(settings["DOWNLOADER"])
    extended = checking_downloader(downloader)
    if extended is not downloader:
        _set(settings, "DOWNLOADER", extended)
    make_room(settings)


def _wrap_scheduler(settings: BaseSettings) -> None:
    """Set SCHEDULER to our scheduler, and KOSTER_FALLBACK_SCHEDULER to the user's scheduler.

    If SCHEDULER is a DeferringScheduler already, no setting changes. If KOSTER_FALLBACK_SCHEDULER
    is set already, only SCHEDULER changes. If KOSTER_FALLBACK_SCHEDULER is unset, raises TypeError
    for a SCHEDULER that is no BaseScheduler.
    """
    scheduler = load_object(settings["SCHEDULER"])
    if DeferringScheduler in getattr(scheduler, "__mro__", ()):
        return
    if not settings.get(FALLBACK_SCHEDULER):
        if not (isinstance(scheduler, type) and issubclass(scheduler, BaseScheduler)):
            raise TypeError(
                f"Invalid SCHEDULER: {printable(repr(settings['SCHEDULER']))} does not fully"
                " implement the scheduler interface. Use a subclass of"
                " scrapy.core.scheduler.BaseScheduler."
            )
        settings.set(FALLBACK_SCHEDULER, settings["SCHEDULER"], "addon")
    _set(settings, "SCHEDULER", "scrapy_koster.DeferringScheduler")


def _set(settings: BaseSettings, name: str, value: object) -> None:
    """Override the setting *name* with *value*, which wraps or extends the user's class."""
    priority = max(settings.getpriority(name) or 0, SETTINGS_PRIORITIES["addon"])
    settings.set(name, value, priority)


from_crawler = Addon.from_crawler
"""Builds the add-on if ADDONS has this module instead of the class."""

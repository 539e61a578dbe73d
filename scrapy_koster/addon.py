"""The add-on, which enables scrapy-koster by one line in settings.py."""

from contextlib import suppress
from typing import Any

from scrapy.core.scheduler import BaseScheduler
from scrapy.crawler import Crawler
from scrapy.downloadermiddlewares.robotstxt import RobotsTxtMiddleware
from scrapy.settings import SETTINGS_PRIORITIES, BaseSettings
from scrapy.utils.misc import build_from_crawler, load_object

from scrapy_koster.crawl.components.component import not_disabled
from scrapy_koster.crawl.components.downloadermiddleware import KosterMiddleware
from scrapy_koster.crawl.components.scheduler import DeferringScheduler
from scrapy_koster.crawl.components.spidermiddleware import (
    LinkFilterMiddleware,
    RobotsMetaMiddleware,
)
from scrapy_koster.crawl.components.usagemiddleware import UsageMiddleware
from scrapy_koster.crawl.config import FALLBACK_SCHEDULER
from scrapy_koster.crawl.engine.downloader import checking_downloader
from scrapy_koster.crawl.fetching.lookahead import socket_limit
from scrapy_koster.crawl.messages.log import Log
from scrapy_koster.protocol.printable import printable
from scrapy_koster.report.extension import RobotsReport

_LIMITED = {"AiohttpDownloadHandler", "HttpxDownloadHandler"}
"""The handlers that limit the number of their connections."""


class Addon:
    """Enables scrapy-koster and disables Scrapy's own robots.txt middleware.

    Your settings are kept: ROBOTSTXT_OBEY = False disables scrapy-koster, a component that is in
    your settings keeps its order, your SCHEDULER is wrapped, and your DOWNLOADER is extended.
    """

    def __init__(self, crawler: Crawler | None = None) -> None:
        self._crawler = crawler

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> "Addon":
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
    name = "DOWNLOADER_MIDDLEWARES"
    settings.set_in_component_priority_dict(name, RobotsTxtMiddleware, None)
    if not hasattr(settings, "get_component_priority_dict_with_base"):
        # Scrapy 2.14 does not see that a class and its path in the defaults are the same.
        path = "scrapy.downloadermiddlewares.robotstxt.RobotsTxtMiddleware"
        settings.set(name, {**settings.getdict(name), path: None}, settings.getpriority(name) or 0)
    for name, component, order in _COMPONENTS:
        settings.setdefault_in_component_priority_dict(name, component, order)
    _wrap_scheduler(settings)
    downloader = load_object(settings["DOWNLOADER"])
    extended = checking_downloader(downloader)
    if extended is not downloader:
        _set(settings, "DOWNLOADER", extended)
    _make_room(settings)


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


def _make_room(settings: BaseSettings) -> None:
    """Wrap limited handlers in DOWNLOAD_HANDLERS, to give them connections for robots.txt.

    Scrapy's handlers of aiohttp and httpx open at most CONCURRENT_REQUESTS connections. A hanging
    robots.txt would take a connection from the pages of healthy sites. So these handlers are built
    with more connections: CONCURRENT_REQUESTS for pages, and ``socket_limit`` for robots.txt.
    Without a reactor, Scrapy's default handler is wrapped, too.
    """
    has_reactor = settings.getbool("TWISTED_REACTOR_ENABLED", default=True)
    given = settings["DOWNLOAD_HANDLERS"]
    for scheme in ("http", "https"):
        handler, is_default = None, scheme not in given
        # If the path cannot be loaded, Scrapy reports it later.
        with suppress(Exception):
            handler = load_object(given[scheme])
        if _is_limited(handler) or (is_default and not has_reactor):
            # Without a reactor, Scrapy changes DOWNLOAD_HANDLERS_BASE after the add-ons, with the
            # priority "project". A lower priority here would have no effect.
            priority = max(given.getpriority(scheme) or 0, SETTINGS_PRIORITIES["project"])
            given.set(scheme, RoomyHandler(scheme, handler), priority)


def _is_limited(handler: Any) -> bool:
    return any(kind.__name__ in _LIMITED for kind in getattr(handler, "__mro__", ()))


class RoomyHandler:
    """A value of DOWNLOAD_HANDLERS that builds a handler with connections for robots.txt."""

    def __init__(self, scheme: str, handler: Any) -> None:
        """*handler* is the class to build, or None for Scrapy's default handler of *scheme*."""
        self._scheme = scheme
        self._handler = handler
        self.lazy = getattr(handler, "lazy", False)

    def __repr__(self) -> str:
        """Return a name, because Scrapy logs the settings."""
        return f"RoomyHandler({self._scheme!r}, {self._handler!r})"

    def __call__(self, crawler: Crawler) -> Any:
        """Return the handler. If its connections are limited, it gets more, for robots.txt."""
        settings = crawler.settings
        handler = self._handler or load_object(settings["DOWNLOAD_HANDLERS_BASE"][self._scheme])
        places = settings.getint("CONCURRENT_REQUESTS")
        if not places or not _is_limited(handler):
            return build_from_crawler(handler, crawler)
        roomy = BaseSettings(settings)
        roomy.set("CONCURRENT_REQUESTS", places + socket_limit(), "cmdline")
        view: Any = _WithSettings(crawler, roomy)
        return build_from_crawler(handler, view)

    from_crawler = __call__
    """Scrapy calls this name. ``__call__`` exists because ``load_object`` requires a callable."""


class _WithSettings:
    """A view of a crawler with other settings."""

    def __init__(self, crawler: Crawler, settings: BaseSettings) -> None:
        self._crawler = crawler
        self.settings = settings

    def __getattr__(self, name: str) -> Any:
        return getattr(self._crawler, name)


from_crawler = Addon.from_crawler
"""Builds the add-on if ADDONS has this module instead of the class."""

"""Gives more connections to download handlers that limit the number of connections.

Scrapy's handlers of aiohttp and httpx open at most CONCURRENT_REQUESTS connections. A hanging
robots.txt would take a connection from the pages of healthy sites. So the add-on builds these
handlers with more connections: CONCURRENT_REQUESTS for pages, and ``socket_limit`` for robots.txt.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from scrapy.crawler import Crawler
from scrapy.settings import SETTINGS_PRIORITIES, BaseSettings
from scrapy.utils.misc import build_from_crawler, load_object

from scrapy_koster.crawl.fetching.lookahead import socket_limit

_LIMITED = {"AiohttpDownloadHandler", "HttpxDownloadHandler"}


def make_room(settings: BaseSettings) -> None:
    """Wrap limited handlers in DOWNLOAD_HANDLERS, to give them connections for robots.txt.

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

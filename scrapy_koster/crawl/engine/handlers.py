"""The download handlers of a crawl, metered: what of them Scrapy does not offer in public."""

from __future__ import annotations

import inspect
from collections import defaultdict, deque
from copy import copy
from typing import TYPE_CHECKING, Any

from scrapy import signals
from scrapy.core.downloader.middleware import DownloaderMiddlewareManager
from scrapy.downloadermiddlewares.cookies import CookiesMiddleware
from scrapy.downloadermiddlewares.downloadtimeout import DownloadTimeoutMiddleware
from scrapy.downloadermiddlewares.httpcache import HttpCacheMiddleware
from scrapy.downloadermiddlewares.offsite import OffsiteMiddleware
from scrapy.downloadermiddlewares.redirect import MetaRefreshMiddleware, RedirectMiddleware
from scrapy.downloadermiddlewares.retry import RetryMiddleware
from scrapy.http import Response
from scrapy.settings import BaseSettings
from scrapy.utils.misc import build_from_crawler

from scrapy_koster.crawl.engine.meter import MeteredPool, meter_backend, meter_connector

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from scrapy import Request
    from scrapy.core.downloader.handlers import DownloadHandlerProtocol
    from scrapy.crawler import Crawler

# Those that the meta of a request for a robots.txt switches off: Scrapy would ask each of them. A
# subclass may do more.
_SWITCHED_OFF = {
    CookiesMiddleware,
    DownloadTimeoutMiddleware,
    HttpCacheMiddleware,
    MetaRefreshMiddleware,
    OffsiteMiddleware,
    RedirectMiddleware,
    RetryMiddleware,
}
_SCHEMES = {"http", "https"}
# No bound: how many sites are asked at the same time is for permits to decide.
_CONNECTIONS = 100_000


class MeteredHandlers:
    """The download handlers of a crawl, over connections of their own that are metered.

    That holds for those of Scrapy: for HTTP/1.1, aiohttp and httpx. What a
    handler that somebody else wrote reads cannot be seen from outside: it is
    used as it is, and so is a subclass of these that cannot be metered.
    """

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._handlers = crawler.engine.downloader.handlers
        self._middlewares = _switched_on(crawler.engine.downloader.middleware)
        self._metered: dict[str, DownloadHandlerProtocol | None] = {}
        self._built: list[DownloadHandlerProtocol] = []
        """The signal that closes them keeps none of them alive."""

    def prepare(self) -> None:
        """Meter what Scrapy has built by now: a session of aiohttp takes a millisecond.

        Scrapy builds a handler that is lazy when it is first needed, and so it is done here.
        """
        built = getattr(self._handlers, "_handlers", {})  # another downloader has others
        for scheme in _SCHEMES & built.keys():
            self._metered[scheme] = self._meter(scheme)

    async def download(self, request: Request) -> Response:
        """Return the response; to be called while a meter is counting."""
        scheme = request.url.partition(":")[0]
        if scheme not in self._metered:
            self._metered[scheme] = self._meter(scheme)
        handler = self._metered[scheme]
        if handler is None:
            response: object = await self._handlers.download_request_async(request)
        else:
            response = await handler.download_request(request)
        if not isinstance(response, Response):
            name = type(self._handlers._get_handler(scheme)).__qualname__  # noqa: SLF001
            raise TypeError(
                f"download_request() of the download handler {name} returned a value of type"
                f" {type(response).__name__}, not a Response"
            )
        return response

    async def through_middlewares(
        self, download: Callable[[Request], Coroutine[Any, Any, Response]], request: Request
    ) -> Response | Request:
        """Return what the downloader middlewares make of *request*, with *download* behind them."""
        return await self._middlewares.download_async(download, request)

    def is_zyte_api(self, url: str) -> bool:
        """Whether scrapy-zyte-api sends it, which warns of headers that it could choose better."""
        handler = self._handlers._get_handler(url.partition(":")[0])  # noqa: SLF001
        return any(kind.__module__.startswith("scrapy_zyte_api") for kind in type(handler).__mro__)

    def _meter(self, scheme: str) -> DownloadHandlerProtocol | None:
        handler: Any = self._handlers._get_handler(scheme)  # noqa: SLF001
        if not inspect.iscoroutinefunction(getattr(handler, "download_request", None)):
            return None  # its interface is that of Scrapy 2.13, which Scrapy knows how to call
        try:
            return self._metered_one(handler)
        except Exception:  # noqa: BLE001  # a subclass may lack, or ask for, whatever it likes
            return None

    def _metered_one(self, handler: Any) -> DownloadHandlerProtocol | None:
        kinds = {kind.__name__ for kind in type(handler).__mro__}
        if "HTTP11DownloadHandler" in kinds:
            return _with_metered_pool(handler)
        if kinds.isdisjoint(_METERS):
            return None
        another = _another(type(handler), self._crawler)
        self._built.append(another)
        for kind in kinds & _METERS.keys():
            _METERS[kind](another, handler)
        return another


def _switched_on(middlewares: DownloaderMiddlewareManager) -> DownloaderMiddlewareManager:
    """Return *middlewares*, without those that do nothing with a request for a robots.txt."""
    if type(middlewares) is not DownloaderMiddlewareManager:  # that of somebody's own downloader
        return middlewares
    apart = copy(middlewares)
    apart.methods = defaultdict(deque)
    for name, methods in middlewares.methods.items():
        apart.methods[name] = deque(filter(_is_switched_on, methods))
    return apart


def _is_switched_on(method: object) -> bool:
    return type(getattr(method, "__self__", None)) not in _SWITCHED_OFF


def _another(cls: Any, crawler: Crawler) -> DownloadHandlerProtocol:
    """Return a download handler that takes nothing from the crawl.

    aiohttp and httpx open CONCURRENT_REQUESTS connections in all: a site that
    hangs would keep one from the pages of the others.
    """
    apart = copy(crawler)
    apart.settings = BaseSettings(crawler.settings)  # type: ignore[assignment]
    apart.settings.set("CONCURRENT_REQUESTS", _CONNECTIONS, "cmdline")
    handler: DownloadHandlerProtocol = build_from_crawler(cls, apart)
    crawler.signals.connect(handler.close, signals.engine_stopped)
    return handler


def _with_metered_pool(handler: Any) -> DownloadHandlerProtocol:
    metered: Any = copy(handler)  # that of the crawl keeps its own
    metered._pool = MeteredPool(handler._pool)  # noqa: SLF001
    return metered  # type: ignore[no-any-return]


def _meter_session(handler: Any, pages: Any) -> None:
    """Meter the session of aiohttp. With one TLS context its connections fit those of *pages*."""
    meter_connector(handler._session.connector, pages._session.connector)  # noqa: SLF001
    handler._ssl_context = pages._ssl_context  # noqa: SLF001


def _meter_clients(handler: Any, pages: Any) -> None:  # noqa: ARG001  # httpx has no pool for it
    """Meter the clients of httpx: there is one for each proxy, made when it is first needed."""
    make = handler._make_client  # noqa: SLF001

    def metered(*args: Any) -> Any:
        client = make(*args)
        meter_backend(client._transport._pool._network_backend)  # noqa: SLF001
        return client

    handler._make_client = metered  # noqa: SLF001
    handler._default_client = metered()  # noqa: SLF001  # it has no connection yet


_METERS = {
    "AiohttpDownloadHandler": _meter_session,
    "HttpxDownloadHandler": _meter_clients,
}

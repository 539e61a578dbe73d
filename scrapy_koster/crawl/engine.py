"""What Scrapy does not offer in public, in one place: Scrapy 2.18 and 2.19 have it alike."""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING, Any

from scrapy.core.downloader.handlers import DownloadHandlers
from scrapy.settings import BaseSettings
from scrapy.utils.reactor import is_reactor_installed

from scrapy_koster.crawl.meter import MeteredPool, meter_backend, meter_connector

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.core.downloader.handlers import DownloadHandlerProtocol
    from scrapy.crawler import Crawler
    from scrapy.http import Response


def wake(crawler: Crawler) -> None:
    """Have the engine ask its scheduler, as it does by itself only after a
    download or every five seconds.
    """
    slot = crawler.engine._slot  # noqa: SLF001
    if slot is not None:
        slot.nextcall.schedule()


def is_closing(crawler: Crawler) -> bool:
    """Whether the crawl has begun to close, for which there is no signal."""
    slot = crawler.engine._slot  # noqa: SLF001
    return not crawler.engine.running or slot is None or slot.closing is not None


# No bound: how many sites are asked at the same time is the keeper's to decide.
_CONNECTIONS = 100_000


class MeteredHandlers:
    """The download handlers of a crawl, over connections of their own that are metered.

    That holds for Scrapy's own for HTTP/1.1 and for aiohttp. What a handler
    that somebody else wrote reads of an answer cannot be seen from outside.
    """

    def __init__(self, crawler: Crawler) -> None:
        self._handlers = _handlers(crawler)
        self._metered: dict[str, DownloadHandlerProtocol | None] = {}

    async def download(self, request: Request) -> Response:
        """Return the response; to be called while a meter is counting."""
        scheme = request.url.partition(":")[0]
        if scheme not in self._metered:
            self._metered[scheme] = _metered(self._handlers._get_handler(scheme))  # noqa: SLF001
        handler = self._metered[scheme]
        if handler is None:
            return await self._handlers.download_request_async(request)
        return await handler.download_request(request)


def _handlers(crawler: Crawler) -> DownloadHandlers:
    """Return the download handlers of the crawl, or such as take nothing from it.

    Without a reactor those of the crawl open CONCURRENT_REQUESTS connections
    in all: a site that hangs would keep one from the pages of the others.
    """
    if is_reactor_installed():
        return crawler.engine.downloader.handlers
    apart = copy(crawler)
    apart.settings = BaseSettings(crawler.settings)  # type: ignore[assignment]
    apart.settings.set("CONCURRENT_REQUESTS", _CONNECTIONS, "cmdline")
    return DownloadHandlers(apart)


def _metered(handler: Any) -> DownloadHandlerProtocol | None:
    """Return *handler* with connections that are metered, None if it is not known how."""
    kinds = {kind.__name__ for kind in type(handler).__mro__}
    if "HTTP11DownloadHandler" in kinds:
        from twisted.internet import reactor  # noqa: PLC0415  # it would install one

        pool = MeteredPool(reactor)
        pool._factory = handler._pool._factory  # noqa: SLF001
        handler = copy(handler)  # that of the crawl keeps its own
        handler._pool = pool  # noqa: SLF001
    elif "AiohttpDownloadHandler" in kinds:
        meter_connector(handler._session.connector)  # noqa: SLF001
    elif "HttpxDownloadHandler" in kinds:
        _meter_clients(handler)
    else:
        return None
    metered: DownloadHandlerProtocol = handler
    return metered


def _meter_clients(handler: Any) -> None:
    """Meter the clients of httpx: there is one for each proxy, made when it is first needed."""
    make = handler._make_client  # noqa: SLF001

    def metered(*args: Any) -> Any:
        client = make(*args)
        meter_backend(client._transport._pool._network_backend)  # noqa: SLF001
        return client

    handler._make_client = metered  # noqa: SLF001
    handler._default_client = metered()  # noqa: SLF001  # it has no connection yet

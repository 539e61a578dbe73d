"""What Scrapy does not offer in public, in one place: Scrapy 2.17 to 2.19 have it alike."""

from __future__ import annotations

import asyncio
import inspect
from contextlib import contextmanager, nullcontext
from copy import copy
from typing import TYPE_CHECKING, Any, TypeVar

from scrapy import signals
from scrapy.settings import BaseSettings
from scrapy.utils.misc import build_from_crawler
from twisted.internet.defer import CancelledError

from scrapy_koster.crawl.engine.meter import MeteredPool, meter_backend, meter_connector

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator
    from contextlib import AbstractContextManager

    from scrapy import Request
    from scrapy.core.downloader.handlers import DownloadHandlerProtocol
    from scrapy.crawler import Crawler
    from scrapy.http import Response


_T = TypeVar("_T")

CANCELLED = (asyncio.CancelledError, CancelledError)
"""What a coroutine that is cancelled ends with, on either kind of loop."""


def belonging(crawler: Crawler, kind: type[_T], make: Callable[[], _T]) -> _T:
    """Return the one object of *kind* that belongs to *crawler*; *make* it if there is none.

    It is an attribute of the crawler, and gone with it: a weak dictionary would keep both, since
    what belongs to a crawler knows it.
    """
    name = f"_koster_{kind.__name__.lower()}"
    if name not in vars(crawler):
        setattr(crawler, name, make())
    found: _T = getattr(crawler, name)
    return found


_MOVING = (
    signals.request_scheduled,
    signals.request_reached_downloader,
    signals.response_received,
    signals.item_scraped,
    signals.item_dropped,
    signals.item_error,
    signals.spider_error,
)


class Engine:
    """The engine of a crawl, as far as what Scrapy does not offer in public is concerned."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler

    @property
    def _slot(self) -> Any:
        return self._crawler.engine._slot  # noqa: SLF001

    @property
    def is_paused(self) -> bool:
        """Whether the user has paused the crawl."""
        return self._crawler.engine.paused

    @property
    def is_closing(self) -> bool:
        """Whether the crawl has begun to close, for which there is no signal.

        One that still opens its spider does not run yet, and does not close.
        """
        slot = self._slot
        return slot is None or slot.closing is not None

    @property
    def _is_opening(self) -> bool:
        return not (self._crawler.engine.running or self.is_closing)

    @property
    def is_by_hand(self) -> bool:
        """Whether a command of Scrapy fetches one page for somebody who waits for it.

        Those are ``shell``, whose crawl stays open, and ``fetch``, ``view`` and
        ``parse``, which put a start of their own into the spider.
        """
        slot = self._slot
        start = getattr(type(self._crawler.spider), "start", None)
        is_of_a_command = getattr(start, "__module__", "").startswith("scrapy.commands.")
        return is_of_a_command or (slot is not None and not slot.close_if_idle)

    @property
    def under_way(self) -> Collection[Request]:
        """The requests of the downloader: in its middlewares, waiting in a slot, or sent."""
        return self._crawler.engine.downloader.active

    def wake(self) -> None:
        """Have the engine ask its scheduler, as it does by itself only after a
        download or every five seconds.
        """
        slot = self._slot
        if slot is not None:
            slot.nextcall.schedule()

    @property
    def scraped_count(self) -> int:
        """How many responses are being scraped, or are to be."""
        scraped = self._crawler.engine.scraper.slot
        return 0 if scraped is None else len(scraped.active) + len(scraped.queue)

    def when_moving(self, call: Callable[[], object]) -> Callable[[], None]:
        """Call *call* at each signal that something was scheduled, fetched or scraped.

        That costs something at each of them. Return what ends it.
        """
        send = self._crawler.signals
        for signal in _MOVING:
            send.connect(call, signal=signal)

        def end() -> None:
            for signal in _MOVING:
                send.disconnect(call, signal=signal)

        return end

    def when_fetching(self, call: Callable[[], object]) -> None:
        """Call *call* for each request that reaches the downloader, from now on."""
        self._crawler.signals.connect(call, signal=signals.request_reached_downloader)

    def has_nothing_else(self, waiting: Collection[Request]) -> bool:
        """Whether nothing can be downloaded but the requests that are *waiting* for their site.

        That is no moment of ``spider_idle``: what a pipeline downloads belongs to
        an item, and while there are items Scrapy takes the spider for busy. Where
        they hold all places of CONCURRENT_REQUESTS no other can be downloaded.
        While the spider is opened nothing is, but for who opens it.
        """
        engine, slot = self._crawler.engine, self._slot
        if slot is None or not all(request in waiting for request in engine.downloader.active):
            return False
        if self._is_opening:
            return True
        return (
            engine.scraper.slot is not None
            and engine._start is None  # noqa: SLF001
            and (engine.downloader.needs_backout() or not slot.scheduler.has_pending_requests())
        )

    def around_pauses(self, begun: Callable[[], None], ended: Callable[[], None]) -> None:
        """Call *begun* when the user pauses the crawl, *ended* when it goes on.

        No signal tells of that. Either may be called when nothing has changed.
        """
        engine = self._crawler.engine
        pause, unpause = engine.pause, engine.unpause

        def paused() -> None:
            pause()
            begun()

        def unpaused() -> None:
            unpause()
            ended()

        engine.pause, engine.unpause = paused, unpaused  # type: ignore[method-assign]

    def around_downloads(
        self, context: Callable[[Request], AbstractContextManager[None] | None]
    ) -> None:
        """Have each request sent within its *context*, if it has one: no signal tells of that.

        It is called directly before the download handler is; what it raises is how the request
        ends.
        """
        handlers = self._crawler.engine.downloader.handlers
        download = handlers.download_request_async

        async def within(request: Request) -> Response:
            with context(request) or nullcontext():
                return await download(request)

        handlers.download_request_async = within  # type: ignore[method-assign]

    @contextmanager
    def place_given_up(self, request: Request) -> Iterator[None]:
        """Give the place of CONCURRENT_REQUESTS that *request* has to others meanwhile.

        The downloader counts those whom it has in ``active``, which is no more
        than that; it takes each out itself when it has ended.
        """
        active = self._crawler.engine.downloader.active
        if request not in active:
            yield
            return
        active.discard(request)
        self.wake()
        try:
            yield
        finally:
            active.add(request)


# No bound: how many sites are asked at the same time is the keeper's to decide.
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
        self._metered: dict[str, DownloadHandlerProtocol | None] = {}
        self._built: list[DownloadHandlerProtocol] = []
        """The signal that closes them keeps none of them alive."""

    async def download(self, request: Request) -> Response:
        """Return the response; to be called while a meter is counting."""
        scheme = request.url.partition(":")[0]
        if scheme not in self._metered:
            self._metered[scheme] = self._meter(scheme)
        handler = self._metered[scheme]
        if handler is None:
            return await self._handlers.download_request_async(request)
        return await handler.download_request(request)

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
            _METERS[kind](another)
        return another


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
    from twisted.internet import reactor  # noqa: PLC0415  # it would install one

    pool = MeteredPool(reactor)
    pool._factory = handler._pool._factory  # noqa: SLF001
    metered: Any = copy(handler)  # that of the crawl keeps its own
    metered._pool = pool  # noqa: SLF001
    return metered  # type: ignore[no-any-return]


def _meter_session(handler: Any) -> None:
    meter_connector(handler._session.connector)  # noqa: SLF001


def _meter_clients(handler: Any) -> None:
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
